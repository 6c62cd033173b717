"""Sends many short flows from inside an emulation to the server: 90 % datagrams, 10 % TCP.

    scan.py FLOWS PER_SECOND

Every flow has its own pair of ports. Nobody listens, so that flows are refused or unreachable.
"""

from __future__ import annotations

import socket
import sys
import time
from collections import deque

OPEN = 500
"""Number of TCP sockets open at a time."""


def main() -> None:
    """Send the flows at the given rate."""
    flows, per_second = int(sys.argv[1]), float(sys.argv[2])
    server = socket.gethostbyname("server")
    ports = range(1024, 61024)
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    waiting: deque[socket.socket] = deque()
    began = time.monotonic()
    for flow in range(flows):
        port = ports[flow % len(ports)]
        if flow % len(ports) == 0:
            sender.close()
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if flow % 10 == 9:
            tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            tcp.setblocking(False)
            tcp.connect_ex((server, port))
            waiting.append(tcp)
            if len(waiting) > OPEN:
                waiting.popleft().close()
        else:
            sender.sendto(b"scan" * 8, (server, port))
        ahead = began + flow / per_second - time.monotonic()
        if ahead > 0.01:
            time.sleep(ahead)
    time.sleep(1)


if __name__ == "__main__":
    main()
