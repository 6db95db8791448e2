"""The outside world: model providers and sandboxes."""
