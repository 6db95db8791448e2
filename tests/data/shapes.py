"""Raw data in the shape in which their publishers offer them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pickle
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.data.file_server import FileServer

CIFAR_BATCHES = (
    "data_batch_1",
    "data_batch_2",
    "data_batch_3",
    "data_batch_4",
    "data_batch_5",
    "test_batch",
)
CIFAR_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


def cifar10_archive(rows: int = 2, as_array: Callable[[bytes], Any] = bytes) -> bytes:
    """cifar-10-python.tar.gz with ``rows`` images a batch; ``as_array`` makes the images' array of
    their bytes."""
    files = {
        "batches.meta": {
            b"num_cases_per_batch": rows,
            b"label_names": [*map(str.encode, CIFAR_NAMES)],
        }
    }
    for number, name in enumerate(CIFAR_BATCHES):
        files[name] = {
            b"batch_label": name.encode(),
            b"labels": [(number + row) % 10 for row in range(rows)],
            b"data": as_array(hashlib.shake_128(name.encode()).digest(rows * 3072)),
            b"filenames": [
                f"{CIFAR_NAMES[(number + row) % 10]}_s_{row:06d}.png".encode()
                for row in range(rows)
            ],
        }
    contents = {name: pickle.dumps(content, protocol=2) for name, content in files.items()}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        folder = tarfile.TarInfo("cifar-10-batches-py")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, content in {**contents, "readme.html": b"<a>"}.items():
            member = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def kagglehub_has(cache: Path, slug: str, files: Mapping[str, str]) -> None:
    """A competition's files in kagglehub's cache, as it leaves them after a download."""
    folder = cache / "competitions" / slug
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (cache / "competitions" / f"{slug}.complete").touch()


def hub_cache_has(
    cache: Path, repository: str, revision: str, files: Mapping[str, bytes], kind: str = "datasets"
) -> None:
    """A repository's files in the cache of huggingface_hub, as it leaves them: links into a folder
    of contents."""
    home = cache / f"{kind}--{repository.replace('/', '--')}"
    (home / "blobs").mkdir(parents=True)
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text(revision)
    for name, content in files.items():
        blob = home / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        link = home / "snapshots" / revision / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(blob, link.parent))


def bucket_serves(server: FileServer, bucket: str, objects: Mapping[str, bytes]) -> None:
    """A public bucket of Google Cloud Storage: the list of its objects, and each at its address."""
    items = []
    for number, (name, content) in enumerate(objects.items(), 1):
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode()
        items.append(
            {"name": name, "size": str(len(content)), "md5Hash": md5, "generation": str(number)}
        )
        server.files[f"/{bucket}/{name}"] = content
    server.files[f"/storage/v1/b/{bucket}/o"] = json.dumps({"items": items}).encode()


def hub_serves(
    server: FileServer, repository: str, revision: str, files: Mapping[str, bytes]
) -> None:
    """A data set's repository as the hub offers it: the list of files, and each with its commit and
    digest."""
    api = f"/api/datasets/{repository}"
    tree = []
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        lfs = {"oid": digest, "size": len(content), "pointerSize": 130}
        tree.append(
            {"type": "file", "oid": digest[:40], "size": len(content), "path": name, "lfs": lfs}
        )
        address = f"/datasets/{repository}/resolve/{revision}/{name}"
        server.files[address] = content
        server.headers[address] = {
            "ETag": f'"{digest}"',
            "X-Repo-Commit": revision,
            "Accept-Ranges": "bytes",
        }
    siblings = [{"rfilename": name, "size": len(content)} for name, content in files.items()]
    server.files[f"{api}/tree/{revision}"] = json.dumps(tree).encode()
    server.files[f"{api}/revision/{revision}"] = json.dumps(
        {
            "id": repository,
            "sha": revision,
            "siblings": siblings,
            "private": False,
            "tags": [],
            "downloads": 0,
        }
    ).encode()
