"""The global Dice coefficient: all pixels of all test records count together, joined by
record_id."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

from pytest_mlab.evaluation import read_answers, read_submission

Run = tuple[int, int]  # first pixel and the pixel after the last one, numbered from 1

_NUMBERS = re.compile(r"[0-9]{1,12}(?: [0-9]{1,12})*")


def evaluate(submission_dir: Path, answers_dir: Path) -> float:
    """2 |X and Y| / (|X| + |Y|), from 0 to 1; higher is better."""
    shape = json.loads((answers_dir / "shape.json").read_text())
    pixels = shape["rows"] * shape["columns"]
    csv.field_size_limit(
        16 * pixels
    )  # a mask in which every second pixel is set is longer than csv's own limit
    columns = {"encoded_pixels": Runs(pixels)}
    answers = read_answers(answers_dir / "answers.csv", key="record_id", columns=columns)
    rows = read_submission(
        submission_dir / "submission.csv", key="record_id", columns=columns, ids=answers, max_mb=100
    )
    both = total = 0
    for id_, answer in answers.items():
        truth, found = answer["encoded_pixels"], rows[id_]["encoded_pixels"]
        both += overlap(truth, found)
        total += size(truth) + size(found)
    return 2 * both / total


@dataclass(frozen=True)
class Runs:
    """Converts "start length start length ..." or "-" for an image of so many pixels. Raises
    ValueError."""

    pixels: int

    def __call__(self, value: str) -> list[Run]:
        value = value.strip()
        if value == "-":
            return []
        if not _NUMBERS.fullmatch(value):
            raise ValueError(value)
        numbers = [int(number) for number in value.split(" ")]
        if len(numbers) % 2:
            raise ValueError(value)
        runs, last = [], 1
        for start, length in zip(numbers[::2], numbers[1::2], strict=True):
            if start < last or length < 1:
                raise ValueError(value)
            last = start + length
            runs.append((start, last))
        if last > self.pixels + 1:
            raise ValueError(value)
        return runs

    @property
    def expected(self) -> str:
        """For a message."""
        return (
            "'-' or pairs 'start length' in ascending order, without overlap, within pixels 1 to"
            f" {self.pixels}"
        )


def size(runs: list[Run]) -> int:
    """How many pixels they cover."""
    return sum(end - start for start, end in runs)


def overlap(first: list[Run], second: list[Run]) -> int:
    """How many pixels both cover."""
    common = i = j = 0
    while i < len(first) and j < len(second):
        common += max(0, min(first[i][1], second[j][1]) - max(first[i][0], second[j][0]))
        if first[i][1] < second[j][1]:
            i += 1
        else:
            j += 1
    return common
