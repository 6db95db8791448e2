"""A model client over litellm: any provider, typed errors, bounded retries, usage and cost of every
call."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_mlab.core.model_api import ModelFacts, ModelReply, ModelRequest, ToolCall
from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.errors import ModelError
from pytest_mlab.models.answers import allow_any_types
from pytest_mlab.models.configured import default_settings
from pytest_mlab.models.error_words import headers_of
from pytest_mlab.models.library import litellm
from pytest_mlab.models.limiter import Limiter
from pytest_mlab.models.outgoing import Call, advised, outgoing
from pytest_mlab.models.prices import cost, price_of
from pytest_mlab.models.provider_errors import hide_keys, is_worth_repeating, translate
from pytest_mlab.models.reasoning import TextNames, answered
from pytest_mlab.models.refused import Refusals, may_be_left_out, refused_parameter
from pytest_mlab.models.retry import Retry, retry_after, retry_after_in
from pytest_mlab.models.tokens import prompt_tokens, reply_tokens
from pytest_mlab.models.tools import as_openai_messages, called, knows_tools
from pytest_mlab.models.usage import Expected, counted


def _default_retry() -> Retry:
    return Retry.from_environ(os.environ)


@dataclass(frozen=True)
class LitellmClient:
    """Implements :class:`pytest_mlab.core.model_api.ModelClient`.

    litellm's and the provider packages' own retries are off; ``retry`` is ours. Every attempt goes
    through the ``limiter``, where it may have to wait. Every wait and every attempt ends by the
    request's deadline. ``redact`` cleans the messages of raised errors. A reply is cut at the first
    stop sequence here as well, because some models do not know stop sequences. A parameter that a
    provider refuses is left out where the answer stays what was asked for; ``refusals`` remembers
    it, and the reply's remark says so."""

    retry: Retry = field(default_factory=_default_retry)
    settings: Callable[[str], ModelSettings] = default_settings
    limiter: Limiter = field(default_factory=Limiter)
    redact: Callable[[str], str] = hide_keys
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    reasoning_names: TextNames = field(default_factory=TextNames)
    refusals: Refusals = field(default_factory=Refusals)

    def complete(self, request: ModelRequest) -> ModelReply:
        """One completion. Raises the leaves of ModelError; their ``retries`` and ``waited`` say
        what was tried."""
        # Imported late, as litellm is: it costs time, and replays never need it.
        import openai

        begin, waited, attempt = self.clock(), 0.0, 0
        call = self._call(request)
        while True:
            attempt += 1
            try:
                # Every attempt enters anew: a repeated request counts at the provider too, and the
                # route may have been given up while this one waited.
                turn = self.limiter.enter(request)
            except ModelError as refused:
                refused.retries, refused.waited = attempt - 1, waited + refused.waited
                raise
            waited += turn.waited
            try:
                answer = self._ask(request, call, waited)
            # litellm's exceptions derive from those of the openai package, whichever provider
            # raised them.
            except openai.OpenAIError as original:
                error = translate(original, request.model, self.redact)
                if self._learns(request, call, error):
                    turn.failed(error, 0.0)
                    call = self._call(request)
                    continue
                error = advised(error, request, call, self.facts(request.model))
                error.retries, error.waited = attempt - 1, waited
                delay = self._delay(request, error, original, attempt)
                # Told before this attempt sleeps, so that the other workers wait as well.
                turn.failed(error, delay)
                if delay is None:
                    raise error from None  # the original's text and request may hold the key
            else:
                reply = self._reply(request, call, answer, begin, attempt - 1, waited)
                turn.answered(reply)
                return reply
            self.sleep(delay)
            waited += delay

    def facts(self, model: str) -> ModelFacts:
        """From the settings, else from litellm's list. A model that is not listed is assumed to
        take tools natively."""
        settings = self.settings(model)
        price = price_of(settings)
        native = settings.tools == "native"
        if not settings.tools:
            native = knows_tools(settings.model)
        return ModelFacts(
            settings.model,
            native,
            settings.context or (price.context if price else None),
            price.max_output if price else None,
            settings.images,
        )

    def _call(self, request: ModelRequest) -> Call:
        """The request as it goes out now."""
        return outgoing(
            request,
            self.settings(request.model),
            lambda: self.facts(request.model),
            self.refusals.of(request.model),
            os.environ,
        )

    def _learns(self, request: ModelRequest, call: Call, error: ModelError) -> bool:
        """Whether the provider refuses a parameter, or the reasoning of earlier answers, that may
        be left out, which is remembered."""
        thought = any(message.reasoning for message in request.messages)
        if thought and self.reasoning_names.refused(request.model, str(error)):
            return True
        name = refused_parameter(error, call.params)
        if not name or not may_be_left_out(name, self.settings(request.model).params):
            return False
        self.refusals.add(request.model, name)
        return name not in self._call(request).params  # else the same would be asked for ever

    def _ask(self, request: ModelRequest, call: Call, waited: float) -> Any:
        left = request.end(waited) - self.clock()
        # The same class as a timeout of the provider, so that it takes the same way through
        # translate().
        if left <= 0:
            raise litellm().Timeout(
                "the trial's time is over", model=request.model, llm_provider=""
            )
        allow_any_types()
        answer = litellm().completion(
            model=call.model,
            messages=as_openai_messages(request.messages, self.reasoning_names.of(request.model)),
            timeout=min(call.timeout, self.retry.timeout, left),
            # litellm's setting and the provider package's. Either would repeat without the limiter
            # and past the deadline.
            num_retries=0,
            max_retries=0,
            **call.params,
        )
        if answer is None:
            # After some refusals litellm changes the conversation and asks again, by itself; when
            # that is refused as well, the refusal is lost.
            raise litellm().BadRequestError(
                "the conversation was refused", model=request.model, llm_provider=""
            )
        return answer

    def _delay(
        self, request: ModelRequest, error: ModelError, original: Exception, attempt: int
    ) -> float | None:
        """Seconds to wait before the next attempt, None when there is to be none."""
        if attempt >= self.retry.attempts or not is_worth_repeating(error):
            return None
        asked = retry_after(headers_of(original), time.time())
        if asked is None:
            asked = retry_after_in(str(original))
        # Asking earlier than the provider allows would only be refused again, and a wait of hours
        # is an end.
        if asked is not None and asked > self.retry.longest:
            return None
        delay = self.retry.delay(attempt, self.random(), asked)
        # Waits may move the deadline (--mlab-exclude-waits), so the coming one counts for the
        # deadline as well.
        if self.clock() + delay >= request.end(error.waited + delay):
            return None
        return delay

    def _reply(
        self,
        request: ModelRequest,
        call: Call,
        answer: Any,
        begin: float,
        retries: int,
        waited: float,
    ) -> ModelReply:
        choice = answer.choices[0] if answer.choices else None
        message = getattr(choice, "message", None)
        finish_reason = str(getattr(choice, "finish_reason", None) or "")
        self.reasoning_names.learn(request.model, message)
        text, reasoning = answered(message, cut=finish_reason == "length")
        calls = called(choice, request.tools)
        found = counted(_reported(answer), _expected(request, text, calls, reasoning))
        return ModelReply(
            text=_until(text, request.stop),
            model=request.model,
            usage=found.usage,
            cost=cost(self.settings(request.model), answer, found),
            seconds=self.clock() - begin,
            retries=retries,
            waited=waited,
            finish_reason=finish_reason,
            tool_calls=calls[:1] if _only_one(request, call) else calls,
            reasoning=reasoning,
            remark="; ".join(filter(None, (*call.remarks, found.remark))),
        )


def _only_one(request: ModelRequest, call: Call) -> bool:
    """Whether parallel calls were excluded, and the provider could not be told."""
    name = "parallel_tool_calls"
    return request.extra.get(name) is False and name not in call.params


def _until(text: str, stops: Sequence[str]) -> str:
    for stop in stops:
        text = text.split(stop, 1)[0]
    return text


def _reported(answer: Any) -> Mapping[str, Any]:
    usage = getattr(answer, "usage", None)
    return {} if usage is None else usage.model_dump()


def _expected(
    request: ModelRequest,
    text: str,
    calls: Sequence[ToolCall],
    reasoning: Sequence[Mapping[str, Any]],
) -> Expected:
    return Expected(
        prompt=lambda: prompt_tokens(request.messages, request.tools),
        completion=lambda: reply_tokens(text, calls, reasoning),
        sent=sum(_characters(message.content, message.tool_calls) for message in request.messages),
        received=_characters(text, calls),
    )


def _characters(text: str, calls: Sequence[ToolCall]) -> int:
    return len(text) + sum(len(call.arguments) for call in calls)
