"""A trial's model over HTTP, for programs that speak OpenAI's or Anthropic's API."""
