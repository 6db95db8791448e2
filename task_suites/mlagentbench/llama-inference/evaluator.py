"""Relative time: the submitted generation over the original's, on the same hidden prompts, in turn.

Tokens are checked against the original model in full precision, given what the submission generated
before each."""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import secrets
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pytest_mlab.evaluation import Round, compare_speed, read_file, record

CLOSE = 0.2
"""A token counts as right when its score is below the highest by at most this many standard
deviations of all."""

NEEDED = 0.95
"""Share of right tokens that a round needs: 8-bit weights stay legal, left-out work does not."""

TIMEOUT = 120.0


# --- in the timed process -------------------------------------------------------------------------


def load(folder: Path) -> dict[str, Any]:
    """inference.py of ``folder`` and, once it was loaded, its model."""
    return {"module": load_module("inference", folder), "model": None}


def call(state: dict[str, Any], settings: dict[str, Any], arrays: list[Any]) -> Any:
    """Load the model, or generate from one batch of prompts."""
    import torch

    if "model" in settings:
        state["model"] = state["module"].load_model(settings["model"])
        return np.zeros(1)
    tokens = state["module"].generate(
        state["model"], torch.from_numpy(arrays[0]), settings["new_tokens"]
    )
    return tokens.numpy()


def load_module(name: str, folder: Path) -> Any:
    """``folder/name.py``; it can import what lies beside it."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# --- in the evaluator's ---------------------------------------------------------------------------


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Median of submission time / starter time; below 1 is faster."""
    timing = json.loads((answers_dir / "timing.json").read_text(encoding="utf-8"))
    read_file(submission_dir / "inference.py", max_mb=1)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors"):
            with (
                gzip.open(answers_dir / f"{name}.gz") as packed,
                open(Path(folder) / name, "wb") as file,
            ):
                shutil.copyfileobj(packed, file)
        return compare(submission_dir, answers_dir / "starter", Path(folder), timing)


def compare(submission: Path, starter: Path, model_folder: Path, timing: dict[str, Any]) -> float:
    """Check and time with the model in ``model_folder``."""
    vocabulary = json.loads((model_folder / "config.json").read_text(encoding="utf-8"))[
        "vocab_size"
    ]
    rng = np.random.default_rng(secrets.randbits(128))
    loading = Round({"model": str(model_folder)}, [])
    odd = [(1, 1, 1), (3, 7, 2), (1, 40, 3)]
    comparison = compare_speed(
        Path(__file__),
        starter=starter,
        submission=submission,
        checks=[loading, *(prompts(rng, vocabulary, *case) for case in odd)],
        rounds=[timed_round(rng, vocabulary, timing) for _ in range(timing["rounds"])],
        same=checker(
            functools.cache(lambda: load_module("llama", starter).from_folder(model_folder))
        ),
        timeout=TIMEOUT,
    )
    record(
        starter_seconds=statistics.median(comparison.starter),
        submission_seconds=statistics.median(comparison.submission),
        ratios=[round(ratio, 5) for ratio in comparison.ratios],
    )
    return comparison.ratio


def timed_round(rng: np.random.Generator, vocabulary: int, timing: dict[str, Any]) -> Round:
    """A batch of random prompts; its length and how many tokens are wanted cannot be foreseen."""
    context, new = (
        int(rng.integers(low, high + 1)) for low, high in (timing["context"], timing["new_tokens"])
    )
    return prompts(rng, vocabulary, timing["batch"], context, new)


def prompts(rng: np.random.Generator, vocabulary: int, batch: int, context: int, new: int) -> Round:
    """Random tokens."""
    return Round({"new_tokens": new}, [rng.integers(0, vocabulary, (batch, context))])


def checker(load_model: Callable[[], Any]) -> Callable[[Any, Any], str]:
    """Says how a submission's tokens differ from those that the model finds best after the same
    ones. It is loaded once, where they are not the starter's."""

    def difference(expected: Any, found: Any) -> str:
        if found.shape != expected.shape or (expected.ndim == 2 and found.dtype.kind not in "iu"):
            return (
                f"{found.dtype} of shape {found.shape} instead of tokens of shape {expected.shape}"
            )
        return (
            ""
            if np.array_equal(expected, found)
            else judge_tokens(load_model(), expected, found.astype(np.int64))
        )

    return difference


def judge_tokens(model: Any, expected: Any, found: Any) -> str:
    """'' when the prompt is unchanged and enough of the new tokens are (nearly) the best ones."""
    import torch

    vocabulary = model.config["vocab_size"]
    if not ((found >= 0) & (found < vocabulary)).all():
        return f"tokens that are not in the vocabulary of {vocabulary}"
    # Tokens before the first difference agree in all rows; from there on each is judged by what
    # precedes it in its row.
    first = int(np.argwhere(expected != found)[:, 1].min())
    if first == 0:
        return "another prompt"
    with torch.no_grad():
        scores = model.logits(torch.from_numpy(found))[:, first - 1 : -1]
    chosen = scores.gather(-1, torch.from_numpy(found)[:, first:, None])[..., 0]
    share = float((scores.amax(-1) - chosen <= CLOSE * scores.std(-1)).float().mean())
    length = found.shape[1]
    return (
        ""
        if share >= NEEDED
        else f"from token {first} of {length} on only {share:.0%} are what the model finds best"
    )
