"""Tasks in MLAgentBench's own format, read as the same ``Task`` as any other."""
