"""The file of a recording: one trial's model calls, to read, to compare with git, and to replay.

Every line is JSON: an object, or a string, which is a line of the text that began above it:

    {"recording": 1, "task": …, "agent": …, …}
        the first line: the trial, and the settings that it was made under
    {"text": "5f0c…", "lines": 2}
    "first line"
    "second line"
        a piece of text; calls name it by its digest
    {"call": 1, "model": …, "messages": [{"role": "user", "text": ["5f0c…"]}], …}
    {"reply": 1, "text": ["a1b2…"], "usage": {…}, …}
        or {"error": 1, "type": "RateLimitError", …}
        "reasoning" of a reply or a message is a list of blocks, each in pieces of its JSON text
    {"end": 1}
        the number of calls; missing when the trial was killed

Prompts repeat most of what earlier prompts said, so texts are cut into pieces at their longer
paragraphs, and each piece is written once, before the call that uses it first. A call is appended
in one write: a killed process leaves whole calls and at most one torn call at the end, which
readers leave out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.trial import TrialId, slug
from pytest_mlab.errors import ReplayError

FORMAT = 1

Json = dict[str, Any]

_FELL_BACK = "asked by text from now on"
"""The beginning of the remark by which recordings of earlier versions say so."""


@dataclass(frozen=True)
class Header:
    """The trial that a recording is of, and what it was made under.

    ``facts`` are those of every model in use, by the name that calls give it; ``settings`` are
    those that may change a prompt or an observation, by name; ``by`` is the version that wrote the
    file."""

    trial: TrialId
    task_digest: str
    agent_digest: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True)
class RecordedError:
    """A call that failed: the error's class by name, its message, retries and seconds waited."""

    type: str
    message: str
    retries: int = 0
    waited: float = 0.0


@dataclass(frozen=True)
class RecordedCall:
    """One call and its ``outcome`` after ``seconds``. Numbers count from 1."""

    number: int
    request: ModelRequest
    outcome: ModelReply | RecordedError
    seconds: float


@dataclass(frozen=True)
class Recording:
    """A recording as read; ``whole`` is False when its trial was killed or the file was cut."""

    header: Header
    calls: tuple[RecordedCall, ...]
    whole: bool


def file_of(folder: Path, trial: TrialId) -> Path:
    """Where the recording of ``trial`` is below ``folder``."""
    return folder / slug(trial.task) / trial.subject / f"{trial.repeat}.jsonl"


def read_header(path: Path) -> Header:
    """The first line. Raises ReplayError when the file cannot be read, or is not a recording of
    this format."""
    try:
        with open(path, "rb") as file:
            line = file.readline()
    except OSError as error:
        raise ReplayError(f"{_short(path)} cannot be read: {error.strerror}") from None
    try:
        found = json.loads(line)
        if found["recording"] != FORMAT:
            raise ReplayError(
                f"{_short(path)} has the recording format {found['recording']!r}, this version of"
                f" pytest-mlab reads {FORMAT}; record it again, or replay it with the version that"
                f" wrote it ({found.get('by', 'unknown')})"
            )
        return Header(
            trial=TrialId(found["task"], found["agent"], found["model"], found["repeat"]),
            task_digest=found["task_digest"],
            agent_digest=found["agent_digest"],
            settings=found["settings"],
            facts={name: ModelFacts(**facts) for name, facts in found["facts"].items()},
            by=found["by"],
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ReplayError(
            f"{_short(path)} does not begin as a recording does (found {line[:60]!r}); record the"
            " trial again"
        ) from None


def read_recording(path: Path) -> Recording:
    """The whole file; a torn call at its end is left out. Raises ReplayError when it is missing or
    damaged."""
    header = read_header(path)
    lines = path.read_bytes().split(b"\n")
    torn = lines.pop()  # after the last newline: empty, or a line that was cut
    reader = _Reader(path, lines)
    calls = tuple(reader.calls())
    return Recording(header, calls, whole=reader.ended and not torn)


class _End(Exception):
    """The file ends in the middle of a call."""


class _Reader:
    """Reads the lines after the first. Values are taken apart by hand because pydantic refuses
    texts with lone surrogates, which the outputs of programs contain."""

    def __init__(self, path: Path, lines: list[bytes]) -> None:
        self.ended = False
        self._path = path
        self._lines = lines
        self._at = 1
        self._texts: dict[str, str] = {}

    def calls(self) -> Iterator[RecordedCall]:
        """The calls in their order, up to the end or to where the file was cut."""
        try:
            yield from self._calls_until_end()
        except _End:
            return
        except (ValueError, KeyError, TypeError) as error:
            raise ReplayError(
                f"{_short(self._path)}:{self._at}: not a line of a recording ({error!r:.80}); it"
                " was edited or merged wrongly: restore the file, or record the trial again"
            ) from None

    def _calls_until_end(self) -> Iterator[RecordedCall]:
        request, number = None, 0
        while self._at < len(self._lines):
            found = self._next(dict)
            if "lines" in found:
                lines = [self._next(str) for _ in range(found["lines"])]
                self._texts[found["text"]] = "\n".join(lines)
            elif "call" in found:
                number, request = number + 1, self._request(found)
            elif "end" in found:
                self.ended = True
            elif request is None:
                raise KeyError("call")
            else:
                yield RecordedCall(number, request, self._outcome(found), found.get("seconds", 0.0))

    def _next(self, kind: type) -> Any:
        if self._at == len(self._lines):
            raise _End
        self._at += 1
        found = json.loads(self._lines[self._at - 1])
        if not isinstance(found, kind):
            raise TypeError(f"expected a {kind.__name__}")
        return found

    def _text(self, names: list[str]) -> str:
        return "\n\n".join(self._texts[name] for name in names)

    def _request(self, found: Json) -> ModelRequest:
        tools = (json.loads(self._text(names)) for names in found.get("tools", ()))
        return ModelRequest(
            found["model"],
            tuple(self._message(message) for message in found["messages"]),
            found.get("temperature"),
            found.get("max_tokens"),
            tuple(found.get("stop", ())),
            tools=tuple(ActionSpec(**tool) for tool in tools),
            must_call=found.get("must_call", False),
            schema=found.get("schema"),
            extra=found.get("extra", {}),
        )

    def _message(self, found: Json) -> Message:
        return Message(
            found["role"],
            self._text(found["text"]),
            self._called(found),
            found.get("answers", ""),
            self._reasoning(found),
        )

    def _reasoning(self, found: Json) -> tuple[Json, ...]:
        return tuple(json.loads(self._text(names)) for names in found.get("reasoning", ()))

    def _called(self, found: Json) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(c["id"], c["name"], self._text(c["arguments"])) for c in found.get("calls", ())
        )

    def _outcome(self, found: Json) -> ModelReply | RecordedError:
        tried = {name: found.get(name, 0) for name in ("retries", "waited")}
        if "error" in found:
            return RecordedError(found["type"], found["message"], **tried)
        remark = found.get("remark", "")
        return ModelReply(
            text=self._text(found["text"]),
            model=found["model"],
            usage=Usage(**found.get("usage", {})),
            cost=found.get("cost"),
            seconds=found.get("seconds", 0.0),
            finish_reason=found.get("finish_reason", ""),
            remark=remark,
            fell_back=found.get("fell_back", False) or remark.startswith(_FELL_BACK),
            tool_calls=self._called(found),
            reasoning=self._reasoning(found),
            **tried,
        )


def _short(path: Path) -> str:
    """The file with the folders that tell it apart."""
    return "/".join(path.parts[-4:])
