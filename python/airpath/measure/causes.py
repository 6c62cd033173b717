"""From what interventions changed to causes.

Each cause has the treatment that removes it and the figure that must then change. An effect counts
if its 95 % interval excludes no effect and it is a seventh or more (`effects.MATERIAL`). What no
treatment can remove is left to the one diagnosis, from the features of the test's own flows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from airpath.base.text import milliseconds, percent, rate
from airpath.causes.describe import ADVICE
from airpath.causes.model import ANY, LIKELIER_THAN_NOT, answer
from airpath.causes.rank import OF_DELAY, OF_THE_TEST
from airpath.causes.suspect import alike
from airpath.causes.tools import Told, blame
from airpath.documents import Metric
from airpath.measure import placement
from airpath.measure.document import Mtu, Shown, UdpDocument
from airpath.measure.effects import MATERIAL, Effect
from airpath.measure.placement import Servers
from airpath.measure.plan import UDP_SHARES
from airpath.measure.shown import LIKELY, pooled

_UPLINK = (
    "The UE waits for a grant before it may send: shorten the period of scheduling requests, or "
    "use configured grants (TS 38.321 5.4.4, 5.8.2)."
)
_LIMITED = 0.5
"""A limit counts if it holds the sender back for at least half of its busy time."""


@dataclass(frozen=True)
class Sparse:
    """What probes on an otherwise idle path showed."""

    median_ms: float | None = None
    """Median RTT."""
    waits: tuple[float, float, float] | None = None
    """The smallest RTT, and the mean wait to the server and back, in ms."""
    least_ms: float | None = None
    """The smallest RTT."""
    lost: tuple[int, int, int] = (0, 0, 0)
    """Probes that were lost, the most of them in a row, and probes in all."""


@dataclass(frozen=True)
class Seen:
    """What a direction's phases showed; effects by treatment.

    ``rate``: the steady rate in Mb/s; ``goodput``: the rate over the whole phase; ``loss``: the
    share of segments that were retransmitted; ``loaded_ms``: the median RTT of probes beside the
    transfer; ``idle_ms``: the mean RTT of an otherwise idle path.
    """

    direction: str
    rate: Mapping[str, Effect]
    goodput: Mapping[str, Effect]
    loss: Mapping[str, Effect]
    loaded_ms: Mapping[str, Effect]
    idle_ms: Mapping[str, Effect]
    base_rate_mbps: float
    base_loss: float | None
    """None: the sender does not say."""
    base_loaded_ms: float | None
    limited: Mapping[str, float]
    """Shares of the busy time of ``base`` in which Linux's sender was limited (tcp_info)."""
    ramp_s: float | None
    """How long the rate of ``base`` grew; None: it had not converged when the phase ended."""
    phase_s: float
    """Length of the longest phase of ``base``, which shows the ramp."""
    missed_s: float = 0.0
    """Seconds at the steady rate that would carry what the ramp did not."""
    first_ms: float | None = None
    """RTT of the first probe after seconds of silence."""
    unopened: bool = False
    """Whether no TCP connection opened."""
    opened_ms: float | None = None
    """How long the first connection took to open, after whatever silence was before it."""
    sparse: Sparse = field(default_factory=Sparse)
    idle_out: float | None = 0.0
    """Which share of the effect of ``keep-alive`` is on the way to the server; None: unknown."""
    loaded_out: float | None = 0.0
    """Which share of the additional wait beside a transfer is on the way to the server; None:
    unknown."""
    servers: Servers = field(default_factory=Servers)
    """Limits of the server, and the other server."""
    congestion: str | None = None
    """The sender's congestion control in ``base``."""
    mtu: Mtu | None = None
    """Sizes that passed with DF set."""
    shown: Sequence[Shown] = ()
    """What captures of ``base`` at both ends show."""
    udp: Mapping[str, UdpDocument] = field(default_factory=dict)
    """UDP below, at and above the rate found, by treatment."""
    told: Told | None = None
    """What the seconds of the longest phase show, where there are no captures."""


