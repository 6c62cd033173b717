"""Run inside: forks so many processes, each with a session of its own and deaf to signals.

bomb.py PROCESSES
"""

from __future__ import annotations

import os
import signal
import sys
import time


def main() -> None:
    """Each child forks the next: none of them is anybody's direct child for long."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    ready, told = os.pipe()
    if os.fork() == 0:
        for left in range(int(sys.argv[1]), 0, -1):
            os.setsid()
            try:
                forked = os.fork()
            except OSError as limit:
                os.write(told, f"{left} were not allowed: {limit}".encode())
                time.sleep(600)
            if forked != 0:
                time.sleep(600)
                os._exit(0)
        os.write(told, b"all are there")
        os._exit(0)
    print(os.read(ready, 1000).decode(), flush=True)


if __name__ == "__main__":
    main()
