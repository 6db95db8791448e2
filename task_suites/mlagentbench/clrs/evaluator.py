"""Share of right pointers of the submitted network on hidden graphs that are larger than those it
was trained on.

Code and weights are the agent's, so they run in a process of their own, which is handed graphs and
nothing else."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from pytest_mlab.evaluation import (
    InvalidSubmission,
    Round,
    read_file,
    record,
    run_code,
    withdraw_answers,
)

MARGIN = 0.05
"""What a network with random weights may score more than a guess that needs none."""

TIMEOUT = 600.0
CHECKPOINT, SETTINGS, CODE = "checkpoints/best.pt", "checkpoints/settings.json", "nets.py"


# --- in the submission's process ------------------------------------------------------------------


def load(folder: Path) -> tuple[Any, Any]:
    """The network with its weights, and the same one with random ones."""
    import torch

    settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    weights = torch.load(folder / CHECKPOINT, map_location="cpu", weights_only=True)
    nets = importlib.import_module("nets")
    trained, control = nets.build_model(settings), nets.build_model(settings)
    trained.load_state_dict(weights)
    generator = torch.Generator().manual_seed(0)
    control.load_state_dict(
        {name: noise_like(tensor, generator) for name, tensor in weights.items()}
    )
    return trained.eval(), control.eval()


def noise_like(tensor: Any, generator: Any) -> Any:
    """Normal random numbers of the same root mean square; what are no real numbers stays."""
    import torch

    if not tensor.is_floating_point():
        return tensor
    return (
        torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
        * tensor.square().mean().sqrt()
    )


def call(networks: tuple[Any, Any], settings: dict[str, Any], arrays: list[Any]) -> Any:
    """The pointers of some graphs."""
    import torch

    network = networks[1] if settings["weights"] == "random" else networks[0]
    with torch.no_grad():
        scores = network(torch.from_numpy(arrays[0]))
    n = arrays[0].shape[1]
    if tuple(scores.shape) != (len(arrays[0]), n, n, n):
        raise ValueError(
            f"the network returns scores of shape {tuple(scores.shape)}; expected (graphs, n, n, n)"
        )
    return scores.argmax(dim=-1).numpy()


# --- in the evaluator's ---------------------------------------------------------------------------


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """Share of right pointers, 0 to 1; higher is better."""
    with np.load(answers_dir / "test.npz", allow_pickle=False) as arrays:
        weights, pointers = arrays["weights"], arrays["pointers"]
    at_once = json.loads((answers_dir / "test.json").read_text(encoding="utf-8"))["graphs_at_once"]
    withdraw_answers(answers_dir)
    for name, limit in ((CODE, 1.0), (SETTINGS, 1.0), (CHECKPOINT, 200.0)):
        read_file(submission_dir / name, max_mb=limit)

    parts = [weights[n : n + at_once] for n in range(0, len(weights), at_once)]
    rounds = [Round({"weights": kind}, [part]) for kind in ("trained", "random") for part in parts]
    found = [
        checked(answer, one.arrays[0])
        for answer, one in zip(ask(submission_dir, rounds), rounds, strict=True)
    ]
    trained, random = np.concatenate(found[: len(parts)]), np.concatenate(found[len(parts) :])
    score, control = share_right(trained, pointers), share_right(random, pointers)
    guess = share_right(trivial(pointers), pointers)
    record(random_weights=control, trivial=guess)
    if control > guess + MARGIN:
        raise InvalidSubmission(
            f"with random weights the network scores {control:.3f} (a guess: {guess:.3f}): what"
            " it computes is "
            "written in its code; expected a network that learned it"
        )
    return score


def ask(folder: Path, rounds: list[Round]) -> list[Any]:
    """What the network answers."""
    return run_code(Path(__file__), folder, rounds, timeout=TIMEOUT)


def checked(found: Any, weights: Any) -> Any:
    """An answer of the right shape and type; what the other process says is not trusted."""
    if found.shape != weights.shape or found.dtype.kind not in "iu":
        raise InvalidSubmission(
            f"the submitted code answers with {found.dtype} of shape {found.shape}; expected"
            f" pointers {weights.shape}"
        )
    return found


def share_right(found: Any, pointers: Any) -> float:
    """Accuracy over all pairs of nodes."""
    return float((found == pointers).mean())


def trivial(pointers: Any) -> Any:
    """Every pointer at the first node of its pair, as where there is no path or a single edge."""
    return np.broadcast_to(np.arange(pointers.shape[1])[:, None], pointers.shape)
