"""Model providers, all of them through litellm."""
