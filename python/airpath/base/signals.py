"""What SIGINT and SIGTERM do to the command ``airpath``.

While it works they raise KeyboardInterrupt and SystemExit, so that what was begun is tidied up.
Before that, while Python imports, and afterwards there is nothing to tidy up: the process ends,
without a traceback of wherever it was.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM


def end_at_once() -> None:
    """From now on the process just ends. What is ignored (nohup, a shell's ``&``) stays ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def raise_in_work() -> None:
    """From now on they raise; a handler of SIGINT that somebody else installed stays."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _terminate)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    if number == signal.SIGINT:
        os.write(2, b"error: interrupted; nothing was kept\n")
    os._exit(128 + number)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)
