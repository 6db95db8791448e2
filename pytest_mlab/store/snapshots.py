"""A snapshot of the workspace after every step, at a cost in proportion to what the step changed:
1.5 ms for 500 MB of which nothing changed, where copying them takes 251 ms (docs/benchmarks.md).

A file whose size, times, inode and mode are those of the last snapshot is not read again. One case
needs care, as in git's index (https://git-scm.com/docs/racy-git): a file that was changed in the
same tick of the file system's clock in which it was read may change once more and keep its times;
such a file is read again the next time. The final snapshot reads every file, because a program can
set a file's times as it likes."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_mlab.errors import StoreError
from pytest_mlab.store import manifest
from pytest_mlab.store.content import ContentStore, hash_fd, open_regular

INLINE_ENTRIES = 500
"""Changes of one step that its event lists. Beyond, the whole manifest goes to the store instead,
so that a step which unpacks an archive does not make a line of megabytes in the trace."""

_INLINE_BYTES = 1 << 16
_WARN_AT = 0.8
_SECOND = 1_000_000_000
_FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE of Linux, which the time module does not name
# 1 to 10 ms, by the kernel's HZ. File systems stamp with this clock, not with the precise one.
_TICK = max(1, int(time.clock_getres(_FILE_CLOCK) * _SECOND))


class Change(NamedTuple):
    """What one snapshot found.

    ``set`` (encoded path → entry, see :mod:`pytest_mlab.store.manifest`) and ``deleted`` go into
    the step's event; both are empty when nothing changed, and when so much changed that the
    manifest was stored instead. ``changed`` counts all changes; ``notes`` are facts for the trace:
    files that were left out, a disk budget that runs short."""

    id: str
    set: dict[str, str]
    deleted: list[str]
    changed: int
    notes: tuple[str, ...] = ()


class _Seen(NamedTuple):
    key: tuple[int, int, int, int, int]
    entry: str
    racy: bool


class Snapshots:
    """Snapshots of the folder ``root`` into ``store``.

    ``public`` is the sha256 of the task's public files by relative path: they are referenced and
    never stored. ``mounted`` are the paths (files or folders) below which the sandbox shows public
    files over a placeholder: they are not looked at. ``file_limit`` (bytes): larger files are
    stored with the final snapshot only. ``disk_budget`` (bytes of the whole run's store, None for
    no limit): when it is reached, only final snapshots are stored."""

    def __init__(
        self,
        store: ContentStore,
        root: Path,
        *,
        public: Mapping[str, str] | None = None,
        mounted: Collection[str] = (),
        file_limit: int = 200 << 20,
        disk_budget: int | None = None,
    ) -> None:
        self._store = store
        self._root = os.fspath(root)
        self._public = dict(public or {})
        self._public_digests = frozenset(self._public.values())
        self._mounted = frozenset(mounted)
        self._file_limit = file_limit
        self._disk_budget = disk_budget
        self._seen: dict[str, _Seen] = {}
        self._lines: dict[str, bytes] = {}
        self._noted: set[str] = set()
        self._notes: list[str] = []
        shown = {p: d for p, d in self._public.items() if _below(p, self._mounted)}
        self._prefix = manifest.text(
            manifest.line(manifest.encode(p), f"mounted:{shown[p]}")
            for p in sorted(shown, key=manifest.encode)
        )
        self._hash = hashlib.sha256(self._prefix)
        self._id = ""

    def begin(self) -> Change:
        """The snapshot of the fresh workspace; its manifest is stored. Public files are believed to
        be what they were copied from; nothing else may be writing to the workspace yet."""
        newest = 0
        for path in self._public:
            if _below(path, self._mounted):
                continue
            try:
                info = os.lstat(f"{self._root}/{path}")
            except FileNotFoundError:
                continue
            newest = max(newest, info.st_ctime_ns)
            self._seen[path] = _Seen(_key(info), f"public:{self._public[path]}", False)
        # Wait for the next tick, so that a change by the agent cannot fall into the same one: else
        # each public file would count as racy and be read after the first step, gigabytes of them.
        while newest and newest >= _now() - _TICK:
            time.sleep(_TICK / _SECOND)
        return self._finish(self._scan(final=False), whole=True)

    def take(self, *, final: bool = False) -> Change:
        """A snapshot of the workspace as it is. ``final`` reads every file but the public ones
        again, stores large files as well, and stores the manifest. Raises StoreError, OSError when
        the store's disk is full."""
        return self._finish(self._scan(final=final), whole=final)

    @property
    def store(self) -> ContentStore:
        """Where contents go."""
        return self._store

    def tree(self) -> dict[str, str]:
        """What the workspace holds now (encoded path → entry), without what is mounted. Not a
        snapshot: the next one still reports the changes since the last."""
        return {manifest.encode(path): seen.entry for path, seen in self._scan(final=False).items()}

    # --- one scan ---

    def _scan(self, *, final: bool) -> dict[str, _Seen]:
        """Everything that is in the workspace now."""
        now, seen = _now(), self._seen
        found: dict[str, _Seen] = {}
        # One loop on scandir with text for paths: it runs over every file after every step, and
        # entries of scandir know a file's kind without another system call.
        folders = [""]
        while folders:
            prefix = folders.pop()
            folder = f"{self._root}/{prefix}"
            try:
                with os.scandir(folder) as entries:
                    empty = True
                    for item in entries:
                        empty = False
                        path = prefix + item.name
                        if path in self._mounted:
                            continue
                        try:
                            info = item.stat(follow_symlinks=False)
                        except FileNotFoundError:
                            continue
                        if stat.S_ISDIR(info.st_mode):
                            folders.append(path + "/")
                            continue
                        key, old = _key(info), seen.get(path)
                        if (
                            old is not None
                            and old.key == key
                            and not old.racy
                            and not (final and _own(old.entry))
                        ):
                            found[path] = old
                        else:
                            new = self._look(path, info, now, final)
                            if new is not None:
                                found[path] = new
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self._note_once(
                    prefix,
                    f"folder {prefix} cannot be read ({error.strerror}); what is in it is not kept",
                )
                found[prefix[:-1]] = _Seen(_NO_KEY, "unreadable:", True)
                continue
            if empty and prefix:
                found[prefix[:-1]] = _EMPTY_FOLDER
        return found

    def _look(self, path: str, info: os.stat_result, now: int, final: bool) -> _Seen | None:
        """The entry of something that is new or may have changed; None when it is nothing to
        keep."""
        place = f"{self._root}/{path}"
        if stat.S_ISLNK(info.st_mode):
            try:
                return _Seen(_key(info), f"link:{manifest.encode(os.readlink(place))}", True)
            except OSError:
                return None
        if not stat.S_ISREG(info.st_mode):
            self._note_once(
                path,
                f"{path} is a {_SPECIAL.get(stat.S_IFMT(info.st_mode), 'special file')}; it is not"
                " kept",
            )
            return None
        try:
            fd = open_regular(place)
        except (FileNotFoundError, StoreError):
            return None
        except OSError as error:
            self._note_once(path, f"{path} cannot be read ({error.strerror}); it is not kept")
            return _Seen(_NO_KEY, "unreadable:", True)
        try:
            # Of the open file: since the scan another one may have taken its name.
            info = os.fstat(fd)
            entry = self._keep(path, fd, info, final)
        finally:
            os.close(fd)
        return _Seen(_key(info), entry, _racy(info, now))

    def _keep(self, path: str, fd: int, info: os.stat_result, final: bool) -> str:
        """The entry of an open regular file, whose content is stored when it has to be."""
        executable = "exec:" if info.st_mode & stat.S_IXUSR else ""
        large = info.st_size > self._file_limit
        full = False
        if self._disk_budget is not None and not final:
            used = self._store.used()
            full = used + info.st_size > self._disk_budget
            if used + info.st_size > _WARN_AT * self._disk_budget:
                self._note_once(
                    "disk budget",
                    f"the run's snapshots take {used >> 20} of the {self._disk_budget >> 20} MiB"
                    " that they may; past that only final snapshots are stored",
                )
        if (large or full) and not final:
            digest = hash_fd(fd)
            if digest in self._public_digests:
                return f"public:{digest}"
            known = not large and self._store.has(digest)
            return f"{executable}{digest}" if known else f"large:{digest}"
        try:
            digest = self._store.put_fd(fd, unless=self._public_digests).digest
        except OSError as error:
            raise StoreError(
                f"{path} cannot be kept in {self._store.root} ({error}); free the disk and resume"
                " the run with --mlab-retry=infra"
            ) from error
        if digest in self._public_digests:
            return f"public:{digest}"
        return f"large:{digest}" if large else f"{executable}{digest}"

    # --- what changed ---

    def _finish(self, found: dict[str, _Seen], *, whole: bool) -> Change:
        old, self._seen = self._seen, found
        changed = {
            path: new.entry
            for path, new in found.items()
            if (was := old.get(path)) is None or was.entry != new.entry
        }
        deleted = sorted(manifest.encode(path) for path in old.keys() - found.keys())
        if not self._id:  # the first snapshot: everything is new
            changed = {path: new.entry for path, new in found.items()}
        entries = {manifest.encode(path): changed[path] for path in sorted(changed)}
        notes, self._notes = tuple(self._notes), []
        if not entries and not deleted and self._id and not whole:
            return Change(self._id, {}, [], 0, notes)
        for path in deleted:
            self._lines.pop(path, None)
        for path, entry in entries.items():
            self._lines[path] = manifest.line(path, entry)
        body = b"".join(self._lines[path] for path in sorted(self._lines))
        # The hash of the mounted files' lines is made once: these do not change during a trial.
        hasher = self._hash.copy()
        hasher.update(body)
        self._id = hasher.hexdigest()
        inline = (
            len(entries) + len(deleted) <= INLINE_ENTRIES
            and _bytes(entries, deleted) <= _INLINE_BYTES
        )
        if whole or not inline:
            self._store.put_bytes(self._prefix + body)
        changes = len(entries) + len(deleted)
        if not inline:
            entries, deleted = {}, []
        return Change(self._id, entries, deleted, changes, notes)

    def _note_once(self, about: str, note: str) -> None:
        """Note a fact for the trace, once for each subject."""
        if about not in self._noted:
            self._noted.add(about)
            self._notes.append(note)


_NO_KEY = (0, 0, 0, 0, 0)
_EMPTY_FOLDER = _Seen(_NO_KEY, "dir:", True)
_SPECIAL = {
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def _key(info: os.stat_result) -> tuple[int, int, int, int, int]:
    return (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, info.st_mode)


def _now() -> int:
    """The clock that file systems stamp with, in nanoseconds."""
    return time.clock_gettime_ns(_FILE_CLOCK)


def _racy(info: os.stat_result, now: int) -> bool:
    """True when a change after ``now`` could leave the file's times as they are: it was stamped in
    this very tick, or its file system stamps whole seconds only (FAT even every other one)."""
    slack = 2 * _SECOND if info.st_ctime_ns % _SECOND == 0 else _TICK
    return info.st_ctime_ns >= now - slack


def _own(entry: str) -> bool:
    return not entry.startswith("public:")


def _below(path: str, places: Collection[str]) -> bool:
    """True when ``path`` is one of ``places`` or inside one."""
    while path:
        if path in places:
            return True
        path = path.rpartition("/")[0]
    return False


def _bytes(entries: Mapping[str, str], deleted: Collection[str]) -> int:
    return sum(len(p) + len(e) for p, e in entries.items()) + sum(map(len, deleted))
