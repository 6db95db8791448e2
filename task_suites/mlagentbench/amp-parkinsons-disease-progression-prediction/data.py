"""Parkinson's progression: visits, proteins and peptides of most patients for training, hidden
ratings of the others.

Both variants are split in the same way: every fifth patient, chosen by a fixed shuffle, is a test
patient. `mini` is generated, with Python's own generator only, whose numbers are the same
everywhere."""

import csv
import random
from collections.abc import Iterator
from pathlib import Path

CLINICAL = ["visit_id", "patient_id", "visit_month", "updrs_1", "updrs_2", "updrs_3", "updrs_4"]
CLINICAL += ["upd23b_clinical_state_on_medication"]
PROTEINS = ["visit_id", "visit_month", "patient_id", "UniProt", "NPX"]
PEPTIDES = ["visit_id", "visit_month", "patient_id", "UniProt", "Peptide", "PeptideAbundance"]
TEST = ["visit_id", "patient_id", "visit_month", "row_id", "updrs_test"]
SUBMISSION = ["prediction_id", "rating", "visit_month"]
TABLES = {
    "train_clinical_data.csv": CLINICAL,
    "train_proteins.csv": PROTEINS,
    "train_peptides.csv": PEPTIDES,
    "supplemental_clinical_data.csv": CLINICAL,
}
PARTS = (1, 2, 3, 4)
WAITS = (0, 6, 12, 24)  # months
TEST_SHARE = 0.2
LEAST_TEST_PATIENTS = 20

Row = list[str]


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """Tables of the training patients and example_test_files/ in ``public``, answers.csv in
    ``answers``."""
    tables = (
        generate()
        if variant == "mini"
        else {name: kaggle(raw / name, TABLES[name]) for name in TABLES}
    )
    clinical = tables["train_clinical_data.csv"]
    held_out = test_patients({row[1] for row in clinical})
    for name, header in TABLES.items():
        write(
            public / name,
            header,
            [row for row in tables[name] if row[header.index("patient_id")] not in held_out],
        )
    folder = public / "example_test_files"
    folder.mkdir()
    for name, header in (("proteins", PROTEINS), ("peptides", PEPTIDES)):
        rows = [row for row in tables[f"train_{name}.csv"] if row[2] in held_out]
        write(folder / f"test_{name}.csv", header, sorted(rows, key=lambda row: int(row[1])))
    visits = sorted(
        (row for row in clinical if row[1] in held_out), key=lambda row: (int(row[2]), int(row[1]))
    )
    write(folder / "test.csv", TEST, [row for visit in visits for row in test_rows(visit)])
    wanted = list(predictions(visits))
    write(
        folder / "sample_submission.csv",
        SUBMISSION,
        [[name, "0", month] for name, month, _ in wanted],
    )
    write(answers / "answers.csv", SUBMISSION[:2], [[name, rating] for name, _, rating in wanted])


def test_patients(patients: set[str]) -> set[str]:
    """A fifth of the patients."""
    order = sorted(patients, key=int)
    random.Random(42).shuffle(order)
    count = round(len(order) * TEST_SHARE)
    if count < LEAST_TEST_PATIENTS:
        raise ValueError(
            f"{len(order)} patients; expected enough for {LEAST_TEST_PATIENTS} test patients"
        )
    return set(order[:count])


def test_rows(visit: Row) -> Iterator[Row]:
    """What a visit has in test.csv: one row for each part of the UPDRS."""
    for part in PARTS:
        yield [*visit[:3], f"{visit[0]}_updrs_{part}", f"updrs_{part}"]


def predictions(visits: list[Row]) -> Iterator[tuple[str, str, str]]:
    """(prediction_id, visit_month, true rating) for every visit, part and wait; '' where no such
    rating exists.

    A rating counts whatever else of its visit is missing.
    """
    ratings = {(row[1], int(row[2]), part): row[2 + part] for row in visits for part in PARTS}
    for visit_id, patient, month, *_ in visits:
        for part in PARTS:
            for wait in WAITS:
                rating = ratings.get((patient, int(month) + wait, part), "")
                yield f"{visit_id}_updrs_{part}_plus_{wait}_months", month, rating


def kaggle(path: Path, header: list[str]) -> list[Row]:
    """The rows of one of Kaggle's files."""
    with path.open(encoding="utf-8", newline="") as file:
        found, *rows = csv.reader(file)
    if found != header:
        raise ValueError(
            f"{path.name}: expected the columns {', '.join(header)}; found {', '.join(found[:8])}"
        )
    return rows


