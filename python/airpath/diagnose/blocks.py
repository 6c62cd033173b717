"""Comparison of a scenario's variants by emulations in randomised blocks.

Each block runs every variant once, with the same seed and in random order. Slow changes on the
machine therefore affect all variants alike. If a run does not count, because the host was late, its
block is kept as ``invalid-N`` and repeated as a whole. Differences are taken within blocks.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

from airpath import scenario as scenarios
from airpath.analysis.fairness import jain_index
from airpath.base.numbers import seeds_from
from airpath.base.stopping import StoppedError, deferred
from airpath.base.text import plural
from airpath.base.toml import parse_toml
from airpath.drivers import repeat
from airpath.drivers.options import EmulationOptions
from airpath.errors import AirpathError, InputError
from airpath.runs.claim import claim, invalid, rename, set_aside
from airpath.runs.results import Run
from airpath.runs.summary import Entry, entries, without_client_port, write_json

if TYPE_CHECKING:
    from airpath import _core
    from airpath.diagnose.whatif import Tried
    from airpath.runs.document import InvalidBlock, RunDocument, Variants

PLAN = "whatif.json"
"""File in the directory of a comparison that says what is compared."""
ANSWER = "comparison.json"
INTERVAL = "Student's t of the relative changes, paired by block"
MOST_BLOCKS = 1000

_UNFINISHED = ".unfinished"
_LEAST_BYTES = 0.01
"""Share of all bytes that a program's connection must exceed to be compared."""

Measured = tuple[str, str, float, bool]
"""Flow, figure, value, and whether the value is a result and not an estimate."""


