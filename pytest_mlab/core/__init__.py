"""The pure part: facts and arithmetic of tasks, trials and runs. No I/O, no clock, no pytest."""
