"""Animals on the sea floor: images with their categories for training, others with hidden
categories for testing.

`mini` is generated: small pictures of handwritten digits (from scikit-learn) stand for animals, at
a depth that colours the water; test images come from greater depths as well. `full` takes Kaggle's
annotations and the images they list, and withholds some categories: an image that shows one of
those is out of sample. Numbers are drawn by NumPy's RandomState and Python's Random, which never
change."""

import csv
import json
import os
import random
import re
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

CATEGORIES = 290
NUMBER = re.compile(r"\d+(?:\.\d*)?")


@dataclass
class Picture:
    """What is known of an image: its categories in order of their numbers, and boxes as (category,
    x, y, w, h)."""

    name: str
    categories: list[int]
    out_of_sample: bool = False
    boxes: list[tuple[int, ...]] = field(default_factory=list)


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """Annotations, images and sample_submission.csv in ``public``, answers.csv in ``answers``."""
    (public / "images").mkdir()
    (public / "multilabel_classification").mkdir()
    (public / "object_detection").mkdir()
    train, test = generate(public) if variant == "mini" else kaggle(raw, public)
    rows = [[picture.name, str([float(c) for c in picture.categories])] for picture in train]
    write(public / "multilabel_classification" / "train.csv", ["id", "categories"], rows)
    sample = [[picture.name, "1 2 3", "0.5"] for picture in test]
    write(public / "sample_submission.csv", ["id", "categories", "osd"], sample)
    truth = [[p.name, " ".join(map(str, p.categories)), str(int(p.out_of_sample))] for p in test]
    write(answers / "answers.csv", ["id", "categories", "osd"], truth)


