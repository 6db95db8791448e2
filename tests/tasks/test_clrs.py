"""clrs: the algorithm, the metric, and whose code may answer."""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared
from pytest_mlab.evaluation.main import judge
from tests.tasks.conftest import load

torch = pytest.importorskip("torch")

FOLDER = load("clrs").folder
TRIVIAL = (FOLDER / "trivial" / "nets.py").read_text()
# A network that reads its answer from the weights of its only layer: right by what was "learned".
NETS = """
import torch
from torch import nn

def build_model(settings):
    return Net()

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(16, 16, 16))

    def forward(self, weights):
        return self.bias.expand(len(weights), 16, 16, 16)
"""
ALGORITHM = """
import torch
from torch import nn
from samplers import floyd_warshall

def build_model(settings):
    return Cheat()

class Cheat(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.ones(3))

    def forward(self, weights):
        pointers, _ = floyd_warshall(weights.double().numpy())
        return nn.functional.one_hot(torch.tensor(pointers), weights.shape[1]).float()
"""

Submit = Callable[..., dict[str, Any]]
PreparedBy = Callable[[str], Prepared]


def samplers() -> Any:
    spec = importlib.util.spec_from_file_location("clrs_samplers", FOLDER / "env" / "samplers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_of(prepared: PreparedBy) -> tuple[Any, Any]:
    with np.load(prepared("clrs").answers / "test.npz") as arrays:
        return arrays["weights"], arrays["pointers"]


test_of.__test__ = False  # type: ignore[attr-defined]


@pytest.fixture
def submit(tmp_path: Path, prepared: PreparedBy) -> Submit:
    """The verdict on code and a checkpoint."""
    workspace = tmp_path / "workspace"
    shutil.copytree(FOLDER / "env", workspace)
    (workspace / "checkpoints").mkdir()
    (workspace / "checkpoints" / "settings.json").write_text("{}")

    def run(
        nets: str, state: Any, save: Callable[[Any, Path], None] = torch.save, **files: str
    ) -> dict[str, Any]:
        (workspace / "nets.py").write_text(nets)
        for name, text in files.items():
            (workspace / f"{name}.py").write_text(text)
        if state is not None:
            save(state, workspace / "checkpoints" / "best.pt")
        return judge(FOLDER / "evaluator.py", workspace, prepared("clrs").answers)

    return run


def test_the_pointers_are_scipys_predecessors() -> None:
    from scipy.sparse.csgraph import floyd_warshall

    module = samplers()
    graphs = module.random_graphs(np.random.default_rng(3), 12, 9, (0.2, 0.5))
    assert np.array_equal(graphs, graphs.transpose(0, 2, 1))
    pointers, (step_pointers, step_lengths, step_known) = module.floyd_warshall(graphs)
    assert step_pointers.shape == step_lengths.shape == step_known.shape == (9, 12, 9, 9)
    for graph, found in zip(graphs, pointers, strict=True):
        lengths, predecessors = floyd_warshall(
            np.where(graph == 0, np.inf, graph), return_predecessors=True
        )
        off_diagonal = ~np.eye(9, dtype=bool)
        reached = np.isfinite(lengths) & off_diagonal
        assert np.array_equal(found[reached], predecessors[reached])
        first = np.tile(np.arange(9)[:, None], (1, 9))
        unreached = ~np.isfinite(lengths) & off_diagonal
        assert np.array_equal(found[unreached], first[unreached])
        neighbours = np.where((graph == 0) | np.eye(9, dtype=bool), np.inf, graph)
        for node in range(9):  # a loop competes with the way to the nearest neighbour and back
            back = 2 * neighbours[node].min() < graph[node, node]
            assert found[node, node] == (neighbours[node].argmin() if back else node)


def test_hidden_graphs_are_larger_than_the_starters(prepared: PreparedBy) -> None:
    weights, pointers = test_of(prepared)
    starter = json.loads((prepared("clrs").public / "starter.json").read_text())
    assert weights.shape == pointers.shape == (32, 16, 16)
    assert weights.shape[1] >= 2 * max(starter["sizes"])
    assert sorted(prepared("clrs").files) == ["starter.json"]
    found, _ = samplers().floyd_warshall(weights.astype(np.float64))
    assert np.array_equal(found, pointers)


def test_the_score_is_the_share_of_right_pointers(submit: Submit, prepared: PreparedBy) -> None:
    _, pointers = test_of(prepared)
    rng = np.random.default_rng(0)
    bias = torch.tensor(rng.standard_normal((16, 16, 16)), dtype=torch.float32)
    guess = bias.argmax(-1).numpy()
    found = submit(NETS, {"bias": bias})
    assert found["verdict"] == "scored", found["reason"]
    assert found["score"] == pytest.approx(
        sum(int((guess == p).sum()) for p in pointers) / pointers.size, abs=1e-12
    )


def test_a_trivial_predictor_is_scored_and_no_success(submit: Submit) -> None:
    found = submit(TRIVIAL, {"unused": torch.zeros(1)})
    assert found["score"] == found["details"]["trivial"]
    assert judge_score(load("clrs"), "mini", found["score"]).outcome is Outcome.BELOW_THRESHOLD


def test_fault_mended_changes_of_the_processor_count(submit: Submit) -> None:
    """There the evaluator used the installed package's processors whatever the agent had
    written."""
    net = NETS.replace("import torch\n", "import torch\nfrom processors import bend\n", 1)
    bent = submit(
        net.replace("self.bias.expand", "bend(self.bias).expand"),
        {"bias": torch.eye(16)[:, None].expand(16, 16, 16).clone()},
        processors="def bend(x):\n    return -x\n",
    )
    # Unbent, these weights say what a guess does.
    assert bent["details"]["trivial"] > 0.2
    assert bent["score"] < 0.2


def test_fault_mended_nothing_is_unpickled(submit: Submit, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "exploded",))

    def as_pickle(state: Any, path: Path) -> None:
        path.write_bytes(pickle.dumps(state))

    for save in (as_pickle, torch.save):
        found = submit(NETS, {"bias": Bomb()}, save)
        assert found["verdict"] == "invalid_submission"
        assert "the submitted code cannot be loaded" in found["reason"]
        assert not (tmp_path / "exploded").exists()


