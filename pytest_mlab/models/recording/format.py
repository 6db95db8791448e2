"""The file of a recording: one trial's model calls, to read, to compare with git, and to answer
from.

Every line is JSON. An object begins something; the texts (one JSON string a line) that follow it
are lines of a text:

    {"recording": 1, "task": …, "agent": …, …}   the first line: which trial, with which settings
    {"text": "5f0c…", "lines": 2}                a piece of text; calls name it by its digest
    "first line"
    "second line"
    {"call": 1, "model": …, "messages": [{"role": "user", "text": ["5f0c…"]}], …}
    {"reply": 1, "text": ["a1b2…"], "usage": {…}, …}   or {"error": 1, "type": "RateLimitError", …}
    {"end": 1}                                   the number of calls; missing after a kill

Prompts repeat most of what earlier prompts said, so texts are cut into pieces at their longer
paragraphs, and each piece is written once, where it is first used. A call is appended in one write:
a killed process leaves whole calls and at most one torn one at the end, which readers leave out.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import Message, ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.trial import TrialId, slug
from pytest_mlab.errors import ReplayError

FORMAT = 1

_LONG = 200
"""Characters from which on a paragraph is a piece of its own; runs of shorter ones are pieces
together."""

Clean = Callable[[str], str]
Json = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """Of which trial a recording is, and what it was made under.

    ``facts`` are those of every model in use, by the name that calls give it; ``settings`` are what
    may change a prompt or an observation, by name."""

    trial: TrialId
    task_digest: str
    agent_digest: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, ModelFacts] = field(default_factory=dict)
    by: str = ""


@dataclass(frozen=True)
class RecordedError:
    """A call that failed: the error's class by name, its message, and what was tried."""

    type: str
    message: str
    retries: int = 0
    waited: float = 0.0


@dataclass(frozen=True)
class RecordedCall:
    """One call; ``outcome`` is what came of it after ``seconds``. Numbers count from 1."""

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


# --- writing -------------------------------------------------------------------------------------------------


