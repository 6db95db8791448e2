"""``python -m benchmarks [NAME…] [--quick] [--json FILE]``: measure, print one table, relate it to
the targets.

Every figure is a median; what it is compared with runs in the same process or in turn with it, so
that a slow or busy machine moves both."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence

from benchmarks.rows import Row

MODULES = ("step_cost", "snapshot_cost", "sandbox_cost", "trial_start", "idle_cost", "makespan")


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def render(rows: Sequence[Row]) -> list[str]:
    """The table, at most 80 columns wide."""
    lines = [f"{'what':<40} {'median':>8} {'unit':<5} {'target':>7} {'of it':>6}  ratio"]
    lines.append("-" * 80)
    for row in rows:
        share = f"{row.value / row.target:.0%}" if row.target else ""
        ratio = f"{row.ratio:.2f}x {row.against}" if row.ratio is not None else ""
        lines.append(
            f"{row.name[:40]:<40} {_figure(row.value):>8} {row.unit:<5} {_figure(row.target):>7}"
            f" {share:>6}  {ratio}"
        )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks and print their table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure pytest-mlab."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of: {', '.join(MODULES)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, for a first look")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    args = parser.parse_args(argv)
    if unknown := sorted(set(args.names) - set(MODULES)):
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(MODULES)}")
    rows: list[Row] = []
    for name in args.names or MODULES:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").measure(quick=args.quick)
    print("\n".join(render(rows)))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump([row._asdict() for row in rows], file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
