"""Draws runs with none, one or two planted causes, with what each of them costs.

Hosts, flows beside and the path itself are drawn wider than tests need them: what is learned must
not depend on how clean a simulation is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from airpath.causes.rank import OF_DELAY
from airpath.causes.suspect import alike
from airpath.readers.flows import LEAST_BYTES
from airpath_dev.planted.bases import ALL, CELLULAR, RADIO, Known, codel, plain_queue
from airpath_dev.planted.draft import Draft, Pick, Table, scaled, stage
from airpath_dev.planted.draw import figures
from airpath_dev.planted.plants import PLANTS, Edit, Plant, insert, of_flows, ping

_LONG = (
    "handover",
    "radio-link-failure",
    "congestion-control",
    "slow-start-exit",
    "test-too-short",
)
"""Causes whose transfers are not shortened: they show later, or are about short tests."""
COSTS = 0.14
"""The least cost of a cause, as a logarithm: a seventh."""
FREE = 0.05
"""The most that a cause costs that is taken to be none."""
_OF_FILES = ("rrc-promotion", "application-limited")
"""Causes of which some are about files."""
_TRIES = 6
_PROFILES = (*3 * ("linux-6.18",), "linux-6.1", "linux-5.10", "linux-4.19")
_FULL = {"wire": 0.8, "lte": 0.8, "nr": 0.8, "3g": 0.6}
_SECOND = 0.15
_TALKS = 12
_MOST_MEGABITS = 600
"""Of a run over a wire."""
_HEALTHY = 0.25
_NAMED, _NAMED_HARD = 0.95, 0.75
_HARD_ONES = 9
"""Every ninth case has a cause that is hard to infer."""
_HARD = ("bufferbloat", "policer", "send-buffer", "shaper", "short-queue", "stalling-host",
         "test-too-short")  # fmt: skip
_SLOW_MBPS = 6.0
_SHORT = 0.2
"""Share of the cases with endless transfers in which they end soon instead."""
_LEAST_BURST_BYTES = 7_500
"""A shaper with a smaller bucket looks like a link with its rate: hosts send as much at once."""
TALK = "talk"
"""How the words of connections that say little begin."""


@dataclass(frozen=True)
class Drawn:
    """A run to capture. ``costs``: of each planted cause, as a logarithm; none if healthy."""

    text: str
    costs: dict[str, float]
    words: str
    up: bool


def draw(seed: int, number: int) -> Iterator[Drawn]:
    """One or more runs; the same ones for the same seed and number."""
    pick = Pick(f"airpath causes {seed} {number}")
    if number % _TALKS == 0:
        yield _talk(pick)
        return
    is_hard = number % _HARD_ONES == _HARD_ONES - 1
    plant = pick.choice(_PLANTS_HARD if is_hard else PLANTS_DRAWN)
    for _ in range(_TRIES):
        access = pick.choice(plant.into)
        well = _drawn(pick, access, plant, _NAMED_HARD if is_hard else _NAMED)
        if is_hard and access == "wire" and well.link["rate_mbps"] < _SLOW_MBPS:
            well.seconds = pick.log(5, 70)
        before = _figures(well)
        known = _known(before, well, access)
        if known is None:
            continue
        severity = pick.uniform(0.1, 1)
        base = well.copy()
        edit = plant.edit(pick, severity, well, known)
        ill = well.copy()
        edit(ill)
        transfers = len(well.transfers)
        beside = _beside(pick, well)
        starts = [pick.uniform(0, 1.5) if pick.chance(0.5) else 0.0 for _ in range(4)]
        for one in (base, well, ill):
            beside(one)
            _begin(one, starts)
        costs: dict[str, float] = {}
        shortage: dict[str, float] = {}
        plain = plant.cause not in _LONG and all(map(_is_plain, (base, well, ill)))
        if plain and pick.chance(_SHORT):
            shorten = _shortened(pick, known, as_files=pick.chance(0.5))
            rates = [_rate(_figures(one), transfers) for one in (base, ill)]
            for one in (base, well, ill):
                shorten(one)
            # Nothing tells a file from a test that somebody stopped, and for both it is true.
            shortage, costs = (
                _shortage(one, rate, transfers)
                for one, rate in zip((base, ill), rates, strict=True)
            )
        elif plant.cause in _OF_FILES:
            # The same file without the cause is the healthy one, and may be short.
            base, shortage = well, _shortage(well, known.rate_mbps, transfers)
            costs = dict(shortage) if plant.cause == "rrc-promotion" else {}
        gain = _cost(plant.cause, transfers, _figures(ill), _figures(well))
        if pick.chance(_HEALTHY):
            kind = "short" if shortage else "healthy"
            yield Drawn(base.text(), shortage, f"{kind}, {access}", base.up)
        if gain < COSTS or _is_traceless(plant, ill, access):
            continue
        words = (
            f"{plant.cause} ({plant.name}) {severity:.2f}, {access} {'up' if ill.up else 'down'}"
        )
        costs |= {plant.cause: gain}
        if len(costs) == 1 and pick.chance(_SECOND):
            both = _second(pick, plant, access, transfers, well, ill, known)
            if both is not None:
                yield both
                return
        yield Drawn(ill.text(), costs, words, ill.up)
        return


def _is_plain(draft: Draft) -> bool:
    """Whether there are transfers, and none has an end or pauses of its own."""
    ends = ("duration_s", "write_times_s")
    bulk = [one for one in draft.flows if one["kind"] == "bulk"]
    return bool(bulk) and not any(key in one for one in bulk for key in ends)


def _shortened(pick: Pick, known: Known, *, as_files: bool) -> Edit:
    """Let transfers end soon: tests that are stopped, or files."""
    seconds = pick.log(0.8, 5)

    def edit(draft: Draft) -> None:
        bulk = [one for one in draft.transfers if one["kind"] == "bulk"]
        for flow in bulk:
            if as_files:
                each = known.rate_mbps * 1e6 / 8 * seconds / len(bulk)
                flow.update(kind="file", size_bytes=round(max(3e4, each)))
            else:
                flow["duration_s"] = seconds
        if not as_files:
            draft.seconds = max(flow.get("start_s", 0.0) for flow in bulk) + seconds + 2

    return edit


def _shortage(short: Draft, long: float, transfers: int) -> dict[str, float]:
    """Cost of transfers that end before they reach the rate ``long`` in Mb/s."""
    rate = _rate(_figures(short), transfers)
    gain = math.log(long / rate) if long > 0 and rate > 0 else 0.0
    return {"test-too-short": gain} if gain >= COSTS else {}


def _rate(summary: Any, transfers: int) -> float:
    """Goodput of the first flows in Mb/s."""
    return sum(one["goodput_mbps"] or 0.0 for one in summary["flows"][:transfers])


def _is_traceless(plant: Plant, ill: Draft, access: str) -> bool:
    """Whether what is planted looks like a healthy path."""
    if plant.cause == "bufferbloat":
        return _known(_figures(ill), ill, access) is not None
    if plant.cause == "shaper":
        stages = [one for one in ill.there if one["stage"] == "shaper"]
        return any(one["burst_bytes"] < _LEAST_BURST_BYTES for one in stages)
    return False


def _talk(pick: Pick) -> Drawn:
    """Connections that say little, or end soon, over a path without a fault: nothing is wrong."""
    access = pick.choice(ALL)
    draft = _drawn(pick, access, PLANTS_DRAWN[0])
    beside = _beside(pick, draft)
    draft.flows = []
    count = pick.choice([1, 1, 2, 3, 6])
    for _ in range(count):
        kind = pick.choices(["once", "now and then", "back and forth"], [4, 4, 2])[0]
        # A larger file that is alone is a short transfer.
        most = LEAST_BYTES if count == 1 and kind == "once" else 3e6
        size = round(pick.log(3e4, most))
        flow: Table = {"kind": "file", "profile": "linux-6.18", "size_bytes": size}
        flow["direction"] = pick.choice(["up", "down"])
        flow["start_s"] = pick.uniform(0, 2)
        if kind != "once":
            at, times = 0.0, []
            while at < draft.seconds:
                times.append(f"{at:.2f}")
                at += pick.log(0.02, 2) if kind == "now and then" else pick.log(0.01, 0.3)
            flow["write_times_s"] = ", ".join(times)
        draft.flows.append(flow)
    beside(draft)
    return Drawn(draft.text(), {}, f"{TALK}, {access}", draft.up)


def _second(
    pick: Pick,
    plant: Plant,
    access: str,
    transfers: int,
    well: Draft,
    ill: Draft,
    known: Known,
) -> Drawn | None:
    """A second cause in the same run, if both cost something there."""
    choice = [
        one
        for one in PLANTS_DRAWN
        if one.cause in _ADDED and access in one.into and one.cause != plant.cause
    ]
    other = pick.choice(choice)
    edit = other.edit(pick, pick.uniform(0.3, 1), well.copy(), known)
    both, alone = ill.copy(), well.copy()
    try:
        edit(both)
        edit(alone)
        figures_of_both = _figures(both)
        costs = {
            plant.cause: _cost(plant.cause, transfers, figures_of_both, _figures(alone)),
            other.cause: _cost(other.cause, transfers, figures_of_both, _figures(ill)),
        }
    except (KeyError, StopIteration, ValueError):
        return None
    if min(costs.values()) < COSTS:
        return None
    return Drawn(both.text(), costs, f"{plant.cause} and {other.cause}, {access}", both.up)


_ADDED = (
    "random-loss",
    "policer",
    "stalling-host",
    "ack-batching",
    "receive-window",
    "reordering",
    "shaper",
    "handover",
)


def _figures(draft: Draft) -> Any:
    import airpath
    from airpath import _core

    scenario = _core.parse(draft.text(), "causes", None, [])
    return airpath.run(scenario, seed=draft.seed, explain="off").summary


def _cost(cause: str, transfers: int, ill: Any, well: Any) -> float:
    """The largest gain of a figure of the first flows, as a logarithm.

    That is one of rates, or of round trips for a cause of delay. What beside them is slower, or
    waits behind the queue that a short test does not get rid of, is no cost of theirs.
    """
    names = {"sum", "least"}
    for one in ill["flows"][:transfers]:
        names.add(f"{one['id']} completed")
        if alike(cause)[0] in OF_DELAY:
            names.add(f"{one['id']} rtt")
    before, after = figures(ill), figures(well)
    gains = [math.log(after[name] / before[name]) for name in names & before.keys() & after.keys()]
    return max(gains, default=0.0)


def _known(summary: Any, draft: Draft, access: str) -> Known | None:
    """What a healthy run shows: it fills its path and its packets do not wait for long."""
    direction = "up" if draft.up else "down"
    busy = [
        one["utilisation"] or 0.0
        for one in summary["links"]
        if one["id"].startswith(direction)
        or (one["id"].startswith("radio.") and one["id"].endswith(direction))
    ]
    rtts = [one["rtt_ms"] for one in summary["flows"] if one["rtt_ms"] and one["kind"] == "bulk"]
    if not rtts or not busy:
        return None
    shortest = min(one["min"] for one in rtts)
    longest = max(one["p95"] for one in rtts)
    late = 0.0 if access == "wire" else 250.0 if access == "3g" else 50.0
    if max(busy) < _FULL[access] - (0.2 if draft.up and access == "3g" else 0.0):
        return None
    if longest > 2.7 * shortest + late:
        return None
    rate = sum(one["goodput_mbps"] or 0.0 for one in summary["flows"] if one["kind"] == "bulk")
    return Known(rate, shortest)


def _drawn(pick: Pick, access: str, plant: Plant, named: float = _NAMED) -> Draft:
    """A path and its transfers. ``named``: the share of runs with a profile of a kernel."""
    up = pick.chance(0.35) if plant.up is None else plant.up
    draft = Draft(seconds=pick.log(5, 12), up=up, seed=pick.randrange(1, 1000))
    one_way = pick.log(2, 90) if access == "wire" else pick.uniform(2, 40)
    draft.there = [stage("delay", delay_ms=one_way * pick.uniform(0.6, 1.4))]
    draft.back = [stage("delay", delay_ms=one_way * pick.uniform(0.6, 1.4))]
    if access == "wire":
        link = stage("link", rate_mbps=pick.log(1.5, 150))
        if pick.chance(0.45):
            codel(link, pick.choice([5.0, 13.0, max(5.0, 0.4 * one_way)]))
        else:
            bdp = link["rate_mbps"] * 1e6 / 8 * 2 * one_way / 1e3
            link["queue_bytes"] = round(max(12_000, bdp * pick.uniform(0.5, 1.4)))
        if link["rate_mbps"] < 12 and pick.chance(0.5):
            draft.seconds = pick.log(12, 45)
        draft.seconds = min(draft.seconds, max(4.0, _MOST_MEGABITS / link["rate_mbps"]))
        draft.there.insert(pick.randrange(2), link)
    else:
        _cell(pick, access, draft)
    control = pick.choice(["cubic", "cubic", "cubic", "reno", "bbr"])
    flow: Table = {"kind": "bulk", "congestion": control}
    if pick.chance(named):
        flow["profile"] = pick.choice(_PROFILES)
    flow |= _receive_offload(pick)
    for _ in range(min(max(plant.flows, 3), pick.choice([1, 1, 1, 2, 3, 4]))):
        draft.flows.append(dict(flow))
    return draft


def _receive_offload(pick: Pick) -> Table:
    """Receive offload (GRO): segments that arrive together are acknowledged together."""
    if pick.chance(0.3):
        return {}
    longest = pick.choice([0.0, pick.log(0.01, 0.3)])
    return {"aggregation.max_bytes": 65_536, "aggregation.time_ms": longest}


def _cell(pick: Pick, access: str, draft: Draft) -> None:
    radio = draft.table("")
    if access == "3g":
        radio["preset"] = pick.choice(["umts-hspa", "umts-hspa-plus", "evdo-rev-a"])
    elif access == "lte":
        radio["preset"] = pick.choice(["lte-5", "lte-10", "lte-20", "lte-tdd-20"])
    else:
        radio["preset"] = pick.choice(["nr-fdd-20", "nr-n78"])
        cell = draft.table("cell")
        wide = [10, 20, 20, 40] if radio["preset"] == "nr-n78" else [5, 10, 20]
        cell["bandwidth_mhz"] = pick.choice(wide)
        if radio["preset"] == "nr-n78":
            cell |= {"layers_down": 2, "layers_up": 1}
    if access != "3g":
        draft.table("channel")["sinr_db"] = pick.uniform(2, 20)
    radio["any_timer_value"] = True
    draft.table("rrc")["enabled"] = False
    for name in ("rlc", "rlc_up"):
        if pick.chance(0.7):
            codel(draft.table(name), 60.0 if access == "3g" else 25.0)


def _beside(pick: Pick, draft: Draft) -> Edit:
    """What is beside a transfer in the field: pings, chats, and hosts that are not exact."""
    flows: list[Table] = []
    if pick.chance(0.4):
        flows.append(ping(pick.choice(["up", "down"]), pick.uniform(100, 1000)))
    if pick.chance(0.4):
        times = ", ".join(f"{at + pick.uniform(0, 0.9):.2f}" for at in range(int(draft.seconds)))
        chat = {"kind": "file", "profile": "linux-6.18", "size_bytes": round(pick.log(300, 60_000))}
        flows.append(chat | {"write_times_s": times, "direction": pick.choice(["up", "down"])})
    if pick.chance(0.3):
        # The control connection of iperf3.
        talk = {"kind": "file", "profile": "linux-6.18", "size_bytes": round(pick.log(200, 4000))}
        talk |= {"write_times_s": f"0, 0.1, {draft.seconds - 0.2:.2f}", "start_s": 0}
        flows.append(talk | {"direction": pick.choice(["up", "down"])})
    if pick.chance(0.1):
        flows.append({"kind": "udp", "rate_mbps": pick.log(0.02, 0.2)})
    stages: list[tuple[bool, bool, Table]] = []
    for there in (True, False):
        if pick.chance(0.85):
            jitter = stage("delay", delay_ms=0, jitter_ms=pick.log(0.02, 0.6))
            jitter["jitter_distribution"] = "exponential"
            stages.append((there, pick.chance(0.5), jitter))
        if pick.chance(0.25):
            host = stage("host", stalls="at-random", stall_ms=pick.log(0.3, 3), ring_packets=4000)
            host["stall_mean_between_ms"] = pick.log(60, 600)
            stages.append((there, pick.chance(0.5), host))

    def edit(draft: Draft) -> None:
        draft.flows += [dict(one) for one in flows]
        for there, first, what in stages:
            way = draft.there if there else draft.back
            way.insert(0 if first else len(way), dict(what))

    return edit


def _begin(draft: Draft, starts: list[float]) -> None:
    """Transfers begin some time after the capture does, where no time is given."""
    for flow, start in zip(draft.transfers, starts, strict=False):
        if start < draft.seconds / 2:
            flow.setdefault("start_s", start)


def _window(_: Pick, severity: float, __: Draft, known: Known) -> Edit:
    bytes_ = round(max(3000, known.bdp_bytes * scaled(severity, 1.0, 0.1)))
    return of_flows(window_bytes=bytes_)


def _tuned(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    """A small maximum in tcp_rmem, or SO_RCVBUF: the window grows up to it."""
    bytes_ = round(max(6000, known.bdp_bytes * scaled(severity, 1.0, 0.1)))
    first = min(bytes_, round(pick.choice([14_600, 29_200, 64_240, 65_483])))
    keys = {"receive_buffer_bytes": bytes_, "buffer.initial_receive_bytes": first}
    return of_flows(**keys, **{"buffer.receive_tuning": pick.chance(0.5)})


def _fixed(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    _count_memory(well)
    bytes_ = round(max(5000, known.bdp_bytes * scaled(severity, 1.2, 0.1)))
    return of_flows(send_buffer_bytes=bytes_)


def _given(pick: Pick, _: float, well: Draft, __: Known) -> Edit:
    """A send buffer that an application sets (SO_SNDBUF), whatever the path holds."""
    _count_memory(well)
    return of_flows(send_buffer_bytes=round(pick.log(4600, 4e5)), **{"buffer.send_factor": 0})


def _count_memory(well: Draft) -> None:
    """A kernel fills a small send buffer in pieces (ADR 32); of older ones the profile has none."""
    for flow in well.transfers:
        flow["profile"] = _PROFILES[0]


def _stopped_reader(pick: Pick, _: float, well: Draft, known: Known) -> Edit:
    for flow in well.transfers:
        flow["receive_buffer_bytes"] = round(max(60e3, 3 * known.bdp_bytes))
    return of_flows(read_rate_mbps=known.rate_mbps * pick.log(0.005, 0.2))


def _paced(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    """An application that writes blocks at a constant rate, as iperf3 -b does."""
    rate = known.rate_mbps * 1e6 / 8 * (0.8 - 0.7 * severity)
    block = pick.choice([131_072, 131_072, pick.log(3e3, 3e5), pick.log(1e5, 3e6)])
    interval = max(0.004, block / rate)
    count = max(2, int(0.9 * well.seconds / interval))
    uneven = pick.choice([0.0, pick.uniform(0, 0.9)])
    flow: Table = {"kind": "file", "congestion": pick.choice(["cubic", "cubic", "reno", "bbr"])}
    flow |= {"profile": pick.choice(_PROFILES), "size_bytes": round(rate * interval * count)}
    well.flows = [flow | _receive_offload(pick)]
    late = [uneven * pick.random() if uneven else 0.0 for _ in range(count)]
    times = ", ".join(f"{(at + more) * interval:.4f}" for at, more in enumerate(late))
    return of_flows(write_times_s=times)


def _periodic(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    window = known.bdp_bytes / 1448
    worst = min(0.1, max(0.002, 40 / window**2))
    return insert(pick, True, stage("loss", period=round(1 / scaled(severity, 1e-5, worst))))


def _regular_stalls(pick: Pick, severity: float, _: Draft, __: Known) -> Edit:
    stall = scaled(severity, 10, 500)
    host = stage(
        "host", stalls="at-intervals", stall_ms=stall, stall_period_ms=stall * pick.log(2.5, 20)
    )
    host["ring_packets"] = round(pick.choice([128, 512, 1024, 4096]))
    return insert(pick, True, host)


def _large_burst(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    shaper = stage("shaper", rate_mbps=known.rate_mbps * (0.95 - 0.8 * severity))
    shaper["burst_bytes"] = round(pick.log(30e3, 1e6))
    shaper["queue_bytes"] = round(max(15e3, known.bdp_bytes * pick.log(0.3, 3)))
    return insert(pick, True, shaper)


def _long_stalls(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    host = stage("host", stalls="at-random", stall_ms=scaled(severity, 20, 1000))
    host["stall_mean_between_ms"] = pick.log(300, 3000)
    host["ring_packets"] = round(max(30, known.bdp_bytes / 1500 * pick.log(0.3, 8)))
    return insert(pick, True, host)


def _deep_queue(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    plain_queue(well, max(30_000, known.bdp_bytes))
    bytes_ = max(30_000, known.bdp_bytes) * scaled(severity, 3, 100)
    return lambda draft: plain_queue(draft, bytes_)


def _jitter_out_of_order(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    jitter = stage("delay", delay_ms=0, jitter_ms=scaled(severity, 0.5, 10))
    jitter["jitter_distribution"] = pick.choice(["exponential", "half-normal"])
    well.there.insert(0 if well.up else len(well.there), jitter)

    def edit(draft: Draft) -> None:
        next(one for one in draft.there if "jitter_ms" in one)["keep_order"] = False

    return edit


def _small_batches(pick: Pick, severity: float, _: Draft, __: Known) -> Edit:
    return insert(pick, False, stage("batch", interval_ms=scaled(severity, 3, 40)))


def _packet_ms(known: Known) -> float:
    """Time of a full packet at the path's rate."""
    return 12.0 / known.rate_mbps


