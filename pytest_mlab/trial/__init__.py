"""Everything that happens in a trial: two processes, the actions, the workspace, the evaluation,
the outcome."""
