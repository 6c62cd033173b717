"""How causes are planted: each as an edit of a scenario without it.

A larger ``severity`` (0 to 1) does more harm. A plant may also change the scenario that stays
without the cause, e.g. so that it sends pings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .bases import ALL, CELLULAR, RADIO, WIRE, Known, codel, plain_queue
from .draft import Draft, Pick, Table, scaled, stage

Edit = Callable[[Draft], None]


@dataclass(frozen=True)
class Plant:
    """What may be planted, and into what; ``up`` None: either way."""

    cause: str
    into: tuple[str, ...]
    flows: int
    up: bool | None
    edit: Callable[[Pick, float, Draft, Known], Edit]
    name: str = ""


def insert(pick: Pick, there: bool, what: Table) -> Edit:
    """Somewhere on the way of the data, or on the way back."""
    place = pick.random()

    def edit(draft: Draft) -> None:
        stages = draft.there if there else draft.back
        stages.insert(min(int(place * (len(stages) + 1)), len(stages)), dict(what))

    return edit


def of_flows(**keys: object) -> Edit:
    """Keys of all transfers."""

    def edit(draft: Draft) -> None:
        for flow in draft.transfers:
            flow.update(keys)

    return edit


def ping(direction: str, interval_ms: float) -> Table:
    """Pings."""
    return {"kind": "ping", "direction": direction, "interval_ms": interval_ms}


def _loss(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    window = known.bdp_bytes / 1448
    worst = min(0.1, max(0.002, 40 / window**2))
    return insert(pick, True, stage("loss", probability=scaled(severity, 1e-5, worst)))


def _bursts(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    window = known.bdp_bytes / 1448
    enter = scaled(severity, 1e-5, min(0.05, max(0.002, 40 / window**2)))
    lossy = stage("gilbert-elliott", good_to_bad=enter, bad_to_good=0.3, loss_bad=0.6)
    return insert(pick, True, lossy)


def _datagrams_lost(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    _stream(pick, well, known, "sender")
    return insert(pick, True, stage("loss", probability=0.1 + 0.6 * severity))


def _stream(pick: Pick, well: Draft, known: Known, opened_by: str) -> None:
    rate = known.rate_mbps * pick.uniform(0.1, 0.5)
    well.flows = [{"kind": "udp", "rate_mbps": rate, "opened_by": opened_by}]


def _policer(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    rate = known.rate_mbps * (1.15 - 0.95 * severity)
    return insert(
        pick, True, stage("policer", rate_mbps=rate, burst_bytes=round(pick.log(8e3, 60e3)))
    )


def _short_queue(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    plain_queue(well, max(30_000, known.bdp_bytes))
    bytes_ = known.bdp_bytes * scaled(severity, 0.6, 0.01)
    return lambda draft: plain_queue(draft, bytes_)


def _bufferbloat(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    plain_queue(well, max(30_000, known.bdp_bytes))
    bytes_ = max(30_000, known.bdp_bytes) * scaled(severity, 1.3, 20)
    return lambda draft: plain_queue(draft, bytes_)


def _reordering(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    jitter = stage(
        "delay",
        delay_ms=0,
        jitter_ms=max(0.1, known.rtt_ms * scaled(severity, 0.01, 0.5)),
        jitter_distribution=pick.choice(["exponential", "half-normal"]),
    )
    well.there.insert(0 if well.up else len(well.there), jitter)

    def edit(draft: Draft) -> None:
        next(one for one in draft.there if "jitter_ms" in one)["keep_order"] = False

    return edit


def _receive_window(_: Pick, severity: float, __: Draft, known: Known) -> Edit:
    bytes_ = round(max(3000, known.bdp_bytes * scaled(severity, 1.0, 0.1)))
    return of_flows(receive_buffer_bytes=bytes_, **{"buffer.initial_receive_bytes": 0})


def _send_buffer(_: Pick, severity: float, __: Draft, known: Known) -> Edit:
    bytes_ = round(max(5000, known.bdp_bytes * scaled(severity, 1.2, 0.1)))
    # A kernel is told a size only if it is not to let it grow.
    return of_flows(send_buffer_bytes=bytes_, **{"buffer.send_factor": 0})


def _slow_reader(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    for flow in well.transfers:
        flow["receive_buffer_bytes"] = round(max(60e3, 3 * known.bdp_bytes))
    return of_flows(read_rate_mbps=known.rate_mbps * (0.95 - 0.8 * severity))


def _pauses(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    size = round(known.rate_mbps * 1e6 / 8 * well.seconds * 0.3)
    well.flows = [_file(size)]
    gap = well.seconds * (0.04 + 0.16 * severity)
    times = ", ".join(f"{at * gap:.3f}" for at in range(2 + pick.randrange(2)))
    return of_flows(write_times_s=times)


def _file(bytes_: float) -> Table:
    return {"kind": "file", "profile": "linux-6.18", "size_bytes": round(bytes_), "start_s": 0.5}


def _cross_traffic(_: Pick, severity: float, __: Draft, known: Known) -> Edit:
    rate = known.rate_mbps * (0.1 + 0.8 * severity)
    return lambda draft: draft.flows.append({"kind": "udp", "rate_mbps": rate})


def _rivals(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    plain_queue(well, max(15_000, known.bdp_bytes * scaled(severity, 1.0, 0.3)))
    for flow in well.transfers:
        flow["congestion"] = "cubic"
    well.flows.insert(1, dict(well.flows[0]))
    well.seconds = 20
    control = pick.choice(["bbr", "bbr", "reno"])
    return lambda draft: draft.flows[1].update(congestion=control)


def _early_exit(_: Pick, severity: float, well: Draft, known: Known) -> Edit:
    well.flows = [{"kind": "bulk", "profile": "linux-6.18", "congestion": "cubic"}]
    well.flows[0]["slow_start"] = "none"
    well.seconds = 5
    jitter = stage("delay", delay_ms=0, jitter_ms=known.rtt_ms * (0.1 + 0.6 * severity))
    well.there.insert(0 if well.up else len(well.there), jitter)
    return of_flows(slow_start="hystart-6.14")


def _too_short(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    well.flows = [{"kind": "bulk", "profile": "linux-6.18", "congestion": "cubic"}]
    rounds = pick.uniform(10, 20) + 40 * (1 - severity)
    short = min(3.0, max(0.3, known.rtt_ms / 1e3 * rounds))
    well.seconds = 30

    def edit(draft: Draft) -> None:
        draft.seconds = short

    return edit


def _mtu(pick: Pick, _: float, __: Draft, ___: Known) -> Edit:
    bytes_ = round(pick.uniform(1280, 1490))
    if pick.chance(0.5):
        return insert(pick, True, stage("mtu", mtu_bytes=bytes_))

    def edit(draft: Draft) -> None:
        draft.there.insert(0, stage("gtpu", end="enter", mtu_bytes=bytes_, too_big="drop"))
        draft.there.append(stage("gtpu", end="leave"))

    return edit


def _fragmentation(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    control = pick.choice(["cubic", "reno"])
    of_flows(congestion=control)(well)
    window = max(6, known.bdp_bytes / 1448)
    share = min(0.03, scaled(severity, 0.2, 1.2) / window**2)
    well.there[0:0] = [
        stage("gtpu", end="enter", mtu_bytes=9000),
        stage("loss", probability=share),
        stage("gtpu", end="leave"),
    ]
    bytes_ = round(pick.uniform(576, 700))
    return lambda draft: draft.there[0].update(mtu_bytes=bytes_)


def middlebox(kind: str, timeout_s: float, forgets: bool) -> Edit:
    """A NAT or a firewall, at the server's end of the way back."""

    def edit(draft: Draft) -> None:
        out = stage(kind, timeout_s=timeout_s)
        if forgets:
            out["inward_refreshes"] = False
        draft.back.append(out)
        draft.there.insert(0, stage(kind))

    return edit