def test_fault_mended_the_starter_shows_no_test_score() -> None:
    text = (FOLDER / "env" / "train.py").read_text()
    assert "test" not in text
    assert "answers" not in text


def test_the_algorithm_written_in_code_is_invalid(submit: Submit) -> None:
    found = submit(ALGORITHM, {"unused": torch.ones(3)})
    assert found["verdict"] == "invalid_submission"
    assert "with random weights the network scores 1.000" in found["reason"]


@pytest.mark.parametrize(
    ("nets", "state", "reason"),
    [
        (NETS, {"other": torch.zeros(1)}, "Missing key"),
        (
            NETS.replace("expand(len(weights), 16, 16, 16)", "sum()"),
            {"bias": torch.zeros(16, 16, 16)},
            "scores of shape",
        ),
    ],
)
def test_what_is_wrong_is_told(submit: Submit, nets: str, state: Any, reason: str) -> None:
    found = submit(nets, state)
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert reason in found["reason"]


def test_no_checkpoint_is_no_submission(submit: Submit) -> None:
    found = submit(NETS, None)
    assert found["verdict"] == "no_submission"
    assert "best.pt is missing" in found["reason"]


Full = Callable[[str, Path], tuple[Path, Path]]


def check_full(full: Full, tmp_path: Path) -> None:
    public, answers = full("clrs", tmp_path / "raw")
    starter = json.loads((public / "starter.json").read_text())
    assert (starter["sizes"], starter["hidden"], starter["steps"]) == ([4, 7, 11, 13, 16], 128, 500)
    with np.load(answers / "test.npz") as arrays:
        weights, pointers = arrays["weights"], arrays["pointers"]
    assert weights.shape == pointers.shape == (32, 64, 64)
    assert np.array_equal(weights, weights.transpose(0, 2, 1))
    found, _ = samplers().floyd_warshall(weights.astype(np.float64))
    assert (
        np.mean(found == pointers) > 0.999
    )  # the weights were rounded to 32 bits after the pointers were known


def test_full_is_made_by_the_published_package(full: Full, tmp_path: Path) -> None:
    pytest.importorskip("clrs")
    check_full(full, tmp_path)


def test_full_takes_what_the_published_package_gives(
    full: Full, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the test above where dm-clrs is not installed: a stand-in that answers in its shape."""

    def build_sampler(name: str, *, seed: int, num_samples: int, length: int) -> tuple[Any, Any]:
        assert name == "floyd_warshall"
        weights = samplers().random_graphs(np.random.default_rng(seed), num_samples, length)
        pointers, _ = samplers().floyd_warshall(weights)
        inputs = {"pos": np.zeros((num_samples, length)), "A": weights, "adj": (weights != 0) * 1.0}
        feedback = SimpleNamespace(
            features=SimpleNamespace(
                inputs=[SimpleNamespace(name=n, data=d) for n, d in inputs.items()]
            ),
            outputs=[SimpleNamespace(name="Pi", data=pointers.astype(float))],
        )
        return SimpleNamespace(next=lambda: feedback), {}

    monkeypatch.setitem(sys.modules, "clrs", SimpleNamespace(build_sampler=build_sampler))
    check_full(full, tmp_path)


def test_the_sampler_is_that_of_the_published_package() -> None:
    clrs = pytest.importorskip("clrs")
    sampler, _ = clrs.build_sampler("floyd_warshall", seed=1, num_samples=4, length=8)
    feedback = sampler.next(4)
    weights = next(point.data for point in feedback.features.inputs if point.name == "A")
    pointers = next(point.data for point in feedback.outputs if point.name == "Pi")
    assert np.array_equal(
        samplers().floyd_warshall(np.asarray(weights, dtype=np.float64))[0], pointers
    )
