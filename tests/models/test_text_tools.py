"""Tools by text: there and back, and what weak models make of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.errors import BadRequestError, ProviderError, RateLimitError
from pytest_mlab.models.litellm_client import LitellmClient
from pytest_mlab.models.retry import Retry
from pytest_mlab.models.text_tools import TextTools, as_text, from_text, instructions, written
from tests.support.scripted_server import Reply, ScriptedServer, bad_request, call, say

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
EDIT = ActionSpec("Edit Script (AI)", "Rewrites a file.", SCHEMA, "a diff")
LIST = ActionSpec("List Files", "Lists a folder.", {"type": "object", "properties": {}})
TOOLS = (EDIT, LIST)
GO = (Message("user", "go"),)

plain = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: "<tool_" not in text)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
arguments = st.dictionaries(st.text(), json_values, max_size=4).map(json.dumps) | plain
calls = st.lists(st.tuples(st.sampled_from([tool.name for tool in TOOLS]), arguments), max_size=4)


def meaning(text: str) -> object:
    """Arguments as what they say: JSON objects may be written in several ways."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


@settings(max_examples=50)
@given(plain.map(str.strip), calls)
def test_what_is_written_is_read(text: str, made: list[tuple[str, str]]) -> None:
    sent = written(text, [ToolCall(f"c{n}", *one) for n, one in enumerate(made)])
    if not made:
        assert sent == text
        return
    rest, found = from_text(sent, TOOLS, before=3)
    assert rest == text
    assert [(one.name, meaning(one.arguments)) for one in found] == [
        (name, meaning(args)) for name, args in made
    ]
    assert [one.id for one in found] == [f"call_{3 + n}" for n in range(len(made))]


@given(st.text())
def test_any_text_is_read_without_an_error_and_none_of_it_is_lost(text: str) -> None:
    rest, found = from_text(text, TOOLS)
    assert found or rest == text


LIST_CALL = '{"name": "List Files", "arguments": {"path": "."}}'


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"<tool_call>\n{LIST_CALL}\n</tool_call>", ""),
        (
            f"Let me look.\n<tool_call>{LIST_CALL}</tool_call>\nThen I go on.",
            "Let me look.\n\nThen I go on.",
        ),
        (f"<tool_call>\n```json\n{LIST_CALL}\n```\n</tool_call>", ""),
        (f"```json\n<tool_call>\n{LIST_CALL}\n</tool_call>\n```", "```json\n\n```"),
        (f"<tool_call>{LIST_CALL}", ""),
        (f"I look:\n```json\n{LIST_CALL}\n```\ndone", "I look:\n\ndone"),
        (f"I look: {LIST_CALL}", "I look:"),
        ('{"tool": "list_files", "args": {"path": "."}}', ""),
        ('{"action": "List Files", "action_input": "{\\"path\\": \\".\\"}"}', ""),
        ('{"function": {"name": "List_Files", "arguments": {"path": "."}}}', ""),
        (
            (
                f'<tool_call>{LIST_CALL}</tool_call>\n<tool_result name="List'
                ' Files">\na.py\n</tool_result>\nSo a.py'
            ),
            "",
        ),
    ],
)
def test_ways_of_writing_a_call(text: str, rest: str) -> None:
    found_rest, [found] = from_text(text, TOOLS)
    assert (found.name, json.loads(found.arguments), found_rest) == (
        "List Files",
        {"path": "."},
        rest,
    )


def test_line_breaks_in_a_string() -> None:
    _, [found] = from_text(
        '<tool_call>{"name": "List Files", "arguments": {"path": "a\nb"}}</tool_call>', TOOLS
    )
    assert json.loads(found.arguments) == {"path": "a\nb"}


def test_half_a_character_does_not_break_what_is_written_later() -> None:
    _, [found] = from_text('{"name": "List Files", "arguments": {"path": "\\ud83d.py"}}', TOOLS)
    assert json.loads(found.arguments) == {"path": "?.py"}
    escaped = ToolCall("c", "List Files", '{"path": "\\ud83d"}')
    assert written("", [escaped]).encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "I would list the files.",
        "<tool_call>\n{'name': 'List Files'}\n</tool_call>",
        '<tool_call>\n{"name": "List Files", "arguments": {"path": \n</tool_call>',
        '<tool_call>["List Files"]</tool_call>',
        'The data are {"name": "Smith", "arguments": {}}.',
        '{"name": "List Files", "arguments": [1]}',
        "{" * 3000,
        "I saw <tool_result in the log",
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert from_text(text, TOOLS) == (text, ())


def test_a_marked_call_of_an_unknown_tool_keeps_its_name() -> None:
    _, [found] = from_text('<tool_call>{"name": "Dance", "arguments": {}}</tool_call>', TOOLS)
    assert found.name == "Dance"


