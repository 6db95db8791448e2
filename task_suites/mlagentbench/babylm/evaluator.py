"""Perplexity of a submitted model per token of a hidden text, whose tokens the evaluator fixes.

The model is data: transformers' own class of the architecture that config.json names, with weights
from a safetensors file. Nothing of the submission is executed."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from pytest_mlab.evaluation import InvalidSubmission, NoSubmission, read_file, record

os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"})

# Decoders that transformers implements itself.
ARCHITECTURES = (
    "codegen",
    "gemma",
    "gpt2",
    "gpt_neo",
    "gpt_neox",
    "gptj",
    "llama",
    "mistral",
    "olmo",
    "olmo2",
    "opt",
    "phi",
    "qwen2",
    "qwen3",
    "stablelm",
)
IGNORED = (
    "architectures",
    "attn_implementation",
    "auto_map",
    "model_type",
    "quantization_config",
    "torch_dtype",
    "dtype",
)
LONGEST = 1024  # tokens that a model sees at once
MAX_MB = 600
SECONDS = 1200.0


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """exp(sum of -log p(token) / number of tokens); lower is better."""
    tokens = np.load(answers_dir / "test.npy", allow_pickle=False).astype(np.int64)
    facts = json.loads((answers_dir / "test.json").read_text(encoding="utf-8"))
    folder = submission_dir / "output"
    if not folder.is_dir() or folder.is_symlink():
        raise NoSubmission("the folder output/ is missing: save the model there")
    config = read_config(folder, facts["vocabulary"])
    weights = read_weights(folder)
    import torch  # seconds, which what is refused above does without

    model = build(config, weights)
    context = min(longest(config), LONGEST)
    blocks = as_blocks(torch.from_numpy(tokens), context, facts["end"])
    require_causal(model, blocks[0], facts["vocabulary"])
    nats = total(model, blocks, time.monotonic() + SECONDS)
    record(
        nats_per_token=nats / len(tokens),
        context=context,
        parameters=sum(p.numel() for p in model.parameters()),
    )
    return math.exp(min(nats / len(tokens), 700.0))


def read_config(folder: Path, vocabulary: int) -> Any:
    """output/config.json as transformers' configuration, of an architecture that is known here."""
    try:
        found = json.loads(read_file(folder / "config.json", max_mb=1))
    except (ValueError, RecursionError) as error:
        raise InvalidSubmission(f"output/config.json is no JSON: {error}") from None
    kind = found.get("model_type") if isinstance(found, dict) else None
    if kind not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise InvalidSubmission(
            f"output/config.json: model_type is {kind!r:.60}; expected one of {known}"
        )
    from transformers import AutoConfig

    try:
        config = AutoConfig.for_model(
            kind, **{key: value for key, value in found.items() if key not in IGNORED}
        )
    except Exception as error:  # noqa: BLE001 - a library's own checks of values that were handed in
        raise InvalidSubmission(
            f"output/config.json is no configuration of {kind}: {one_line(error)}"
        ) from None
    if config.vocab_size != vocabulary:
        raise InvalidSubmission(
            f"output/config.json: vocab_size is {config.vocab_size!r:.40}; expected {vocabulary},"
            " that of tokenizer/"
        )
    return config


def read_weights(folder: Path) -> dict[str, Any]:
    """The tensors of output/model.safetensors by name."""
    place = folder / "model.safetensors"
    if not os.path.lexists(place) and list(folder.glob("*.bin")):
        raise InvalidSubmission("output/ has weights in pickled files; expected model.safetensors")
    content = read_file(place, max_mb=MAX_MB)
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights = load(content)
    except SafetensorError as error:
        raise InvalidSubmission(
            f"output/model.safetensors cannot be read: {one_line(error)}"
        ) from None
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or not tensor.isfinite().all():
            raise InvalidSubmission(
                f"output/model.safetensors: {name[:80]} has values that are no finite numbers"
            )
    return {name: tensor.float() for name, tensor in weights.items()}


