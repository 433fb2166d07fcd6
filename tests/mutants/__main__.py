"""``python -m mutants [NAME …]``: seed every bug of the catalogue, or those named; 1 where one is not caught."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mutants.catalogue import MUTANTS
from mutants.runner import CAUGHT, row, run_all, summary

ROOT = Path(__file__).parents[2]


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    known = {mutant.name: mutant for mutant in MUTANTS}
    parser = argparse.ArgumentParser(prog="python -m mutants", description="Seeded bugs: the suite has to catch each.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="those to seed; default: all")
    parser.add_argument("--list", action="store_true", help="say what each of them is, and end")
    asked = parser.parse_args(arguments)
    if unknown := sorted(set(asked.names) - set(known)):
        parser.error(f"no mutant named {', '.join(unknown)}; --list says which there are")
    chosen = [known[name] for name in asked.names] or list(MUTANTS)
    if asked.list:
        for mutant in chosen:
            say(f"{mutant.name:<40}{mutant.bug}")
        return 0
    begin = time.perf_counter()
    say(row("mutant", "verdict", "time", "by"))
    verdicts = run_all(ROOT, chosen, say)
    say(summary(verdicts, time.perf_counter() - begin))
    return int(any(verdict.kind != CAUGHT for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
