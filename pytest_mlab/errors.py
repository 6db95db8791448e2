"""Errors of pytest-mlab: one base, one leaf a kind of mistake.

    MlabError
    ├── ConfigError         an option, setting or name is wrong (a usage error, exit 4)
    ├── SuiteError          a task folder is wrong; names file, key, value, allowed values
    ├── DataUnavailable     data are not prepared and cannot be now; ``fix`` is a command that helps
    ├── RequirementMissing  a key, package, GPU or sandbox is absent; ``fix`` likewise
    ├── ScoringError        a baseline or threshold cannot judge a score
    ├── WireError           a value cannot travel between processes
    ├── StoreError          a run directory is missing, torn or of another format
    ├── SandboxError        a sandbox could not be started or talked to (``infra_error``)
    ├── EvaluatorError      the task's evaluator raised or returned nonsense (``task_error``)
    ├── ReplayError         a recording does not fit, is damaged or missing (``infra_error``)
    ├── AgentLoadError      an agent file or class is wrong; names file and line
    ├── ProgramFailed       an agent's program failed (its workspace is scored all the same)
    ├── ModelError          a model call failed
    │   ├── ProviderError       … for reasons outside the agent (``provider_error``)
    │   │   └── AuthError, QuotaError, RateLimitError, ProviderDownError
    │   ├── ContextWindowError  the prompt is too long (the agent's to handle)
    │   └── BadRequestError     the provider refused the request as malformed
    └── TrialOver           the environment accepts no further action
        └── BudgetExhausted     … because a limit was reached; ``limit`` names it

Every message names the thing, its value and the way out.
"""

from __future__ import annotations


class MlabError(Exception):
    """Base of all errors that pytest-mlab raises on purpose."""


class ConfigError(MlabError):
    """An option, setting or name is wrong."""


class SuiteError(MlabError):
    """A task folder is wrong; the message names file, key, value and allowed values."""


class _Fixable(MlabError):
    """Something is absent; ``fix`` is the command that a user can run to get it."""

    def __init__(self, message: str, *, fix: str) -> None:
        super().__init__(f"{message}; to fix: {fix}")
        self.fix = fix


class DataUnavailable(_Fixable):
    """A task's data are not prepared and cannot be prepared now."""


class RequirementMissing(_Fixable):
    """A key, package, GPU or sandbox that a trial needs is absent."""


class ScoringError(MlabError):
    """A baseline or threshold cannot judge a score."""


class WireError(MlabError):
    """A value cannot travel between processes."""


class StoreError(MlabError):
    """A run directory is missing, torn or of another format."""


class SandboxError(MlabError):
    """A sandbox could not be started or talked to."""


class EvaluatorError(MlabError):
    """A task's evaluator raised, or returned something that is not a score."""


class AgentLoadError(MlabError):
    """An agent could not be loaded; the message names file and line."""


class ReplayError(MlabError):
    """A recording of model calls is missing or damaged, or the calls differ from the recorded
    ones."""


class ProgramFailed(MlabError):
    """An agent's program ended with an error. Its workspace is scored; without a submission the
    outcome is ``agent_error`` with this message."""


class ModelError(MlabError):
    """A model call failed, after ``retries`` retries and ``waited`` seconds of waiting.
    ``seconds`` is the duration of a recorded call that is replayed, None otherwise."""

    retries: int = 0
    waited: float = 0.0
    seconds: float | None = None


class ProviderError(ModelError):
    """A model call failed for reasons outside the agent.

    ``for_everyone``: no call of this model can succeed until its key or account is fixed.
    """

    for_everyone: bool = False


class AuthError(ProviderError):
    """The provider refused the key (401), or this request with it (403: that call only)."""

    for_everyone = True


class QuotaError(ProviderError):
    """The account has no money or quota left (402, insufficient_quota): waiting does not help."""

    for_everyone = True


class RateLimitError(ProviderError):
    """The provider kept answering 429 until the retries were spent."""


class ProviderDownError(ProviderError):
    """The provider answered 5xx, hung or dropped the connection until the retries were spent."""


class ContextWindowError(ModelError):
    """The prompt does not fit the model's context window."""


class BadRequestError(ModelError):
    """The provider refused the request as malformed."""


class TrialOver(MlabError):
    """The environment accepts no further action; an agent lets this pass, or returns."""


class BudgetExhausted(TrialOver):
    """A limit of the budget was reached.

    ``limit`` is one of ``steps``, ``seconds``, ``tokens``, ``cost``.
    """

    def __init__(self, message: str, *, limit: str) -> None:
        super().__init__(message)
        self.limit = limit
