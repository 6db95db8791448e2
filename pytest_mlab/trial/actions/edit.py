"""Actions by which the edit model rewrites files, and Undo Edit Script."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from pytest_mlab.store.content import copy_content
from pytest_mlab.trial.actions import prompts
from pytest_mlab.trial.actions.base import SHOWN, ActionContext, ActionError, action, ask, shortened
from pytest_mlab.trial.actions.files import read_text

# The limit of MLAgentBench's edit model.
MAX_TOKENS = 4000
"""Tokens that the edit model may write."""

MAX_EDITED = 200_000
"""Bytes of a file that is given to the edit model whole."""

# The closing fence may be missing: models sometimes stop before they write it. It must be alone on
# its line, because code may hold three backticks in a text.
_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)(?:^[ \t]*```[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)


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
    before = read_text(context, name, MAX_EDITED) if context.workspace.exists(name) else ""
    wanted = prompts.EDIT.substitute(
        name=name, content=before, instruction=args["edit_instruction"]
    )
    after = _rewritten(context, wanted)
    return _saved(context, name, save, before, after)


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
    before = read_text(context, name) if context.workspace.exists(name) else ""
    lines = before.splitlines(keepends=True)
    if before and not (1 <= first <= last <= len(lines)):
        raise ActionError(
            f"lines {first} to {last} are not a range of {name}, which has {len(lines)} lines"
        )
    segment = "".join(lines[first - 1 : last]) if before else ""
    if len(segment) > MAX_EDITED:
        raise ActionError(
            f"lines {first} to {last} of {name} are too long for the edit model; choose fewer"
        )
    wanted = prompts.EDIT_SEGMENT.substitute(
        name=name, first=first, last=last, content=segment, instruction=args["edit_instruction"]
    )
    written = _rewritten(context, wanted)
    after = "".join(lines[: first - 1]) + written + "".join(lines[last:]) if before else written
    return _saved(context, name, save, before, after)


def _rewritten(context: ActionContext, prompt: str) -> str:
    reply, reason = ask(context, prompt, role="edit", max_tokens=MAX_TOKENS)
    # Saving a reply that was cut would replace the file by its beginning.
    if reason == "length":
        raise ActionError(
            f"the edit model stopped at its limit of {MAX_TOKENS} tokens, so nothing was changed; "
            "edit a smaller part (Edit Script Segment (AI)) or write the file yourself"
        )
    text = unfenced(reply)
    if not text.strip():
        raise ActionError(
            "the edit model gave no content, so nothing was changed; describe the edit more exactly"
        )
    return text


def unfenced(reply: str) -> str:
    """The content of a reply: its longest code block, or all of it when there is none; ends in a
    line break."""
    blocks = _FENCE.findall(reply)
    # A reply may also quote a few lines of the file. The longest block is the content.
    text = max(blocks, key=len) if blocks else reply.strip("\n")
    return text if text.endswith("\n") or not text else text + "\n"


def _saved(context: ActionContext, name: str, save: str, before: str, after: str) -> str:
    _back_up(context, save)
    context.workspace.write(save, after.encode("utf-8", "replace"))
    diff = "".join(
        line if line.endswith("\n") else line + "\n"
        for line in difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"{name} (before)",
            f"{save} (after)",
        )
    )
    if not diff:
        return f"The edit changed nothing; {save} has the content of {name}."
    return shortened(
        f"The edited file has been saved to {save}. What changed:\n\n{diff}\nCheck that it is as"
        " intended."
    )


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
    # The entry is removed only after the file was restored, so that an undo that fails can be done
    # again.
    kept = stack[-1]
    if kept is None:
        if context.workspace.exists(name):
            context.workspace.remove(name)
        stack.pop()
        return (
            f"The last edit of {name} has been undone: the file did not exist before it and has"
            " been removed."
        )
    with (
        open(context.trial.backups / kept, "rb") as file,
        context.workspace.opened(name, write=True) as target,
    ):
        text = file.read(4 * SHOWN).decode("utf-8", "replace")
        copy_content(file.fileno(), target)
    stack.pop()
    return shortened(f"The last edit of {name} has been undone. The file now is:\n\n{text}")
