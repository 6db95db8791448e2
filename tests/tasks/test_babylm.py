"""babylm: perplexity per token of a text that the evaluator fixes, of models that are data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_mlab.core.scoring import judge as judge_score
from pytest_mlab.core.trial import Outcome
from pytest_mlab.data.prepare import Prepared
from tests.tasks.conftest import load

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

PreparedBy = Callable[[str], Prepared]
Submit = Callable[..., dict[str, Any]]

VOCABULARY = 2000
SOURCES = ["aochildes", "wikipedia"]


def gpt2(**changes: Any) -> Any:
    """A tiny model with random weights."""
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**{**sizes, **changes})).eval()


@pytest.fixture
def submit(tmp_path: Path, verdict: Callable[[str, Path], dict[str, Any]]) -> Submit:
    """The verdict on a model, saved as save_pretrained does, after ``change`` was made to
    output/."""

    def run(model: Any, change: Callable[[Path], object] | None = None) -> dict[str, Any]:
        if model is not None:
            model.save_pretrained(tmp_path / "output")
        if change:
            change(tmp_path / "output")
        return verdict("babylm", tmp_path)

    return run


def hidden(prepared: PreparedBy) -> tuple[Any, int]:
    answers = prepared("babylm").answers
    return np.load(answers / "test.npy"), json.loads((answers / "test.json").read_text())["end"]


def test_texts_tokenizer_and_hidden_tokens(prepared: PreparedBy) -> None:
    from tokenizers import Tokenizer

    public = prepared("babylm").public
    parts = {
        part: "".join(
            path.read_text() for path in sorted((public / "babylm_data" / part).iterdir())
        )
        for part in ("babylm_10M", "babylm_dev")
    }
    assert 250_000 < len(parts["babylm_10M"]) < 400_000
    assert 20_000 < len(parts["babylm_dev"]) < 60_000
    tokenizer = Tokenizer.from_file(str(public / "tokenizer" / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == VOCABULARY
    tokens, end = hidden(prepared)
    assert tokenizer.token_to_id("<|endoftext|>") == end
    text = tokenizer.decode(tokens.tolist())
    assert 10_000 < len(tokens) < 20_000
    assert "god" in text.lower()


def test_fault_mended_the_test_text_is_nowhere_in_the_workspace(prepared: PreparedBy) -> None:
    from tokenizers import Tokenizer

    public = prepared("babylm").public
    tokenizer = Tokenizer.from_file(str(public / "tokenizer" / "tokenizer.json"))
    lines = [
        line
        for line in tokenizer.decode(hidden(prepared)[0].tolist()).splitlines()
        if len(line) > 60
    ]
    seen = "".join(path.read_text() for path in public.rglob("*") if path.is_file())
    assert len(lines) > 100
    assert (
        sum(line in seen for line in lines) <= len(lines) // 50
    )  # the Bible repeats a few of its sentences


def test_the_score_is_exp_of_the_mean_loss_of_every_token(
    submit: Submit, prepared: PreparedBy
) -> None:
    model = gpt2(n_positions=64)
    tokens, end = hidden(prepared)
    losses = []
    with torch.no_grad():
        for start in range(0, len(tokens), 63):
            row = torch.tensor([[end, *tokens[start : start + 63]]])
            losses.append(model(row, labels=row).loss.item() * (row.shape[1] - 1))
    found = submit(model)
    assert found["verdict"] == "scored", found["reason"]
    assert found["score"] == pytest.approx(math.exp(sum(losses) / len(tokens)), rel=1e-4)
    assert found["details"]["context"] == 64


def test_a_uniform_model_scores_the_size_of_the_vocabulary(submit: Submit) -> None:
    model = gpt2()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert submit(model)["score"] == pytest.approx(VOCABULARY, rel=1e-6)


def test_word_frequencies_alone_are_no_success(prepared: PreparedBy) -> None:
    """The best that a predictor without context does: the frequencies of the training tokens."""
    from tokenizers import Tokenizer

    public = prepared("babylm").public
    tokenizer = Tokenizer.from_file(str(public / "tokenizer" / "tokenizer.json"))
    counts = np.ones(VOCABULARY)
    for path in (public / "babylm_data" / "babylm_10M").iterdir():
        counts += np.bincount(tokenizer.encode(path.read_text()).ids, minlength=VOCABULARY)
    score = math.exp(-np.log(counts / counts.sum())[hidden(prepared)[0]].mean())
    assert 300 < score < 400
    assert judge_score(load("babylm"), "mini", score).outcome is Outcome.BELOW_THRESHOLD


def test_another_architecture_counts(submit: Submit) -> None:
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = transformers.LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=64, **sizes)
    found = submit(transformers.LlamaForCausalLM(config))
    assert found["verdict"] == "scored", found["reason"]
    assert 1000 < found["score"] < 4000


def test_half_precision_and_untied_heads_are_fine(submit: Submit) -> None:
    assert submit(gpt2(tie_word_embeddings=False).to(torch.bfloat16))["verdict"] == "scored"


def test_fault_mended_another_tokenizer_does_not_help(submit: Submit) -> None:
    """There the submission's own tokenizer set the units: with bytes, perplexity falls below 5."""
    found = submit(gpt2(vocab_size=256))
    assert found["verdict"] == "invalid_submission"
    assert "vocab_size is 256; expected 2000" in found["reason"]


