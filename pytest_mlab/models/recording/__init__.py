"""Recordings of model calls: written while a trial runs, and replayed without a provider."""
