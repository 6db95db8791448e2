"""Routes to models. A route is one model on one server with one key, whatever the run calls it;
rate limits and refusals are shared by route."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.trial import TrialId
from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown

_SERVER = ("base_url", "api_base")


@dataclass(frozen=True)
class GivenUp:
    """Why a route is not asked any more: the ``kind`` of error (its class) and its message."""

    kind: str
    reason: str


@dataclass(frozen=True)
class RouteLimits:
    """Requests and tokens a minute of a route, None without a limit; ``max_tokens`` is the longest
    reply that the settings of the model allow, None without such a setting."""

    route: str
    rpm: int | None = None
    tpm: int | None = None
    max_tokens: int | None = None


def route_of(model: ModelSettings) -> str:
    """The route's key, equal for all aliases of one model on one server with one key."""
    server = next((str(model.params[name]) for name in _SERVER if model.params.get(name)), "")
    return " ".join(filter(None, (model.model, server, model.api_key_env)))


def routes_of(trial: TrialId, settings: RunSettings) -> tuple[str, ...]:
    """The routes that ``trial`` may ask; none for an agent without a model."""
    if not trial.model:
        return ()
    names = filter(None, (trial.model, settings.edit_model, settings.fast_model))
    # Several roles may be played by one model. A dict drops duplicates and keeps the order.
    return tuple(dict.fromkeys(route_of(settings.of_model(name)) for name in names))


def limits_of(name: str, settings: RunSettings) -> RouteLimits:
    """The limits of the model called ``name``: the strictest of all aliases of its route."""
    model = settings.of_model(name)
    route = route_of(model)
    # The provider counts by server and key and knows nothing of aliases.
    alike = [model, *(other for other in settings.models if route_of(other) == route)]
    return RouteLimits(
        route,
        min((other.rpm for other in alike if other.rpm is not None), default=None),
        min((other.tpm for other in alike if other.tpm is not None), default=None),
        model.params.get("max_tokens"),
    )


def with_limits(
    models: Iterable[ModelSettings], rpm: Sequence[PerModel] = (), tpm: Sequence[PerModel] = ()
) -> tuple[ModelSettings, ...]:
    """``models`` with the limits a minute that the options ask for. A limit for one model replaces
    a limit for all; beside a limit of the model's own settings, the stricter holds. Raises
    ConfigError for a model that does not exist."""
    known = tuple(models)
    names = {name for model in known for name in (model.name, model.model)}
    for flag, given in (("--mlab-rpm", rpm), ("--mlab-tpm", tpm)):
        for limit in given:
            if limit.model and known and limit.model not in names:
                raise ConfigError(f"{flag}={limit}: {unknown('model', limit.model, sorted(names))}")
    return tuple(
        replace(m, rpm=_stricter(m.rpm, _asked(m, rpm)), tpm=_stricter(m.tpm, _asked(m, tpm)))
        for m in known
    )


def with_new_limits(
    models: Iterable[ModelSettings], rpm: Sequence[PerModel] = (), tpm: Sequence[PerModel] = ()
) -> tuple[ModelSettings, ...]:
    """``models`` of a run that began earlier; limits of the options replace those stored."""
    # Not the stricter one as in with_limits(): the stored limits may themselves come from options,
    # and a resumed run may be given more.
    return tuple(
        replace(m, rpm=_asked(m, rpm) or m.rpm, tpm=_asked(m, tpm) or m.tpm) for m in models
    )


def _asked(model: ModelSettings, given: Sequence[PerModel]) -> int | None:
    own = [limit.value for limit in given if limit.model in (model.name, model.model)]
    return min(own or [limit.value for limit in given if not limit.model], default=None)


def _stricter(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)