def test_a_block_that_does_not_parse_stays_beside_one_that_does() -> None:
    rest, found = from_text(
        f"<tool_call>{{oops</tool_call>\n<tool_call>{LIST_CALL}</tool_call>", TOOLS
    )
    assert (rest, [one.name for one in found]) == ("<tool_call>{oops</tool_call>", ["List Files"])


def test_the_request_is_plain() -> None:
    asked = ToolCall("c1", "List Files", '{"path": "."}')
    spoilt = ToolCall("c2", "Edit Script (AI)", "no JSON")
    messages = (
        Message("system", "You are careful."),
        Message("user", "go"),
        Message("assistant", "I look.", (asked, spoilt)),
        Message("tool", "a.py", (), "c1"),
        Message("tool", "Error", (), "c2"),
        Message("user", "and on"),
    )
    request = as_text(ModelRequest("m", messages, stop=("X",), tools=TOOLS, must_call=True))
    assert (request.tools, request.must_call, request.stop) == ((), False, ("X", "<tool_result"))
    system, go, assistant, results = request.messages
    assert system.content == f"You are careful.\n\n{instructions(TOOLS, must_call=True)}"
    for told in (
        "## Edit Script (AI)\nRewrites a file. Gives: a diff",
        json.dumps(SCHEMA),
        "must call at least one",
    ):
        assert told in system.content
    assert go.content == "go"
    assert assistant == Message("assistant", written("I look.", (asked, spoilt)))
    assert results == Message(
        "user",
        '<tool_result name="List Files">\na.py\n</tool_result>\n\n'
        '<tool_result name="Edit Script (AI)">\nError\n</tool_result>\n\nand on',
    )


def test_no_system_message_and_no_room_for_a_stop() -> None:
    request = as_text(ModelRequest("m", GO, stop=tuple("abcd"), tools=TOOLS))
    assert [message.role for message in request.messages] == ["system", "user"]
    assert "calls no tool" in request.messages[0].content
    assert request.stop == tuple("abcd")


def test_an_old_conversation_without_tools_is_plain_too() -> None:
    messages = (
        *GO,
        Message("assistant", "", (ToolCall("c", "List Files", "{}"),)),
        Message("tool", "a.py", (), "c"),
    )
    client = Scripted(["so it is"], native=False)
    TextTools(client).complete(ModelRequest("m", messages))
    [request] = client.requests
    assert [message.role for message in request.messages] == ["user", "assistant", "user"]
    assert request.stop == ()


@dataclass
class Scripted:
    """Answers with texts and errors in turn."""

    script: list[str | Exception]
    native: bool = True
    requests: list[ModelRequest] = field(default_factory=list)

    def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return ModelReply(answer, request.model, Usage(1, 1), 0.0, 0.0, finish_reason="length")

    def facts(self, model: str) -> ModelFacts:
        return ModelFacts(model, self.native, None)


@pytest.mark.parametrize(
    "name", ["functions.list_files", "List_Files<|channel|>json", "LIST-FILES"]
)
def test_names_and_arguments_are_read_as_they_are_meant(name: str) -> None:
    for arguments in ({"path": "."}, '{"path": "."}', json.dumps('{"path": "."}')):
        block = json.dumps({"name": name, "arguments": arguments})
        for text in (f"<tool_call>\n{block}\n</tool_call>", f"```json\n{block}\n```"):
            assert from_text(text, TOOLS) == (
                "",
                (ToolCall("call_0", "List Files", '{"path": "."}'),),
            )


def test_reasoning_does_not_go_out_as_text() -> None:
    block = {"type": "thinking", "thinking": "SECRET"}
    asked = ModelRequest("m", (*GO, Message("assistant", "x", reasoning=(block,))), tools=TOOLS)
    assert "SECRET" not in str(as_text(asked))
    assert all(not message.reasoning for message in as_text(asked).messages)


def test_a_model_with_tools_is_left_alone() -> None:
    client = Scripted([LIST_CALL])
    request = ModelRequest("m", GO, tools=TOOLS)
    reply = TextTools(client).complete(request)
    assert (reply.text, reply.tool_calls, client.requests) == (LIST_CALL, (), [request])


def test_a_model_without_tools_answers_as_one_with() -> None:
    client = Scripted([f"I look. {LIST_CALL}", "no call"], native=False)
    model = TextTools(client)
    reply = model.complete(ModelRequest("m", GO, tools=TOOLS))
    assert (reply.text, [one.name for one in reply.tool_calls]) == ("I look.", ["List Files"])
    assert (reply.finish_reason, reply.remark) == ("length", "")
    reply = model.complete(ModelRequest("m", GO, tools=TOOLS))
    assert (reply.text, reply.tool_calls) == ("no call", ())


