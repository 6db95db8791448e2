"""Agents as files and classes: finding them, loading them, their settings and digests."""
