"""Check: data.py makes the same data every time."""

from __future__ import annotations

from pytest_mlab.data.prepare import prepare
from pytest_mlab.data.sources import kind_of
from pytest_mlab.validation.bench import Bench
from pytest_mlab.validation.finding import Finding, fail, not_applicable, ok


class SameData:
    """Scores of two machines can be compared only when both score the same answers."""

    name = "data"
    about = "preparing the data again gives the same files"

    def run(self, bench: Bench) -> Finding:
        """Prepare the data once more, in a cache of their own."""
        task, variant = bench.task, bench.settings.variant
        if any(kind_of(source.kind).downloads for source in task.variants[variant].sources):
            return not_applicable("the data would be downloaded a second time")
        consent = bench.settings.consent(task)
        again = prepare(task, variant, bench.folder("cache"), consent=consent)
        if again.digest == bench.prepared.digest:
            return ok(f"sha256 {again.digest[:16]} twice")
        changed = [
            name for name, digest in bench.prepared.files.items() if again.files.get(name) != digest
        ]
        where = ", ".join(changed[:3]) or "the answers"
        return fail(f"data.py made other files the second time: {where}", changed=changed)
