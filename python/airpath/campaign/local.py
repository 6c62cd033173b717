"""The engine of this machine: threads, because the simulator releases the GIL."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue

from airpath.campaign import work
from airpath.campaign.work import Batch, Done

Outcome = tuple[Batch, "Done | BaseException"]


class LocalEngine:
    """Runs batches in threads of this process."""

    def __init__(self, workers: int) -> None:
        self.slots = workers
        """How many batches run at once."""
        self._waiting: SimpleQueue[Batch | None] = SimpleQueue()
        self._ended: SimpleQueue[Outcome] = SimpleQueue()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"airpath-{index}", daemon=True)
            for index in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, batch: Batch) -> None:
        """Hand a batch over."""
        self._waiting.put(batch)

    def next(self) -> Outcome:
        """Wait for a batch to end."""
        while True:
            try:
                # With a timeout, so that Ctrl-C arrives.
                return self._ended.get(timeout=0.2)
            except Empty:
                pass

    def ended(self) -> list[Outcome]:
        """Batches that have ended and were not asked for."""
        found = []
        while not self._ended.empty():
            found.append(self._ended.get())
        return found

    def close(self) -> None:
        """Stop the running batches."""
        self._stop.set()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (batch := self._waiting.get()) is not None:
            if self._stop.is_set():
                return
            try:
                self._ended.put((batch, work.simulate(batch, lambda: not self._stop.is_set())))
            except KeyboardInterrupt:
                return
            # What it is goes to the thread that asks.
            except BaseException as error:
                self._ended.put((batch, error))
