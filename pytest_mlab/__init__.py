"""pytest-mlab: machine-learning experimentation tasks as test suites for agents.

The public names are what agents, evaluators and other packages' actions may import; each is
loaded on first use, because pytest imports this package in every session that has the plugin
installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_mlab.core.actions import Action, ActionSpec, Observation, Step
    from pytest_mlab.core.agent_api import Agent, Environment, Person
    from pytest_mlab.core.budget import Budget, Ledger
    from pytest_mlab.core.calls import action_name, read_call
    from pytest_mlab.core.figure import Figure
    from pytest_mlab.core.model_api import Message, Model, ModelFacts, ModelReply, ToolCall
    from pytest_mlab.core.sandbox_api import Execution
    from pytest_mlab.core.trial import Outcome, TrialId, TrialResult
    from pytest_mlab.errors import (
        BudgetExhausted,
        ConfigError,
        ContextWindowError,
        MlabError,
        ModelError,
        ProgramFailed,
        TrialOver,
    )
    from pytest_mlab.plugin.trial import Trial
    from pytest_mlab.trial.actions.base import ActionAnswer, ActionContext, ActionError, action
    from pytest_mlab.trial.code import extract_code

__version__ = "0.1.0"

_HOMES = {
    "pytest_mlab.core.budget": ("Budget", "Ledger"),
    "pytest_mlab.core.actions": ("Action", "ActionSpec", "Observation", "Step"),
    "pytest_mlab.core.calls": ("action_name", "read_call"),
    "pytest_mlab.core.figure": ("Figure",),
    "pytest_mlab.core.model_api": ("Message", "Model", "ModelFacts", "ModelReply", "ToolCall"),
    "pytest_mlab.core.agent_api": ("Agent", "Environment", "Person"),
    "pytest_mlab.core.sandbox_api": ("Execution",),
    "pytest_mlab.core.trial": ("Outcome", "TrialId", "TrialResult"),
    "pytest_mlab.errors": (
        "BudgetExhausted",
        "ConfigError",
        "ContextWindowError",
        "MlabError",
        "ModelError",
        "ProgramFailed",
        "TrialOver",
    ),
    "pytest_mlab.plugin.trial": ("Trial",),
    "pytest_mlab.trial.actions.base": ("ActionAnswer", "ActionContext", "ActionError", "action"),
    "pytest_mlab.trial.code": ("extract_code",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "ActionAnswer",
    "ActionContext",
    "ActionError",
    "ActionSpec",
    "Agent",
    "Budget",
    "BudgetExhausted",
    "ConfigError",
    "ContextWindowError",
    "Environment",
    "Execution",
    "Figure",
    "Ledger",
    "Message",
    "MlabError",
    "Model",
    "ModelError",
    "ModelFacts",
    "ModelReply",
    "Observation",
    "Outcome",
    "Person",
    "ProgramFailed",
    "Step",
    "ToolCall",
    "Trial",
    "TrialId",
    "TrialOver",
    "TrialResult",
    "__version__",
    "action",
    "action_name",
    "extract_code",
    "read_call",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
