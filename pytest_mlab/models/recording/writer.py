"""Writes the file of a recording, whose form :mod:`.format` describes."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.model_api import Message, ModelReply, ModelRequest, ToolCall
from pytest_mlab.models.recording.format import FORMAT, Header, Json, RecordedError

_LONG = 200
"""Characters from which on a paragraph is a piece of its own; runs of shorter ones are pieces
together."""


class RecordingFile:
    """A recording that is being made. ``clean`` is applied to every text before it is written.

    Raises OSError when the file cannot be made or the disk takes no more.
    """

    def __init__(self, path: Path, header: Header, clean: Callable[[str], str]) -> None:
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
            # Cleaned again as a whole: parameters and schemas may hold secrets as well as texts do.
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
        # lone surrogates become \udcxx, as JSON writes them
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
                "reasoning": self._reasoning(message.reasoning, lines),
            }
        )

    def _reply(self, reply: ModelReply, lines: list[str]) -> Json:
        return {"text": self._pieces(reply.text, lines)} | _present(
            {
                "calls": [self._called(call, lines) for call in reply.tool_calls],
                "reasoning": self._reasoning(reply.reasoning, lines),
                "finish_reason": reply.finish_reason,
                "remark": reply.remark,
                "fell_back": reply.fell_back,
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

    def _reasoning(self, blocks: Sequence[Mapping[str, Any]], lines: list[str]) -> list[list[str]]:
        """The names of the pieces of each block, which is written as JSON."""
        return [self._pieces(json.dumps(dict(b), ensure_ascii=False), lines) for b in blocks]

    def _pieces(self, text: str, lines: list[str]) -> list[str]:
        """The names of the text's pieces; those that are new are added to ``lines``."""
        names = []
        # Cleaned before it is cut, because a secret could span two pieces.
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
    return json.dumps(tool.as_json(), ensure_ascii=False, indent=1, default=dict)


def _object(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False, default=str)


def _present(content: Json) -> Json:
    """Without the values that are defaults."""
    return {k: v for k, v in content.items() if not (v is None or v is False or v in ("", [], {}))}