def build(config: Any, weights: dict[str, Any]) -> Any:
    """The model with these weights. It is first laid out without memory, so that no configuration
    can ask for much."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            plan = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        shapes = {name: tuple(tensor.shape) for name, tensor in plan.state_dict().items()}
        wrong = [
            n
            for n, tensor in weights.items()
            if shapes.get(n, tuple(tensor.shape)) != tuple(tensor.shape)
        ]
        size = sum(parameter.numel() for parameter in plan.parameters())
        if wrong or size > 2 * sum(tensor.numel() for tensor in weights.values()):
            raise ValueError(
                f"they have another size ({wrong[0]})" if wrong else "most of them are missing"
            )
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False).float().eval()
        missing, unexpected = model.load_state_dict(weights, strict=False)
        filled = {model.state_dict()[name].data_ptr() for name in weights if name in shapes}
        missing = [
            name for name in missing if model.state_dict()[name].data_ptr() not in filled
        ]  # but for tied ones
        if missing or unexpected:
            raise ValueError(f"missing: {some(missing)}; unknown: {some(unexpected)}")
    except Exception as error:  # noqa: BLE001 - a library's own checks of values that were handed in
        reason = (
            f"output/model.safetensors has not the weights of output/config.json: {one_line(error)}"
        )
        raise InvalidSubmission(reason) from None
    return model


def longest(config: Any) -> int:
    """Positions that the model knows; at least 2."""
    found = getattr(config, "max_position_embeddings", None) or LONGEST
    if not isinstance(found, int) or found < 2:
        raise InvalidSubmission(f"output/config.json: {found!r:.40} positions; expected at least 2")
    return found


def as_blocks(tokens: Any, context: int, end: int) -> list[Any]:
    """Every token once, in rows that begin with the token ``end``, which is given and not
    predicted."""
    import torch

    start = torch.tensor([end])
    return [torch.cat([start, part]) for part in tokens.split(context - 1)]


def require_causal(model: Any, block: Any, vocabulary: int) -> None:
    """What a model predicts may not depend on what comes later."""
    import torch

    middle = len(block) // 2
    other = torch.cat([block[: middle + 1], (block[middle + 1 :] + 1) % vocabulary])
    with torch.no_grad():
        first, second = (run(model, rows[None])[0, : middle + 1] for rows in (block, other))
    if not torch.allclose(first, second, rtol=1e-3, atol=1e-3):
        raise InvalidSubmission(
            "the model's predictions depend on later tokens; expected a causal language model"
        )


def total(model: Any, blocks: list[Any], deadline: float) -> float:
    """Sum of -log p over all tokens but the given first ones, in nats."""
    import torch

    together = max(1, (1 << 22) // (len(blocks[0]) * model.config.vocab_size))
    whole = [block for block in blocks if len(block) == len(blocks[0])]
    batches = [torch.stack(whole[n : n + together]) for n in range(0, len(whole), together)]
    batches += [block[None] for block in blocks[len(whole) :]]
    nats = 0.0
    with torch.no_grad():
        for rows in batches:
            if time.monotonic() > deadline:
                raise InvalidSubmission(
                    f"the model is too slow: the text took more than {SECONDS:.0f} s"
                )
            logs = run(model, rows)[:, :-1].double().log_softmax(-1)
            nats -= logs.gather(-1, rows[:, 1:, None]).sum().item()
    if not math.isfinite(nats):
        raise InvalidSubmission("the model's predictions are no finite numbers")
    return nats


def run(model: Any, rows: Any) -> Any:
    """The logits."""
    try:
        return model(rows, use_cache=False).logits
    except Exception as error:  # noqa: BLE001 - a configuration that was handed in may make the model fail
        raise InvalidSubmission(
            f"the model fails on {tuple(rows.shape)} tokens: {one_line(error)}"
        ) from None


def some(names: list[str]) -> str:
    """The first three."""
    return ", ".join(name[:80] for name in names[:3]) or "none"


def one_line(error: Exception) -> str:
    """An error's text, short and plain."""
    return ascii(" ".join(str(error).split())[:200])[1:-1] or type(error).__name__
