"""``python -m pytest_mlab`` is ``mlab``."""

from __future__ import annotations

import sys

from pytest_mlab.cli import main

if __name__ == "__main__":
    sys.exit(main())
