"""Relative time: the submitted layer's forward pass over the original's, on the same hidden inputs,
in turn."""

from __future__ import annotations

import ast
import importlib.util
import json
import secrets
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pytest_mlab.evaluation import InvalidSubmission, Round, compare_speed, read_file, record

Settings = dict[str, Any]

# What a layer must get right before its time counts: small and uneven on purpose.
CHECKS: list[tuple[Settings, tuple[int, int, int, int]]] = [
    ({"kernel": 3, "stride": 2, "padding": 2, "filters": 8, "activation": "relu"}, (2, 16, 16, 3)),
    ({"kernel": 3, "stride": 1, "padding": 0, "filters": 2, "activation": "none"}, (1, 9, 13, 1)),
    ({"kernel": 5, "stride": 3, "padding": 1, "filters": 3, "activation": "relu"}, (3, 17, 11, 4)),
    ({"kernel": 1, "stride": 2, "padding": 0, "filters": 5, "activation": "none"}, (2, 8, 7, 2)),
    ({"kernel": 2, "stride": 1, "padding": 3, "filters": 1, "activation": "relu"}, (2, 5, 6, 3)),
]


def load(folder: Path) -> Any:
    """The module train.py of ``folder`` (called in the process that is timed)."""
    spec = importlib.util.spec_from_file_location("train", folder / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train"] = module
    spec.loader.exec_module(module)
    return module


def call(train: Any, settings: Settings, arrays: list[Any]) -> Any:
    """One forward pass with given weights (called in the process that is timed)."""
    features, kernels, biases = arrays
    shape = (kernels.shape[2], kernels.shape[3], kernels.shape[0])
    layer = train.Conv2DLayer(
        *shape, settings["stride"], settings["padding"], settings["activation"]
    )
    layer.kernel_matrices = kernels
    layer.biases = biases
    return layer.forward(features)


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Median of submission time / starter time; below 1 is faster."""
    check_imports(submission_dir)
    timing = json.loads((answers_dir / "timing.json").read_text(encoding="utf-8"))
    rng = np.random.default_rng(secrets.randbits(128))
    comparison = compare_speed(
        Path(__file__),
        starter=answers_dir / "starter",
        submission=submission_dir,
        checks=[make_round(rng, settings, shape) for settings, shape in CHECKS],
        rounds=[timed_round(rng, n, timing["images"]) for n in range(timing["rounds"])],
        same=difference,
        timeout=60.0,
    )
    record(
        starter_seconds=statistics.median(comparison.starter),
        submission_seconds=statistics.median(comparison.submission),
        ratios=[round(ratio, 5) for ratio in comparison.ratios],
    )
    return comparison.ratio


def timed_round(rng: np.random.Generator, number: int, images: int) -> Round:
    """The published case in every second round, in the others something near it that cannot be
    foreseen."""
    settings: Settings = {
        "kernel": 3,
        "stride": 2,
        "padding": 2,
        "filters": 8,
        "activation": "relu",
    }
    height = width = 64
    if number % 2:
        settings |= {"stride": int(rng.integers(1, 4)), "padding": int(rng.integers(0, 4))}
        height, width = (int(n) * settings["stride"] // 2 for n in rng.integers(56, 73, size=2))
    return make_round(rng, settings, (images, height, width, 3))


def make_round(
    rng: np.random.Generator, settings: Settings, shape: tuple[int, int, int, int]
) -> Round:
    """Fresh random features and weights."""
    size, filters = settings["kernel"], settings["filters"]
    kernels = rng.standard_normal((size, size, shape[3], filters))
    return Round(
        settings, [rng.standard_normal(shape), kernels, rng.standard_normal((1, 1, 1, filters))]
    )


def difference(expected: Any, found: Any) -> str:
    """'' when the outputs agree to a relative tolerance of 1e-6, else how they differ."""
    if found.shape != expected.shape:
        return f"shape {found.shape} instead of {expected.shape}"
    if found.dtype.kind not in "fiu":
        return f"values of type {found.dtype} instead of numbers"
    wrong = ~np.isclose(found, expected, rtol=1e-6, atol=1e-9)
    if not wrong.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    values = f"at {place} {float(found[place]):.8g} instead of {float(expected[place]):.8g}"
    return f"{int(wrong.sum())} of {wrong.size} values, the first {values}"


def check_imports(folder: Path) -> None:
    """train.py and the modules beside it that it imports may import NumPy and the standard library
    only.

    A rule of the task, told in words; not a defence against code that hides what it imports.
    """
    seen: set[str] = set()
    pending = ["train"]
    while pending:
        module = pending.pop()
        if module in seen:
            continue
        seen.add(module)
        for name in sorted(imported_names(folder / f"{module}.py")):
            if (
                (folder / f"{name}.py").exists()
                and name not in sys.stdlib_module_names
                and name != "numpy"
            ):
                pending.append(name)
            elif name not in sys.stdlib_module_names and name != "numpy":
                raise InvalidSubmission(
                    f"{module}.py imports {name}; only numpy and the standard library are allowed"
                )


def imported_names(file: Path) -> set[str]:
    """The top-level names of all import statements of a Python file."""
    try:
        tree = ast.parse(read_file(file, max_mb=1))
    except SyntaxError as error:
        raise InvalidSubmission(
            f"{file.name} is no valid Python: line {error.lineno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise InvalidSubmission(f"{file.name} is no valid Python: {error}") from None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
