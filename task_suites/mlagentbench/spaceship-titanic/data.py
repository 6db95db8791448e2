"""Spaceship Titanic: records with their fate become train.csv, the rest test.csv and hidden fates.

`mini` is generated: random passengers whose fate follows a logistic law of what the records say.
Only Python's own generator is used, whose numbers are the same everywhere."""

import csv
import math
import random
from pathlib import Path
from typing import TypeVar

COLUMNS = [
    "PassengerId",
    "HomePlanet",
    "CryoSleep",
    "Cabin",
    "Destination",
    "Age",
    "VIP",
    "RoomService",
    "FoodCourt",
    "ShoppingMall",
    "Spa",
    "VRDeck",
    "Name",
    "Transported",
]
MINI_ROWS = 3000
TRAIN_SHARE = 0.8
MISSING = 0.022

GROUP_SIZES = {1: 0.56, 2: 0.2, 3: 0.1, 4: 0.07, 5: 0.04, 6: 0.03}
PLANETS = {"Earth": 0.54, "Europa": 0.25, "Mars": 0.21}
DESTINATIONS = {"TRAPPIST-1e": 0.69, "55 Cancri e": 0.21, "PSO J318.5-22": 0.1}
DECKS = {
    "Earth": {"G": 0.58, "F": 0.36, "E": 0.06},
    "Europa": {"B": 0.36, "C": 0.34, "A": 0.12, "D": 0.12, "E": 0.055, "T": 0.005},
    "Mars": {"F": 0.6, "E": 0.22, "D": 0.18},
}
FIRST_NAMES = [
    "Alba",
    "Bryn",
    "Corin",
    "Dastan",
    "Elm",
    "Fenn",
    "Gita",
    "Hale",
    "Ines",
    "Joram",
    "Kael",
    "Lyra",
    "Mirk",
    "Nesta",
    "Orin",
    "Pell",
    "Quill",
    "Rhea",
]
LAST_NAMES = [
    "Ashgrove",
    "Brannock",
    "Coldwater",
    "Dunmore",
    "Eastlake",
    "Farrow",
    "Greville",
    "Hartsong",
    "Ironwood",
    "Juniper",
    "Kestrel",
]
# Mean of the logarithm of a bill, and what one more unit of it does to the odds of being
# transported.
BILLS = {
    "RoomService": (5.0, -0.55),
    "FoodCourt": (5.4, 0.50),
    "ShoppingMall": (4.8, 0.45),
    "Spa": (5.0, -0.60),
    "VRDeck": (5.0, -0.60),
}
RICH = {"FoodCourt", "Spa", "VRDeck"}  # where people from Europa spend more

Rows = list[list[str]]
Name = TypeVar("Name", int, str)


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """train.csv, test.csv and sample_submission.csv in ``public``, answers.csv in ``answers``."""
    rows = generate(random.Random(0), MINI_ROWS) if variant == "mini" else kaggle(raw / "train.csv")
    cut = group_boundary(rows, int(len(rows) * TRAIN_SHARE))
    test = rows[cut:]
    write(public / "train.csv", COLUMNS, rows[:cut])
    write(public / "test.csv", COLUMNS[:-1], [row[:-1] for row in test])
    write(
        public / "sample_submission.csv",
        ["PassengerId", "Transported"],
        [[row[0], "False"] for row in test],
    )
    write(
        answers / "answers.csv", ["PassengerId", "Transported"], [[row[0], row[-1]] for row in test]
    )


def group_boundary(rows: Rows, cut: int) -> int:
    """The first place from ``cut`` on where a group begins: people of one group share their records
    and their fate."""
    while 0 < cut < len(rows) and group_of(rows[cut]) == group_of(rows[cut - 1]):
        cut += 1
    return cut


def group_of(row: list[str]) -> str:
    """gggg of a PassengerId gggg_pp."""
    return row[0].partition("_")[0]


def kaggle(path: Path) -> Rows:
    """Kaggle's training file; its groups follow one another."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if header != COLUMNS:
        raise ValueError(
            f"{path.name}: expected the columns {', '.join(COLUMNS)}; found"
            f" {', '.join(header[:14])}"
        )
    return rows


def write(path: Path, header: list[str], rows: Rows) -> None:
    """A csv file with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# --- the generator --------------------------------------------------------------------------------


def generate(rng: random.Random, count: int) -> Rows:
    """``count`` passengers in groups of 1 to 6, about one value in fifty missing."""
    rows: Rows = []
    group = 0
    while len(rows) < count:
        group += 1
        rows += travellers(rng, group)
    for row in rows[:count]:
        for column in range(1, len(COLUMNS) - 1):
            if rng.random() < MISSING:
                row[column] = ""
    return rows[:count]


def travellers(rng: random.Random, group: int) -> Rows:
    """One group: same planet, cabin, destination and last name."""
    size, planet, destination = pick(rng, GROUP_SIZES), pick(rng, PLANETS), pick(rng, DESTINATIONS)
    deck, side, last_name = pick(rng, DECKS[planet]), rng.choice("PS"), rng.choice(LAST_NAMES)
    cabin = f"{deck}/{rng.randrange(1900)}/{side}"
    shared = place_odds(planet, destination, deck, side) + (0.25 if size > 1 else 0.0)
    rows = []
    for number in range(1, size + 1):
        age = min(79, round(rng.gammavariate(4, 7.2)))
        asleep = rng.random() < (0.43 if planet == "Europa" else 0.32)
        vip = rng.random() < 0.05 and not asleep and age >= 18 and planet != "Earth"
        bills = {name: bill(rng, name, planet) if not asleep and age >= 13 else 0 for name in BILLS}
        odds = shared + (1.9 if asleep else 0.95) + (1.2 if age < 13 else 0.0)
        odds += sum(BILLS[name][1] * math.log1p(spent) for name, spent in bills.items())
        transported = rng.random() < 1 / (1 + math.exp(-odds))
        name = f"{rng.choice(FIRST_NAMES)} {last_name}"
        values = [f"{group:04d}_{number:02d}", planet, asleep, cabin, destination, float(age), vip]
        values += [float(spent) for spent in bills.values()]
        rows.append([str(value) for value in [*values, name, transported]])
    return rows


def bill(rng: random.Random, name: str, planet: str) -> int:
    """What somebody awake was billed: often nothing, now and then a fortune."""
    spent = math.exp(
        rng.gauss(BILLS[name][0] + (0.9 if planet == "Europa" and name in RICH else 0.0), 1.6)
    )
    return round(spent) if rng.random() < 0.62 else 0


def place_odds(planet: str, destination: str, deck: str, side: str) -> float:
    """What planet, destination and cabin do to the log odds."""
    odds = {"Earth": -0.25, "Europa": 0.35, "Mars": 0.0}[planet]
    odds += 0.45 if side == "S" else -0.45
    odds += 0.55 if deck in "BC" else -0.35 if deck in "EF" else 0.0
    return odds + (0.2 if destination == "55 Cancri e" else 0.0)


def pick(rng: random.Random, shares: dict[Name, float]) -> Name:
    """A key of ``shares`` with its share as probability."""
    return rng.choices(list(shares), weights=list(shares.values()))[0]
