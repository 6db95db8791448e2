"""What a run leaves on disk: run directory, journal, content-addressed snapshots."""