def test_fault_mended_neither_tokenizer_nor_loader_of_the_submission_is_read(
    submit: Submit, tmp_path: Path
) -> None:
    def change(output: Path) -> None:
        (output / "tokenizer.json").write_text("{}")
        (output.parent / "babyLM_for_hf.py").write_text("raise SystemExit")
        config = json.loads((output / "config.json").read_text())
        config["auto_map"] = {
            "AutoModelForCausalLM": "modeling.Model",
            "AutoConfig": "modeling.Config",
        }
        (output / "config.json").write_text(json.dumps(config))
        (output / "modeling.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'w')")

    first = submit(gpt2())["score"]
    assert submit(None, change)["score"] == first
    assert not (tmp_path / "executed").exists()


def test_fault_mended_short_blocks_leave_no_token_out(submit: Submit, prepared: PreparedBy) -> None:
    """There a block's first token did not count, so that short blocks left out much of the text."""
    model = gpt2(n_positions=2)
    tokens, end = hidden(prepared)
    with torch.no_grad():
        logs = torch.stack(
            [model(torch.tensor([[end, int(t)]])).logits[0, 0] for t in tokens[:1]]
        ).log_softmax(-1)[0]
    assert submit(model)["score"] == pytest.approx(
        math.exp(-logs[torch.tensor(tokens).long()].mean().item()), rel=1e-4
    )


def rewritten(**values: Any) -> Callable[[Path], None]:
    def change(output: Path) -> None:
        config = json.loads((output / "config.json").read_text())
        (output / "config.json").write_text(json.dumps({**config, **values}))

    return change


def pickled(output: Path) -> None:
    (output / "model.safetensors").unlink()
    torch.save({}, output / "pytorch_model.bin")


def with_nan(output: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(output / "model.safetensors")
    weights["transformer.wte.weight"][3, 3] = math.nan
    save_file(weights, output / "model.safetensors")


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickled weights": (pickled, "has weights in pickled files; expected model.safetensors"),
    "NaN": (with_nan, "transformer.wte.weight has values that are no finite numbers"),
    "no safetensors": (
        lambda o: (o / "model.safetensors").write_bytes(b"x" * 99),
        "cannot be read",
    ),
    "no JSON": (lambda o: (o / "config.json").write_text("{"), "config.json is no JSON"),
    "a list": (lambda o: (o / "config.json").write_text("[]"), "model_type is None"),
    "bidirectional": (
        rewritten(model_type="bert"),
        "model_type is 'bert'; expected one of codegen",
    ),
    "more layers": (
        rewritten(n_layer=2),
        "has not the weights of output/config.json: missing: transformer.h.1",
    ),
    "huge": (rewritten(n_embd=1 << 20), "they have another size"),
    "many layers": (rewritten(n_layer=40), "most of them are missing"),
    "heads": (rewritten(n_head=3), "has not the weights"),
    "no positions": (rewritten(n_positions=0), "they have another size"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_told(submit: Submit, kind: str) -> None:
    change, reason = WRONG[kind]
    found = submit(gpt2(), change)
    assert (found["verdict"], found["score"]) == ("invalid_submission", None)
    assert reason in found["reason"]


def test_predictions_may_not_look_ahead() -> None:
    from pytest_mlab.evaluation import InvalidSubmission
    from pytest_mlab.evaluation.main import load_evaluator

    def ahead(rows: Any, use_cache: bool) -> Any:
        return SimpleNamespace(logits=rows.roll(-1, 1)[..., None].float())

    evaluator = load_evaluator(load("babylm").folder / "evaluator.py")
    evaluator.require_causal(gpt2(), torch.arange(20), VOCABULARY)
    with pytest.raises(InvalidSubmission, match="depend on later tokens"):
        evaluator.require_causal(ahead, torch.arange(20), VOCABULARY)
    with pytest.raises(InvalidSubmission, match="1 positions; expected at least 2"):
        evaluator.longest(SimpleNamespace(max_position_embeddings=1))


def test_nothing_is_no_submission(submit: Submit) -> None:
    found = submit(None)
    assert found["verdict"] == "no_submission"
    assert "output/ is missing" in found["reason"]


def test_full_hides_passages_of_each_source(
    full: Callable[[str, Path], tuple[Path, Path]], tmp_path: Path
) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    raw = tmp_path / "raw"
    for part in ("10M", "dev", "test"):
        (raw / "original" / part).mkdir(parents=True)
        for number, name in enumerate(SOURCES):
            text = "".join(f"line {n} of {part} {number}\n" for n in range(3000))
            (raw / "original" / part / f"{name}.txt").write_text(text)
    alphabet = {c: n for n, c in enumerate([*pre_tokenizers.ByteLevel.alphabet(), "<|endoftext|>"])}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(raw / "tokenizer.json"))

    public, answers = full("babylm", raw)
    assert sorted(p.name for p in (public / "babylm_data" / "babylm_10M").iterdir()) == [
        f"{s}.train" for s in SOURCES
    ]
    assert sorted(p.name for p in (public / "babylm_data" / "babylm_dev").iterdir()) == [
        f"{s}.dev" for s in SOURCES
    ]
    assert np.load(answers / "test.npy").shape == (2 * 10_230,)
    assert json.loads((answers / "test.json").read_text()) == {"vocabulary": 257, "end": 256}
    assert not [p for p in public.rglob("*") if p.is_file() and "of test" in p.read_text()]
    assert json.loads((public / "starter.json").read_text())["n_positions"] == 1024