def _one_way(pick: Pick, _: float, well: Draft, known: Known) -> Edit:
    kind = pick.randrange(3)
    if kind == 0:
        _stream(pick, well, known, "sender")
    elif kind == 1:
        well.flows = [ping("down", 200)]
    return middlebox("firewall", 100, False)


def _binding(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    _stream(pick, well, known, "receiver")
    return middlebox("nat", well.seconds * (0.9 - 0.8 * severity), True)


def _stalls(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    stall = known.rtt_ms * scaled(severity, 0.05, 3)
    ring = round(max(8, known.bdp_bytes / 1500 * pick.log(0.1, 1)))
    host = stage("host", stalls="at-random", stall_ms=stall)
    host |= {"stall_mean_between_ms": max(50.0, 8 * stall), "ring_packets": ring}
    return insert(pick, True, host)


def _starved(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    rate = known.rate_mbps / scaled(severity, 30, 300)
    packets = pick.choice([10, 30, 60])
    return insert(pick, False, stage("link", rate_mbps=rate, queue_packets=packets))


def _batches(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    interval = max(3.0, known.rtt_ms * scaled(severity, 0.2, 5))
    return insert(pick, False, stage("batch", interval_ms=interval))


def _shaper(pick: Pick, severity: float, _: Draft, known: Known) -> Edit:
    shaper = stage(
        "shaper",
        rate_mbps=known.rate_mbps * (0.98 - 0.8 * severity),
        burst_bytes=round(pick.log(5e3, 50e3)),
    )
    codel(shaper, max(5.0, known.rtt_ms / 5))
    return insert(pick, True, shaper)


def _drx(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    well.flows = [ping("down", pick.uniform(200, 700))]
    cycle = [20, 40, 80, 160, 320][min(4, int(severity * 5))]
    drx = {"enabled": True, "long_cycle_ms": cycle, "on_duration_ms": 5}
    drx["inactivity_ms"] = pick.choice([1, 5, 10])
    return lambda draft: draft.table("drx").update(drx)


def _requests(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    well.flows = [ping("up", pick.uniform(150, 500))]
    if pick.chance(0.5):
        period = 80 if severity > 0.5 else 40
        return lambda draft: draft.table("sr").update(period_ms=period)
    share = 0.3 + 0.6 * severity
    return lambda draft: draft.table("sr").update(miss_probability=share)


def _radio_loss(_: Pick, severity: float, well: Draft, __: Known) -> Edit:
    share = scaled(severity, 0.0003, 0.1)
    end = "_up" if well.up else ""
    well.table(f"link_adaptation{end}").update(outer_loop_step_db=0, fixed_bler=0)

    def edit(draft: Draft) -> None:
        draft.table(f"rlc{end}")["mode"] = "um"
        draft.table(f"harq{end}")["max_transmissions"] = 1
        draft.table(f"link_adaptation{end}")["fixed_bler"] = share

    return edit


def _promotion(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    setup = round(20 + 300 * severity)
    if pick.chance(0.5):
        well.flows = [_file(known.rate_mbps * 1e6 / 8 * scaled(1 - severity, 0.05, 2))]
        setup = round(pick.log(80, 500))
    else:
        well.flows = [ping("up", pick.uniform(800, 1500))]
    rrc = {"enabled": True, "setup_ms": setup}
    if not well.table("")["preset"].startswith("umts"):
        rrc["inactivity_ms"] = 500
    return lambda draft: draft.table("rrc").update(rrc)


def _handover(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    well.table("")["name"] = "one"
    other: Table = {"name": "two", "preset": well.table("")["preset"]}
    for key in ("bandwidth_mhz", "layers_down", "layers_up"):
        if key in well.table("cell"):
            other[f"cell.{key}"] = well.table("cell")[key]
    well.neighbours = [other]
    every = pick.uniform(3, 5)
    well.handovers = [
        {"at_s": 1.5, "every_s": every, "to": "two"},
        {"at_s": 1.5 + every / 2, "every_s": every, "to": "one"},
    ]
    none = pick.chance(0.5)
    well.table("mobility").update(interruption_ms=5, link_failure=False)
    mobility: Table = {"interruption_ms": round(scaled(severity, 60, 1500)), "t304_ms": 2000}
    if none:
        mobility["forwarding"] = "none"
    return lambda draft: draft.table("mobility").update(mobility)


def _failure(_: Pick, severity: float, well: Draft, __: Known) -> Edit:
    end = "_up" if well.up else ""
    well.table(f"harq{end}")["max_transmissions"] = 2
    well.table(f"link_adaptation{end}").update(fixed_bler=0.05, fixed_bler_retransmission=0.01)
    well.table("mobility")["link_failure"] = False
    again = round(scaled(severity, 50, 3000))

    def edit(draft: Draft) -> None:
        draft.table(f"rlc{end}")["max_retx_threshold"] = 1
        draft.table("mobility").update(link_failure=True, reestablishment_ms=again)

    return edit


DOWN = False
PLANTS = (
    Plant("random-loss", ALL, 3, None, _loss),
    Plant("random-loss", ALL, 3, None, _bursts, "bursts"),
    Plant("random-loss", ALL, 1, None, _datagrams_lost, "datagrams"),
    Plant("radio-loss", CELLULAR, 2, None, _radio_loss),
    Plant("policer", ALL, 3, None, _policer),
    Plant("short-queue", ALL, 2, None, _short_queue),
    Plant("shaper", ALL, 3, None, _shaper),
    Plant("bufferbloat", ALL, 3, None, _bufferbloat),
    Plant("reordering", ALL, 3, None, _reordering),
    Plant("receive-window", ALL, 1, None, _receive_window),
    Plant("send-buffer", ALL, 1, None, _send_buffer),
    Plant("application-limited", ALL, 1, None, _slow_reader, "reader"),
    Plant("application-limited", ALL, 1, None, _pauses, "writer"),
    Plant("cross-traffic", ALL, 2, None, _cross_traffic),
    Plant("congestion-control", WIRE, 1, None, _rivals),
    Plant("slow-start-exit", ALL, 1, None, _early_exit),
    Plant("test-too-short", ALL, 1, None, _too_short),
    Plant("mtu", ALL, 3, None, _mtu),
    Plant("fragmentation", ALL, 1, None, _fragmentation),
    Plant("one-way-path", ALL, 1, DOWN, _one_way),
    Plant("nat-binding", ALL, 1, DOWN, _binding),
    Plant("stalling-host", ALL, 3, None, _stalls),
    Plant("ack-starvation", WIRE, 3, None, _starved),
    Plant("ack-batching", ALL, 3, None, _batches),
    Plant("drx", CELLULAR, 1, DOWN, _drx),
    Plant("uplink-access", CELLULAR, 1, True, _requests),
    Plant("rrc-promotion", RADIO, 1, None, _promotion),
    Plant("handover", CELLULAR, 2, None, _handover),
    Plant("radio-link-failure", CELLULAR, 2, None, _failure),
)
