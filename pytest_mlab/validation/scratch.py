"""The scratch folder of a validation: removed at its end, or after a kill by the next one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_mlab import sandboxes
from pytest_mlab.errors import MlabError

_LOCK, _SANDBOX = ".owner.lock", ".sandbox"


@contextmanager
def scratch_folder(cache: Path, sandbox: str) -> Iterator[Path]:
    """A new folder in ``cache``, where sandboxes can show what is in it; its name begins the labels
    of the sandboxes, of the kind ``sandbox``, that belong to it. Its owner holds a lock in it; the
    kernel releases the lock of a dead process."""
    from filelock import FileLock

    place = cache / "workspaces"
    place.mkdir(parents=True, exist_ok=True)
    with _changing(cache):
        folder = Path(tempfile.mkdtemp(prefix="validate-", dir=place))
        lock = FileLock(folder / _LOCK)
        lock.acquire()
    try:
        (folder / _SANDBOX).write_text(sandbox, encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        # Only after the removal: a sweep that got the lock before would report a killed validation.
        lock.release()


def sweep(cache: Path) -> Iterator[str]:
    """Remove what killed validations left in ``cache``, sandboxes included; one sentence for
    each."""
    from filelock import FileLock, Timeout

    for folder in sorted((cache / "workspaces").glob("validate-*")):
        with _changing(cache):
            try:
                # Whoever gets the lock at once knows that the owner is dead.
                with FileLock(folder / _LOCK, timeout=0):
                    sandboxes_ended = _end_sandboxes(folder)
                    shutil.rmtree(folder, ignore_errors=True)
            except (Timeout, FileNotFoundError):  # in use, or its owner has just removed it
                continue
        what = f"{folder} cannot be removed" if folder.exists() else f"removed {folder.name}"
        yield f"{what}, left by a validation that was killed{sandboxes_ended}"


def label_of(folder: Path) -> str:
    """The beginning of the labels of a scratch folder's sandboxes."""
    return f"mlab-{folder.name}-"


def _end_sandboxes(folder: Path) -> str:
    try:
        name = (folder / _SANDBOX).read_text(encoding="utf-8")
        ended = sandboxes.make(name).sweep(label_of(folder))
    except FileNotFoundError:  # it was killed before it had any
        return ""
    except MlabError as error:
        return f"; its sandboxes: {error}"
    return f", and ended {ended} left over from its sandboxes" if ended else ""


@contextmanager
def _changing(cache: Path) -> Iterator[None]:
    """Held while a folder is made and locked: in between it looks like one of a dead owner."""
    from filelock import FileLock

    with FileLock(cache / ".validate.lock"):
        yield
