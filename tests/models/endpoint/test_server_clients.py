"""The endpoint with the client packages that people use, inside a sandbox without network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_mlab.core.budget import Budget, Usage
from tests.models.endpoint.conftest import KEY, MAIN, Served, serving
from tests.support.docker_engine import docker_image
from tests.support.scripted_server import Reply, bad_request, call, context_length, say

TOOL = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

OPENAI = f"""
import json, openai
client = openai.OpenAI(max_retries=5)
ask = client.chat.completions.create
hello = [{{"role": "developer", "content": "Be brief."}},
         {{"role": "user", "content": "hello you"}}]
read_file = {{"name": "read_file", "description": "Reads.", "parameters": {TOOL}}}
tools = [{{"type": "function", "function": read_file}}]
"""

ANTHROPIC = f"""
import json, anthropic
client = anthropic.Anthropic(max_retries=5)
ask = client.messages.create
options = {{"model": "claude-sonnet-4-5", "max_tokens": 500}}
hello = [{{"role": "user", "content": "hello you"}}]
tools = [{{"name": "read_file", "description": "Reads.", "input_schema": {TOOL}}}]
"""


def tokens(served: Served) -> tuple[Usage, Usage]:
    """What was charged, and what the provider counted."""
    return served.account.ledger.usage, served.server.usage


def thinking(**message: Any) -> Reply:
    """A provider's answer with ``reasoning_content``."""
    said = {"role": "assistant", "content": None, "reasoning_content": "Hm.", **message}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    head = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
    answer = {**head, "choices": [choice], "usage": usage}
    return Reply(kind="raw", raw=json.dumps(answer).encode())


