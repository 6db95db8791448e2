"""Commands of ``mlab``, one module each; ``pytest_mlab.cli`` imports only the one that was asked
for.

A module has ``HELP`` (one line), ``add_arguments(parser)`` and ``run(args) -> int`` (the exit
status); it prints to stdout and raises :class:`pytest_mlab.errors.MlabError` for what the user has
to fix. A module with ``PASSES_ON = True`` gets the arguments that it did not declare as
``args.others``."""

USAGE = 2
"""Exit status of every command for a usage error."""
