"""A trial's model over HTTP, for programs that know OpenAI's or Anthropic's API and nothing of
us."""