def tool_call(name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{name}", "type": "function", "function": function}


class TestOpenAI:
    def test_chat(self, served: Served) -> None:
        served.script([say("good day", cached=1, reasoning=2)])
        text, usage, model = served.run(
            OPENAI + "answer = ask(model='gpt-5', messages=hello, temperature=0.5,"
            " max_completion_tokens=99,"
            " stop='END')\nprint(json.dumps([answer.choices[0].message.content,"
            " answer.usage.model_dump(), answer.model]))"
        )
        assert (text, model) == ("good day", MAIN)
        assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (
            4,
            4,
            8,
        )
        assert usage["prompt_tokens_details"]["cached_tokens"] == 1
        assert usage["completion_tokens_details"]["reasoning_tokens"] == 2
        assert tokens(served)[0] == tokens(served)[1] == Usage(4, 4, 1, 2)
        body = served.server.requests[0].body
        assert (body["model"], body["temperature"], body["max_tokens"], body["stop"]) == (
            MAIN,
            0.5,
            99,
            ["END"],
        )
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert served.about == [{"api": "/chat/completions", "asked_for": "gpt-5", "role": "main"}]

    def test_streaming(self, served: Served) -> None:
        served.script(["a streamed answer"])
        pieces, finish, usage = served.run(
            OPENAI + "chunks = list(ask(model='x', messages=hello, stream=True,"
            " stream_options={'include_usage': True}))\npieces = [chunk.choices[0].delta.content"
            " for chunk in chunks if chunk.choices]\nprint(json.dumps([''.join(filter(None,"
            " pieces)), chunks[-2].choices[0].finish_reason, chunks[-1].usage.total_tokens]))"
        )
        assert (pieces, finish, usage) == ("a streamed answer", "stop", 7)
        assert tokens(served)[0] == tokens(served)[1]

    @pytest.mark.parametrize("stream", [False, True])
    def test_tools(self, served: Served, stream: bool) -> None:
        served.script(
            [call(("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})), "two files"]
        )
        found = served.run(
            OPENAI
            + "def whole(**options):\n"
            + (
                "    with client.chat.completions.stream(model='x', tools=tools, **options) as"
                " events:\n        return events.get_final_completion().choices[0]\n"
                if stream
                else "    return ask(model='x', tools=tools, **options).choices[0]\n"
            )
            + "first = whole(messages=hello, tool_choice='required')\ncalls ="
            " first.message.tool_calls\nhello.append({'role': 'assistant', 'content': None,"
            " 'tool_calls': [c.model_dump() for c in calls]})\nfor c in calls:\n   "
            " hello.append({'role': 'tool', 'tool_call_id': c.id, 'content': 'of ' +"
            " c.function.arguments})\nsecond ="
            " whole(messages=hello)\nprint(json.dumps([first.finish_reason, [[c.function.name,"
            " c.function.arguments] for c in calls], second.message.content]))"
        )
        asked = [["read_file", '{"path": "a.txt"}'], ["read_file", '{"path": "b.txt"}']]
        assert found == ["tool_calls", asked, "two files"]
        first, second = (request.body for request in served.server.requests)
        assert first["tool_choice"] == "required"
        assert first["tools"][0]["function"]["parameters"] == TOOL
        assert [message["role"] for message in second["messages"]] == [
            "system",
            "user",
            "assistant",
            "tool",
            "tool",
        ]
        assert second["messages"][3]["content"] == 'of {"path": "a.txt"}'
        assert second["messages"][3]["tool_call_id"] == second["messages"][2]["tool_calls"][0]["id"]

    def test_schema(self, served: Served) -> None:
        served.script(['{"number": 3}'])
        found = served.run(
            OPENAI + "import pydantic\nclass Answer(pydantic.BaseModel):\n    number: int\nanswer ="
            " client.chat.completions.parse(model='x', messages=hello,"
            " response_format=Answer)\nprint(json.dumps(answer.choices[0].message.parsed.number))"
        )
        assert found == 3
        assert "number" in json.dumps(served.server.requests[0].body["response_format"])

    def test_responses(self, served: Served) -> None:
        served.script(
            ["good day", call(("read_file", {"path": "a.txt"}), text="I look"), "it says hello"]
        )
        found = served.run(
            OPENAI
            + """
tools = [{"type": "function", **tools[0]["function"]}]
first = client.responses.create(
    model="gpt-5", instructions="Be brief.", input="hello you", store=False)
asked = [{"role": "user", "content": [{"type": "input_text", "text": "what is in a.txt?"}]}]
with client.responses.stream(model="gpt-5", input=asked, tools=tools) as events:
    kinds = [event.type for event in events]
    second = events.get_final_response()
asked += [item.to_dict() for item in second.output]
call = second.output[1]
asked.append({"type": "function_call_output", "call_id": call.call_id, "output": "hello"})
third = client.responses.create(model="gpt-5", input=asked, tools=tools)
print(json.dumps([first.output_text, kinds[0], kinds[-1], second.output_text, call.arguments,
                  third.output_text, third.usage.total_tokens]))
"""
        )
        assert found[:3] == ["good day", "response.created", "response.completed"]
        assert found[3:6] == ["I look", '{"path": "a.txt"}', "it says hello"]
        third = served.server.requests[2].body["messages"]
        assert [message["role"] for message in third] == ["user", "assistant", "tool"]
        assert (third[1]["content"], third[2]["content"]) == ("I look", "hello")
        assert third[1]["tool_calls"][0]["id"] == third[2]["tool_call_id"]
        assert tokens(served)[0] == tokens(served)[1]

    def test_reasoning_and_custom_tools(self, served: Served) -> None:
        """The client's own accumulator of a stream takes all events."""
        served.script(
            [thinking(tool_calls=[tool_call("apply_patch", '{"input": "*** Begin"}')]), "patched"]
        )
        found = served.run(
            OPENAI
            + """
tools = [{"type": "custom", "name": "apply_patch"}, {"type": "web_search"}]
with client.responses.stream(model="x", input="hello you", tools=tools, store=True) as events:
    kinds = [event.type for event in events]
    first = events.get_final_response()
thought, call = first.output
output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
second = client.responses.create(
    model="x", previous_response_id=first.id, input=[output], tools=tools)
print(json.dumps([thought.summary[0].text, call.type, call.input, second.output_text]))
"""
        )
        assert found == ["Hm.", "custom_tool_call", "*** Begin", "patched"]
        sent = served.server.requests[1].body["messages"]
        assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
        assert sent[1]["reasoning_content"] == "Hm."
        assert served.about[0]["left_out"] == "tool web_search, store"

    def test_models(self, served: Served) -> None:
        names = served.run(
            OPENAI + "print(json.dumps([model.id for model in client.models.list()]))"
        )
        assert names == ["gpt-4-turbo", "gpt-4o-mini"]

    def test_small_models_are_answered_by_the_fast_one(self, served: Served) -> None:
        served.script(lambda request: request.model)
        names = (
            "gpt-5-nano",
            "o4-mini",
            "gpt-4o-mini-2024-07-18",
            "gemini-2.5-flash",
            "minimax-m2",
            "gpt-5",
        )
        found = served.run(
            OPENAI
            + "print(json.dumps([ask(model=m, messages=hello).choices[0].message.content for m in"
            f" {names}]))"
        )
        assert found == ["gpt-4o-mini"] * 4 + ["gpt-4-turbo"] * 2

    @pytest.mark.parametrize(
        ("request_", "words"),
        [
            (
                "ask(model='x', messages=hello, n=2)",
                "'n' is not available at this endpoint (it was 2); to fix: ask once",
            ),
            ("ask(model='x', messages=hello, logprobs=True)", "'logprobs' is not available"),
            ("ask(model='x', messages=[])", "'messages' is missing or empty"),
            (
                "client.responses.create(model='x', input='y', previous_response_id='z')",
                "previous_response_id: this trial has given no response with the id 'z'",
            ),
            (
                "client.embeddings.create(model='x', input='y')",
                "there is no /v1/embeddings at this endpoint",
            ),
        ],
    )
    def test_what_is_refused(self, served: Served, request_: str, words: str) -> None:
        served.script([])
        kind, status, message = served.run(
            OPENAI + f"try: {request_}\nexcept openai.APIStatusError as error:\n   "
            " print(json.dumps([type(error).__name__, error.status_code,"
            " error.body['message']]))"
        )
        assert words in message
        assert (kind, status) == (
            ("NotFoundError", 404) if "embeddings" in words else ("BadRequestError", 400)
        )
        assert served.server.requests == []

    def test_errors_of_the_provider(self, served: Served) -> None:
        served.script([context_length(), bad_request("no such role")])
        found = served.run(
            OPENAI
            + "found = []\nfor _ in range(2):\n    try: ask(model='x', messages=hello)\n    except"
            " openai.BadRequestError as error: found.append([error.code,"
            " error.body['message']])\nprint(json.dumps(found))"
        )
        assert found[0][0] == "context_length_exceeded"
        assert "maximum context length is 8192 tokens" in found[0][1]
        assert "no such role" in found[1][1]

    def test_the_end_of_the_budget_is_not_asked_about_again(self, served: Served) -> None:
        served.script(lambda request: "more", Budget(max_tokens=12))
        found = served.run(
            OPENAI + "count = 0\ntry:\n    while True: ask(model='x', messages=hello); count += 1\n"
            "except openai.PermissionDeniedError as error:\n"
            "    print(json.dumps([count, error.code, error.body['message']]))"
        )
        assert found == [2, "trial_over", "the trial's tokens are used up, at a model call (main)"]
        assert (len(served.about), len(served.server.requests)) == (3, 3)


class TestAnthropic:
    def test_messages(self, served: Served) -> None:
        served.script([say("good day", cached=1)])
        message = served.run(
            ANTHROPIC + "answer = ask(**options, system=[{'type': 'text', 'text': 'Be brief.',"
            " 'cache_control': {'type': 'ephemeral'}}], messages=hello, stop_sequences=['END'],"
            " thinking={'type': 'enabled', 'budget_tokens':"
            " 400})\nprint(answer.to_json(indent=None))"
        )
        assert message["content"] == [{"type": "text", "text": "good day"}]
        assert (message["stop_reason"], message["model"]) == ("end_turn", MAIN)
        usage = message["usage"]
        assert (
            usage["input_tokens"],
            usage["cache_read_input_tokens"],
            usage["output_tokens"],
        ) == (3, 1, 2)
        assert tokens(served)[0] == tokens(served)[1] == Usage(4, 2, 1)
        body = served.server.requests[0].body
        assert (body["max_tokens"], body["stop"]) == (500, ["END"])
        assert [message["content"] for message in body["messages"]] == ["Be brief.", "hello you"]
        assert served.about[0]["left_out"] == "cache_control of system[0], thinking"

    @pytest.mark.parametrize("stream", [False, True])
    def test_tools(self, served: Served, stream: bool) -> None:
        served.script(
            [
                call(("read_file", {"path": "a.txt"}), text="I look"),
                say("hello", finish_reason="length"),
            ]
        )
        found = served.run(
            ANTHROPIC
            + "def whole(**more):\n"
            + (
                "    with client.messages.stream(**options, tools=tools, **more) as events:\n"
                "        return events.get_final_message()\n"
                if stream
                else "    return ask(**options, tools=tools, **more)\n"
            )
            + "first = whole(messages=hello, tool_choice={'type': 'any'})\nhello.append({'role':"
            " 'assistant', 'content': [block.to_dict() for block in"
            " first.content]})\nhello.append({'role': 'user', 'content': [{'type': 'tool_result',"
            " 'tool_use_id': first.content[1].id, 'content': [{'type': 'text', 'text': 'it says"
            " hello'}]}, {'type': 'text', 'text': 'go on'}]})\nsecond ="
            " whole(messages=hello)\nprint(json.dumps([first.stop_reason, [block.to_dict() for"
            " block in first.content], second.stop_reason, second.content[0].text,"
            " second.usage.output_tokens]))"
        )
        assert found[0] == "tool_use"
        assert (found[1][0]["text"], found[1][1]["name"], found[1][1]["input"]) == (
            "I look",
            "read_file",
            {"path": "a.txt"},
        )
        assert found[2:] == ["max_tokens", "hello", 1]
        first, second = (request.body for request in served.server.requests)
        assert first["tool_choice"] == "required"
        assert [message["role"] for message in second["messages"]] == [
            "user",
            "assistant",
            "tool",
            "user",
        ]
        assert second["messages"][2]["content"] == "it says hello"
        assert tokens(served)[0] == tokens(served)[1]

    def test_thinking(self, served: Served) -> None:
        """The client's own accumulator of a stream takes all events."""
        served.script([thinking(tool_calls=[tool_call("read_file", "{}")]), "done"])
        found = served.run(
            ANTHROPIC
            + """
with client.messages.stream(**options, messages=hello, tools=tools) as events:
    first = events.get_final_message()
hello.append({"role": "assistant", "content": [block.to_dict() for block in first.content]})
result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "x"}
hello.append({"role": "user", "content": [result]})
second = ask(**options, messages=hello, tools=tools)
print(json.dumps([[b.type for b in first.content], first.content[0].thinking,
                  second.content[0].text]))
"""
        )
        assert found == [["thinking", "tool_use"], "Hm.", "done"]
        assert served.server.requests[1].body["messages"][1]["reasoning_content"] == "Hm."

    def test_answers_are_not_asked_to_be_longer_than_the_model_can_give(
        self, served: Served
    ) -> None:
        served.script(["short"])
        served.run(
            ANTHROPIC + "ask(model='claude-opus-5', max_tokens=9000, messages=hello)\nprint('0')"
        )
        assert served.server.requests[0].body["max_tokens"] == 4096

    def test_count_tokens_calls_no_model(self, served: Served) -> None:
        served.script([])
        few, more = served.run(
            ANTHROPIC + "def count(**more):\n    return client.messages.count_tokens(model='m',"
            " **more).input_tokens\nprint(json.dumps([count(messages=hello), count(messages=hello"
            " * 50, tools=tools, system='be brief')]))"
        )
        assert 0 < few < 20 < more
        assert (served.about, served.account.ledger.model_calls) == ([], 0)

    def test_models(self, served: Served) -> None:
        names = served.run(
            ANTHROPIC + "print(json.dumps([model.id for model in client.models.list()]))"
        )
        assert names == ["gpt-4-turbo", "gpt-4o-mini"]

    @pytest.mark.parametrize(
        ("request_", "words"),
        [
            (
                "ask(model='x', max_tokens=0, messages=hello)",
                "'max_tokens' must be a whole number of at least 1",
            )
        ],
    )
    def test_what_is_refused(self, served: Served, request_: str, words: str) -> None:
        served.script([])
        kind, message = served.run(
            ANTHROPIC + f"try: {request_}\nexcept anthropic.BadRequestError as error:\n"
            "    print(json.dumps([error.body['error']['type'], error.body['error']['message']]))"
        )
        assert (kind, words in message) == ("invalid_request_error", True)
        assert served.server.requests == []

    def test_the_end_of_the_budget_is_not_asked_about_again(self, served: Served) -> None:
        served.script(lambda request: "more", Budget(max_cost=1e-9))
        found = served.run(
            ANTHROPIC
            + "try: ask(**options, messages=hello)\nexcept anthropic.PermissionDeniedError as"
            " error:\n    print(json.dumps([error.body['error']['type'],"
            " error.body['error']['message']]))"
        )
        assert found == ["permission_error", "the trial's cost are used up, at a model call (main)"]
        assert (len(served.about), len(served.server.requests)) == (1, 1)


LOOK_AROUND = """
import glob, json, os, urllib.request
seen = " ".join(f"{k}={v}" for k, v in os.environ.items())
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try: seen += open(path, "rb").read().decode("utf-8", "replace")
    except OSError: pass

def post(url, headers, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

hello = [{"role": "user", "content": "hello you"}]
body = {"model": "x", "messages": hello}
one = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", {}, body)
body = {"model": "x", "max_tokens": 9, "messages": hello}
two = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", {}, body)
print(json.dumps([one["choices"][0]["message"]["content"], two["content"][0]["text"], seen]))
"""


def look_around(served: Served) -> Any:
    served.script(["one", "two"])
    one, two, seen = served.run(LOOK_AROUND)
    assert (one, two) == ("one", "two")
    assert "OPENAI_API_KEY=mlab" in seen
    assert KEY not in seen
    assert [request.key for request in served.server.requests] == [KEY, KEY]
    assert tokens(served)[0] == tokens(served)[1]


def test_no_key_is_seen_inside(served: Served) -> None:
    look_around(served)


def test_in_docker(tmp_path: Path) -> None:
    with docker_image() as image, serving(tmp_path, "docker", image) as served:
        look_around(served)