@dataclass(frozen=True)
class Named:
    """A cause, what speaks for it, and what taking it away gained."""

    cause: str
    evidence: str
    effect: Effect | None
    metric: Metric
    advice: str | None
    likely: float | None = None
    """Probability of a cause that was inferred; None: it was not."""
    cost: float | None = None
    """Share of the rate, or of the round trip, that an inferred cause takes away."""

    @property
    def confidence(self) -> float:
        """Share of the blocks in which the treatment helped; 0 if the cause was only seen."""
        if self.effect is not None:
            return self.effect.agreeing
        return self.likely or 0.0


Rule = Callable[[Seen], "Named | None"]


def name(seen: Seen) -> list[Named]:
    """The causes of one direction, those with the largest effect first.

    Last, if no cause is about the rate, what no treatment can test, or the capacity of the path;
    neither if the intervals are inconclusive (`is_decided`).
    """
    found = [one for rule in RULES if (one := rule(seen)) is not None]
    if not is_decided(found):
        found = _together(found, _inferred(seen))
    found.sort(key=lambda one: (-_strength(one), -one.confidence))
    if not is_decided(found) and (full := _capacity(seen)) is not None:
        found.append(full)
    return found


def _together(found: Sequence[Named], inferred: Sequence[Named]) -> list[Named]:
    """Add what was inferred; a cause that was also seen has the name by which it was seen.

    From packets alone some look alike (`suspect.GROUPS`).
    """
    both = [
        next(
            (
                replace(one, likely=also.likely, cost=also.cost)
                for also in inferred
                if one.effect is None and also.cause in alike(one.cause)
            ),
            one,
        )
        for one in found
    ]
    known = {each for one in found for each in alike(one.cause)}
    return both + [one for one in inferred if one.cause not in known]


def is_decided(named: Sequence[Named]) -> bool:
    """Whether one of them says what limits the rate; others are about the RTT."""
    return any(not one.metric.startswith("rtt") for one in named)


def _strength(one: Named) -> float:
    """By which factor removing it changes its figure; 1 if that is not known."""
    if one.effect is not None:
        return max(one.effect.factor, 1 / max(one.effect.factor, 1e-9))
    return 1 / (1 - min(one.cost or 0.0, 0.99))


def _named(cause: str, evidence: str, effect: Effect | None, metric: Metric) -> Named:
    return Named(cause, evidence, effect, metric, ADVICE.get(cause, _UPLINK))


def _rates(effect: Effect) -> str:
    return f"{rate(effect.before)} → {rate(effect.after)}"


def _mtu(seen: Seen) -> Named | None:
    """Large segments do not arrive and nobody says so: smaller ones do, or transfers stay empty."""
    effect = seen.rate.get("mss-1000")
    mtu = seen.mtu
    if mtu is None or mtu["too_large_bytes"] is None or mtu["path_bytes"] is None:
        return None
    icmp = "a router reports it" if mtu["icmp"] else "no router reports it (ICMP)"
    said = f"IP packets of up to {mtu['path_bytes']} bytes pass with DF set, larger ones are lost, "
    said += f"and {icmp}. "
    if effect is not None and effect.raised:
        said += f"With smaller segments the rate rises: {_rates(effect)}."
        return _named("mtu", said, effect, "goodput_mbps")
    is_empty = seen.phase_s > 0 and seen.base_rate_mbps <= LEAST_RATE_MBPS
    if is_empty and not by_chance(seen, mtu["too_large_sent"]):
        said += "No transfer carries data, although connections open."
        return _named("mtu", said, None, "goodput_mbps")
    return None


def by_chance(seen: Seen, sent: int) -> bool:
    """Whether the losses of the idle path explain that none of ``sent`` packets arrived."""
    lost, _, probes = seen.sparse.lost
    return sent > 0 and lost > 0 and (lost / probes) ** sent > _CHANCE


def _blocked(seen: Seen) -> Named | None:
    """No TCP connection opens, though pings show that packets pass both ways."""
    if not seen.unopened or seen.sparse.median_ms is None or by_chance(seen, _SYNS):
        return None
    return Named(
        "one-way-path",
        f"The server's port answers no SYN, while its host answers pings within "
        f"{milliseconds(seen.sparse.median_ms)}.",
        None,
        "goodput_mbps",
        "Check whether a firewall drops TCP to this port, in the network or at the server's host.",
    )


