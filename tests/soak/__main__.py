"""``python -m soak``: random operations against what is true, for ten minutes; 1 at the first difference.

Resident memory after a tenth of the time and at the end may differ by 32 MiB; runs of less than five minutes tell it
and do not judge it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence

from helpers.commands import COMMAND

from soak.operations import KINDS
from soak.runner import JUDGED_SECONDS, MEBI, TOLERANCE_BYTES, Soak, is_flat, settled_size


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m soak", description="Random operations against what is true.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long; default: 600")
    parser.add_argument("--seed", type=int, default=1, help="another seed has other operations")
    parser.add_argument("--operation", type=int, help="do the one of this number again, alone")
    parser.add_argument("--kind", choices=KINDS, help="operations of this kind alone")
    asked = parser.parse_args(arguments)
    soak = Soak(asked.seed) if asked.kind is None else Soak(asked.seed, kinds=(asked.kind,))
    if asked.operation is not None:
        soak.run_one(asked.operation)
    else:
        compile_apart()
        say(f"seed {asked.seed}, for {asked.seconds:.0f} s: {', '.join(soak.kinds)}")
        soak.run_for(asked.seconds, say)
    if soak.wrong is not None:
        say(str(soak.wrong))
        return 1
    if asked.operation is not None:
        say(f"operation {asked.operation} is right")
        return 0
    return judge(soak, asked.seconds, settled_size())


def compile_apart() -> None:
    """Have another process compile the kernels that are missing: a compiler would stay in the memory of this one."""
    subprocess.run([*COMMAND, "doctor", "--warm"], stdout=subprocess.DEVNULL, check=True)


def judge(soak: Soak, seconds: float, end: int) -> int:
    """Tell how it ended, with so many bytes resident; 1 where memory has grown."""
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in soak.done.most_common())
    say(soak.line(seconds, end))
    say(kinds)
    sizes = f"resident after a tenth {soak.settled_bytes / MEBI:,.0f} MiB, at the end {end / MEBI:,.0f} MiB"
    if seconds < JUDGED_SECONDS:
        say(f"{sizes}: not judged in less than {JUDGED_SECONDS:.0f} s")
        return 0
    flat = is_flat(soak.settled_bytes, end)
    say(f"{sizes}: {'flat' if flat else 'NOT flat'} within {TOLERANCE_BYTES / MEBI:.0f} MiB")
    return int(not flat)


if __name__ == "__main__":
    sys.exit(main())
