"""Projects with a toy suite, for backends that go through a whole session."""

from __future__ import annotations

from tests.plugin.conftest import project, shared_cache

__all__ = ["project", "shared_cache"]
