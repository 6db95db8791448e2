"""Proving a task sound before anyone spends a token on it: what ``mlab validate`` does
(docs/validation.md)."""
