"""Read Output: any part of what a step printed, also of what its observation left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_mlab.trial.actions.base import SHOWN, ActionContext, ActionError, action
from pytest_mlab.trial.outputs import shown_parts, step_path, steps_kept

MOST = SHOWN - 1000
"""Characters that are shown at once: with the line above them no more than of other actions."""


@action(
    "Read Output",
    "Shows a part of the output of an earlier step whose observation left out its middle.",
    returns=f"At most {MOST} characters of it, and how many it has.",
    order=45,
    optional=("containing",),
    step_number=(int, "the step that ran the script or code, as its observation says"),
    start_character=(int, "the first character to show, from 1"),
    containing=(str, "only lines that contain this text, such as accuracy; optional"),
)
def read_output(context: ActionContext, args: Mapping[str, Any]) -> str:
    """A part of a step's output, as a terminal shows it; of its matching lines with
    ``containing``."""
    step, start, wanted = args["step_number"], args["start_character"], args.get("containing", "")
    path = step_path(context.trial, step)
    if not path.is_file():
        raise ActionError(_no_output(context, step))
    if start < 1:
        raise ActionError(f"start_character is {start}; characters count from 1")
    parts: Iterable[str] = shown_parts(path)
    shown, total = _window(_matching(parts, wanted) if wanted else parts, start - 1)
    of = f"the output of step {step}"
    if wanted:
        of = f"the lines with {wanted!r} in {of}"
    if not total:
        return f"There is nothing in {of}."
    if not shown:
        raise ActionError(f"{of} has {total} characters, so there is none from {start} on")
    end = start - 1 + len(shown)
    more = f"; go on with start_character {end + 1}" if end < total else ""
    return f"Characters {start} to {end} of {total} of {of}{more}:\n\n{shown}"


def _window(parts: Iterable[str], start: int) -> tuple[str, int]:
    """The characters from ``start`` on, at most :data:`MOST`, and how many there are in all."""
    total, shown = 0, ""
    for part in parts:
        if len(shown) < MOST:
            shown += part[max(0, start - total) :][: MOST - len(shown)]
        total += len(part)
    return shown, total


def _matching(parts: Iterable[str], wanted: str) -> Iterator[str]:
    """The lines that contain ``wanted``."""
    begun: list[str] = []
    for part in parts:
        *lines, rest = part.split("\n")
        if lines:
            lines[0] = "".join([*begun, lines[0]])
            begun.clear()
            yield "".join(f"{line}\n" for line in lines if wanted in line)
        begun.append(rest)
    if wanted in (last := "".join(begun)):
        yield last


def _no_output(context: ActionContext, step: int) -> str:
    steps = ", ".join(map(str, steps_kept(context.trial))) or "none"
    return (
        f"nothing of the output of step {step} was left out, or it ran no script (steps with more"
        f" output than was shown: {steps})"
    )
