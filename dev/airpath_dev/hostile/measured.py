"""``python measured.py SECONDS REPORT COMMAND...``: runs a command, and writes down how it ended.

A process inherits the peak of memory of the one that started it, through fork and exec. So a small
process has to start what is measured.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Run it; its exit code is null if it was still running after so many seconds."""
    seconds, report, *command = sys.argv[1:]
    try:
        code = subprocess.run(command, timeout=float(seconds), check=False).returncode
    except subprocess.TimeoutExpired:
        code = None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    Path(report).write_text(json.dumps({"code": code, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