class RecordingFile:
    """A recording that is being made. ``clean`` is applied to every text before it is written.

    Raises OSError when the file cannot be made or the disk takes no more.
    """

    def __init__(self, path: Path, header: Header, clean: Clean) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._clean = clean
        self._known: set[str] = set()
        self._calls = 0
        self._lock = threading.Lock()
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._write([clean(_header_line(header))])

    def add(
        self, request: ModelRequest, outcome: ModelReply | RecordedError, seconds: float
    ) -> None:
        """Append one call, from any thread."""
        with self._lock:
            if self._fd < 0:
                return  # a thread that outlived its trial
            number = self._calls + 1
            lines: list[str] = []
            call = self._request(request, lines)
            lines.append(self._clean(_object({"call": number, **call})))
            if isinstance(outcome, ModelReply):
                reply = self._reply(outcome, lines)
                lines.append(self._clean(_object({"reply": number, **reply})))
            else:
                failed = asdict(outcome) | {"seconds": round(seconds, 3)}
                lines.append(self._clean(_object({"error": number, **_present(failed)})))
            self._write(lines)
            self._calls = number

    def end(self) -> None:
        """Write that the trial is over; later calls are not taken."""
        with self._lock:
            if self._fd >= 0:
                self._write([_object({"end": self._calls})])
                fd, self._fd = self._fd, -1
                os.close(fd)

    def _write(self, lines: list[str]) -> None:
        # lone surrogates become \udcxx, which is what JSON calls them
        view = memoryview(
            "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        )
        while view:
            view = view[os.write(self._fd, view) :]

    def _request(self, request: ModelRequest, lines: list[str]) -> Json:
        plain = {
            "model": request.model,
            "messages": [self._message(message, lines) for message in request.messages],
            "temperature": request.temperature,
            "max_tokens": request.max_tokens,
            "stop": list(request.stop),
            "tools": [self._pieces(_tool_text(tool), lines) for tool in request.tools],
            "must_call": request.must_call,
            "schema": request.schema,
            "extra": dict(request.extra),
        }
        return _present(plain)

    def _message(self, message: Message, lines: list[str]) -> Json:
        return {"role": message.role, "text": self._pieces(message.content, lines)} | _present(
            {
                "calls": [self._called(call, lines) for call in message.tool_calls],
                "answers": message.tool_call_id,
            }
        )

    def _reply(self, reply: ModelReply, lines: list[str]) -> Json:
        return {"text": self._pieces(reply.text, lines)} | _present(
            {
                "calls": [self._called(call, lines) for call in reply.tool_calls],
                "finish_reason": reply.finish_reason,
                "remark": reply.remark,
                "usage": {name: n for name, n in asdict(reply.usage).items() if n},
                "cost": reply.cost,
                "seconds": round(reply.seconds, 3),
                "retries": reply.retries or None,
                "waited": round(reply.waited, 3) or None,
                "model": reply.model,
            }
        )

    def _called(self, call: ToolCall, lines: list[str]) -> Json:
        return {"id": call.id, "name": call.name, "arguments": self._pieces(call.arguments, lines)}

    def _pieces(self, text: str, lines: list[str]) -> list[str]:
        """The names of the text's pieces; those that are new are added to ``lines``."""
        names = []
        for piece in pieces(self._clean(text)) if text else ():
            name = hashlib.sha256(piece.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            names.append(name)
            if name not in self._known:
                self._known.add(name)
                parts = piece.split("\n")
                lines.append(_object({"text": name, "lines": len(parts)}))
                lines += [json.dumps(part, ensure_ascii=False) for part in parts]
        return names


def pieces(text: str) -> list[str]:
    """``text`` cut at blank lines, so that a long paragraph is a piece wherever it stands; joined
    by blank lines they are the text again."""
    found: list[list[str]] = []
    fresh = True
    for paragraph in text.split("\n\n"):
        long = len(paragraph) >= _LONG
        if fresh or long:
            found.append([])
        found[-1].append(paragraph)
        fresh = long
    return ["\n\n".join(run) for run in found]


def _header_line(header: Header) -> str:
    return _object(
        {
            "recording": FORMAT,
            **asdict(header.trial),
            "task_digest": header.task_digest,
            "agent_digest": header.agent_digest,
            "settings": dict(header.settings),
            "facts": {name: asdict(facts) for name, facts in header.facts.items()},
            "by": header.by,
        }
    )


def _tool_text(tool: ActionSpec) -> str:
    return json.dumps(
        {**asdict(tool), "schema": dict(tool.schema)}, ensure_ascii=False, indent=1, default=dict
    )


def _object(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False, default=str)


def _present(content: Json) -> Json:
    """Without what is the default."""
    return {k: v for k, v in content.items() if not (v is None or v is False or v in ("", [], {}))}


# --- reading -------------------------------------------------------------------------------------------------


def read_header(path: Path) -> Header:
    """The first line. Raises ReplayError when there is no such file, or it is no recording of this
    format."""
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
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")
    torn = lines.pop()  # what follows the last newline: nothing, or a line that was cut
    reader = _Reader(path, lines)
    calls = tuple(reader.calls())
    return Recording(header, calls, whole=reader.ended and not torn)


class _End(Exception):
    """The file ends in the middle of a call."""


class _Reader:
    """Goes through the lines after the first."""

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
                f"{_short(self._path)}:{self._at}: no line of a recording ({error!r:.80}); it was"
                " edited or merged wrongly: restore the file, or record the trial again"
            ) from None

    def _calls_until_end(self) -> Iterator[RecordedCall]:
        request, number = None, 0
        while self._at < len(self._lines):
            found = self._next(dict)
            if "lines" in found:
                self._texts[found["text"]] = "\n".join(
                    [self._next(str) for _ in range(found["lines"])]
                )
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
            raise TypeError(f"expected {'a line of text' if kind is str else 'an object'}")
        return found

    def _text(self, names: list[str]) -> str:
        return "\n\n".join(self._texts[name] for name in names)

    def _request(self, found: Json) -> ModelRequest:
        return ModelRequest(
            found["model"],
            tuple(self._message(message) for message in found["messages"]),
            found.get("temperature"),
            found.get("max_tokens"),
            tuple(found.get("stop", ())),
            tools=tuple(
                ActionSpec(**json.loads(self._text(names))) for names in found.get("tools", ())
            ),
            must_call=found.get("must_call", False),
            schema=found.get("schema"),
            extra=found.get("extra", {}),
        )

    def _message(self, found: Json) -> Message:
        return Message(
            found["role"], self._text(found["text"]), self._called(found), found.get("answers", "")
        )

    def _called(self, found: Json) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(c["id"], c["name"], self._text(c["arguments"])) for c in found.get("calls", ())
        )

    def _outcome(self, found: Json) -> ModelReply | RecordedError:
        if "error" in found:
            return RecordedError(
                found["type"], found["message"], found.get("retries", 0), found.get("waited", 0.0)
            )
        return ModelReply(
            text=self._text(found["text"]),
            model=found["model"],
            usage=Usage(**found.get("usage", {})),
            cost=found.get("cost"),
            seconds=found.get("seconds", 0.0),
            retries=found.get("retries", 0),
            waited=found.get("waited", 0.0),
            finish_reason=found.get("finish_reason", ""),
            remark=found.get("remark", ""),
            tool_calls=self._called(found),
        )


def _short(path: Path) -> str:
    """The file with the folders that tell it apart."""
    return "/".join(path.parts[-4:])
