"""Contrails in infrared images: training records with masks, test records without, hidden masks of
the latter.

`mini` is generated: drifting clouds over a surface, with thin line-shaped contrails and broad
streaks of cirrus. `full` takes the public bucket's TFRecord files: the training records, and the
validation records as the test set. NumPy's RandomState is used, whose numbers never change."""

import csv
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

MASKS = ["human_individual_masks.npy", "human_pixel_masks.npy"]
LABELLED = 4  # the frame that the masks are about


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """train/, test/, metadata and sample_submission.csv in ``public``, answers.csv and shape.json
    in ``answers``."""
    masks, (rows, columns) = generate(public) if variant == "mini" else unpack(raw, public)
    ids = sorted(masks)
    write(public / "sample_submission.csv", [[record, "-"] for record in ids])
    write(answers / "answers.csv", [[record, masks[record]] for record in ids])
    (answers / "shape.json").write_text(json.dumps({"rows": rows, "columns": columns}))


def encode(mask: np.ndarray) -> str:
    """Runs of pixels as "start length start length ...", numbered from 1 down the columns; "-"
    without any."""
    flat = np.concatenate([[0], mask.T.ravel() != 0, [0]]).astype(np.int8)
    edges = np.flatnonzero(np.diff(flat))
    starts, ends = edges[::2], edges[1::2]
    return (
        " ".join(f"{start + 1} {end - start}" for start, end in zip(starts, ends, strict=True))
        or "-"
    )


def write(path: Path, rows: list[list[str]]) -> None:
    """A csv file of encoded masks."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["record_id", "encoded_pixels"], *rows])


# --- the bucket's files ---------------------------------------------------------------------------

# What the features with the infrared bands 8 to 16 are called.
BANDS = {
    "08": "upper_vapor",
    "09": "mid_vapor",
    "10": "low_vapor",
    "11": "cloud_top",
    "12": "ozone",
    "13": "data_10um",
    "14": "data_11um",
    "15": "data_12um",
    "16": "co2",
}
PLACE = ("row_min", "row_size", "col_min", "col_size")
TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}  # DataType of TensorFlow's tensors
Value = int | memoryview


def unpack(raw: Path, public: Path) -> tuple[dict[str, str], tuple[int, int]]:
    """All records and their metadata in ``public``; the encoded masks of the test records by id,
    and their shape.

    The files name no ids: a record's is the number of its file and its place there, five digits
    each."""
    masks, shapes = {}, set()
    for part, folder in (("train", "train"), ("validation", "test")):
        metadata = []
        for shard in sorted(raw.glob(f"{part}.tfrecords-*")):
            for index, content in enumerate(records(shard)):
                features = example(content)
                record = f"{int(shard.name.split('-')[1]):05d}{index:05d}"
                if features["n_times_before"] != [LABELLED]:
                    raise ValueError(
                        f"{shard.name}, record {index}: its masks are about another frame than"
                        f" {LABELLED}"
                    )
                mask = keep(features, public / folder / record, with_masks=part == "train")
                shapes.add(mask.shape)
                if part == "validation":
                    masks[record] = encode(mask)
                place = {name: float(features[name][0]) for name in PLACE}
                metadata.append(
                    {"record_id": record, **place, "timestamp": float(features["timestamp"][0])}
                )
        if not metadata:
            raise ValueError(f"there is no record in {part}.tfrecords-*")
        (public / f"{part}_metadata.json").write_text(json.dumps(metadata))
    (shape,) = shapes
    return masks, shape


def keep(features: dict[str, list[Any]], folder: Path, *, with_masks: bool) -> np.ndarray:
    """Write a record's bands and, for training, its masks; the mask of most labellers (rows,
    columns) is returned."""
    folder.mkdir(parents=True)
    for band, name in BANDS.items():
        np.save(folder / f"band_{band}.npy", tensor(features[name][0]).astype(np.float32))
    majority = tensor(features["human_pixel_masks"][0])
    if with_masks:
        np.save(folder / MASKS[0], tensor(features["human_individual_masks"][0]))
        np.save(folder / MASKS[1], majority)
    return majority[..., 0]


def records(file: Path) -> Iterator[memoryview]:
    """The contents of a TFRecord file: each between its length with a checksum (12 bytes) and its
    own checksum (4)."""
    with file.open("rb") as stream:
        while head := stream.read(12):
            length = struct.unpack("<Q", head[:8])[0] if len(head) == 12 else 0
            content = stream.read(length)
            if len(head) < 12 or len(content) < length or len(stream.read(4)) < 4:
                raise ValueError(f"{file.name} is cut off")
            yield memoryview(content)


def example(content: memoryview) -> dict[str, list[Any]]:
    """The features of a serialized tf.train.Example by name: lists of bytes, of floats or of whole
    numbers."""
    found = {}
    for _, features in fields(content):
        for _, entry in fields(features):
            name, feature = (value for _, value in sorted(fields(entry)))
            ((kind, values),) = fields(feature)
            found[bytes(name).decode()] = FEATURES[kind](values)
    return found


def floats(values: memoryview) -> list[float]:
    """The numbers of a FloatList, packed or one by one."""
    return [float(number) for _, part in fields(values) for number in np.frombuffer(part, "<f4")]


def whole_numbers(values: memoryview) -> list[int]:
    """The numbers of an Int64List, packed or one by one."""
    found: list[int] = []
    for _, part in fields(values):
        if isinstance(part, int):
            found.append(part)
            continue
        at = 0
        while at < len(part):
            number, at = varint(part, at)
            found.append(number)
    return [number - (1 << 64) if number >> 63 else number for number in found]


FEATURES = {1: lambda values: [part for _, part in fields(values)], 2: floats, 3: whole_numbers}


def tensor(content: memoryview) -> np.ndarray:
    """The array of a serialized TensorProto: its type (field 1), shape (2) and content (4)."""
    parts = dict(fields(content))
    shape = [
        next((size for _, size in fields(dimension)), 0)
        for number, dimension in fields(parts[2])
        if number == 2
    ]
    return np.frombuffer(parts[4], TYPES[parts[1]]).reshape(shape)


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """The fields of a message in protocol buffers' wire format: number and value."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(message, at)
            yield number, value
            continue
        if kind == 2:
            size, at = varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(f"a field of the unknown kind {kind}")
        if at + size > len(message):
            raise ValueError("a field goes beyond its message")
        yield number, message[at : at + size]
        at += size


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number of variable length at ``at``, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