REFUSALS = [
    BadRequestError("m: the provider refused the request (400): registry/x does not support tools"),
    BadRequestError(
        'm: (400): "auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to'
        " be set"
    ),
    ProviderError("m: does not serve this model (404): No endpoints found that support tool use."),
    BadRequestError("m: (400): Function calling is not enabled for this model"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=str)
def test_a_refusal_of_tools_falls_back_to_text_for_the_rest_of_the_trial(error: Exception) -> None:
    client = Scripted([error, LIST_CALL, LIST_CALL])
    model = TextTools(client)
    assert model.facts("m").native_tools
    reply = model.complete(ModelRequest("m", GO, tools=TOOLS))
    assert [one.name for one in reply.tool_calls] == ["List Files"]
    assert reply.remark == f"asked by text from now on, since tools were refused: {error}"
    assert not model.facts("m").native_tools
    assert model.facts("other").native_tools
    reply = model.complete(ModelRequest("m", GO, tools=TOOLS))
    assert (len(reply.tool_calls), reply.remark, len(client.requests)) == (1, "", 3)


@pytest.mark.parametrize(
    "error",
    [
        BadRequestError("m: (400): Invalid value: 'oracle'."),
        BadRequestError(
            "m: (400): 'tool_calls' must be followed by tool messages responding to each"
            " 'tool_call_id'"
        ),
        RateLimitError("m: too many requests with tools"),
    ],
    ids=str,
)
def test_other_failures_are_passed_on(error: Exception) -> None:
    model = TextTools(Scripted([error]))
    with pytest.raises(type(error)):
        model.complete(ModelRequest("m", GO, tools=TOOLS))
    assert model.facts("m").native_tools


def test_a_request_that_may_not_fall_back_fails() -> None:
    client = Scripted([REFUSALS[0], LIST_CALL])
    model = TextTools(client)
    request = ModelRequest("m", GO, tools=TOOLS, may_fall_back=False)
    with pytest.raises(BadRequestError, match="does not support tools"):
        model.complete(request)
    assert model.facts("m").native_tools
    assert len(client.requests) == 1


def test_a_refusal_of_the_text_as_well_is_passed_on() -> None:
    model = TextTools(Scripted([REFUSALS[0], BadRequestError("m: (400): unknown role")]))
    with pytest.raises(BadRequestError, match="unknown role"):
        model.complete(ModelRequest("m", GO, tools=TOOLS))


def test_over_http_a_server_that_refuses_tools(server: ScriptedServer) -> None:
    def answer(request: object) -> Reply:
        if "tools" in server.requests[-1].body:
            return bad_request("m does not support tools", "tools")
        return say(f"<tool_call>\n{LIST_CALL}\n</tool_call>")

    server.restart(answer)
    model = TextTools(LitellmClient(Retry(attempts=1)))
    reply = model.complete(ModelRequest("openai/m", GO, tools=TOOLS, must_call=True))
    assert [one.name for one in reply.tool_calls] == ["List Files"]
    assert "does not support tools" in reply.remark
    assert reply.usage == server.usage
    assert {"tools", "tool_choice"} <= server.requests[0].body.keys()
    assert not {"tools", "tool_choice"} & server.requests[1].body.keys()


def test_over_http_both_ways_give_the_same_calls(server: ScriptedServer) -> None:
    server.restart(
        [call(("List_Files", {"path": "."})), say(f"<tool_call>\n{LIST_CALL}\n</tool_call>")]
    )
    request = ModelRequest("openai/m", GO, tools=TOOLS)
    client = LitellmClient(Retry(attempts=1))
    native, by_text = client.complete(request), TextTools(_without_tools(client)).complete(request)
    strip = [[replace(one, id="") for one in reply.tool_calls] for reply in (native, by_text)]
    assert strip[0] == strip[1] != []


def _without_tools(client: LitellmClient) -> LitellmClient:
    class Deaf(LitellmClient):
        def facts(self, model: str) -> ModelFacts:
            return ModelFacts(model, False, None)

    return Deaf(client.retry)


def test_parts_of_a_content_stay_by_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    marked = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    messages = (
        Message("system", "Be brief.", blocks=(marked,)),
        Message("assistant", "", (ToolCall("1", "List Files", "{}"),), reasoning=({"type": "x"},)),
        Message("tool", "a.png", tool_call_id="1"),
        Message("user", "look", blocks=({"type": "text", "text": "look"}, picture)),
    )
    system, spoken, user = as_text(ModelRequest("m", messages, tools=TOOLS)).messages
    assert system.blocks[0] == marked
    assert system.blocks[1]["text"].startswith("# Tools")
    assert system.content == f"Be brief.\n\n{system.blocks[1]['text']}"
    assert (spoken.blocks, spoken.reasoning) == ((), ())
    assert user.blocks[1:] == messages[3].blocks
    assert user.content == f"{user.blocks[0]['text']}\n\nlook"
