"""Programs that run inside a sandbox. Standard library only; nothing here is imported by the
harness."""
