"""The agent's model: every call is charged to the trial's account and written to its trace."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_mlab.core.actions import ActionSpec
from pytest_mlab.core.budget import Usage
from pytest_mlab.core.model_api import (
    Message,
    ModelClient,
    ModelFacts,
    ModelReply,
    ModelRequest,
    Role,
    ToolCall,
)
from pytest_mlab.core.plan import Models
from pytest_mlab.errors import BudgetExhausted, ConfigError, ModelError
from pytest_mlab.store.content import ContentStore
from pytest_mlab.store.events import ModelCall
from pytest_mlab.store.journal import Journal
from pytest_mlab.trial.account import Account

_CUT_SECONDS = 0.25
"""A call that fails so shortly before the end of the trial's time was cut by it: timeouts are those
of single reads and writes, and fire a little early or late."""


@dataclass(frozen=True)
class MeteredModel:
    """Implements :class:`pytest_mlab.core.model_api.Model` for one trial.

    ``models`` says which model plays which role; edit and fast fall back to main. A call may not
    last longer than the trial's remaining time. The trace names prompt and reply by the digest of a
    blob in ``store``: the prompt as JSON (``messages``, each with ``role`` and ``content``, and the
    parameters of the call), the reply as text, its reasoning as JSON (a list of blocks). All of
    them, and all error messages, go through ``redact`` first."""

    client: ModelClient
    models: Models
    account: Account
    journal: Journal
    store: ContentStore
    redact: Callable[[str], str]
    now: Callable[[], float] = time.time

    def complete(
        self,
        prompt: str | Sequence[Message],
        *,
        role: Role = "main",
        temperature: float | None = None,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        tools: Sequence[ActionSpec] = (),
        must_call: bool = False,
        schema: Mapping[str, Any] | None = None,
        extra: Mapping[str, Any] | None = None,
        may_fall_back: bool = True,
    ) -> ModelReply:
        """One completion by the model that plays ``role``.

        Raises BudgetExhausted when tokens, cost or time are used up before or by this call (a reply
        that comes with it is charged and recorded, then dropped), ModelError when the call failed
        and ConfigError without a model."""
        messages = (Message("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
        self._check(role)
        request = ModelRequest(
            self._name(role),
            messages,
            temperature,
            max_tokens,
            tuple(stop),
            deadline=self._deadline(),
            tools=tuple(tools),
            must_call=must_call,
            schema=schema,
            extra=extra or {},
            free_wait=self.account.free_wait,
            may_fall_back=may_fall_back,
        )
        begin = time.monotonic()
        try:
            with self.account.calling():
                reply = self.client.complete(request)
        except ModelError as error:
            # A replayed failure lasts as long as the recorded one did.
            took = time.monotonic() - begin if error.seconds is None else error.seconds
            self._record_failure(role, request, error, took)
            # A call that the end of the trial's time cut short fails too, but that is not the
            # provider's failure.
            self._check(role)
            if self.account.remaining_seconds() < _CUT_SECONDS:
                raise self._used_up("seconds", role) from error
            raise
        self._record(role, request, reply)
        self._check(role)
        return reply

    def facts(self, role: Role = "main") -> ModelFacts:
        """The known facts of the model that plays ``role``. Raises ConfigError without a model."""
        return self.client.facts(self._name(role))

    def _name(self, role: Role) -> str:
        name = getattr(self.models, role) or self.models.main
        if not name:
            raise ConfigError(
                f"the run names no model for the role {role!r}; give one with --mlab-model=NAME"
            )
        return str(name)

    def _deadline(self) -> float | None:
        # Requests have their deadline by time.monotonic(). The account's clock may be ahead of it,
        # after replayed calls.
        left = self.account.remaining_seconds()
        return None if math.isinf(left) else time.monotonic() + left

    def _check(self, role: Role) -> None:
        """Raise when a limit is reached. When the steps are used up, only calls of ``main`` are
        refused: the action that is the last step may itself call the other two."""
        budget = self.account.budget
        if role != "main":
            budget = replace(budget, max_steps=sys.maxsize)
        limit = self.account.ledger.exhausted(budget)
        if limit is not None:
            raise self._used_up(limit, role)

    def _used_up(self, limit: str, role: Role) -> BudgetExhausted:
        message = f"the trial's {limit} are used up, at a model call ({role})"
        return BudgetExhausted(message, limit=limit)

    def _record(self, role: Role, request: ModelRequest, reply: ModelReply) -> None:
        # Before the event, whose ledger includes this call.
        self.account.charge_call(reply.usage, reply.cost, reply.waited)
        self.journal.write(
            ModelCall(
                t=self.now(),
                role=role,
                model=request.model,
                prompt=self._blob(_as_json(request)),
                reply=self._blob(reply.text),
                tool_calls=self._calls(reply.tool_calls),
                reasoning=self._reasoning(reply),
                fell_back=reply.fell_back,
                remark=self.redact(reply.remark),
                usage=reply.usage,
                cost=reply.cost,
                seconds=reply.seconds,
                waited=reply.waited,
                retries=reply.retries,
                finish_reason=reply.finish_reason,
                ledger=self.account.ledger,
            )
        )

    def _record_failure(
        self, role: Role, request: ModelRequest, error: ModelError, seconds: float
    ) -> None:
        # Providers bill no error answer, and report no usage for a reply that never arrived.
        self.account.charge_call(Usage(), 0.0, error.waited)
        self.journal.write(
            ModelCall(
                t=self.now(),
                role=role,
                model=request.model,
                prompt=self._blob(_as_json(request)),
                cost=0.0,
                seconds=seconds,
                waited=error.waited,
                retries=error.retries,
                error=self.redact(f"{type(error).__name__}: {error}"),
                ledger=self.account.ledger,
            )
        )

    def _calls(self, calls: Sequence[ToolCall]) -> list[dict[str, str]]:
        return [{"name": call.name, "arguments": self.redact(call.arguments)} for call in calls]

    def _reasoning(self, reply: ModelReply) -> str:
        if not reply.reasoning:
            return ""
        return self._blob(json.dumps([dict(b) for b in reply.reasoning], ensure_ascii=False))

    def _blob(self, text: str) -> str:
        return self.store.put_bytes(self.redact(text).encode("utf-8", "replace")).digest


def _as_json(request: ModelRequest) -> str:
    content: dict[str, Any] = {
        "messages": [_message(message) for message in request.messages],
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "stop": list(request.stop),
    }
    if request.tools:
        content["tools"] = [tool.name for tool in request.tools]
    if request.must_call:
        content["must_call"] = True
    if request.schema is not None:
        content["schema"] = request.schema
    if request.extra:
        content["extra"] = dict(request.extra)
    return json.dumps(content, ensure_ascii=False)


def _message(message: Message) -> dict[str, Any]:
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        plain["tool_calls"] = [
            {"id": c.id, "name": c.name, "arguments": c.arguments} for c in message.tool_calls
        ]
    if message.tool_call_id:
        plain["tool_call_id"] = message.tool_call_id
    if message.reasoning:
        plain["reasoning"] = [dict(block) for block in message.reasoning]
    return plain
