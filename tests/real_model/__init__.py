"""Whole trials with a real, small language model. It solves nothing; it is real in all else."""
