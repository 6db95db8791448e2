"""A real LangChain agent (``create_agent``, a LangGraph graph): its tools are our actions, its
model is the trial's.

The loop, the state and the tool node are LangChain's. Model calls go through the environment, so
that they are metered, recorded and replayed like those of any other agent. This file can be
imported without LangChain; the classes that derive from it are in langchain_parts.py."""

from __future__ import annotations

from pathlib import Path

from pytest_mlab import Environment

from .prompting import (
    RESEARCH_LOG,
    Nudges,
    ObservationChars,
    ShownSettings,
    Temperature,
    sections,
    shown_actions,
)


class LangchainSettings(ShownSettings, frozen=True, extra="forbid"):
    """The agent's settings."""

    temperature: Temperature = None
    nudges: Nudges = 3
    observation_chars: ObservationChars = 20_000


class LangchainAgent:
    """Works until it submits, stops calling tools, or the budget ends."""

    needs_model = True
    requirements = ("langchain>=1.0,<2", "langgraph>=1.0,<2")
    Settings = LangchainSettings

    def __init__(self, settings: LangchainSettings | None = None) -> None:
        self.settings = settings or self.Settings()

    def run(self, env: Environment) -> None:
        """Let the graph run; what ends the trial passes through."""
        # Here, since it imports an optional package, for seconds.
        from .langchain_parts import Submitted, agent_graph

        settings = self.settings
        texts = sections(Path(__file__).with_name("langchain_prompt.md"))
        graph = agent_graph(
            env,
            shown_actions(env.actions, RESEARCH_LOG, settings.add_actions, settings.remove_actions),
            system=texts["system"].template,
            nudge=texts["nudge"],
            nudges=settings.nudges,
            temperature=settings.temperature,
            observation_chars=settings.observation_chars,
        )
        task = texts["task"].substitute(task=env.task_description)
        try:
            # One tool at a time, in the order of the calls; the budget, and no count of nodes, ends
            # the loop.
            graph.invoke(
                {"messages": [{"role": "user", "content": task}]},
                {"recursion_limit": 1_000_000, "max_concurrency": 1},
            )
        except Submitted:
            return
