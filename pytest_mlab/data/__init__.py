"""Data of tasks: sources, cache, checksums, consent, preparation."""
