"""Contrails in infrared images: training records with masks, test records without, hidden masks of the latter.

`mini` is generated: drifting clouds over a surface, with thin line-shaped contrails and broad streaks of cirrus. `full`
takes Kaggle's files: its training records, and its validation records as the test set. NumPy's RandomState is used,
whose numbers never change.
"""

import csv
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

MASKS = ["human_individual_masks.npy", "human_pixel_masks.npy"]


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """train/, test/, metadata and sample_submission.csv in ``public``, answers.csv and shape.json in ``answers``."""
    masks = generate(public) if variant == "mini" else kaggle(raw, public)
    (shape,) = {mask.shape for mask in masks.values()}
    ids = sorted(masks)
    write(public / "sample_submission.csv", [[record, "-"] for record in ids])
    write(answers / "answers.csv", [[record, encode(masks[record])] for record in ids])
    (answers / "shape.json").write_text(json.dumps({"rows": shape[0], "columns": shape[1]}))


def encode(mask: np.ndarray) -> str:
    """Runs of pixels as "start length start length ...", numbered from 1 down the columns; "-" without any."""
    flat = np.concatenate([[0], mask.T.ravel() != 0, [0]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(flat))
    starts, ends = edges[::2], edges[1::2]
    return " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True)) or "-"


def write(path: Path, rows: list[list[str]]) -> None:
    """A csv file of encoded masks."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["record_id", "encoded_pixels"], *rows])


# --- Kaggle's files ----------------------------------------------------------------------------------------


def kaggle(raw: Path, public: Path) -> dict[str, np.ndarray]:
    """Records linked to where they belong; the masks of the validation records by id."""
    for name in ("train_metadata.json", "validation_metadata.json"):
        shutil.copyfile(raw / name, public / name)
    masks = {}
    for part, folder in (("train", "train"), ("validation", "test")):
        records = sorted(path for path in (raw / part).iterdir() if path.is_dir())
        if not records:
            raise ValueError(f"{part}/ has no records")
        for record in records:
            target = public / folder / record.name
            target.mkdir(parents=True)
            for file in sorted(record.glob("band_*.npy")):
                link(file, target / file.name)
            if part == "train":
                for name in MASKS:
                    link(record / name, target / name)
            else:
                masks[record.name] = np.load(record / MASKS[1], allow_pickle=False)[..., 0]
    return masks


def link(file: Path, target: Path) -> None:
    """The same file under another path: there are hundreds of gigabytes of them."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


# --- the generator -----------------------------------------------------------------------------------------

SIZE = 64  # pixels, both ways
FRAMES = 8
LABELLED = 4  # the frame that the masks are about
RECORDS = {"train": 160, "test": 60}
LABELLERS = (0.35, 0.45, 0.6)  # how much of a contrail's full strength each labeller takes for a part of it
NOISE = 0.28  # of a difference of two bands, in kelvin


@dataclass(frozen=True)
class Streak:
    """A line of ice clouds: where, how long and wide (pixels), since when, how strong, where it drifts."""

    angle: float
    centre: np.ndarray
    length: float
    width: float
    since: int
    strength: float
    drift: np.ndarray

    def profile(self, frame: int) -> np.ndarray:
        """From 0 to 1 (on its axis) for every pixel of a frame; it gets wider with time."""
        rows, columns = np.mgrid[0:SIZE, 0:SIZE]
        x, y = columns - self.centre[1], rows - self.centre[0]
        x, y = x - self.drift[1] * (frame - LABELLED), y - self.drift[0] * (frame - LABELLED)
        along = x * np.cos(self.angle) + y * np.sin(self.angle)
        across = -x * np.sin(self.angle) + y * np.cos(self.angle)
        width = self.width + 0.15 * (frame - self.since)
        return np.exp(-(across**2) / (2 * width**2)) * (np.abs(along) < self.length / 2)


def generate(public: Path) -> dict[str, np.ndarray]:
    """All records and their metadata in ``public``; the masks of the test records by id."""
    rng = np.random.RandomState(0)
    masks = {}
    for part, count in RECORDS.items():
        metadata = []
        for _ in range(count):
            record = "".join(str(digit) for digit in [rng.randint(1, 10), *rng.randint(0, 10, 17)])
            bands, labels = observe(rng)
            folder = public / part / record
            folder.mkdir(parents=True)
            for band, values in bands.items():
                np.save(folder / f"band_{band}.npy", values.astype(np.float16))
            majority = (labels.sum(axis=-1) * 2 > len(LABELLERS)).astype(np.int32)
            if part == "train":
                np.save(folder / MASKS[0], labels[:, :, None].astype(np.int8))
                np.save(folder / MASKS[1], majority[..., None])
            else:
                masks[record] = majority
            metadata.append(place(rng, record))
        name = "train" if part == "train" else "validation"
        (public / f"{name}_metadata.json").write_text(json.dumps(metadata, indent=1))
    return masks


def place(rng: np.random.RandomState, record: str) -> dict[str, object]:
    """Where and when a record was taken: it has nothing to do with what is to be seen there."""
    row, column = (round(float(metres), 1) for metres in rng.uniform(-3e6, 3e6, 2))
    extent = {"row_min": row, "row_size": 2000.0, "col_min": column, "col_size": 2000.0}
    return {"record_id": record, **extent, "timestamp": round(float(rng.uniform(1.55e9, 1.58e9)), 1)}


def observe(rng: np.random.RandomState) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Brightness temperatures (rows, columns, frames) in kelvin by band, and each labeller's mask."""
    surface = 285 + 6 * fractal(rng, 1.6)
    clouds = np.clip(fractal(rng, 1.7) - 0.2, 0, None)
    contrails = [contrail(rng) for _ in range(rng.randint(1, 4) if rng.uniform() < 0.65 else 0)]
    streaks = contrails + [cirrus(rng) for _ in range(rng.randint(0, 3))]
    bands = {band: np.zeros((SIZE, SIZE, FRAMES)) for band in ("11", "14", "15")}
    labels = np.zeros((SIZE, SIZE, len(LABELLERS)), dtype=np.int8)
    for frame in range(FRAMES):
        cover = np.roll(clouds, (frame // 2, frame // 3), (0, 1))
        cold = surface - 18 * cover + rng.normal(0, 0.25, (SIZE, SIZE))
        minus_15 = -1.0 - 0.8 * cover + rng.normal(0, NOISE, (SIZE, SIZE))
        minus_11 = 1.0 - 2.2 * cover + rng.normal(0, NOISE, (SIZE, SIZE))
        for streak in streaks:
            if frame < streak.since:
                continue
            profile = streak.profile(frame)
            ice = streak.strength * profile
            cold, minus_15, minus_11 = cold - 3 * ice, minus_15 + 1.1 * ice, minus_11 - 0.9 * ice
            if frame == LABELLED and streak in contrails:
                labels |= (profile[..., None] > np.array(LABELLERS)).astype(np.int8)
        bands["14"][..., frame], bands["15"][..., frame], bands["11"][..., frame] = (
            cold,
            cold + minus_15,
            cold - minus_11,
        )
    return bands, labels


def contrail(rng: np.random.RandomState) -> Streak:
    """Thin, and not there in the first frames."""
    return Streak(
        rng.uniform(0, np.pi),
        rng.uniform(10, SIZE - 10, 2),
        rng.uniform(14, 40),
        rng.uniform(0.7, 1.3),
        rng.randint(1, LABELLED + 1),
        rng.uniform(0.4, 1.3),
        rng.uniform(-0.8, 0.8, 2),
    )


def cirrus(rng: np.random.RandomState) -> Streak:
    """Looks like a contrail to every band, but is broad and was always there."""
    angle, centre = rng.uniform(0, np.pi), rng.uniform(0, SIZE, 2)
    length, width, strength = rng.uniform(20, 60), rng.uniform(2.5, 5), rng.uniform(0.4, 1.3)
    return Streak(angle, centre, length, width, 0, strength, rng.uniform(-0.8, 0.8, 2))


def fractal(rng: np.random.RandomState, exponent: float) -> np.ndarray:
    """A random field with the spectrum 1/f**exponent, mean 0 and standard deviation 1."""
    frequencies = np.hypot(*np.meshgrid(np.fft.fftfreq(SIZE), np.fft.fftfreq(SIZE)))
    frequencies[0, 0] = 1
    field = np.real(np.fft.ifft2(np.fft.fft2(rng.normal(size=(SIZE, SIZE))) / frequencies**exponent))
    return (field - field.mean()) / field.std()
