"""From options and suites to a frozen plan: what runs, what is missing for it, what a resumed run
still lacks."""
