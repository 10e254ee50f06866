"""`python -m torture [KIND …] [--seconds S] [--count N] [--seed S]`; `make torture` calls it for all kinds.

What is seen is added to docs/reliability.json, and docs/reliability.md is written anew; `python -m torture report` does only
that. The exit code is 1 if anything was found.
"""

import argparse
import secrets
import signal
import sys

from torture import driver, ledger, report
from torture.kinds import KINDS


def main(arguments: list[str]) -> int:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell begins what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", help=f"of {', '.join(KINDS)}; or report")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each kind")
    parser.add_argument("--count", type=int, help="trials of each kind")
    parser.add_argument("--seed", type=int, help="a random one by default; it is printed")
    parser.add_argument("--dry", action="store_true", help="keep nothing: no cases, no ledger")
    asked = parser.parse_args(arguments)
    unknown = set(asked.kinds) - {*KINDS, "report"}
    if unknown:
        parser.error(f"there is no kind {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}, and report")
    seed = secrets.randbelow(1 << 32) if asked.seed is None else asked.seed
    n_faults = 0
    for name in [] if asked.kinds == ["report"] else asked.kinds or KINDS:
        print(f"{name}: seed {seed}", flush=True)
        session = driver.run(name, seed, asked.seconds, asked.count, keep=not asked.dry)
        n_faults += sum(fault["count"] for fault in session["faults"])
        print(f"{name}: {report.one_line(session)}", flush=True)
        if not asked.dry:
            ledger.add(name, session)
    if not asked.dry:
        report.write()
    return 1 if n_faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
