"""Commands of ``mlab``, one module each; ``pytest_mlab.cli`` imports only the one that was asked
for.

A module has ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args) -> int`` (the exit
status); it prints to stdout and raises :class:`pytest_mlab.errors.MlabError` for what the user has
to fix."""