def write(path: Path, header: list[str], rows: list[Row]) -> None:
    """A csv file with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# --- the generator --------------------------------------------------------------------------------

PATIENTS = 150
SUPPLEMENTAL_PATIENTS = 80
MONTHS = (0, 6, 12, 24, 36, 48, 60)
PROTEIN_MONTHS = (0, 12, 24, 36, 48, 60)
PROTEIN_COUNT = 40
INFORMATIVE = (
    5  # proteins that follow the severity, and as many that follow the speed of progression
)
ON_SEVERITY, ON_SLOPE = 0.13, 0.35  # by how much the logarithm of their abundance does
TELLING_PEPTIDES = (
    4  # peptides whose share of their protein follows the severity, though the protein does not
)
PATIENT_SPREAD, VISIT_SPREAD = 0.12, 0.22  # of the logarithm of an abundance
HIGHEST = {1: 52, 2: 52, 3: 132, 4: 24}  # of the UPDRS's parts


class Proteins:
    """What the proteins are called, how abundant they are, and what they and their peptides depend
    on."""

    def __init__(self, rng: random.Random) -> None:
        self.names = [
            rng.choice("PQO") + str(n) for n in rng.sample(range(10000, 99999), PROTEIN_COUNT)
        ]
        self.level = {name: rng.uniform(8.0, 16.0) for name in self.names}
        special = rng.sample(self.names, 2 * INFORMATIVE + TELLING_PEPTIDES)
        self.on_severity = {
            name: rng.choice((-1, 1)) * ON_SEVERITY for name in special[:INFORMATIVE]
        }
        self.on_slope = {
            name: rng.choice((-1, 1)) * ON_SLOPE for name in special[INFORMATIVE : 2 * INFORMATIVE]
        }
        self.telling = set(special[2 * INFORMATIVE :])
        self.peptides = {
            name: [peptide(rng) for _ in range(rng.randint(2, 4))] for name in self.names
        }

    def measure(
        self, rng: random.Random, offsets: dict[str, float], severity: float, slope: float
    ) -> Iterator[tuple]:
        """(protein, abundance, abundances of its peptides) of one sample; a few proteins are not
        found."""
        for name in self.names:
            if rng.random() < 0.04:
                continue
            mean = (
                self.level[name]
                + self.on_severity.get(name, 0.0) * severity
                + self.on_slope.get(name, 0.0) * slope
            )
            npx = rng.lognormvariate(mean + offsets[name], VISIT_SPREAD)
            parts = [rng.gammavariate(8.0, 1.0) for _ in self.peptides[name]]
            if name in self.telling:
                parts[0] *= 1.0 + 0.35 * severity
            yield name, npx, [npx * part / sum(parts) for part in parts]


def peptide(rng: random.Random) -> str:
    """A sequence of amino acids."""
    return "".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=rng.randint(7, 17)))


def generate() -> dict[str, list[Row]]:
    """Tables as Kaggle has them, by file name."""
    rng = random.Random(0)
    proteins = Proteins(rng)
    tables: dict[str, list[Row]] = {name: [] for name in TABLES}
    numbers = rng.sample(range(50, 65500), PATIENTS + SUPPLEMENTAL_PATIENTS)
    for patient in sorted(numbers[:PATIENTS]):
        course = Course(rng)
        offsets = {name: rng.gauss(0.0, PATIENT_SPREAD) for name in proteins.names}
        for month in MONTHS[: rng.randint(5, 7)]:
            tables["train_clinical_data.csv"].append(course.visit(rng, patient, month))
            if month in PROTEIN_MONTHS and rng.random() < 0.92:
                visit = [f"{patient}_{month}", str(month), str(patient)]
                for name, npx, parts in proteins.measure(
                    rng, offsets, course.severity(month), course.slope
                ):
                    tables["train_proteins.csv"].append([*visit, name, f"{npx:.6g}"])
                    rows = zip(proteins.peptides[name], parts, strict=True)
                    tables["train_peptides.csv"] += [
                        [*visit, name, sequence, f"{n:.6g}"] for sequence, n in rows
                    ]
    for patient in sorted(numbers[PATIENTS:]):
        course = Course(rng)
        months = MONTHS[: rng.randint(2, 7)]
        tables["supplemental_clinical_data.csv"] += [
            course.visit(rng, patient, month) for month in months
        ]
    return tables


class Course:
    """How ill a person is at first, how fast it gets worse, and what visits show of it."""

    def __init__(self, rng: random.Random) -> None:
        self.ill = rng.random() < 0.62
        self.first = rng.gammavariate(3.5, 0.45) if self.ill else rng.gammavariate(1.2, 0.12)
        self.slope = (
            abs(rng.gauss(0.22, 0.15)) if self.ill else abs(rng.gauss(0.02, 0.02))
        )  # a year

    def severity(self, month: int) -> float:
        """About 0 (healthy) to 4."""
        return self.first + self.slope * month / 12

    def visit(self, rng: random.Random, patient: int, month: int) -> Row:
        """One row of the clinical data: medication relieves the motor symptoms, part 4 is often not
        taken."""
        severity = self.severity(month)
        state = rng.choice(["On", "On", "On", "Off", "Off"]) if self.ill and month >= 12 else ""
        means = {
            1: 4.2 * severity + 1.2,
            2: 4.8 * severity + 0.8,
            3: 15 * severity * (0.8 if state == "On" else 1.0) + 1.5,
            4: 0.9 * severity * month / 24 if self.ill else 0.0,
        }
        ratings = [
            str(min(HIGHEST[part], max(0, round(rng.gauss(mean, max(0.5, 0.12 * mean + 0.4))))))
            for part, mean in means.items()
        ]
        ratings[2] = "" if rng.random() < 0.01 else ratings[2]
        ratings[3] = "" if rng.random() < 0.25 else ratings[3]
        return [f"{patient}_{month}", str(patient), str(month), *ratings, state]
