"""Sizes for the starter in public; larger graphs than it trains on, with their pointers, in
answers."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np

STARTER: dict[str, dict[str, Any]] = {
    "mini": {
        "sizes": [4, 5, 6, 7, 8],
        "hidden": 32,
        "steps": 100,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "validate_every": 25,
    },
    "full": {
        "sizes": [4, 7, 11, 13, 16],
        "hidden": 128,
        "steps": 500,
        "batch_size": 32,
        "learning_rate": 1e-3,
        "validate_every": 50,
    },
}
TEST_SIZE = {"mini": 16, "full": 64}
TEST_GRAPHS = 32
GRAPHS_AT_ONCE = {"mini": 32, "full": 1}
SEED = 20241


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """starter.json in ``public``; test.npz (weights, pointers) and test.json in ``answers``."""
    weights, pointers = generated(raw) if variant == "mini" else published()
    (public / "starter.json").write_text(json.dumps(STARTER[variant]) + "\n", encoding="utf-8")
    np.savez(
        answers / "test.npz", weights=weights.astype(np.float32), pointers=pointers.astype(np.int16)
    )
    facts = {"graphs_at_once": GRAPHS_AT_ONCE[variant]}
    (answers / "test.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def generated(raw: Path) -> tuple[np.ndarray, np.ndarray]:
    """Graphs and pointers by the sampler that the agent has as well."""
    spec = importlib.util.spec_from_file_location("samplers", raw / "samplers.py")
    assert spec is not None
    assert spec.loader is not None
    samplers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(samplers)
    weights = samplers.random_graphs(np.random.default_rng(SEED), TEST_GRAPHS, TEST_SIZE["mini"])
    pointers, _ = samplers.floyd_warshall(weights)
    return weights, pointers


def published() -> tuple[np.ndarray, np.ndarray]:
    """Graphs and pointers by the generator of the package dm-clrs."""
    import clrs

    sampler, _ = clrs.build_sampler(
        "floyd_warshall", seed=SEED, num_samples=TEST_GRAPHS, length=TEST_SIZE["full"]
    )
    feedback = sampler.next()
    points = {
        point.name: np.asarray(point.data)
        for point in (*feedback.features.inputs, *feedback.outputs)
    }
    return points["A"], points["Pi"]
