"""A run directory to tables, markdown, JSON and JUnit values."""