def whatif_emulated(
    tried: Tried,
    *,
    blocks: int,
    options: EmulationOptions | None = None,
    progress: Callable[[float], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> Variants:
    """Emulate a scenario unchanged and with each variant's settings, in ``blocks`` blocks.

    The answer has the form that ``whatif`` returns, with one block for each seed. ``blocks`` in the
    answer describes the blocks. ``options`` sets the programs, the first seed and the directory; by
    default the scenario's flows run. At most ``blocks`` attempts are repetitions of late ones.

    Raises ``InputError`` for wrong input, ``InvalidError`` if no block counts, ``AirpathError`` if
    a command fails, and ``StoppedError`` for Ctrl-C if any block is complete.
    """
    from airpath import _core

    if not 1 <= blocks <= MOST_BLOCKS:
        raise InputError(f"the number of blocks is {blocks}, but must be from 1 to {MOST_BLOCKS}")
    loaded = [tried.base, *tried.variants]
    options = options or EmulationOptions(flows=True)
    first = loaded[0].seed if options.seed is None else options.seed
    seeds_from(first, blocks)
    work = _Blocks(loaded, options, first, blocks, progress)
    try:
        work.run(say)
    except (KeyboardInterrupt, SystemExit, AirpathError) as stopped:
        with deferred():
            # The runs of a block in which a program failed are kept, so that they can be examined.
            work.remove_unfinished(only_empty=isinstance(stopped, AirpathError))
            if not work.complete and not work.invalid:
                repeat.remove_empty(work.out, PLAN)
        if not work.complete or isinstance(stopped, SystemExit):
            raise
        done = f"{plural(len(work.complete), 'block')} of {blocks} are complete"
        continues = f"the same command with --out {work.out} continues"
        if isinstance(stopped, KeyboardInterrupt | StoppedError):
            raise StoppedError(work.out, [f"only {done}"], continues) from None
        raise type(stopped)(f"{stopped}\n  {done}, in {work.out}: {continues}") from None
    if not work.complete:
        because = work.invalid[-1]["because"]
        raise repeat.InvalidError(repeat.none_counts(len(work.invalid), because, work.out, "block"))
    blocks_done = sorted(work.complete)
    measured = [
        [work.complete[block][index] for block in blocks_done] for index in range(len(loaded))
    ]
    answer: Variants = {
        "scenario": loaded[0].name,
        "version": _core.__version__,
        "seeds": [first + block for block in blocks_done],
        "variants": tried.named(),
        "rows": _core.variant_rows(measured),
        "blocks": {
            "command": list(options.command),
            "orders": [work.order(block) for block in blocks_done],
            "wanted": blocks,
            "invalid": work.invalid,
            "interval": INTERVAL,
            "directory": str(work.out),
        },
    }
    write_json(work.out / ANSWER, answer)
    return answer


class _Blocks:
    """The blocks of a comparison, in its directory."""

    def __init__(
        self,
        loaded: Sequence[_core.Scenario],
        options: EmulationOptions,
        first: int,
        blocks: int,
        progress: Callable[[float], None],
    ) -> None:
        self.loaded, self.options, self.first, self.blocks = loaded, options, first, blocks
        self._progress = progress
        self._runs = 0
        plan = repeat.plan_of(loaded[0], options, first)
        hashes = [one.sha256 for one in loaded]
        plan["id"] = hashlib.sha256("\n".join([str(plan["id"]), *hashes]).encode()).hexdigest()[:12]
        plan["variants_sha256"] = hashes[1:]
        stem = f"whatif-{scenarios.stem(loaded[0])}"
        self.out = options.out or repeat.default_directory(stem, str(plan["id"]))
        claim(self.out, PLAN, plan, "comparison")
        self.complete: dict[int, list[list[Measured]]] = {}
        """Figures by block and variant."""
        self.invalid: list[InvalidBlock] = []

    def run(self, say: Callable[[str], None]) -> None:
        """Run the missing blocks."""
        self.remove_unfinished()
        self._find()
        if self.complete:
            say(f"{plural(len(self.complete), 'block')} found in {self.out}")
        missing = [block for block in range(self.blocks) if block not in self.complete]

        def attempt(block: int) -> bool:
            because = self._attempt(block)
            if because is not None:
                say(f"block {block + 1} does not count: {because}")
            return because is None

        repeat.until_valid(missing, attempt, extra=self.blocks)

    def order(self, block: int) -> list[int]:
        """Return the order of the variants in a block."""
        order = list(range(len(self.loaded)))
        random.Random(f"{self.first} {block}").shuffle(order)  # noqa: S311 - no secret
        return order

    def remove_unfinished(self, *, only_empty: bool = False) -> None:
        """Remove an interrupted block: the machine may change before its other variants run."""
        for place in self.out.glob(f"block-*{_UNFINISHED}"):
            if not only_empty or not any(place.iterdir()):
                shutil.rmtree(place, ignore_errors=True)

    def _attempt(self, block: int) -> str | None:
        """Run a block; return why it does not count, or None if it counts."""
        place = self.out / f"block-{block + 1}{_UNFINISHED}"
        place.mkdir()
        runs: dict[int, Run] = {}
        for index in self.order(block):
            with self._observed(block, place / f"variant-{index}") as options:
                run = repeat.uninterrupted(self.loaded[index], options)
            emulation = run.summary["emulation"]
            if code := emulation["exit_code"]:
                raise AirpathError(
                    f"a program failed with code {code} in block {block + 1}, variant {index}: "
                    f"{run.directory}"
                )
            if emulation["invalid_because"] is not None:
                self.invalid.append(_invalid(block, run, set_aside(place, self.out)))
                return emulation["invalid_because"]
            runs[index] = run
        with deferred():
            rename(place, self.out / f"block-{block + 1}")
            self.complete[block] = [self._measured(runs[index]) for index in sorted(runs)]
        return None

    @contextmanager
    def _observed(self, block: int, out: Path) -> Iterator[EmulationOptions]:
        """Return the options of one run."""
        done, total = self._runs, self.blocks * len(self.loaded)
        self._runs += 1

        def told(share: float) -> None:
            self._progress(min(1.0, (done + share) / total))

        told(0.0)
        has_programs = self.options.command or self.loaded[0].programs
        # Standard output is for the table. Run directories contain what known tools print.
        with Path(os.devnull).open("wb") as nowhere:
            yield replace(
                self.options,
                seed=self.first + block,
                out=out,
                output=nowhere.fileno(),
                progress=None if has_programs else told,
            )

    def _find(self) -> None:
        """Read the blocks that are already in the directory."""
        for place in invalid(self.out):
            for file in sorted(place.glob("variant-*")):
                run = Run.open(file)
                if "emulation" in run.summary and run.summary["emulation"]["invalid_because"]:
                    self.invalid.append(_invalid(run.seeds[0] - self.first, run, place))
        for block in range(self.blocks):
            place = self.out / f"block-{block + 1}"
            if place.is_dir():
                runs = [Run.open(place / f"variant-{index}") for index in range(len(self.loaded))]
                self.complete[block] = [self._measured(run) for run in runs]

    def _measured(self, run: Run) -> list[Measured]:
        flows = parse_toml(run.scenario_toml).get("flow", []) if self.options.flows else []
        return figures(run.summary, flows)


def _invalid(block: int, run: Run, place: Path) -> InvalidBlock:
    because = run.summary["emulation"]["invalid_because"] or ""
    return {"block": block, "because": because, "directory": place.name}


class FlowTable(TypedDict):
    """What is read here of a scenario's ``[[flow]]``, after its check."""

    id: str
    kind: str
    direction: NotRequired[str]
    start_s: NotRequired[float]
    size_bytes: NotRequired[int]
    streams: NotRequired[int]
    enabled: NotRequired[bool]


def figures(document: RunDocument, flows: Sequence[FlowTable]) -> list[Measured]:
    """Return the figures by which a run is compared.

    The scenario's ``flows`` have the figures by which simulations are compared
    (``crates/findings``, ``with_costs``). The figures of other connections and pings follow.
    """
    own = [_Own(name, flow) for flow in flows if flow.get("enabled", True) for name in _names(flow)]
    by_id = {str(flow["id"]): flow for flow in entries(document, "flows")}
    pings = {str(ping["id"]): ping for ping in entries(document, "pings")}
    run_s = float(document["run"]["duration_s"])
    found: list[Measured] = []
    for one in own:
        if one.name in pings:
            found += _of_ping(one.name, pings[one.name])
        found += one.measured(by_id.get(one.name), run_s)
    found += _together(own, by_id)
    names = {one.name for one in own}
    for name, flow in by_id.items():
        if name in names:
            found += _sent_again(name, flow)
    found += _of_programs([flow for name, flow in by_id.items() if name not in names])
    for name, ping in pings.items():
        if name not in names:
            found += _of_ping(name, ping)
    return found


class _Own:
    """A flow of the scenario."""

    def __init__(self, name: str, flow: FlowTable) -> None:
        self.name, self.kind = name, str(flow["kind"])
        self.direction = str(flow.get("direction", "down"))
        self._start_s, self._bytes = float(flow.get("start_s", 0)), flow.get("size_bytes")

    def measured(self, flow: Entry | None, run_s: float) -> list[Measured]:
        """Return the figures of this flow, except those of a ping."""
        found: list[Measured] = []
        if self.kind == "file":
            completed = flow["completed_s"] if flow else None
            if completed is not None:
                found.append((self.name, "completed_s", float(completed), True))
            else:
                active_s = max(0.0, run_s - self._start_s)
                delivered = (flow["bytes_delivered"] if flow else 0) / (self._bytes or 1)
                estimate = active_s / max(delivered, 1e-3)
                found.append((self.name, "completed_s", estimate, False))
        elif self.kind != "ping":
            found.append((self.name, "goodput_mbps", goodput(flow), True))
        return found + _delays(self.name, flow)


def goodput(flow: Entry | None) -> float:
    """Return the goodput of a flow; 0 if it never connected."""
    return float((flow and flow["goodput_mbps"]) or 0.0)


def _names(flow: FlowTable) -> list[str]:
    name, streams = str(flow["id"]), flow.get("streams")
    return [name] if streams is None else [f"{name}.{one + 1}" for one in range(streams)]


def _delays(name: str, flow: Entry | None) -> list[Measured]:
    there = [(key, flow.get(key)) for key in ("rtt_ms", "delay_ms")] if flow else []
    return [(name, f"{key}.p95", value["p95"], True) for key, value in there if value]


def _sent_again(name: str, flow: Entry) -> list[Measured]:
    """Return the share of a flow's segments that were retransmitted."""
    again = flow.get("retransmitted_segments")
    if again is None:
        return []
    return [(name, "retransmitted_share", again / max(flow["segments_sent"] or 0, 1), True)]


def _of_ping(name: str, ping: Entry) -> list[Measured]:
    # The last request may be neither answered nor lost when the run ends.
    answered = 1 - ping["lost"] / max(ping["sent"], 1) if ping.get("rtt_ms") else 0.0
    rtt = ping["rtt_ms"] or {}
    there = [(f"rtt_ms.{key}", rtt.get(key)) for key in ("p95", "p50", "mean")]
    return [
        (name, "answered_share", answered, True),
        *((name, figure, value, True) for figure, value in there if value is not None),
    ]


def _together(own: Sequence[_Own], by_id: Mapping[str, Entry]) -> list[Measured]:
    """Return the total goodput of each direction's bulk flows, and their Jain index."""
    bulk = {
        direction: [one.name for one in own if (one.kind, one.direction) == ("bulk", direction)]
        for direction in ("down", "up")
    }
    found: list[Measured] = []
    if any(len(names) > 1 for names in bulk.values()):
        for direction, names in bulk.items():
            if names:
                total = sum(goodput(by_id.get(name)) for name in names)
                found.append((direction, "goodput_mbps", total, True))
    for direction, names in bulk.items():
        rates = [by_id[name]["goodput_mbps"] for name in names if name in by_id]
        started = [rate for rate in rates if rate is not None]
        if len(started) > 1 and any(started):
            found.append((direction, "jain_index", jain_index(started), True))
    return found


def _of_programs(flows: Sequence[Entry]) -> list[Measured]:
    """Return the figures of the programs' connections that are large enough to compare."""
    least = _LEAST_BYTES * sum(flow["bytes_delivered"] for flow in flows)
    count: Counter[str] = Counter()
    found: list[Measured] = []
    for flow in flows:
        if flow["bytes_delivered"] <= least:
            continue
        name = without_client_port(str(flow["id"]))
        count[name] += 1
        if count[name] > 1:
            name = f"{name} ({count[name]})"
        found += [(name, "goodput_mbps", goodput(flow), True), *_delays(name, flow)]
        found += _sent_again(name, flow)
    return found
