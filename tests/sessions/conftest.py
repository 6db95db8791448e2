"""The project in which these tests run pytest."""

from __future__ import annotations

from tests.support.projects import project, shared_cache

__all__ = ["project", "shared_cache"]
