"""llama-inference: only code that generates the same tokens is timed, and only the evaluator's
clock counts."""

from __future__ import annotations

import gzip
import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_mlab.data.prepare import Prepared
from pytest_mlab.evaluation.main import judge, load_evaluator
from tests.tasks.conftest import load

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")
torch.set_num_threads(
    1
)  # as in the evaluator's sandbox: this process compares tokens, and others have work to do

FOLDER = load("llama-inference").folder
STARTER = (FOLDER / "env" / "inference.py").read_text()
REFERENCE = (FOLDER / "reference" / "inference.py").read_text()

PreparedBy = Callable[[str], Prepared]
Submit = Callable[..., dict[str, Any]]


@pytest.fixture
def submit(tmp_path: Path, prepared: PreparedBy) -> Submit:
    """The verdict on an inference.py, with few timed rounds."""
    answers, workspace = tmp_path / "answers", tmp_path / "workspace"
    shutil.copytree(prepared("llama-inference").answers, answers)
    timing = {"rounds": 3, "batch": 2, "context": [30, 40], "new_tokens": [3, 4]}
    (answers / "timing.json").write_text(json.dumps(timing))
    shutil.copytree(FOLDER / "env", workspace)

    def run(code: str | None) -> dict[str, Any]:
        (workspace / "inference.py").unlink(missing_ok=True)
        if code is not None:
            (workspace / "inference.py").write_text(code)
        return judge(FOLDER / "evaluator.py", workspace, answers)

    return run


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The starter's llama.py as a module."""
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("starter_llama", FOLDER / "env" / "llama.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def model(prepared: PreparedBy, llama: Any) -> Any:
    return llama.from_folder(prepared("llama-inference").public / "model")


def test_the_model_is_that_of_transformers(prepared: PreparedBy, model: Any) -> None:
    transformers = pytest.importorskip("transformers")
    other = transformers.LlamaForCausalLM.from_pretrained(
        prepared("llama-inference").public / "model"
    ).eval()
    tokens = torch.randint(0, 3000, (2, 17), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(model.logits(tokens), other(tokens).logits, atol=1e-3)


def test_every_layer_counts(model: Any) -> None:
    """No shortcut that leaves out a layer finds the same tokens."""
    tokens = torch.randint(0, 3000, (4, 20), generator=torch.Generator().manual_seed(1))
    best = model.logits(tokens).argmax(-1)
    for layer in range(4):
        for part in ("self_attn.o_proj", "mlp.down_proj"):
            name = f"model.layers.{layer}.{part}.weight"
            kept = model.weights[name]
            model.weights[name] = torch.zeros_like(kept)
            assert (model.logits(tokens).argmax(-1) == best).float().mean() < 0.7
            model.weights[name] = kept


def test_16_bit_weights_stay_legal_and_fault_mended_a_stopped_clock_plays_no_part(
    submit: Submit,
) -> None:
    lower = STARTER.replace(
        "return from_folder(folder)",
        "model = from_folder(folder)\n    model.weights = {n: w.bfloat16().float() for n, w in"
        " model.weights.items()}\n    return model",
    )
    assert lower != STARTER
    tricks = (
        "import time\ntime.perf_counter = time.time = time.monotonic = lambda: 0.0\nprint('0.0001"
        " s')\n"
    )
    found = submit(tricks + lower)
    assert found["verdict"] == "scored", found["reason"]
    assert found["score"] > 0.5  # believed, it would be 0 or far below


NEXT = "scores = model.logits(tokens)[:, -1]"
WRONG = {
    "random tokens": (
        STARTER.replace(NEXT, "scores = torch.rand(len(tokens), 3000)"),
        "what the model finds best",
    ),
    "first token only": (
        STARTER.replace("for _ in range(new_tokens):", "for _ in range(1):").replace(
            "    return tokens\n",
            "    return torch.nn.functional.pad(tokens, (0, new_tokens - 1))\n",
        ),
        "what the model finds best",
    ),
    "three layers": (
        STARTER.replace(
            "return from_folder(folder)",
            "model = from_folder(folder)\n    model.config['num_hidden_layers'] = 3\n    return"
            " model",
        ),
        "what the model finds best",
    ),
    "another prompt": (
        STARTER.replace("    return tokens\n", "    return tokens + 1\n"),
        "another prompt",
    ),
    "no such token": (
        STARTER.replace("    return tokens\n", "    tokens[:, -1] = 3000\n    return tokens\n"),
        "not in the vocabulary of 3000",
    ),
    "scores": (
        STARTER.replace("    return tokens\n", "    return tokens.float()\n"),
        "float32 of shape",
    ),
    "runs at import": ("import os\nos._exit(0)\n", "cannot be loaded: it ended with exit status 0"),
}


@pytest.mark.parametrize("kind", ["three layers", "runs at import"])
def test_fault_mended_output_is_compared(submit: Submit, kind: str) -> None:
    code, reason = WRONG[kind]
    assert code != STARTER
    found = submit(code)
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert reason in found["reason"]


@pytest.mark.parametrize("kind", [kind for kind in WRONG if kind != "runs at import"])
def test_all_that_differs_is_told(
    prepared: PreparedBy, llama: Any, model: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What the evaluator says of outputs, here without the processes that make them."""
    monkeypatch.setitem(sys.modules, "llama", llama)
    prompt = torch.randint(0, 3000, (3, 7), generator=torch.Generator().manual_seed(3))

    def output(code: str) -> Any:
        space: dict[str, Any] = {"__name__": "inference"}
        exec(code, space)
        loaded = space["load_model"](prepared("llama-inference").public / "model")
        return space["generate"](loaded, prompt, 4).numpy()

    code, reason = WRONG[kind]
    told = load_evaluator(FOLDER / "evaluator.py").checker(lambda: model)
    expected = output(STARTER)
    assert told(expected, expected) == ""
    assert reason in told(expected, output(code))


def test_no_script_is_no_submission(submit: Submit) -> None:
    found = submit(None)
    assert found["verdict"] == "no_submission"
    assert "inference.py is missing" in found["reason"]


def test_near_ties_count_as_right_and_each_token_is_judged_by_what_precedes_it(model: Any) -> None:
    evaluator = load_evaluator(FOLDER / "evaluator.py")
    prompt = torch.randint(0, 3000, (1, 12), generator=torch.Generator().manual_seed(3))

    def greedy(tokens: Any, count: int) -> Any:
        for _ in range(count):
            tokens = torch.cat([tokens, model.logits(tokens)[:, -1].argmax(-1, keepdim=True)], 1)
        return tokens

    expected = greedy(prompt, 30).numpy()
    scores = model.logits(prompt)[0, -1]
    second = scores.argsort(descending=True)[1:2]
    gap = ((scores.max() - scores[second]) / scores.std()).item()
    found = greedy(torch.cat([prompt, second[None]], 1), 29).numpy()
    evaluator.CLOSE = gap + 0.01
    assert evaluator.judge_tokens(model, expected, found) == ""
    evaluator.CLOSE, evaluator.NEEDED = gap - 0.01, 0.98
    assert "only 97%" in evaluator.judge_tokens(model, expected, found)


def test_every_round_is_new() -> None:
    evaluator = load_evaluator(FOLDER / "evaluator.py")
    timing = {"rounds": 3, "batch": 2, "context": [64, 128], "new_tokens": [3, 6]}
    rng = np.random.default_rng(7)
    rounds = [evaluator.timed_round(rng, 3000, timing) for _ in range(12)]
    assert len({r.arrays[0].tobytes() for r in rounds}) == 12
    assert len({(r.arrays[0].shape, r.settings["new_tokens"]) for r in rounds}) > 6


def unpack(answers: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes(gzip.decompress((answers / f"{name}.gz").read_bytes()))


def test_workspace_and_evaluator_have_the_same_weights(
    prepared: PreparedBy, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    data = prepared("llama-inference")
    unpack(data.answers, tmp_path)
    public, hidden = (
        load_file(place / "model.safetensors") for place in (data.public / "model", tmp_path)
    )
    assert public.keys() == hidden.keys()
    assert all(torch.equal(public[name], hidden[name]) for name in public)


def test_full_takes_a_published_model(
    full: Callable[[str, Path], tuple[Path, Path]], prepared: PreparedBy, tmp_path: Path, llama: Any
) -> None:
    """A smaller one of its shape: 16-bit weights, head and embedding are one."""
    from safetensors.torch import load_file, save_file

    raw = tmp_path / "raw"
    raw.mkdir()
    for name in ("inference.py", "llama.py"):
        shutil.copy(FOLDER / "env" / name, raw)
    mini = prepared("llama-inference").public / "model"
    weights = {
        n: w.bfloat16()
        for n, w in load_file(mini / "model.safetensors").items()
        if n != "lm_head.weight"
    }
    save_file(weights, raw / "model.safetensors", metadata={"format": "pt"})
    config = {
        **json.loads((mini / "config.json").read_text()),
        "tie_word_embeddings": True,
        "rope_theta": 100000,
    }
    (raw / "config.json").write_text(json.dumps(config))

    public, answers = full("llama-inference", raw)
    unpack(answers, tmp_path / "model")
    for place in (public / "model", tmp_path / "model"):
        model = llama.from_folder(place)
        assert model.logits(torch.tensor([[1, 2, 3]])).shape == (1, 3, 3000)
        assert model.weights["model.norm.weight"].dtype == torch.float32
    assert (answers / "starter" / "inference.py").read_text() == STARTER