def _ring(known: Known) -> int:
    return round(max(30.0, known.bdp_bytes / 1500))


def _processor(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    each = _packet_ms(known) / (1 - 0.8 * severity)
    return insert(pick, True, stage("host", processing_ms=each, ring_packets=_ring(known)))


def _shared_processor(_: Pick, severity: float, __: Draft, known: Known) -> Edit:
    each = _packet_ms(known) / (1.2 - 0.9 * severity)
    host = stage("host", processing_ms=each, cpu="upf", ring_packets=_ring(known))

    def edit(draft: Draft) -> None:
        draft.there.insert(0, dict(host))
        draft.back.append(dict(host))

    return edit


def _moderation(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    coalescing = max(1.0, known.rtt_ms * scaled(severity, 0.1, 3))
    return insert(pick, pick.chance(0.5), stage("host", coalescing_ms=coalescing))


def _aggregation(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    timer = max(1.0, known.rtt_ms * scaled(severity, 0.1, 3))
    return insert(pick, False, stage("modem", timer_ms=timer, block_packets=1000))


def _ceiling(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    packets = 1 + pick.randrange(4)
    modem = stage("modem", timer_ms=min(1.2, 0.05 * known.rtt_ms), block_bytes=1500 * packets)
    modem["transfer_ms"] = packets * _packet_ms(known) / (1 - 0.8 * severity)
    return insert(pick, True, modem | {"ring_packets": _ring(known)})


def _offload(pick: Pick, severity: float, _: Draft, __: Known) -> Edit:
    if pick.chance(0.4):
        return insert(pick, True, stage("offload", fault="checksum"))
    joined = stage("offload", fault="joined", join_ms=scaled(severity, 0.01, 1))
    return lambda draft: draft.there.insert(0, joined)


def _vpn(pick: Pick, _: float, well: Draft, __: Known) -> Edit:
    bytes_ = pick.choice([1280, 1380, 1420, 1440])
    enter = stage("vpn", end="enter", outer_ip=pick.choice(["ipv4", "ipv6"]), mtu_bytes=9000)
    well.there.insert(0, enter)
    well.there.append(stage("vpn", end="leave"))
    return lambda draft: draft.there[0].update(mtu_bytes=bytes_)


def _pdcp_gap(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    end = "_up" if well.up else ""
    well.table(f"link_adaptation{end}").update(
        outer_loop_step_db=0, fixed_bler=pick.log(0.0003, 0.003)
    )
    well.table(f"harq{end}")["max_transmissions"] = 1
    well.table(f"rlc{end}").update(mode="um", t_reordering_ms=10)
    wait = round(scaled(severity, 60, 3000))
    return lambda draft: draft.table(f"rlc{end}").update(t_reordering_ms=wait)


def _requests(pick: Pick, severity: float, _: Draft, __: Known) -> Edit:
    if pick.chance(0.5):
        period = 80 if severity > 0.5 else 40
        return lambda draft: draft.table("sr").update(period_ms=period)
    share = 0.3 + 0.6 * severity
    return lambda draft: draft.table("sr").update(miss_probability=share)


def _sleeps(pick: Pick, severity: float, _: Draft, __: Known) -> Edit:
    cycle = [20, 40, 80, 160, 320][min(4, int(severity * 5))]
    drx = {"enabled": True, "long_cycle_ms": cycle, "on_duration_ms": pick.choice([5, 10])}
    drx["inactivity_ms"] = pick.choice([1, 2, 5, 10])
    return lambda draft: draft.table("drx").update(drx)


def _stopped_test(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    control = pick.choice(["cubic", "cubic", "reno", "bbr"])
    well.flows = [{"kind": "bulk", "profile": "linux-6.18", "congestion": control}]
    well.seconds = 20
    rounds = pick.uniform(4, 20) + 40 * (1 - severity)
    short = min(3.0, max(0.2, known.rtt_ms / 1e3 * rounds))

    def edit(draft: Draft) -> None:
        draft.seconds = short + 3
        draft.flows[0]["duration_s"] = short

    return edit


def _connects_first(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    bytes_ = round(max(20e3, known.rate_mbps * 1e6 / 8 * pick.log(0.05, 2)))
    well.flows = [{"kind": "file", "profile": "linux-6.18", "size_bytes": bytes_}]
    rrc = {"enabled": True, "setup_ms": round(scaled(severity, 100, 900))}
    if not well.table("")["preset"].startswith("umts"):
        rrc["inactivity_ms"] = 500
    return lambda draft: draft.table("rrc").update(rrc)


def _burst_at_start(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    well.flows = [{"kind": "bulk", "profile": "linux-6.18", "congestion": "cubic"}]
    well.seconds = pick.uniform(5, 9)
    begin = pick.uniform(0, 1)
    well.flows[0]["start_s"] = begin
    burst = {"kind": "udp", "rate_mbps": known.rate_mbps * pick.uniform(0.7, 1.3)}
    burst["start_s"] = begin + known.rtt_ms / 1e3 * pick.uniform(0.5, 4)
    burst["duration_s"] = pick.uniform(0.1, 0.2 + 0.4 * severity)
    return lambda draft: draft.flows.append(burst)


def _irregular(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    """Handovers at irregular times, to a neighbour and back."""
    edit = next(one for one in PLANTS if one.cause == "handover").edit(pick, severity, well, known)
    at_s, well.handovers = pick.uniform(0.5, 3), []
    for number in range(pick.randint(1, 6)):
        if at_s < well.seconds - 0.5:
            well.handovers.append({"at_s": at_s, "to": "one" if number % 2 else "two"})
        at_s += pick.log(0.8, 5)
    return edit


def _failures(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    """Radio link failures, rarer or more frequent than in ``PLANTS``."""
    edit = next(one for one in PLANTS if one.cause == "radio-link-failure").edit(
        pick, severity, well, known
    )
    end = "_up" if well.up else ""
    well.table(f"link_adaptation{end}")["fixed_bler_retransmission"] = pick.log(0.003, 0.03)
    return edit


def _cells(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    edit = next(one for one in PLANTS if one.cause == "handover").edit(pick, severity, well, known)
    every = pick.log(1.2, 6)
    for handover, at in zip(well.handovers, (0.5, 0.5 + every / 2), strict=True):
        handover.update(at_s=at + pick.uniform(0, 0.4), every_s=every)
    return edit


_OF_PINGS = ("one-way-path", "nat-binding", "drx", "uplink-access")
PLANTS_DRAWN: tuple[Plant, ...] = (
    *(one for one in PLANTS if one.cause not in _OF_PINGS and one.name != "datagrams"),
    Plant("uplink-access", CELLULAR, 2, None, _requests),
    Plant("drx", CELLULAR, 2, None, _sleeps),
    Plant("test-too-short", ALL, 1, None, _stopped_test, "stopped"),
    Plant("rrc-promotion", RADIO, 1, None, _connects_first, "file"),
    Plant("slow-start-exit", ALL, 1, None, _burst_at_start, "burst"),
    Plant("handover", CELLULAR, 2, None, _cells, "often"),
    Plant("handover", CELLULAR, 2, None, _irregular, "irregular"),
    Plant("radio-link-failure", CELLULAR, 2, None, _failures, "more"),
    Plant("random-loss", ALL, 3, None, _periodic, "periodic"),
    Plant("stalling-host", ALL, 3, None, _regular_stalls, "regular"),
    Plant("shaper", ALL, 3, None, _large_burst, "large burst"),
    Plant("stalling-host", ALL, 3, None, _long_stalls, "long"),
    Plant("bufferbloat", ALL, 3, None, _deep_queue, "deep"),
    Plant("reordering", ALL, 3, None, _jitter_out_of_order, "jitter"),
    Plant("receive-window", ALL, 1, None, _window, "window"),
    Plant("receive-window", ALL, 2, None, _tuned, "tuned"),
    Plant("send-buffer", ALL, 1, None, _fixed, "fixed"),
    Plant("send-buffer", ALL, 1, None, _given, "given"),
    Plant("ack-batching", ALL, 2, None, _small_batches, "short"),
    Plant("application-limited", ALL, 1, None, _stopped_reader, "stopped"),
    Plant("application-limited", ALL, 1, None, _paced, "paced"),
    Plant("host-processor", ALL, 3, None, _processor),
    Plant("host-processor", ALL, 2, None, _shared_processor, "shared"),
    Plant("interrupt-moderation", ALL, 3, None, _moderation),
    Plant("aggregation-timer", ALL, 3, None, _aggregation),
    Plant("modem-ceiling", ALL, 3, None, _ceiling),
    Plant("offload", ALL, 3, None, _offload),
    Plant("vpn", ALL, 3, None, _vpn),
    Plant("pdcp-gap", CELLULAR, 2, None, _pdcp_gap),
)
_PLANTS_HARD = tuple(one for one in PLANTS_DRAWN if one.cause in _HARD)