def _window(seen: Seen) -> Named | None:
    """A larger window raises the rate, or the sender waits for one and several connections help.

    Where losses limit the rate, the window does not.
    """
    limit, share = max(seen.limited.items(), key=lambda one: one[1], default=("send_buffer", 0.0))
    window, several = seen.rate.get("window"), seen.rate.get("streams-4")
    waits = share >= _LIMITED
    if window is not None and window.raised and (waits or _loses_nothing(seen)):
        chosen, with_it = window, "a larger window"
    elif several is not None and several.raised and waits:
        chosen, with_it = several, "several connections"
    else:
        return None
    counts = f"{percent(share)} of the sender's busy time as limited by the"
    said = (
        f"counts {counts} {limit.replace('_', ' ')}"
        if share
        else "counts no time as limited by either buffer"
    )
    return _named(
        limit.replace("_", "-"),
        f"With {with_it} the rate rises: {_rates(chosen)}. The kernel {said}.",
        chosen,
        "goodput_mbps",
    )


def _placement(seen: Seen) -> Named | None:
    """Another server does better on the same radio."""
    found = placement.judge(seen.rate, seen.idle_ms, seen.servers)
    if found is None or found.verdict != "cause" or found.effect is None:
        return None
    return Named("placement", found.said, found.effect, found.metric, placement.ADVICE)


def _losses(seen: Seen) -> Named | None:
    """A congestion control that does not back off for losses gets more.

    Why segments are retransmitted is told by pacing, and by captures where they are surer.
    """
    effect = seen.rate.get("bbr")
    if (late := _reordered(seen)) is not None:
        return late
    if effect is None or not effect.raised or seen.base_loss is None or _loses_nothing(seen):
        return _lossy(seen) or _policed(seen) or _dropped(seen)
    paced = seen.loss.get("paced")
    if paced is None:
        return _lossy(seen)
    below, lowered = seen.udp.get("udp-50"), paced.lowered
    lower = f"Pacing below the rate changes that from {percent(paced.before)} to "
    lower += percent(paced.after)
    if below is not None and below["sent"] * seen.base_loss >= _EXPECTED_LOST:
        # Half the rate is below that of a policer whose burst 85 % still exceed.
        lowered = below["lost_share"] < _STILL_LOST * seen.base_loss
        lower = f"UDP at half the rate loses {percent(below['lost_share'])} of its datagrams"
    cause = "policer" if lowered else "random-loss"
    rises = f"With BBR the rate rises: {_rates(effect)}."
    if (other := _surer(seen, cause, effect, rises)) is not None:
        return other
    likely = _likely(seen)
    if likely and max(likely.get(one, 0.0) for one in alike(cause)) < LIKELY:
        return None
    why = (
        "excess traffic is dropped, not queued"
        if lowered
        else "losses persist below the rate, so no queue or policer causes them"
    )
    return _named(
        cause,
        f"{percent(seen.base_loss)} of the segments are retransmitted. {lower}: {why}. {rises}",
        effect,
        "goodput_mbps",
    )


def _likely(seen: Seen) -> dict[str, float]:
    """Probabilities of causes by the captures, without those that lie in the test."""
    every = pooled(seen.shown).items()
    return {cause: sure for cause, sure in every if cause not in (ANY, *OF_THE_TEST)}


def _surer(seen: Seen, cause: str, effect: Effect, rises: str) -> Named | None:
    """Another cause than the one that a treatment suggests, if captures make it likely."""
    every = _likely(seen).items()
    likely = {each: sure for each, sure in every if not _is_contradicted(seen, each)}
    first = max(likely, key=lambda one: likely[one], default=cause)
    if first in alike(cause) or likely[first] < LIKELIER_THAN_NOT:
        return None
    for one in _described(seen, first, likely[first]):
        return replace(one, evidence=f"{one.evidence} {rises}", effect=effect)
    return None