def write(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """A csv file with the same bytes everywhere."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# --- Kaggle's annotations -------------------------------------------------------------------------

OUT_OF_SAMPLE_SHARE = 0.1  # of all images; as many others are tested too
MOST_COMMON = 0.02  # a category of more images than this share is not withheld


def kaggle(raw: Path, public: Path) -> tuple[list[Picture], list[Picture]]:
    """Training and test pictures; their images are linked."""
    shutil.copyfile(raw / "category_key.csv", public / "category_key.csv")
    with (raw / "multilabel_classification" / "train.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        header, *rows = csv.reader(file)
    if header != ["id", "categories"]:
        raise ValueError(
            f"train.csv: expected the columns id, categories; found {', '.join(header)}"
        )
    pictures = [Picture(name, sorted(numbers(categories))) for name, categories in rows]
    train, test = split(pictures)
    content = json.loads((raw / "object_detection" / "train.json").read_text(encoding="utf-8"))
    images = {Path(image["file_name"]).stem: image for image in content["images"]}
    if missing := [picture.name for picture in pictures if picture.name not in images]:
        raise ValueError(
            f"object_detection/train.json lacks {len(missing)} images of train.csv, e.g."
            f" {missing[0]}"
        )
    for picture in pictures:
        name = images[picture.name]["file_name"]
        link(raw / "images" / name, public / "images" / name)
    known = [images[picture.name] for picture in train]
    numbers_of_known = {image["id"] for image in known}
    kept = [entry for entry in content["annotations"] if entry["image_id"] in numbers_of_known]
    write_coco(
        public / "object_detection" / "train.json",
        {**content, "images": known, "annotations": kept},
    )
    asked = [{k: images[p.name][k] for k in ("id", "file_name", "width", "height")} for p in test]
    write_coco(
        public / "object_detection" / "eval.json",
        {"images": asked, "annotations": [], "categories": content["categories"]},
    )
    return train, test


def numbers(categories: str) -> set[int]:
    """ "[1.0, 9.0]" -> 1, 9"""
    return {int(float(number)) for number in NUMBER.findall(categories)}


def split(pictures: list[Picture]) -> tuple[list[Picture], list[Picture]]:
    """Training and test pictures: some categories are in no training picture; the test pictures
    that show one of them are out of sample, and as many others are not. Test pictures keep the
    categories that can be known."""
    rng = random.Random(0)
    found: dict[int, set[str]] = {}
    for picture in pictures:
        for category in picture.categories:
            found.setdefault(category, set()).add(picture.name)
    order = sorted(found)
    rng.shuffle(order)
    outside: set[str] = set()
    for category in order:
        if len(outside) >= OUT_OF_SAMPLE_SHARE * len(pictures):
            break
        if len(found[category]) <= max(1, MOST_COMMON * len(pictures)):
            outside |= found[category]
    inside = sorted(picture.name for picture in pictures if picture.name not in outside)
    asked = outside | set(rng.sample(inside, len(outside)))
    train = [picture for picture in pictures if picture.name not in asked]
    known = {category for picture in train for category in picture.categories}
    test = [
        Picture(
            picture.name, [c for c in picture.categories if c in known], picture.name in outside
        )
        for picture in sorted(pictures, key=lambda picture: picture.name)
        if picture.name in asked
    ]
    return train, test


def link(file: Path, target: Path) -> None:
    """The same file under another path."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def write_coco(path: Path, content: dict[str, object]) -> None:
    """A COCO file."""
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


# --- the generator --------------------------------------------------------------------------------

SIZE = 48  # pixels, both ways
SPRITE = 16
KINDS = 20  # of the categories; a digit in one of two tints
TRAIN, TEST = 1200, 300
TRAIN_DEPTH, TEST_DEPTH = 800.0, 1300.0  # metres; what is deeper than the former is out of sample
TINTS = np.array([[0.75, 0.6, 0.5], [0.55, 0.7, 0.75]])
OPACITY, NOISE, MURK = 0.6, 0.07, 0.2
GROUPS = [
    "Fish",
    "Cephalopod",
    "Urchin",
    "Sea star",
    "Sea cucumber",
    "Crab",
    "Shrimp",
    "Anemone",
    "Sponge",
    "Coral",
]


def generate(public: Path) -> tuple[list[Picture], list[Picture]]:
    """Training and test pictures; writes category_key.csv, images and COCO files."""
    from sklearn.datasets import load_digits

    names = [
        [str(n), f"{GROUPS[n % 10]} {n:03d}", GROUPS[n % 10]] for n in range(1, CATEGORIES + 1)
    ]
    write(public / "category_key.csv", ["id", "name", "supercat"], names)
    rng = np.random.RandomState(0)
    numbers_used = sorted(int(n) + 1 for n in rng.choice(CATEGORIES, KINDS, replace=False))
    sea = Sea(rng, numbers_used, load_digits())
    parts = {"train": (TRAIN, TRAIN_DEPTH), "eval": (TEST, TEST_DEPTH)}
    pictures: dict[str, list[Picture]] = {}
    for part, (count, depth) in parts.items():
        pictures[part] = [sea.photograph(depth, public / "images") for _ in range(count)]
        coco(
            public / "object_detection" / f"{part}.json",
            pictures[part],
            names,
            with_boxes=part == "train",
        )
    return pictures["train"], pictures["eval"]


class Sea:
    """Which categories live at which depth, and how often; takes photographs."""

    def __init__(self, rng: np.random.RandomState, categories: list[int], digits: object) -> None:
        self.rng = rng
        self.categories = categories
        self.sprites = [digits.images[digits.target == digit] / 16.0 for digit in range(10)]
        self.depth = rng.uniform(0, 1100, KINDS)
        self.abundance = 1 / np.arange(1, KINDS + 1) ** 0.6

    def photograph(self, deepest: float, folder: Path) -> Picture:
        """One image in ``folder``: 1 to 4 animals that live at its depth, in water that darkens
        with it."""
        from PIL import Image

        rng = self.rng
        depth = rng.uniform(0, deepest)
        near = self.abundance * np.exp(-(((depth - self.depth) / 350) ** 2)) + 1e-4
        count = min(rng.poisson(1.2) + 1, 4)
        kinds = [int(k) for k in rng.choice(KINDS, count, replace=False, p=near / near.sum())]
        image = self.water(depth)
        picture = Picture(str(uuid.UUID(bytes=rng.bytes(16), version=4)), [])
        for kind in kinds:
            self.place(image, kind, picture)
        picture.categories = sorted(self.categories[kind] for kind in kinds)
        picture.out_of_sample = depth > TRAIN_DEPTH
        pixels = (np.clip(image, 0, 1) * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{picture.name}.png")
        return picture

    def water(self, depth: float) -> np.ndarray:
        """Blue light reaches deepest; how clear the water is and the camera's exposure vary from
        image to image."""
        light = np.exp(-depth / 900) * self.rng.lognormal(0, MURK)
        height = np.linspace(1, 0, SIZE)[:, None, None]
        colour = np.array([0.10, 0.15, 0.25]) + np.array([0.15, 0.30, 0.45]) * light * height
        image = np.broadcast_to(colour, (SIZE, SIZE, 3)) * self.rng.uniform(0.75, 1.25)
        return image + self.rng.normal(0, NOISE, (SIZE, SIZE, 3))

    def place(self, image: np.ndarray, kind: int, picture: Picture) -> None:
        """Paint one animal somewhere."""
        rng = self.rng
        drawings = self.sprites[kind % 10]
        sprite = np.kron(drawings[rng.randint(len(drawings))], np.ones((2, 2)))[..., None]
        x, y = (int(n) for n in rng.randint(0, SIZE - SPRITE + 1, 2))
        view = image[y : y + SPRITE, x : x + SPRITE]
        view[:] = view * (1 - OPACITY * sprite) + OPACITY * sprite * TINTS[
            kind // 10
        ] * rng.uniform(0.7, 1.0)
        picture.boxes.append((self.categories[kind], x, y, SPRITE, SPRITE))


def coco(path: Path, pictures: list[Picture], names: list[list[str]], *, with_boxes: bool) -> None:
    """The images of a part, with or without what is in them."""
    images = [
        {"id": number, "file_name": f"{picture.name}.png", "width": SIZE, "height": SIZE}
        for number, picture in enumerate(pictures, 1)
    ]
    boxes = [
        {
            "image_id": number,
            "category_id": box[0],
            "bbox": list(box[1:]),
            "area": box[3] * box[4],
            "iscrowd": 0,
        }
        for number, picture in enumerate(pictures, 1)
        for box in picture.boxes
    ]
    annotations = (
        [{"id": number, **box} for number, box in enumerate(boxes, 1)] if with_boxes else []
    )
    categories = [
        {"id": int(number), "name": name, "supercategory": group} for number, name, group in names
    ]
    write_coco(path, {"images": images, "annotations": annotations, "categories": categories})
