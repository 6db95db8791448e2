"""No data to see: the hidden part is the original code, which submissions are compared with, and
how much to time."""

import json
import shutil
from pathlib import Path

# Short rounds: what else the machine does then hits both codes alike. `mini` keeps an evaluation of
# the original code near 3 s, `full` near 12 s.
TIMING = {"mini": {"rounds": 9, "images": 4}, "full": {"rounds": 25, "images": 8}}


def prepare(raw: Path, public: Path, answers: Path, variant: str) -> None:
    """The original train.py as answers/starter/train.py, the amount of timing as
    answers/timing.json."""
    (answers / "starter").mkdir()
    shutil.copyfile(raw / "train.py", answers / "starter" / "train.py")
    (answers / "timing.json").write_text(json.dumps(TIMING[variant]) + "\n", encoding="utf-8")
