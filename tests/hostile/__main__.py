"""``python -m hostile``: every case in its full length, as a table. Needs root."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from hostile.cases import cases, run


def main() -> int:
    """Run those whose names are given, or all. Exit code 1: one went wrong."""
    if os.geteuid() != 0:
        print("the hostile cases are left out: they need root", file=sys.stderr)
        return 0
    chosen, failed = set(sys.argv[1:]), 0
    print("| case | how it ended | s |\n|---|---|---:|")
    for case in cases():
        if chosen and case.name not in chosen:
            continue
        began, said = time.monotonic(), "as it should"
        with tempfile.TemporaryDirectory() as place:
            try:
                ended = run(case, Path(place))
                if ended.partial:
                    said += f"; partial, because {'; '.join(ended.partial)}"
            except Exception as wrong:
                failed += 1
                said = f"**{type(wrong).__name__}** " + " ".join(str(wrong).split())[-400:]
        print(f"| {case.name} | {said} | {time.monotonic() - began:.1f} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
