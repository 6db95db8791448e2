"""A citation network in the layout of OGB's ogbn-arxiv, without the subjects of the test papers,
and those as answers.

`mini` is generated: papers that resemble their subject a little and cite earlier papers, most often
of the same or a related subject. Only Python's own generator is used, whose numbers are the same
everywhere."""

import csv
import gzip
import math
import random
import shutil
import struct
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

FOLDER = Path("networks") / "ogbn_arxiv"
RAW = ["edge", "node-feat", "node_year", "num-edge-list", "num-node-list"]
SPLITS = ["train", "valid", "test"]
CLASSES = 40
HIDDEN = -1  # in the place of a test paper's subject


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """networks/ogbn_arxiv/{raw,split/time}/*.csv.gz in ``public``, answers.csv (node, label) in
    ``answers``."""
    target = public / FOLDER
    (target / "raw").mkdir(parents=True)
    (target / "split" / "time").mkdir(parents=True)
    if variant == "mini":
        labels, test = generate(random.Random(0), target)
    else:
        labels, test = published(raw / "arxiv", target)
    hidden = set(test)
    write(
        target / "raw" / "node-label",
        ([HIDDEN if node in hidden else y] for node, y in enumerate(labels)),
    )
    with (answers / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["node", "label"], *([node, labels[node]] for node in test)]
        )


def published(source: Path, target: Path) -> tuple[list[int], list[int]]:
    """Copy OGB's files but for the labels; all labels, and the test papers in the order of the
    split."""
    for name in RAW:
        shutil.copyfile(source / "raw" / f"{name}.csv.gz", target / "raw" / f"{name}.csv.gz")
    for name in SPLITS:
        shutil.copyfile(
            source / "split" / "time" / f"{name}.csv.gz",
            target / "split" / "time" / f"{name}.csv.gz",
        )
    labels = integers(source / "raw" / "node-label.csv.gz")
    test = integers(source / "split" / "time" / "test.csv.gz")
    (nodes,) = integers(source / "raw" / "num-node-list.csv.gz")
    if (
        len(labels) != nodes
        or not set(labels) <= set(range(CLASSES))
        or not set(test) <= set(range(nodes))
    ):
        raise ValueError(
            f"node-label.csv.gz: expected {nodes} subjects from 0 to {CLASSES - 1}; found"
            f" {len(labels)}"
        )
    return labels, test


def integers(path: Path) -> list[int]:
    """One number a line."""
    with gzip.open(path, "rt", encoding="ascii") as file:
        return [int(line) for line in file]


def write(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """path.csv.gz: not compressed, so that its bytes do not depend on the version of zlib."""
    content = "".join(",".join(map(str, row)) + "\n" for row in rows).encode("ascii")
    blocks = [content[start : start + 65535] for start in range(0, len(content), 65535)] or [b""]
    with path.with_name(path.name + ".csv.gz").open("wb") as file:
        file.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
        for number, block in enumerate(blocks, 1):
            file.write(
                struct.pack("<BHH", number == len(blocks), len(block), len(block) ^ 0xFFFF) + block
            )
        file.write(struct.pack("<II", zlib.crc32(content), len(content)))


# --- the generator --------------------------------------------------------------------------------

PAPERS = 4000
FEATURES = 128
FIRST_YEAR, LAST_YEAR, GROWTH = 2007, 2020, 0.28
TEST_FROM = 2019
RESEMBLANCE = 0.25  # how much of a paper's features is its subject's
CITATIONS = 6.0  # a paper, on average
SAME, RELATED = 0.45, 0.15  # shares of citations of papers on the same and on a related subject


def generate(rng: random.Random, target: Path) -> tuple[list[int], list[int]]:
    """Write all but the labels; the labels, and the test papers."""
    popularity = list(accumulate((rank + 1) ** -0.8 for rank in range(CLASSES)))
    labels = rng.choices(range(CLASSES), cum_weights=popularity, k=PAPERS)
    span = range(FIRST_YEAR, LAST_YEAR + 1)
    years = sorted(
        rng.choices(
            span, weights=[math.exp(GROWTH * (year - FIRST_YEAR)) for year in span], k=PAPERS
        )
    )
    edges = citations(rng, labels)
    write(target / "raw" / "node-feat", features(rng, labels))
    write(target / "raw" / "edge", edges)
    write(target / "raw" / "node_year", ([year] for year in years))
    write(target / "raw" / "num-node-list", [[PAPERS]])
    write(target / "raw" / "num-edge-list", [[len(edges)]])
    parts = {
        "train": [node for node, year in enumerate(years) if year < TEST_FROM - 1],
        "valid": [node for node, year in enumerate(years) if year == TEST_FROM - 1],
        "test": [node for node, year in enumerate(years) if year >= TEST_FROM],
    }
    for name, nodes in parts.items():
        write(target / "split" / "time" / name, ([node] for node in nodes))
    return labels, parts["test"]


def features(rng: random.Random, labels: list[int]) -> list[list[str]]:
    """A little of the subject, much of the paper's own."""
    scale = 1 / math.sqrt(FEATURES)
    centres = [[rng.gauss(0, scale) for _ in range(FEATURES)] for _ in range(CLASSES)]
    return [
        [f"{RESEMBLANCE * value + rng.gauss(0, scale):.4f}" for value in centres[label]]
        for label in labels
    ]


def citations(rng: random.Random, labels: list[int]) -> list[tuple[int, int]]:
    """(citing paper, cited earlier paper), each pair once, sorted."""
    related = [rng.sample(range(CLASSES), 3) for _ in range(CLASSES)]
    earlier: list[list[int]] = [[] for _ in range(CLASSES)]
    edges = set()
    for paper, subject in enumerate(labels):
        for _ in range(min(paper, poisson(rng, CITATIONS))):
            share = rng.random()
            pool = []
            if share < SAME:
                pool = earlier[subject]
            elif share < SAME + RELATED:
                pool = earlier[rng.choice(related[subject])]
            edges.add((paper, rng.choice(pool) if pool else rng.randrange(paper)))
        earlier[subject].append(paper)
    return sorted(edges)


def poisson(rng: random.Random, mean: float) -> int:
    """A number of events: how many exponential waits of mean 1 fit into ``mean``."""
    count, waited = 0, rng.expovariate(1)
    while waited < mean:
        count += 1
        waited += rng.expovariate(1)
    return count
