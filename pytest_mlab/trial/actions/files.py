"""Actions on files: List Files, Read File, Write File, Append File, Copy File, Inspect Script
Lines."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pytest_mlab.store.content import copy_content
from pytest_mlab.trial.actions.base import SHOWN, ActionContext, ActionError, action, shortened
from pytest_mlab.trial.actions.file_text import FileText, decoded

MAX_LISTED = 1000
MAX_LINES = 100
TEXT_LIMIT = 4 << 20
"""Bytes of a file that are read as text at most."""


def read_bytes(context: ActionContext, name: str, limit: int = TEXT_LIMIT) -> bytes:
    """A text file's bytes. Raises PathRefused, ActionError for a binary or too long file."""
    # One byte more than allowed tells a file that is too long. Its size could change after it was
    # asked for.
    data = context.workspace.read(name, limit + 1)
    # Text has no zero bytes. git looks for one near the beginning of a file in the same way.
    if b"\0" in data[:8192]:
        raise ActionError(f"{name} is a binary file; run Python code to look into it")
    if len(data) > limit:
        raise ActionError(
            f"{name} has more than {limit} bytes; Inspect Script Lines or Python code reads a part"
            " of it"
        )
    return data


def read_text(context: ActionContext, name: str) -> str:
    """A text file's content; what cannot be decoded is replaced. Raises what :func:`read_bytes`
    does."""
    return decoded(read_bytes(context, name))


@action(
    "List Files",
    "Shows the names in a folder; folders end in /.",
    returns="One name a line.",
    order=10,
    dir_path=(str, "a folder of the workspace, such as . or data"),
)
def list_files(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Names in a folder."""
    names = context.workspace.listdir(args["dir_path"] or ".")
    shown = "\n".join(names[:MAX_LISTED]) or "(the folder is empty)"
    more = len(names) - MAX_LISTED
    return f"{shown}\n[... {more} more names ...]" if more > 0 else shown


@action(
    "Read File",
    "Shows the content of a text file.",
    returns="The content; the middle of a long one is left out.",
    order=110,
    file_name=(str, "a file of the workspace"),
)
def read_file(context: ActionContext, args: Mapping[str, Any]) -> str:
    """A text file, its middle left out when it is long; only the two ends of a giant one are
    read."""
    name = args["file_name"]
    with context.workspace.opened(name) as fd:
        size = os.fstat(fd).st_size
        if size <= TEXT_LIMIT:
            data = os.pread(fd, TEXT_LIMIT, 0)
            binary, text = b"\0" in data[:8192], shortened(decoded(data), _PARTS)
        else:
            # A data file may have gigabytes, so it is never read whole.
            head, tail = os.pread(fd, SHOWN // 2, 0), os.pread(fd, SHOWN // 2, size - SHOWN // 2)
            binary = b"\0" in head[:8192]
            cut = f"\n[... {size - SHOWN} bytes left out{_PARTS} ...]\n"
            text = head.decode("utf-8", "replace") + cut + tail.decode("utf-8", "replace")
    if binary:
        raise ActionError(
            f"{name} is a binary file of {size} bytes; run Python code to look into it"
        )
    return text or "(the file is empty)"


_PARTS = "; Inspect Script Lines shows parts"


@action(
    "Write File",
    "Writes a file, replacing what it held.",
    returns="A confirmation.",
    order=120,
    file_name=(str, "a file of the workspace"),
    content=(str, "the whole new content"),
)
def write_file(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Replace a file's content."""
    context.workspace.write(args["file_name"], args["content"].encode())
    return f"{args['file_name']} has been written ({len(args['content'])} characters)."


@action(
    "Append File",
    "Adds text to the end of a file.",
    returns="A confirmation.",
    order=130,
    file_name=(str, "a file of the workspace"),
    content=(str, "the text to add"),
)
def append_file(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Add to a file."""
    context.workspace.write(args["file_name"], args["content"].encode(), append=True)
    return f"{len(args['content'])} characters have been added to {args['file_name']}."


@action(
    "Copy File",
    "Copies a file.",
    returns="A confirmation.",
    order=20,
    source=(str, "the file to copy"),
    destination=(str, "the new file"),
)
def copy_file(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Copy a file; into a folder when the destination is one."""
    source, destination = args["source"], args["destination"]
    workspace = context.workspace
    if destination and workspace.is_folder(destination):
        destination = os.path.join(destination, os.path.basename(source.rstrip("/")))
    # The destination is emptied when it is opened: a file copied onto itself would lose its
    # content. Resolved paths are compared, because a link may give it a second name.
    if workspace.resolve(source).path == workspace.resolve(destination).path:
        raise ActionError(f"{source} and {destination} are the same file")
    # The source first: when it is refused, the destination is still untouched.
    with (
        workspace.opened(source) as read,
        workspace.opened(destination, write=True, mode=os.fstat(read).st_mode) as write,
    ):
        copy_content(read, write)
    return f"{source} has been copied to {destination}."


@action(
    "Inspect Script Lines",
    f"Shows a part of a file, at most {MAX_LINES} lines, and how many lines it has.",
    returns="The lines.",
    order=80,
    script_name=(str, "a file of the workspace"),
    start_line_number=(int, "the first line to show, from 1"),
    end_line_number=(int, "the last line to show"),
)
def inspect_lines(context: ActionContext, args: Mapping[str, Any]) -> str:
    """At most 100 numbered lines of a file, and how long it is."""
    name, first, last = args["script_name"], args["start_line_number"], args["end_line_number"]
    lines = FileText(name, read_bytes(context, name)).contents()
    if first < 1 or last < first:
        raise ActionError(
            f"lines {first} to {last} are not a range; lines count from 1 (the file has"
            f" {len(lines)})"
        )
    if last - first + 1 > MAX_LINES:
        raise ActionError(
            f"lines {first} to {last} are {last - first + 1} lines; at most {MAX_LINES} are shown"
            " at once"
        )
    if first > len(lines):
        raise ActionError(f"{name} has {len(lines)} lines, so there is none from {first} on")
    last = min(last, len(lines))
    shown = "\n".join(lines[first - 1 : last])
    return shortened(f"Lines {first} to {last} of {name}, which has {len(lines)} lines:\n\n{shown}")
