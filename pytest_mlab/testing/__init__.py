"""What authors of sandboxes test theirs with: ``pytest_mlab.testing.conformance``."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("pytest_mlab.testing.conformance")
