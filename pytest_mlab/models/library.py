"""litellm, imported on first use and made quiet: no network at import, no prints, no telemetry, no
retries of its own.

The import takes seconds, so nothing else in the package imports litellm.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from pytest_mlab.models.answers import install, install_counts


@cache
def litellm() -> Any:
    """The configured module.

    The list of prices and context sizes is the one inside the installed package (no download), and
    a ``.env`` file in the working directory is not read: keys come from the environment alone."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # In its default mode DEV, litellm loads a .env file while it is imported.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with _without_collector():
        import litellm as module

    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    install()
    install_counts()
    _refuse_at_once()
    module.suppress_debug_info = True
    module.telemetry = False
    module.drop_params = True  # a parameter that a model does not know is left out, not an error
    module.num_retries = 0
    module.disable_hf_tokenizer_download = True
    return module


def _refuse_at_once() -> None:
    """litellm answers a 422 of OpenAI-like servers by leaving out parameters and asking again, and
    returns None when that is refused too. It must raise: see :mod:`pytest_mlab.models.refused`."""
    from litellm.llms.openai import openai as client

    def refuse(error: Exception, *_: Any, **__: Any) -> Any:
        raise error

    # setattr: mypy takes the function's own type for that of the name
    setattr(client, "drop_params_from_unprocessable_entity_error", refuse)  # noqa: B010


@contextmanager
def _without_collector() -> Iterator[None]:
    """The import makes 2,700 modules and 2,500 pydantic classes, all of which stay: looking for
    garbage among them takes a fifth of its time (3.0 of 3.8 s CPU without, litellm 1.110)."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
