"""What a provider limits and what it may refuse: one model on one server for one key, whatever the
run calls it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_mlab.core.model_settings import ModelSettings
from pytest_mlab.core.plan import RunSettings
from pytest_mlab.core.trial import TrialId
from pytest_mlab.core.values import PerModel
from pytest_mlab.errors import ConfigError
from pytest_mlab.lib.suggest import unknown

_SERVER = ("base_url", "api_base")


def endpoint(settings: ModelSettings) -> str:
    """Equal for all aliases of one model on one server for one key."""
    server = next((str(settings.params[name]) for name in _SERVER if settings.params.get(name)), "")
    return " ".join(filter(None, (settings.model, server, settings.api_key_env)))


def endpoints_of(trial: TrialId, settings: RunSettings) -> tuple[str, ...]:
    """Those that ``trial`` may ask; none for an agent without a model."""
    if not trial.model:
        return ()
    names = filter(None, (trial.model, settings.edit_model, settings.fast_model))
    return tuple(dict.fromkeys(endpoint(settings.of_model(name)) for name in names))


def with_limits(
    models: Iterable[ModelSettings], rpm: Sequence[PerModel] = (), tpm: Sequence[PerModel] = ()
) -> tuple[ModelSettings, ...]:
    """``models`` with the limits a minute that the options ask for. One for a model replaces one
    for all; beside a limit of the model's own settings, the stricter holds. Raises ConfigError for
    a model that is not there."""
    known = tuple(models)
    names = {name for model in known for name in (model.name, model.model)}
    for flag, given in (("--mlab-rpm", rpm), ("--mlab-tpm", tpm)):
        for one in given:
            if one.model and known and one.model not in names:
                raise ConfigError(f"{flag}={one}: {unknown('model', one.model, sorted(names))}")
    return tuple(
        replace(m, rpm=_stricter(m.rpm, _asked(m, rpm)), tpm=_stricter(m.tpm, _asked(m, tpm)))
        for m in known
    )


def with_new_limits(
    models: Iterable[ModelSettings], rpm: Sequence[PerModel] = (), tpm: Sequence[PerModel] = ()
) -> tuple[ModelSettings, ...]:
    """``models`` of a run that began earlier: what the options say of a limit replaces it."""
    return tuple(
        replace(m, rpm=_asked(m, rpm) or m.rpm, tpm=_asked(m, tpm) or m.tpm) for m in models
    )


def _asked(model: ModelSettings, given: Sequence[PerModel]) -> int | None:
    own = [one.value for one in given if one.model in (model.name, model.model)]
    return min(own or [one.value for one in given if not one.model], default=None)


def _stricter(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def limits_of(name: str, settings: RunSettings) -> tuple[int | None, int | None]:
    """Requests and tokens a minute of the model called ``name``: the strictest of all aliases of
    its endpoint, None without a limit."""
    asked = settings.of_model(name)
    alike = [asked, *(found for found in settings.models if endpoint(found) == endpoint(asked))]
    requests = [found.rpm for found in alike if found.rpm is not None]
    tokens = [found.tpm for found in alike if found.tpm is not None]
    return min(requests, default=None), min(tokens, default=None)
