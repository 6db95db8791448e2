"""A language model in public, and the same with the original code in answers, for the evaluator to
run.

`mini` is a small model with random weights, always the same; `full` is a published one.
"""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 3000,
    "hidden_size": 192,
    "intermediate_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "max_position_embeddings": 512,
}
FILES = ("config.json", "model.safetensors")
# Contexts and new tokens are drawn from these ranges (both ends included) for every round.
TIMING = {
    "mini": {"rounds": 11, "batch": 2, "context": [64, 128], "new_tokens": [3, 6]},
    "full": {"rounds": 9, "batch": 4, "context": [120, 136], "new_tokens": [2, 4]},
}


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """model/ in ``public``; the same packed, starter/ and timing.json in ``answers``."""
    (answers / "starter").mkdir()
    for name in ("inference.py", "llama.py"):
        shutil.copyfile(raw / name, answers / "starter" / name)
    (answers / "timing.json").write_text(json.dumps(TIMING[variant]) + "\n", encoding="utf-8")
    folder = public / "model"
    folder.mkdir()
    if variant == "mini":
        (folder / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n", encoding="utf-8")
        write(folder / "model.safetensors", *random_weights())
    else:
        for name in FILES:
            shutil.copyfile(raw / name, folder / name)
    # Packed, because what lies open among the answers must not be found in the workspace, and the
    # model may.
    for name in FILES:
        packed = gzip.compress((folder / name).read_bytes(), compresslevel=1, mtime=0)
        (answers / f"{name}.gz").write_bytes(packed)


def random_weights() -> tuple[dict[str, Any], bytes]:
    """Normal random weights under Hugging Face's names, scaled so that every layer counts."""
    rng = np.random.default_rng(7)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts = []
    end = 0
    for name, shape in shapes().items():
        if len(shape) == 1:
            values = np.ones(shape, dtype="<f4")
        else:
            scale = 1.0 if "embed" in name else shape[1] ** -0.5
            values = (rng.standard_normal(shape) * scale).astype("<f4")
        parts.append(values.tobytes())
        start, end = end, end + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, end]}
    return header, b"".join(parts)


def shapes() -> dict[str, tuple[int, ...]]:
    """The tensors of a model of this configuration."""
    hidden, inner, vocabulary = (
        CONFIG["hidden_size"],
        CONFIG["intermediate_size"],
        CONFIG["vocab_size"],
    )
    shared = hidden // CONFIG["num_attention_heads"] * CONFIG["num_key_value_heads"]
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(CONFIG["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        found |= {
            f"{name}input_layernorm.weight": (hidden,),
            f"{name}self_attn.q_proj.weight": (hidden, hidden),
            f"{name}self_attn.k_proj.weight": (shared, hidden),
            f"{name}self_attn.v_proj.weight": (shared, hidden),
            f"{name}self_attn.o_proj.weight": (hidden, hidden),
            f"{name}post_attention_layernorm.weight": (hidden,),
            f"{name}mlp.gate_proj.weight": (inner, hidden),
            f"{name}mlp.up_proj.weight": (inner, hidden),
            f"{name}mlp.down_proj.weight": (hidden, inner),
        }
    return {**found, "model.norm.weight": (hidden,), "lm_head.weight": (vocabulary, hidden)}


def write(path: Path, header: dict[str, Any], content: bytes) -> None:
    """A safetensors file: length of the header, header padded to 8 bytes, content."""
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        file.write(content)
