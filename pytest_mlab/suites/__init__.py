"""Task folders to tasks."""
