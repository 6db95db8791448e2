"""Check: an agent that looks for answers, evaluator and solutions from inside the sandbox finds
nothing."""

from __future__ import annotations

from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, ok
from pytest_mlab.validation.hidden import found_by_thief, secrets_of


class Thief:
    """Searches files, environments, command lines, descriptors, sockets and the network."""

    name = "thief"
    about = "an agent that looks for hidden files in the sandbox finds none"

    def run(self, bench: Bench) -> Finding:
        """Let the thief search."""
        found = found_by_thief(bench)
        if found:
            more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
            return fail("; ".join(found[:3]) + more, found=found)
        count = len(secrets_of(bench.task, bench.prepared))
        if not bench.sandbox.isolated:
            return ok(
                f"{count} hidden files not in the workspace; elsewhere: not applicable, local hides"
                " nothing"
            )
        return ok(f"none of {count} hidden files, no path to them, no network")
