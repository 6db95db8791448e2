"""The parts of the langchain agent: the trial's model as a chat model, actions as tools, and the
end of the loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, ToolException

from pytest_mlab import (
    Action,
    ActionSpec,
    ContextWindowError,
    Environment,
    Message,
    ModelReply,
    ToolCall,
    read_call,
)

from .prompting import because, cut

if TYPE_CHECKING:
    Middleware = AgentMiddleware[Any, Any, Any]
else:
    Middleware = AgentMiddleware  # the number of its parameters differs from version to version

Reply = TypeVar("Reply")

REASONING = "mlab_reasoning"
"""Where a message of LangChain's holds the reasoning that came with it."""

UNPARSED = "unparsed"
"""The argument that holds arguments which are no JSON object."""

CUT_SHORT = "mlab_cut_short"
"""And why it may lack a call that the model meant to make."""


class Submitted(Exception):
    """The final answer was given; it leaves the graph, which would ask the model again."""


def agent_graph(
    env: Environment,
    actions: Mapping[str, ActionSpec],
    *,
    system: str,
    nudge: Template,
    nudges: int,
    temperature: float | None,
    observation_chars: int,
) -> Runnable[Any, Any]:
    """LangChain's agent over ``actions``."""
    return create_agent(
        TrialModel(env=env, specs=tuple(actions.values()), temperature=temperature),
        [
            ActionTool(
                name=spec.name,
                description=_description(spec),
                args_schema=dict(spec.schema),
                env=env,
                most=observation_chars,
            )
            for spec in actions.values()
        ],
        system_prompt=system,
        middleware=[Trial(env, nudge, nudges)],
    )


def _description(spec: ActionSpec) -> str:
    return f"{spec.summary} Returns: {spec.returns}" if spec.returns else spec.summary


# --- the model ---


class TrialModel(BaseChatModel):
    """The trial's main model. Tools are the actions, whatever the graph binds."""

    env: Any
    specs: tuple[ActionSpec, ...]
    temperature: float | None = None

    @property
    def _llm_type(self) -> str:
        return "pytest-mlab"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model with its tools, which it has already."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self.env.model.complete(
            [_message(message) for message in messages],
            temperature=self.temperature,
            stop=stop or (),
            tools=self.specs,
        )
        return ChatResult(generations=[ChatGeneration(message=_answer(reply))])


def _message(message: BaseMessage) -> Message:
    text = message.text
    if isinstance(message, SystemMessage):
        return Message("system", text)
    if isinstance(message, AIMessage):
        calls = tuple(
            ToolCall(c["id"] or "", c["name"], json.dumps(c["args"])) for c in message.tool_calls
        )
        thought = tuple(message.additional_kwargs.get(REASONING, ()))
        return Message("assistant", text, tool_calls=calls, reasoning=thought)
    if isinstance(message, ToolMessage):
        return Message("tool", text, tool_call_id=message.tool_call_id)
    return Message("user", text)


def _answer(reply: ModelReply) -> AIMessage:
    usage = {
        "input_tokens": reply.usage.prompt_tokens,
        "output_tokens": reply.usage.completion_tokens,
        "total_tokens": reply.usage.total,
    }
    calls = [
        {"id": c.id, "name": c.name, "args": _arguments(c.arguments), "type": "tool_call"}
        for c in reply.tool_calls
    ]
    # Providers want it back beside the calls; LangChain keeps these as they are.
    kept: dict[str, Any] = {CUT_SHORT: because(reply)}
    if reply.reasoning:
        kept[REASONING] = [dict(block) for block in reply.reasoning]
    return AIMessage(
        content=reply.text, tool_calls=calls, usage_metadata=usage, additional_kwargs=kept
    )


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments. Those that are not a JSON object are left for the environment to refuse,
    as a step."""
    try:
        found = json.loads(text, strict=False) if text.strip() else {}
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {UNPARSED: text}


# --- the actions ---


class ActionTool(BaseTool):
    """An action. What the environment refuses comes back as an error that the model can read."""

    env: Any
    most: int
    handle_tool_error: bool = True

    def _run(self, /, **arguments: Any) -> str:
        return act(self.env, self.name, arguments, self.most)


def act(env: Environment, name: str, arguments: Mapping[str, Any], most: int) -> str:
    """Do a step. Raises ToolException for one that failed, and Submitted after the last."""
    seen = env.execute(Action(name, arguments))
    if seen.done:
        raise Submitted
    text = cut(seen.text, most)
    if not seen.ok:
        raise ToolException(text)
    return text


# --- the loop ---


class Trial(Middleware):
    """Keeps the loop going where LangChain's own would end or raise: a reply without a call, an
    unknown tool, a conversation that no longer fits."""

    def __init__(self, env: Environment, nudge: Template, nudges: int) -> None:
        super().__init__()
        self.env = env
        self.nudge = nudge
        self.nudges = nudges
        self.idle = 0
        self.refused = 0
        self.forgotten = 0

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Reply]) -> Reply:
        """Ask with as much of the conversation as fits: the task, and the latest turns."""
        while True:
            head, turns = _turns(request.messages)
            shown = [message for turn in turns[self.forgotten :] for message in turn]
            try:
                return handler(request.override(messages=[*head, *shown]))
            except ContextWindowError:
                left = len(turns) - self.forgotten
                if left == 0:
                    raise
                self.forgotten += max(1, left // 2)
                self.env.note("turns_forgotten", {"turns": self.forgotten})

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Do the call. One that cannot be done is answered and costs no step; after as many in a
        row as there are nudges it does, so that the budget bounds them."""
        call = request.tool_call
        given = call["args"].get(UNPARSED, call["args"])
        action = read_call(self.env.actions, call["name"], given)
        if isinstance(action, str) and self.refused < self.nudges:
            self.refused += 1
            self.env.note("call_refused", {"action": call["name"], "problem": action})
            text = f"Nothing was done, and no step was used up. {action}"
            return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        self.refused = 0
        if request.tool is not None:
            return handler(request)
        try:
            text = act(self.env, call["name"], call["args"], 20_000)
        except ToolException as error:
            text = str(error)
        return ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """A reply without a call is answered by a nudge, a few times in a row."""
        if state["messages"][-1].tool_calls:
            self.idle = 0
            return None
        self.idle += 1
        if self.idle > self.nudges:
            self.env.note("gave_up", {"replies_without_an_action": self.idle})
            return None
        why = state["messages"][-1].additional_kwargs.get(CUT_SHORT, "")
        return {"messages": [HumanMessage(self.nudge.substitute(why=why))], "jump_to": "model"}


def _turns(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], list[list[BaseMessage]]]:
    """The task, and what was said since in turns: a reply of the model with the answers to it."""
    head, turns = list[BaseMessage](), list[list[BaseMessage]]()
    for message in messages:
        if isinstance(message, AIMessage):
            turns.append([message])
        else:
            (turns[-1] if turns else head).append(message)
    return head, turns
