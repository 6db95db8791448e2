"""Helpers that know nothing of trials: the ground floor, which everything else may use."""
