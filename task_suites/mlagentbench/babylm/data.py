"""Texts for a small language model, a fixed tokenizer, and the hidden test text as that tokenizer's
numbers.

`mini` is a part of the Bible in Basic English, in eight files; `full` is the BabyLM challenge's
10-million-word track."""

import bz2
import gzip
import json
import random
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

END = "<|endoftext|>"
FILES = 8
TEST, DEV = 12, 8  # blocks of 40 sentences
TEST_TOKENS = 10_230  # of each source of the variant `full`: ten blocks of 1023
STARTER = {
    "mini": {
        "n_layer": 2,
        "n_embd": 128,
        "n_head": 4,
        "n_positions": 128,
        "batch_size": 8,
        "learning_rate": 1e-3,
    },
    "full": {
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "n_positions": 1024,
        "batch_size": 16,
        "learning_rate": 5e-5,
    },
}


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """babylm_data/, tokenizer/ and starter.json in ``public``; test.npy and test.json in
    ``answers``."""
    (public / "tokenizer").mkdir()
    (public / "starter.json").write_text(
        json.dumps(STARTER[variant], indent=1) + "\n", encoding="utf-8"
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "unk_token": END,
    }
    (public / "tokenizer" / "tokenizer_config.json").write_text(
        json.dumps(settings, indent=1) + "\n", encoding="utf-8"
    )
    description = (
        gzip.decompress((raw / "tokenizer.json.gz").read_bytes())
        if variant == "mini"
        else (raw / "tokenizer.json").read_bytes()
    )
    (public / "tokenizer" / "tokenizer.json").write_bytes(description)
    tokenizer = Tokenizer.from_str(description.decode("utf-8"))
    tokens = (
        basic_english(raw, public, tokenizer)
        if variant == "mini"
        else babylm(raw, public, tokenizer)
    )
    np.save(answers / "test.npy", np.asarray(tokens, dtype=np.int32))
    facts = {"vocabulary": tokenizer.get_vocab_size(), "end": tokenizer.token_to_id(END)}
    (answers / "test.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


def write(public: Path, part: str, name: str, text: str) -> None:
    """One text file of the training (`babylm_10M`) or development (`babylm_dev`) part."""
    ending = "train" if part == "babylm_10M" else "dev"
    place = public / "babylm_data" / part / f"{name}.{ending}"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def basic_english(raw: Path, public: Path, tokenizer: Tokenizer) -> list[int]:
    """Blocks of 40 neighbouring sentences, shuffled, so that all parts are of one kind."""
    text = bz2.decompress((raw / "basic-english.txt.bz2").read_bytes()).decode("utf-8")
    blocks = text.strip().split("\n\n")
    random.Random(1).shuffle(blocks)
    test, dev, train = blocks[:TEST], blocks[TEST : TEST + DEV], blocks[TEST + DEV :]
    for number in range(FILES):
        name = f"text_{number + 1:02d}"
        write(public, "babylm_10M", name, "\n".join(train[number::FILES]) + "\n")
        write(public, "babylm_dev", name, "\n".join(dev[number::FILES]) + "\n")
    return tokenizer.encode("\n".join(test) + "\n").ids


def babylm(raw: Path, public: Path, tokenizer: Tokenizer) -> list[int]:
    """The ten sources as they are; of each source's test text one passage, from a fixed place
    on."""
    tokens = []
    for file in sorted((raw / "original" / "test").glob("*.txt")):
        for part in ("10M", "dev"):
            text = (raw / "original" / part / file.name).read_text(encoding="utf-8")
            write(public, f"babylm_{part}", file.stem, text)
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        found: list[int] = []
        for line in lines[random.Random(file.stem).randrange(max(1, len(lines) // 2)) :]:
            found += tokenizer.encode(line).ids
            if len(found) >= TEST_TOKENS:
                break
        tokens += found[:TEST_TOKENS]
    if not tokens:
        raise ValueError("there are no files original/test/*.txt")
    return tokens
