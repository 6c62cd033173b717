"""Write the traces of a run into a directory, with a scenario that replays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.text import percent, short
from airpath.errors import InputError
from airpath.export import replayed, traces
from airpath.export.recorded import DIRECTIONS, Recorded
from airpath.runs.directories import PendingDirectory

if TYPE_CHECKING:
    from airpath.runs.results import Run

SCENARIO = "scenario.toml"
IDLE = 0.05
"""Share of intervals without a queue from which a trace understates what the cell can carry."""


@dataclass(frozen=True)
class Written:
    """Files of an export."""

    directory: Path
    files: list[str]
    said: list[str]
    """Commands that use the files, and warnings."""


def mahimahi(run: Run, out: Path, ue: str | None = None, seed: int | None = None) -> Written:
    """Write ``UE.down`` and ``UE.up`` for mm-link, and a scenario that replays both."""
    recorded = Recorded(run, ue, seed)
    files, said = {}, []
    for direction in DIRECTIONS:
        text = _opportunities(recorded, direction, traces.MAHIMAHI_BYTES)
        if text is not None:
            files[direction] = (f"{recorded.ue}.{direction}", text)
            said += _idle(recorded, direction)
    if not files:
        raise InputError("nothing on this path limits the rate, so there is no trace to write")
    names = {direction: name for direction, (name, _) in files.items()}
    texts = {
        **dict(files.values()),
        SCENARIO: replayed.with_traces(recorded, names),
    }
    return Written(_write(out, texts), list(texts), [*_command(recorded, out, names), *said])


def cellreplay(
    run: Run, light: Run, out: Path, ue: str | None = None, seed: int | None = None
) -> Written:
    """Write the four traces of mm-cellular, from a saturated run and from one with short trains."""
    heavy = Recorded(run, ue, seed)
    probed = Recorded(light, heavy.ue)
    if not heavy.has_radio:
        raise InputError("CellReplay's traces are recorded at a radio, and this run has none")
    texts, said = {}, []
    for direction in DIRECTIONS:
        text = _opportunities(heavy, direction, traces.CELLREPLAY_BYTES)
        texts[f"{direction}-heavy-pdo"] = text or ""
        lines = traces.trains(probed.passed(direction), probed.path_delay_ms(direction))
        texts[f"{direction}-delay-light-pdo"] = traces.train_text(lines)
        said += _idle(heavy, direction)
    names = ("up-delay-light-pdo", "down-delay-light-pdo", "up-heavy-pdo", "down-heavy-pdo")
    command = f"mm-cellular 5 {' '.join(str(out / name) for name in names)}"
    return Written(_write(out, texts), list(texts), [command, *said])


def radio(run: Run, out: Path, ue: str | None = None, seed: int | None = None) -> Written:
    """Write the SINR of each UE as airpath's own radio traces, and a scenario that replays them."""
    first = Recorded(run, ue or Recorded.first_ue(run), seed)
    if not first.has_radio:
        raise InputError("this run has no radio")
    texts, files, said = {}, {}, []
    for name in first.ues if ue is None else [ue]:
        recorded = Recorded(run, name, seed)
        for direction in DIRECTIONS:
            times_s, sinr_db = recorded.sinr(direction)
            if times_s.size:
                files[name, direction] = f"{name}.{direction}.csv"
                texts[files[name, direction]] = traces.sinr_text(times_s, sinr_db)
            else:
                said.append(
                    f"{name}: no block was sent {direction}; the scenario's channel is kept there"
                )
    if not files:
        raise InputError("no block was sent, so there is no SINR to write")
    texts[SCENARIO] = replayed.with_channels(first, files)
    return Written(_write(out, texts), list(texts), [f"airpath run {out / SCENARIO}", *said])


def _opportunities(recorded: Recorded, direction: str, size: int) -> str | None:
    """Return the text of a trace; None if nothing limits this direction."""
    duration_ms = 1e3 * recorded.duration_s
    if recorded.has_radio:
        passed = recorded.passed(direction)
        stamps = traces.opportunities(passed.left_ms, passed.bytes, duration_ms, size)
    else:
        rows = recorded.slowest(direction)
        if rows is None:
            return None
        end_ms = rows["time_ns"].to_numpy() / 1e6
        stamps = traces.spread(end_ms, rows["capacity_mbps"].to_numpy(), duration_ms, size)
    return traces.mahimahi_text(stamps)


def _idle(recorded: Recorded, direction: str) -> list[str]:
    """Return a warning if a trace understates what the cell could have carried."""
    idle = recorded.idle_share(direction)
    if not recorded.has_radio or idle <= IDLE:
        return []
    return [
        f"{direction}: nothing waited for the radio in {percent(idle)} of the time; the trace then "
        "shows what was sent, not what the cell could have carried"
    ]


def _command(recorded: Recorded, out: Path, names: Mapping[str, str]) -> list[str]:
    said = [f"airpath run {out / SCENARIO}"]
    if len(names) == len(DIRECTIONS):
        round_trip = sum(
            recorded.path_delay_ms(direction) + recorded.base_delay_ms(direction)
            for direction in DIRECTIONS
        )
        # mm-delay takes whole milliseconds, for each direction.
        delay = short(round(round_trip / 2))
        up, down = (out / names[direction] for direction in ("up", "down"))
        said.append(f"mm-delay {delay} mm-link {up} {down}")
    return said


def _write(out: Path, texts: Mapping[str, str]) -> Path:
    with PendingDirectory(out, numbered=False) as pending:
        for name, text in texts.items():
            (pending.path / name).write_text(text, encoding="utf-8")
        return pending.commit()