def _lossy(seen: Seen) -> Named | None:
    """Probes are lost though nothing else is sent, one here and one there."""
    lost, longest, sent = seen.sparse.lost
    what, why = "probes", "while nothing else is sent"
    below = seen.udp.get("udp-50")
    if below is not None and below["sent"] > sent:
        lost, longest, sent = below["lost"], below["longest_burst"], below["sent"]
        what, why = "UDP datagrams", "at half the rate"
    if lost < _LEAST_LOST or lost < _IDLE_LOSS * sent or longest > max(1, lost // 3):
        return None
    return _named(
        "random-loss",
        f"{lost} of {sent} {what} are lost {why}, {longest} in a row at most. No queue "
        "overflows at that load.",
        None,
        "retransmitted_share",
    )


def _reordered(seen: Seen) -> Named | None:
    """Datagrams overtake each other, few are lost, and TCP retransmits what is only late."""
    calm = [seen.udp[one] for one in ("udp-50", "udp-95") if one in seen.udp]
    reordered, sent = sum(one["reordered"] for one in calm), sum(one["sent"] for one in calm)
    lost = sum(one["lost"] for one in calm) / max(1, sent)
    if seen.base_loss is None:
        return None
    if reordered < _LEAST_LOST or seen.base_loss <= max(_LEAST_LOSS, lost / _STILL_LOST):
        return None
    if _capacity(seen) is not None:
        # Linux adapts to reordering (tcp_max_reordering), and it costs nothing here.
        return None
    several = [seen.rate[one] for one in ("bbr", "streams-4") if one in seen.rate]
    best = max((one for one in several if one.raised), key=lambda one: one.factor, default=None)
    more = "" if best is None else f" With {best.treatment} the rate rises: {_rates(best)}."
    return _named(
        "reordering",
        f"{percent(reordered / sent)} of the UDP datagrams at or below the rate arrive out of "
        f"order (RFC 4737) and {percent(lost)} are lost, but TCP retransmits "
        f"{percent(seen.base_loss)} of its segments: it mistakes reordering for loss.{more}",
        best,
        "goodput_mbps",
    )


def _dropped(seen: Seen) -> Named | None:
    """UDP above the rate is lost and what arrives did not wait; below the rate nothing is lost."""
    below, at, above = (seen.udp.get(one) for one in UDP_SHARES)
    if below is None or at is None or above is None:
        return None
    if seen.base_loss is None or seen.base_loss < _POLICED_LOSS:
        return None
    if above["lost_share"] < _EXCESS_LOST or below["lost_share"] > above["lost_share"] / 10:
        return None
    waits = [one["delay_ms"].get("p95", 0.0) for one in (below, at, above)]
    if waits[2] > max(waits[:2]) + _LEAST_WAIT_MS:
        return None
    return _named(
        "policer",
        f"UDP at 115 % of the rate loses {percent(above['lost_share'])} and the rest waits no "
        f"longer than below the rate ({milliseconds(waits[2])}, {milliseconds(waits[0])} at "
        f"p95); at half the rate {percent(below['lost_share'])} are lost. TCP retransmits "
        f"{percent(seen.base_loss)}: what is above the rate is dropped, not queued.",
        None,
        "retransmitted_share",
    )


def _policed(seen: Seen) -> Named | None:
    """Excess traffic is lost and nothing waits: the bottleneck has no queue."""
    paced = seen.loss.get("paced")
    if paced is None or not paced.lowered or (seen.base_loss or 0.0) < _POLICED_LOSS:
        return None
    if seen.shown:
        # Captures show losses and waits in more detail.
        return None
    if seen.congestion == "bbr":
        # BBR keeps queues short itself, and loses packets where it probes for more bandwidth.
        return None
    least_ms = seen.sparse.least_ms
    if seen.base_loaded_ms is None or least_ms is None or seen.base_loss is None:
        return None
    # Not the usual RTT: a UE that sends all the time does not wait for grants.
    if seen.base_loaded_ms > _NO_QUEUE * least_ms:
        return None
    trips = f"{milliseconds(seen.base_loaded_ms)}, {milliseconds(least_ms)}"
    return _named(
        "policer",
        f"{percent(seen.base_loss)} of the segments are retransmitted at "
        f"{rate(seen.base_rate_mbps)} and {percent(paced.after)} below, but round trips are as "
        f"short as on the idle path ({trips}): what is above the rate is dropped, not queued.",
        None,
        "retransmitted_share",
    )


def _slow_start(seen: Seen) -> Named | None:
    """The rate grows slowly at first, without losses, and another treatment gets there sooner."""
    window = seen.rate.get("window")
    if not _loses_nothing(seen) or (window is not None and window.raised):
        return None
    if max(seen.limited.values(), default=0.0) >= _LIMITED:
        return None
    found = [seen.goodput[one] for one in ("bbr", "streams-4") if one in seen.goodput]
    best = max(found, key=lambda one: one.factor, default=None)
    if best is None or not best.raised:
        return None
    later = seen.rate.get(best.treatment)
    factor = 1.0 if later is None else later.factor
    if seen.ramp_s is not None and best.factor < (1 + MATERIAL) * factor:
        # The steady rate gains as much: something else limits one connection.
        return None
    ended = "does not end" if seen.ramp_s is None else f"ends after {seen.ramp_s:.1f} s"
    with_it = "BBR" if best.treatment == "bbr" else "several connections"
    rises = f"With {with_it} the rate of the whole test rises: {_rates(best)}."
    return _surer(seen, "slow-start-exit", best, rises) or _named(
        "slow-start-exit",
        f"The rate grows slowly although nothing is lost: its growth {ended} in tests of "
        f"{seen.phase_s:.0f} s. {rises}",
        best,
        "goodput_mbps",
    )


def _bufferbloat(seen: Seen) -> Named | None:
    """Pacing below the rate empties a queue that the transfer fills, or its acknowledgements do."""
    loaded, paced = seen.loaded_ms.get("paced"), seen.rate.get("paced")
    if loaded is None or paced is None or not loaded.lowered or loaded.high > _ONE_BDP:
        return None
    if loaded.before - loaded.after < _LEAST_QUEUE_MS:
        return None
    acknowledgements, where = (
        False,
        _NO_DIRECTION.format("it may also be the direction of the acknowledgements"),
    )
    if seen.loaded_out is not None:
        acknowledgements = (seen.loaded_out > 0.5) == (seen.direction == "down")
        way = "the acknowledgements" if acknowledgements else "the data"
        where = f"The wait is in the direction of {way}."
    return _named(
        "ack-starvation" if acknowledgements else "bufferbloat",
        f"During a transfer probes take {milliseconds(loaded.before)}; with the transfer paced "
        f"below the rate, {milliseconds(loaded.after)}. {where}",
        loaded,
        "rtt_ms.p50",
    )


def _sleep(seen: Seen) -> Named | None:
    """Datagrams every 20 ms keep the UE awake or its grants coming, and round trips fall."""
    effect = seen.idle_ms.get("keep-alive")
    if effect is None or not effect.lowered or effect.before - effect.after < _LEAST_WAIT_MS:
        return _cycle(seen)
    outward, where = (
        False,
        _NO_DIRECTION.format("the wait may also be for uplink grants (uplink-access)"),
    )
    if seen.idle_out is not None:
        outward = seen.idle_out > 0.5
        way = "on the way to the server" if outward else "on the way back"
        where = f"Most of the difference is {way}."
    return _named(
        "uplink-access" if outward else "drx",
        f"On an idle path probes take {milliseconds(effect.before)}; while datagrams every 20 ms "
        f"keep the UE awake, {milliseconds(effect.after)}. {where}",
        effect,
        "rtt_ms.mean",
    )


def _cycle(seen: Seen) -> Named | None:
    """Packets wait on an idle path, and datagrams every 20 ms do not change that.

    If a paced transfer does, the UE sleeps or loses its grants sooner than datagrams come. If it
    does not, something holds packets all the time; what it does to acknowledgements is a cause.
    """
    if seen.sparse.waits is None:
        return None
    least, out, back = seen.sparse.waits
    floors = (_USUAL_ACCESS_MS, _LEAST_WAIT_MS)
    long = [
        wait >= max(floor, _LONG_WAIT * least)
        for wait, floor in zip((out, back), floors, strict=True)
    ]
    if not any(long):
        return None
    outward = long[0] and (out > back or not long[1])
    cause, way, wait = ("uplink-access", "to the server", out) if outward else ("drx", "back", back)
    said = (
        f"On an idle path packets wait {milliseconds(wait)} on average on the way {way}; the "
        f"smallest round trip takes {milliseconds(least)}. "
    )
    paced, idle = seen.loaded_ms.get("paced"), seen.idle_ms.get("keep-alive")
    if paced is None or idle is None or idle.before - paced.after >= wait / 2:
        beside = (
            ""
            if paced is None
            else f" During a paced transfer the round trip takes {milliseconds(paced.after)}."
        )
        said += (
            "Datagrams every 20 ms do not change that: the UE falls asleep again in less than 20 "
            f"ms.{beside}"
        )
        return _named(cause, said, None, "rtt_ms.mean")
    if outward != (seen.direction == "down"):
        # The data's direction: a path whose delay varies, which no setting removes.
        return None
    said += (
        f"During a paced transfer round trips take {milliseconds(paced.after)}: something "
        "holds acknowledgements and releases them together."
    )
    return _named("ack-batching", said, None, "rtt_ms.mean")


def _promotion(seen: Seen) -> Named | None:
    """The first packet after silence waits for the RRC connection."""
    opened_ms = seen.opened_ms
    if opened_ms is not None and opened_ms >= _SYN_AGAIN_MS:
        opened_ms = None
    for first_ms, what in (
        (seen.first_ms, "The first probe after seconds of silence takes"),
        (opened_ms, "Opening the first connection took"),
    ):
        if first_ms is None or seen.sparse.median_ms is None:
            continue
        if first_ms >= max(2 * seen.sparse.median_ms, seen.sparse.median_ms + _LEAST_PROMOTION_MS):
            return _named(
                "rrc-promotion",
                f"{what} {milliseconds(first_ms)}, later round trips take "
                f"{milliseconds(seen.sparse.median_ms)}.",
                None,
                "rtt_ms.p50",
            )
    return None


def _inferred(seen: Seen) -> list[Named]:
    """What the one diagnosis infers from the transfers' packets, or else from their seconds."""
    if not seen.shown:
        return _told(seen)
    likely = answer(pooled(seen.shown)).causes
    kept = [
        one for one in likely if one[0] not in OF_THE_TEST and not _is_contradicted(seen, one[0])
    ]
    return [one for cause, sure in kept for one in _described(seen, cause, sure)]


def _is_contradicted(seen: Seen, cause: str) -> bool:
    """Whether a treatment shows that a cause, which captures make likely, cannot be it.

    Below the rate a policer and a short queue drop nothing, and a lossy link drops as before. A UE
    that sleeps lets the probes of an idle path wait.
    """
    if cause == "drx":
        awake, least = seen.idle_ms.get("keep-alive"), seen.sparse.least_ms
        return awake is not None and least is not None and awake.before - least < _LEAST_WAIT_MS
    paced = seen.loss.get("paced")
    if paced is None:
        return False
    if cause in ("policer", "short-queue"):
        return paced.factor > _STILL_LOST
    return cause in ("random-loss", "radio-loss") and paced.high < _STILL_LOST / 10


def leaning(seen: Seen) -> list[tuple[str, float]]:
    """The likeliest causes where captures show that something unknown costs a seventh."""
    if not seen.shown:
        return []
    every = [one for one in answer(pooled(seen.shown)).leaning if one[0] not in OF_THE_TEST]
    return every[:_LIKELIEST]


def _described(seen: Seen, cause: str, sure: float) -> list[Named]:
    """A cause in the words of the capture that makes it likeliest."""
    showing = [
        (one["probabilities"][cause], each)
        for one in seen.shown
        for each in one["causes"]
        if each["cause"] == cause
    ]
    if not showing:
        return []
    _, words = max(showing, key=lambda one: one[0])
    costs = [each["cost"] for _, each in showing if each["cost"] is not None]
    return [
        Named(
            cause,
            f"{words['evidence']} This is inferred from the transfers' packets.",
            None,
            "rtt_ms.p50" if cause in OF_DELAY else "goodput_mbps",
            words["advice"],
            sure,
            sum(costs) / len(costs) if costs else None,
        )
    ]


def _told(seen: Seen) -> list[Named]:
    """What the seconds of the longest transfer show, of causes that no treatment removes."""
    if seen.told is None:
        return []
    return [
        Named(
            one.cause,
            f"{one.evidence} No treatment can remove this cause, so it is inferred.",
            None,
            "goodput_mbps",
            one.advice,
            one.confidence,
            one.cost,
        )
        for one in blame(seen.told).suspects
        if one.cause in WITHOUT_TREATMENT and (one.confidence or 0.0) >= LIKELIER_THAN_NOT
    ][:1]


def _capacity(seen: Seen) -> Named | None:
    """Nothing raises the rate, and the intervals leave no room for it: the path is full."""
    tried = [
        seen.rate[one]
        for one in ("streams-4", "bbr", "reno", "cubic", "window")
        if one in seen.rate
    ]
    if not tried or any(one.high >= _LEAVES_OPEN for one in tried):
        return None
    most = max(tried, key=lambda one: one.factor)
    limit = seen.servers.limit_mbps
    full = "the slowest link of the path is full"
    if limit is not None and seen.base_rate_mbps >= placement.AT_LIMIT * limit:
        full = f"the server's own limit (--most-rate, {rate(limit)}) is reached"
    gain = percent(max(_LEAST_GAIN, max(one.high for one in tried) - 1))
    names = [one.treatment for one in tried]
    who = f"None of {', '.join(names)} raises" if len(names) > 1 else f"{names[0]} does not raise"
    return Named(
        CAPACITY,
        f"{who} the rate of {rate(seen.base_rate_mbps)} by more than {gain} (95 %; the best, "
        f"{most.treatment}: {_rates(most)}): {full}.",
        None,
        "goodput_mbps",
        None,
    )


def _loses_nothing(seen: Seen) -> bool:
    """Whether the sender says that it retransmits almost nothing."""
    return seen.base_loss is not None and seen.base_loss <= _LEAST_LOSS


_NO_DIRECTION = "Round trips alone do not show the direction of the wait: {}."
CAPACITY = "link-capacity"
"""Says what bounds the rate; it is no cause."""
_LIKELIEST = 3
WITHOUT_TREATMENT = frozenset(
    {"handover", "radio-link-failure", "stalling-host", "reordering", "ack-starvation"}
)
"""Causes that the end hosts cannot remove."""
_LEAVES_OPEN = 1 + 2 * MATERIAL
"""An interval that reaches this far may hide a gain of twice what counts."""
_LEAST_GAIN = 0.001
"""Smaller gains are said as this: no measurement of a rate is finer."""
_LONG_WAIT = 1 / 4
"""Share of the smallest round trip."""
_USUAL_ACCESS_MS = 15.0
"""Scheduling requests each 20 ms wait 10 ms on average; HARQ adds to that."""
_LEAST_WAIT_MS = 1.0
"""Two slots of NR at 30 kHz: below that a host's own wake-ups show."""
_LEAST_QUEUE_MS = 30.0
"""Tests of bufferbloat give their best grades up to this; base stations with CoDel keep 25 ms."""
_ONE_BDP = 0.5
"""A full queue of one BDP, as a buffer for one connection needs it, doubles the round trip."""
_LEAST_LOST, _IDLE_LOSS = 3, 0.02
"""An idle path loses nothing; fewer may have been lost by chance."""
_POLICED_LOSS, _NO_QUEUE = 0.002, 1.1
_STILL_LOST = 0.5
"""Share of the losses that a path still has below the rate: half of them is more than chance."""
_LEAST_LOSS = 1e-4
_EXPECTED_LOST = 10
"""With so many losses to expect, none by chance is one case in 20,000 (Poisson)."""
_EXCESS_LOST = 0.05
"""A seventh of what is sent at 115 % does not fit; the rate drifts by less than the rest."""
_LEAST_PROMOTION_MS = 50.0
_SYN_AGAIN_MS = 1000.0
"""A connection that took longer to open may have lost its SYN (RFC 6298 2.1)."""
_CHANCE = 0.05
"""What is likelier than this may be chance (5 %, as for intervals)."""
_SYNS = 4
"""SYNs within 10 s: at 0, 1, 3 and 7 s (RFC 6298)."""
LEAST_RATE_MBPS = 0.01
"""A phase that carried less counts as carrying this much."""
RULES: Sequence[Rule] = (
    _blocked, _mtu, _placement, _window, _losses, _slow_start, _bufferbloat, _sleep, _promotion,
)  # fmt: skip
