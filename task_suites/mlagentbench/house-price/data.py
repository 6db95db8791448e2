"""House prices: rows with their price become train.csv, the rest test.csv and hidden prices."""

import csv
import gzip
import io
import random
from pathlib import Path

ROWS = 1460  # as many as Kaggle's file has
TRAIN_SHARE = 0.8

Table = tuple[list[str], list[list[str]]]


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """train.csv and test.csv in ``public``, answers.csv (Id, SalePrice) in ``answers``."""
    header, rows = (
        shuffled_ames(raw / "ames.csv.gz") if variant == "mini" else kaggle(raw / "train.csv")
    )
    price = header.index("SalePrice")
    cut = int(len(rows) * TRAIN_SHARE)
    write(public / "train.csv", header, rows[:cut])
    write(public / "test.csv", *without(price, header, rows[cut:]))
    write(
        answers / "answers.csv", ["Id", "SalePrice"], [[row[0], row[price]] for row in rows[cut:]]
    )


def shuffled_ames(path: Path) -> Table:
    """A fixed random choice of the Ames sales, numbered anew: their own order tells neighbourhood
    and year."""
    header, *rows = csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode("utf-8")))
    random.Random(0).shuffle(rows)
    return ["Id", *header], [[str(number), *row] for number, row in enumerate(rows[:ROWS], 1)]


def kaggle(path: Path) -> Table:
    """Kaggle's training file as it is: its rows are in random order already, and this cut is the
    published one."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if header[0] != "Id" or "SalePrice" not in header:
        raise ValueError(
            f"{path.name}: expected Kaggle's columns Id, ..., SalePrice; found"
            f" {', '.join(header[:3])}, ..."
        )
    return header, rows


def without(column: int, header: list[str], rows: list[list[str]]) -> Table:
    """The same table without one column."""
    return header[:column] + header[column + 1 :], [
        row[:column] + row[column + 1 :] for row in rows
    ]


def write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """A csv file with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])
