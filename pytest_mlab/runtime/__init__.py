"""One trial: workspace, environment and actions, processes, evaluation."""
