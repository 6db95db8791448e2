"""Images in CIFAR-10's layout: the training batches as they are, the test batch without labels.

`mini` is a subset of Fashion-MNIST, padded to 32 x 32 pixels, the same grey in all three channels;
`full` is CIFAR-10."""

import csv
import pickle
from pathlib import Path

import numpy as np

BATCHES = [f"data_batch_{number}" for number in range(1, 6)]
FASHION = [
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
]
FOLDER = "cifar-10-batches-py"


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """data/cifar-10-batches-py/* in ``public``, answers.csv (number, label) in ``answers``."""
    batches, names = (
        fashion(raw / "fashion-mnist-subset.npz") if variant == "mini" else cifar(raw / FOLDER)
    )
    folder = public / "data" / FOLDER
    folder.mkdir(parents=True)
    for name in BATCHES:
        dump(folder / name, *batches[name], name)
    images, labels = batches["test_batch"]
    dump(folder / "test_batch", images, [-1] * len(labels), "test_batch")
    meta = {
        b"num_cases_per_batch": len(images),
        b"label_names": [n.encode() for n in names],
        b"num_vis": 3072,
    }
    (folder / "batches.meta").write_bytes(pickle.dumps(meta, protocol=4))
    with (answers / "answers.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["number", "label"], *enumerate(labels)])


def dump(path: Path, images: np.ndarray, labels: list[int], name: str) -> None:
    """One batch. CIFAR-10's own file names tell the class, so every batch gets neutral ones."""
    filenames = [f"{name}_{number:05d}.png".encode() for number in range(len(labels))]
    batch = {
        b"batch_label": name.encode(),
        b"labels": labels,
        b"data": images,
        b"filenames": filenames,
    }
    path.write_bytes(pickle.dumps(batch, protocol=4))


def fashion(path: Path) -> tuple[dict[str, tuple[np.ndarray, list[int]]], list[str]]:
    """5000 training images in five batches and 1000 test images."""
    with np.load(path, allow_pickle=False) as arrays:
        images, labels = as_rows(arrays["train_images"]), arrays["train_labels"].tolist()
        test = (as_rows(arrays["test_images"]), arrays["test_labels"].tolist())
    size = len(labels) // len(BATCHES)
    parts = {
        name: (images[n * size : (n + 1) * size], labels[n * size : (n + 1) * size])
        for n, name in enumerate(BATCHES)
    }
    return {**parts, "test_batch": test}, FASHION


def as_rows(images: np.ndarray) -> np.ndarray:
    """(n, 28, 28) grey -> (n, 3072): two black pixels around, three equal channels."""
    padded = np.pad(images, ((0, 0), (2, 2), (2, 2)))
    return np.ascontiguousarray(np.repeat(padded[:, None], 3, axis=1).reshape(len(images), 3072))


def cifar(folder: Path) -> tuple[dict[str, tuple[np.ndarray, list[int]]], list[str]]:
    """The archive's batches (its checksum was verified before it was unpacked)."""
    batches = {}
    for name in [*BATCHES, "test_batch"]:
        batch = pickle.loads((folder / name).read_bytes(), encoding="bytes")
        images, labels = (
            np.ascontiguousarray(batch[b"data"], dtype=np.uint8),
            [int(n) for n in batch[b"labels"]],
        )
        if images.shape != (len(labels), 3072):
            raise ValueError(
                f"{name}: {len(labels)} labels for images of shape {images.shape}; expected (n,"
                " 3072)"
            )
        batches[name] = (images, labels)
    meta = pickle.loads((folder / "batches.meta").read_bytes(), encoding="bytes")
    return batches, [name.decode() for name in meta[b"label_names"]]
