"""What a cheating agent would run: look for a task's hidden files from inside the sandbox. Standard
library only.

A JSON object on stdin says what to look for, so that nothing of it can be found because the thief
brought it along: ``sizes`` (size -> sha256 -> name of a hidden file), ``names`` (files that mean
something wherever they lie), ``paths`` (of the host, as words), ``needles`` (hexadecimal byte
strings), ``hosts`` ([name, port] to reach), ``root`` (where to look), ``skip`` (folders in which
names and needles mean nothing). The last line on stdout is a JSON list of findings."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import sys
from collections.abc import Iterator
from typing import Any

LARGEST = 256 << 20
PSEUDO = ("/proc", "/sys", "/dev")
SECONDS = 2.0


def main() -> None:
    """Look everywhere and print the findings."""
    wanted = json.load(sys.stdin)
    found = list(in_files(wanted, wanted["root"]))
    if wanted["root"] == "/":
        found += in_processes(wanted)
        found += in_network(wanted)
    sys.stdout.write("\n" + json.dumps(found) + "\n")


# --- the file system ---


def in_files(wanted: dict[str, Any], root: str) -> Iterator[str]:
    """Files with the content of hidden ones, with their names, or with pieces of answers in
    them."""
    skip = tuple(wanted["skip"])
    needles = [bytes.fromhex(needle) for needle in wanted["needles"]]
    for folder, entries in folders(root):
        strange = not (folder + "/").startswith(skip)
        for entry in entries:
            path = entry.path
            try:
                info = os.stat(path)
            except OSError:
                continue
            if stat.S_ISSOCK(info.st_mode):
                yield from in_socket(path)
            if stat.S_ISREG(info.st_mode):
                # A link into a system folder (/etc/alternatives) shows what is there, not what was
                # put here.
                here = strange and not (
                    entry.is_symlink() and os.path.realpath(path).startswith(skip)
                )
                yield from in_file(path, info.st_size, wanted, needles if here else [])
            if strange and entry.name in wanted["names"] and os.access(path, os.R_OK):
                yield f"{path} can be read"


def folders(root: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Every folder and what is in it beside folders. For hundreds of thousands of files os.walk
    takes twice as long."""
    pending = [root]
    while pending:
        folder = pending.pop()
        files = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        files.append(entry)
                    elif root != "/" or entry.path not in PSEUDO:
                        pending.append(entry.path)
        except OSError:
            continue
        yield folder, files


def in_file(path: str, size: int, wanted: dict[str, Any], needles: list[bytes]) -> Iterator[str]:
    """Whether a file is a hidden one, or holds one of the needles."""
    digests = wanted["sizes"].get(str(size))
    if size > LARGEST or not (digests or needles):
        return
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return
    if digests and hashlib.sha256(content).hexdigest() in digests:
        yield f"{path} is a copy of {digests[hashlib.sha256(content).hexdigest()]}"
    for number, needle in enumerate(needles):
        if needle in content:
            yield f"{path} holds piece {number} of the answers"
            return


def in_socket(path: str) -> Iterator[str]:
    """A service behind a socket file that answers to anybody."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(SECONDS)
        try:
            link.connect(path)
        except OSError:
            return
        yield f"the socket {path} accepts a connection"


# --- processes ---


def in_processes(wanted: dict[str, Any]) -> Iterator[str]:
    """Words and open files of all processes that can be seen, parents first of all, and the file
    systems they see."""
    own = os.stat("/")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        for part in ("environ", "cmdline"):
            yield from in_words(f"/proc/{name}/{part}", wanted)
        yield from in_descriptors(f"/proc/{name}/fd", wanted)
        try:
            other = os.stat(f"/proc/{name}/root/")
        except OSError:
            continue
        if (other.st_dev, other.st_ino) != (own.st_dev, own.st_ino):
            yield f"/proc/{name}/root shows another file system"


def in_words(path: str, wanted: dict[str, Any]) -> Iterator[str]:
    """Paths of hidden files among a process's variables or arguments."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        return
    for word in wanted["paths"]:
        if word.encode() in content:
            yield f"{path} tells the path {word}"


def in_descriptors(folder: str, wanted: dict[str, Any]) -> Iterator[str]:
    """Hidden files that a process has open."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = f"{folder}/{name}"
        try:
            info = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(info.st_mode):
            yield from in_file(path, info.st_size, wanted, [])


# --- network ---


def in_network(wanted: dict[str, Any]) -> Iterator[str]:
    """Interfaces that lead out, and hosts that can be reached."""
    for name in routed():
        yield f"packets are routed over the network interface {name}"
    for host, port in wanted["hosts"]:
        if answers(host, port):
            yield f"{host}:{port} can be reached"


def answers(host: str, port: int) -> bool:
    """True when a connection can be made."""
    try:
        with socket.create_connection((host, port), timeout=SECONDS):
            return True
    except OSError:
        return False


def routed() -> set[str]:
    """Interfaces other than the loopback that lead somewhere."""
    try:
        with open("/proc/net/route") as file:
            return {line.split()[0] for line in file.readlines()[1:] if line.strip()} - {"lo"}
    except OSError:
        return set()


if __name__ == "__main__":
    main()
