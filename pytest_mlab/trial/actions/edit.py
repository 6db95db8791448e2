"""Actions by which the edit model rewrites files, and Undo Edit Script."""

from __future__ import annotations

import ast
import difflib
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from pytest_mlab.store.content import copy_content
from pytest_mlab.trial.actions import prompts
from pytest_mlab.trial.actions.answers import fence_around, unfenced
from pytest_mlab.trial.actions.base import SHOWN, ActionContext, ActionError, action, ask, shortened
from pytest_mlab.trial.actions.file_text import FileText, NotText, decoded
from pytest_mlab.trial.actions.files import TEXT_LIMIT, read_bytes
from pytest_mlab.trial.workspace import NEW_FILE

# The limit of MLAgentBench's edit model.
MAX_TOKENS = 4000
"""Tokens that the edit model may write."""

MAX_EDITED = 200_000
"""Bytes of a file that is given to the edit model whole."""


@action(
    "Edit Script (AI)",
    "Lets an AI rewrite a file by your instruction; a file that does not exist starts empty. "
    "The AI sees the file and the instruction, nothing else.",
    returns="What changed, as a diff.",
    order=90,
    script_name=(str, "the file to edit"),
    edit_instruction=(str, "what to change, step by step and in detail"),
    save_name=(str, "where to save the result; may be the same file"),
)
def edit_script(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Rewrite a whole file by instruction; a missing one starts empty."""
    name, save = args["script_name"], args["save_name"]
    context.workspace.resolve(save, write=True)
    # The call above refuses a path that cannot be written before a model call is paid for.
    file = _read(context, name, MAX_EDITED)
    before = file.text()
    wanted = prompts.EDIT.substitute(
        name=name, content=before, instruction=args["edit_instruction"], fence=fence_around(before)
    )
    after = _rewritten(context, wanted, before, file, save, file.rewritten)
    return _saved(context, file, save, after)


@action(
    "Edit Script Segment (AI)",
    "Lets an AI rewrite a range of lines by your instruction. The AI sees these lines and the"
    " instruction only.",
    returns="What changed, as a diff.",
    order=150,
    script_name=(str, "the file to edit"),
    start_line_number=(int, "the first line to rewrite, from 1"),
    end_line_number=(int, "the last line to rewrite"),
    edit_instruction=(str, "what to change, step by step and in detail"),
    save_name=(str, "where to save the result; may be the same file"),
)
def edit_segment(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Rewrite a range of lines by instruction."""
    name, save = args["script_name"], args["save_name"]
    first, last = args["start_line_number"], args["end_line_number"]
    context.workspace.resolve(save, write=True)
    file = _read(context, name, TEXT_LIMIT)
    count = len(file.lines)
    if count and not (1 <= first <= last <= count):
        raise ActionError(
            f"lines {first} to {last} are not a range of {name}, which has {count} lines"
        )
    first, last = (first, last) if count else (1, 0)
    before = file.text(first, last)
    if len(before) > MAX_EDITED:
        raise ActionError(
            f"lines {first} to {last} of {name} are too long for the edit model; choose fewer"
        )
    wanted = prompts.EDIT_SEGMENT.substitute(
        name=name,
        first=first,
        last=last,
        content=before,
        instruction=args["edit_instruction"],
        fence=fence_around(before),
    )

    def put(text: str) -> bytes:
        return file.replaced(first, last, text)

    return _saved(context, file, save, _rewritten(context, wanted, before, file, save, put))


def _read(context: ActionContext, name: str, limit: int) -> FileText:
    """A file as edits see it; a missing one is empty. Raises PathRefused, ActionError."""
    exists = context.workspace.exists(name)
    return FileText(name, read_bytes(context, name, limit) if exists else b"")


def _rewritten(
    context: ActionContext,
    prompt: str,
    before: str,
    file: FileText,
    save: str,
    put: Callable[[str], bytes],
) -> bytes:
    """The file with what the edit model writes in the place of ``before``; ``put`` puts it
    there."""
    reply, reason = ask(context, prompt, role="edit", max_tokens=MAX_TOKENS)
    # Saving a reply that was cut would replace the file by its beginning.
    if reason == "length":
        raise ActionError(
            f"the edit model stopped at its limit of {MAX_TOKENS} tokens, so nothing was changed; "
            "edit a smaller part (Edit Script Segment (AI)) or write the file yourself"
        )

    def fits(text: str) -> bool:
        try:
            return _is_python(put(text))
        except NotText:
            return False

    python = save.endswith(".py")
    text = unfenced(reply, before, fence=fence_around(before), fits=fits if python else None)
    if not text.strip():
        raise ActionError(
            "the edit model gave no content, so nothing was changed; describe the edit more exactly"
        )
    prose = python and "```" not in reply and "~~~" not in reply and not fits(text)
    if prose and _is_python(file.data):  # such as "I cannot do that."
        raise ActionError(
            "the edit model answered without a code block, and with its answer the file would not"
            f" be Python, so nothing was changed; its answer begins: {reply[:200].strip()}"
        )
    return put(text)


def _is_python(source: bytes) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the agent's code
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _saved(context: ActionContext, file: FileText, save: str, after: bytes) -> str:
    mode = _mode(context, file.name)
    _back_up(context, save)
    try:
        context.workspace.write(save, after, mode=mode)
    except OSError:  # such as a full disk, after the file was emptied
        _take_back(context, save)
        raise
    if after == file.data:
        return f"The edit changed nothing; {save} has the content of {file.name}."
    diff = "\n".join(
        difflib.unified_diff(
            file.contents(),
            FileText(save, after).contents(),
            f"{file.name} (before)",
            f"{save} (after)",
            lineterm="",
        )
    )
    return shortened(
        f"The edited file has been saved to {save}. What changed:\n\n{diff}\n\nCheck that it is as"
        " intended."
    )


def _mode(context: ActionContext, name: str) -> int:
    """The permissions of a file, or of a new one."""
    if not context.workspace.exists(name):
        return NEW_FILE
    with context.workspace.opened(name) as fd:
        return os.fstat(fd).st_mode


def _back_up(context: ActionContext, save: str) -> None:
    """Keep the file that an edit replaces, outside the workspace."""
    # By the resolved path, so that names that reach one file through links share its edits.
    # MLAgentBench found backups by a prefix of the name and the time in seconds, and could restore
    # another file's.
    key = context.workspace.resolve(save, write=True).rel
    stack = context.backups.setdefault(key, [])
    if not context.workspace.exists(save):
        stack.append(None)
        return
    with context.workspace.opened(save) as fd:
        stack.append(context.keep(fd))


@action(
    "Undo Edit Script",
    "Takes the last edit of a file back; several edits can be taken back one after the other.",
    returns="The restored content.",
    order=30,
    script_name=(str, "the file whose last edit is to be undone"),
)
def undo_edit(context: ActionContext, args: Mapping[str, Any]) -> str:
    """Restore the version of a file before its last edit; can be repeated, edit by edit."""
    name = args["script_name"]
    key = context.workspace.resolve(name, write=True).rel
    stack = context.backups.get(key)
    if not stack:
        edited = ", ".join(sorted(k for k, v in context.backups.items() if v)) or "none"
        raise ActionError(
            f"there is no edit of {name} to undo (files with edits to undo: {edited})"
        )
    if _take_back(context, name):
        with context.workspace.opened(name) as fd:
            text = decoded(os.pread(fd, 4 * SHOWN, 0))
        return shortened(f"The last edit of {name} has been undone. The file now is:\n\n{text}")
    return (
        f"The last edit of {name} has been undone: the file did not exist before it and has been"
        " removed."
    )


def _take_back(context: ActionContext, name: str) -> bool:
    """Restore a file from before its last edit; False when there was none then."""
    stack = context.backups[context.workspace.resolve(name, write=True).rel]
    kept = stack[-1]
    if kept is None:
        if context.workspace.exists(name):
            context.workspace.remove(name)
    else:
        with open(context.trial.backups / kept, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            with context.workspace.opened(name, write=True, mode=mode) as target:
                copy_content(file.fileno(), target)
    # Only now, so that an undo that fails can be done again.
    stack.pop()
    return kept is not None