# --- the generator --------------------------------------------------------------------------------

SIZE = 64  # pixels, both ways
FRAMES = 8
RECORDS = {"train": 160, "test": 60}
LABELLERS = (
    0.35,
    0.45,
    0.6,
)  # how much of a contrail's full strength each labeller takes for a part of it
NOISE = 0.28  # of a difference of two bands, in kelvin


@dataclass(frozen=True)
class Streak:
    """A line of ice clouds: where, how long and wide (pixels), since when, how strong, where it
    drifts."""

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


def generate(public: Path) -> tuple[dict[str, str], tuple[int, int]]:
    """All records and their metadata in ``public``; the encoded masks of the test records by id,
    and their shape."""
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
                masks[record] = encode(majority)
            metadata.append(place(rng, record))
        name = "train" if part == "train" else "validation"
        (public / f"{name}_metadata.json").write_text(json.dumps(metadata, indent=1))
    return masks, (SIZE, SIZE)


def place(rng: np.random.RandomState, record: str) -> dict[str, object]:
    """Where and when a record was taken: it has nothing to do with what is to be seen there."""
    row, column = (round(float(metres), 1) for metres in rng.uniform(-3e6, 3e6, 2))
    extent = {"row_min": row, "row_size": 2000.0, "col_min": column, "col_size": 2000.0}
    return {
        "record_id": record,
        **extent,
        "timestamp": round(float(rng.uniform(1.55e9, 1.58e9)), 1),
    }


def observe(rng: np.random.RandomState) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Brightness temperatures (rows, columns, frames) in kelvin by band, and each labeller's
    mask."""
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
    field = np.real(
        np.fft.ifft2(np.fft.fft2(rng.normal(size=(SIZE, SIZE))) / frequencies**exponent)
    )
    return (field - field.mean()) / field.std()
