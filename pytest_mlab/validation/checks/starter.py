"""Check: the starter code, or its filled-in version where it is a template, runs in a trial's
sandbox."""

from __future__ import annotations

from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, ok


class Starter:
    """The first run of the baseline."""

    name = "starter"
    about = "the starter code runs in the sandbox and is scored"

    def run(self, bench: Bench) -> Finding:
        """Run it once."""
        run = bench.baselines(1)[0]
        facts = {"seconds": round(run.seconds, 3), "memory_mb": round(run.memory_mb, 1)}
        if run.problem:
            return fail(run.problem, **facts)
        if run.tampered:
            return fail(
                f"the starter changes read-only files: {', '.join(run.tampered[:3])}", **facts
            )
        return ok(f"scored after {run.seconds:.1f} s in the sandbox {bench.sandbox.name}", **facts)
