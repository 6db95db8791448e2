"""Durations as people write them: ``90``, ``90s``, ``45m``, ``5h``, ``1h30m``."""

from __future__ import annotations

import re

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def parse_duration(text: str) -> float:
    """Seconds of a duration: hours, minutes, seconds in this order, each at most once; a bare
    number is seconds.

    Raises ValueError with the forms that are allowed; a duration must be positive.
    """
    match = _DURATION.fullmatch(text.strip().lower().replace(" ", ""))
    if match and match.group(0):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        total = hours * 3600 + minutes * 60 + seconds
        if total > 0:
            return total
    raise ValueError(
        f"{text!r} is not a duration: write a positive one such as 90s, 45m, 5h or 1h30m"
    )


def format_duration(seconds: float) -> str:
    """The shortest such text: to a tenth of a second below a minute, to the second above."""
    if seconds < 60:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + "s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)
