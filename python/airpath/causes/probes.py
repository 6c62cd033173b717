"""Causes that pings, datagrams and connections without data reveal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from airpath.base.text import short
from airpath.causes.suspect import Suspect
from airpath.documents import FlowReport, Packets, TcpReport
from airpath.fitting.observed import NS, Bools, Floats, numbers
from airpath.fitting.series import MS
from airpath.readers.flows import ENDS, tcp_of

_LEAST_PINGS = 8
"""Pings below which their distribution says nothing."""
_SPREAD_MS = 18.0
"""Round trips of an idle radio differ by 17 ms at most."""
_CYCLES_MS = (20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2560)
"""DRX cycles and periods of scheduling requests (TS 36.331 and TS 38.331 6.3.2)."""
_IN_STEP_MS, _IN_STEP = 3.0, 3
"""Standard deviation of replies in step with a cycle, and how much more requests have."""
_LEAST_LOST, _SOME_LOST = 0.02, 3
"""Share and count of losses below which they may be chance."""
_LEAST_DATAGRAMS = 50
"""Datagrams below which one that is missing is no less than the least share reported."""
_MOST_FRAMES = 5
"""Bound: packets that are named as examples."""
_SILENT_S = 3.0
"""A connection that is silent for the first time-out (RFC 2988 2.1) waits for something."""
_LIKELY = 0.95
"""Unit of cost: all but a twentieth, for the client may have nothing to send."""
_OF_A_PING = 0.9
"""Definition: the range of round trips leaves out a tenth at each end."""
_MOST_COST = 0.9
"""Bound: of what a delay costs."""
_NO_TRIP_MS = 1.0
"""Round trips below it are those of the side where the host replies."""
_EVENLY, _QUARTER = 0.15, 0.25
"""Who waits for a cycle waits any part of it: the median is within, and a quarter of the values,
where half are expected, in the middle half of the range."""
_WHOLE_CYCLE = 1.25
"""A range without a tenth at each end is four fifths of a cycle."""
_NONE = 1e-9
"""Bound: 0 has no logarithm, and divides nothing."""
_AROUND_MS = 1000
"""Definition: a ping is beside a transfer if it is less apart."""
_BYTE, _WORD = 256, 1 << 16
"""Unit: numbers of pings have 16 bits, in either order of bytes (RFC 792)."""
_REGULAR_MS, _REGULAR, _NEAR = 0.5, 0.95, 0.2
"""A regular sender's interval, and how many of its datagrams are how near to a multiple of it."""
_NEXT_TO_MS = 1
"""Definition: an end that replies faster is next to the capture, and so are all round trips."""
_FULL_BYTES = 1000
"""Payload that an MTU may hold back; RFC 8200 5 promises 1280 bytes."""
_SLOW, _SLOW_MS = 4, 150
"""A handshake took long if it took so many later round trips, and so much longer, as a UE's
connection does (TS 38.331 5.3.3)."""
_LEAST_S = 0.05
"""Bound: of a connection's length."""
_FIRST_TIMEOUTS_MS = (1000, 3000)
"""How long a SYN waits for its answer, and then twice that (RFC 6298 2.1, and RFC 2988 2.1)."""
TOO_LARGE = ("fragmentation-needed", "packet-too-big")


def pings(
    flow: FlowReport, packets: Packets, loads: list[tuple[float, float]]
) -> Iterator[Suspect]:
    """Causes that a ping shows: replies that never arrive, or arrive late on an idle path.

    ``loads`` has the beginning and end of each transfer, in milliseconds.
    """
    # ICMP errors are no pings, whoever sends them.
    is_echo = ~np.isnan(numbers(packets["echo"]))
    at = numbers(packets["time_ns"])[is_echo] / NS
    asked = numbers(packets["from_client"])[is_echo] > 0
    frames = [int(one) for one in numbers(packets["frame"])[is_echo][:_MOST_FRAMES]]
    if asked.sum() < _LEAST_PINGS:
        return
    own = (flow["id"],)
    if flow["icmp_errors"] and not (~asked).any():
        yield from _refused(flow, int(asked.sum()), tuple(frames))
        return
    if not (~asked).any():
        yield Suspect(
            "one-way-path",
            1.0,
            f"None of {int(asked.sum())} pings had a reply.",
            own,
            tuple(frames),
            advice="Open the firewall for packets from outside, or let the UE send first.",
        )
        return
    trips = _round_trips(numbers(packets["echo"])[is_echo], at, asked)
    quiet = [one for one in trips if not _loaded(one[0], loads)]
    # What a transfer's own queue drops is not lost by chance.
    alone = sum(not _loaded(float(when), loads) for when in at[asked])
    # What an error answered, or what may be answered after the capture's end, is not lost.
    echoes = flow["icmp"]
    alone -= echoes["refused"] + echoes["outstanding"] if echoes else 0
    lost = 1 - len(quiet) / max(1, alone)
    if lost >= _LEAST_LOST and alone * lost >= _SOME_LOST:
        beside = " sent while no transfer ran" if loads else ""
        yield Suspect(
            "random-loss",
            lost,
            f"{lost:.1%} of {alone} pings{beside} had no reply.",
            own,
            advice=(
                "Send pings of another size and at another rate, and check whether the lost "
                "share changes."
            ),
        )
    if len(quiet) < _LEAST_PINGS:
        return
    values = np.array([trip for _, trip, _ in quiet])
    asked_at = np.array([when for when, _, _ in quiet])
    cycle = _cycle(asked_at, asked_at + values)
    what = "Round trips of pings"
    if float(np.quantile(values, _OF_A_PING)) < _NO_TRIP_MS:
        # Who asks is on the other side: what its requests waited shows in their regularity.
        values = _lateness(*(np.array([one[which] for one in quiet]) for which in (0, 2)))
        what = "The delays of ping requests, which are sent at regular times,"
    low, middle, high = (
        float(one) for one in np.quantile(values, [1 - _OF_A_PING, 0.5, _OF_A_PING])
    )
    base = max(float(values.min()), 1.0)
    # Who waits for a cycle waits any part of it, and whose scheduling requests are missed waits
    # several: not a few of them alone, nor all or nothing, as who connects first does.
    place = (middle - low) / max(high - low, _NONE)
    inside = np.abs(values - (low + high) / 2) < (high - low) * _QUARTER
    evenly = _EVENLY <= place <= 1 - _EVENLY and inside.mean() >= _QUARTER
    if high - low >= _SPREAD_MS and (evenly or cycle):
        about = cycle or _WHOLE_CYCLE * (high - low)
        how = "evenly" if evenly else "periodically"
        yield Suspect(
            "drx",
            min(_MOST_COST, (high - low) / (high - low + base)),
            f"{what} on an idle path vary {how} by {short(high - low)} ms (from {short(low)} "
            f"to {short(high)} ms): they wait for something that recurs about every "
            f"{short(about)} ms.",
            own,
            advice="Compare with the UE's timers: DRX cycle, period of scheduling requests.",
        )


def _cycle(asked: Floats, answered: Floats) -> float | None:
    """The cycle with which replies are in step, and requests are not; None: there is none."""
    # What is in step with a cycle is so with its parts, too.
    for cycle in reversed(_CYCLES_MS):
        before, after = (_apart_ms(one, cycle) for one in (asked, answered))
        if after <= _IN_STEP_MS and before >= _IN_STEP * after:
            return float(cycle)
    return None


def _apart_ms(at: Floats, cycle: float) -> float:
    """The standard deviation of times on a circle (Mardia 1972)."""
    mean = abs(np.exp(2j * np.pi * at / cycle).mean())
    return float(cycle / (2 * np.pi) * np.sqrt(max(0.0, -2 * np.log(max(mean, _NONE)))))


def _refused(flow: FlowReport, count: int, frames: tuple[int, ...]) -> Iterator[Suspect]:
    """Pings answered by ICMP errors: the path is not silent. Only an MTU error is a cause."""
    errors = flow["icmp_errors"]
    kinds = [kind for kind in TOO_LARGE if errors and kind in errors["messages"]]
    if not errors or not kinds:
        return
    takes = f", and gives the next hop's MTU as {errors['mtu_bytes']} bytes"
    yield Suspect(
        "mtu",
        1.0,
        f"None of {count} pings had a reply: {errors['from']} reports that they are too large "
        f"({' and '.join(kinds)}){takes if errors['mtu_bytes'] else ''}.",
        (flow["id"],),
        frames,
        advice="Clamp the MSS to this hop's MTU, or raise that MTU.",
    )


def _round_trips(echo: Floats, at: Floats, asked: Bools) -> list[tuple[float, float, float]]:
    """The requests that were answered: time, round trip and number of each."""
    waiting: dict[float, float] = {}
    trips = []
    for when, is_request, number in zip(at, asked, echo, strict=True):
        if is_request:
            waiting[number] = float(when)
        elif number in waiting:
            begin = waiting.pop(number)
            trips.append((begin, float(when) - begin, float(number)))
    return trips


def _loaded(when: float, loads: list[tuple[float, float]]) -> bool:
    return any(begin - _AROUND_MS <= when <= end + _AROUND_MS for begin, end in loads)


def _lateness(at: Floats, number: Floats) -> Floats:
    """By how much each request came later than a regular sender's, at least.

    Requests have numbers, which wrap and which some systems write in the other order of bytes.
    """
    if len(at) <= 2:
        return np.zeros(1)
    swapped = number % _BYTE * _BYTE + number // _BYTE
    steps = min((_steps(number), _steps(swapped)), key=lambda one: abs(float(np.median(one))))
    usual = float(np.median(steps))
    if usual == 0:
        return np.zeros(1)
    number = np.concatenate(([0.0], np.cumsum(steps / usual)))
    columns = np.vstack([number, np.ones_like(number)]).T
    (slope, start), *_ = np.linalg.lstsq(columns, at, rcond=None)
    late: Floats = at - (number * slope + start)
    late -= late.min()
    return late


def _steps(number: Floats) -> Floats:
    found: Floats = (np.diff(number) + _WORD / 2) % _WORD - _WORD / 2
    return found


def datagrams(
    flow: FlowReport, packets: Packets, loads: list[tuple[float, float]]
) -> Iterator[Suspect]:
    """Datagrams that are missing from a stream, as its receiver sees it.

    ``loads`` are the times of transfers, in ms: beside one its queue drops datagrams, too.
    """
    udp = flow["udp"]
    begin, length = flow["start_s"] * MS, flow["duration_s"] * MS
    beside = sum(min(begin + length, high) - max(begin, low) for low, high in loads
                 if low < begin + length and begin < high)  # fmt: skip
    if not udp or udp["quic"] or beside > length / 2:
        return
    for end, _ in ENDS:
        stream = udp["from_client"] if end == "client" else udp["from_server"]
        sequence = stream["sequence"]
        if stream["packets"] < _LEAST_DATAGRAMS:
            continue
        if sequence:
            expected, lost = sequence["expected"], sequence["lost"]
            by = "judging by their sequence numbers"
        else:
            expected, lost = _missing(packets, end == "client")
            by = "judging by the regular times at which the others arrived"
        share = lost / max(1, expected)
        if share >= _LEAST_LOST and lost >= _SOME_LOST:
            yield Suspect(
                "random-loss",
                share,
                f"{share:.1%} of the datagrams are missing, {by}.",
                (flow["id"],),
                advice="Send at half the rate: if the share changes, it is a policer or a queue.",
            )


def _missing(packets: Packets, from_client: bool) -> tuple[int, int]:
    """Datagrams of a regular sender, and how many of them did not arrive."""
    mine = (numbers(packets["from_client"]) > 0) == from_client
    at = numbers(packets["time_ns"])[mine] / NS
    apart = np.diff(at)
    interval = float(np.median(apart))
    if interval < _REGULAR_MS:
        return 0, 0
    whole = np.round(apart / interval)
    near = np.abs(apart - whole * interval) < _NEAR * interval
    if near.mean() < _REGULAR:
        return 0, 0
    return int(whole.sum()) + 1, int((whole - 1).sum())


def connections(
    flow: FlowReport, *, others_deliver: bool, remains_s: float, silent_ms: float
) -> Iterator[Suspect]:
    """Causes of a connection on which no data arrives, or that was slow to set up.

    ``others_deliver``: other connections of the capture have data. ``remains_s``: how long the
    capture goes on. ``silent_ms``: the longest silence of a transfer; each packet of a
    handshake may have met one.
    """
    tcp = tcp_of(flow)
    own = (flow["id"],)
    client, server = tcp["from_client"], tcp["from_server"]
    answered = flow["from_server"]["packets"] > 0
    if flow["icmp_errors"] and not answered:
        # A host that answers with an ICMP error can be reached, and its replies return.
        return
    if tcp["opening_seen"] and not answered and client["retransmissions"]["handshake"] >= 2:
        yield Suspect(
            "one-way-path",
            1.0,
            f"The SYN was sent {client['retransmissions']['handshake'] + 1} times, and nothing "
            "ever arrived in reply.",
            own,
            advice="Open the firewall for packets from outside, or let the UE open the connection.",
        )
        return
    for stream in (client, server):
        again = stream["retransmissions"]
        full = stream["largest_payload_bytes"] >= _FULL_BYTES
        stuck = stream["acked_bytes"] < 2 * max(1, stream["largest_payload_bytes"])
        if tcp["handshake_ms"] is not None and again["timeout"] >= 2 and full and stuck:
            yield Suspect(
                "mtu",
                1.0,
                f"The connection was set up in {short(tcp['handshake_ms'])} ms, but of "
                f"{stream['data_packets']} segments of up to "
                f"{stream['largest_payload_bytes']} bytes, none was acknowledged after "
                f"{again['timeout']} time-outs.",
                own,
                advice="Clamp the MSS (nft ... tcp option maxseg size set 1380), or raise the MTU "
                "of the path or of a VPN's device; check whether a firewall drops ICMP "
                "fragmentation-needed messages, and whether switching off a tunnel's offload helps "
                "(ethtool -K).",
            )
            return
    nothing = client["data_packets"] == 0 and server["data_packets"] == 0
    repeated = server["retransmissions"]["handshake"]
    silent = flow["duration_s"] + remains_s
    # A connection that is silent for a moment may have nothing to send.
    waits = repeated or (silent >= _SILENT_S and tcp["state"] == "open")
    if nothing and waits and not others_deliver and tcp["handshake_ms"] is not None:
        yield Suspect(
            "mtu",
            _LIKELY,
            f"The connection was set up, with {_of(repeated + 1, 'SYN-ACK')}, and then no data "
            f"arrived in {silent:.1f} s: the client's first segments may be too large, or it has "
            "nothing to send.",
            own,
            advice="Capture at the client. Clamp the MSS, or raise the MTU.",
        )
    trips = [one["rtt_ms"]["p50"] for one in (client, server) if one["rtt_ms"]]
    hands = tcp["handshake_ms"]
    if nothing or not trips or not hands:
        return
    trip = sum(trips)
    # Where data only comes in there is no later round trip; a repeated SYN-ACK says enough.
    least = max(_SLOW * trip, trip + _SLOW_MS) if trip > _NEXT_TO_MS else _AROUND_MS
    if hands >= max(least, trip + 2 * silent_ms) and not _is_lost_handshake(tcp, trip):
        yield Suspect(
            "rrc-promotion",
            min(_MOST_COST, (hands - trip) / MS / max(_LEAST_S, flow["duration_s"])),
            f"The handshake took {short(hands)} ms, and later round trips took {short(trip)} ms.",
            own,
            advice="Keep the UE connected (inactivity timer), or send a packet in advance.",
        )


def _is_lost_handshake(tcp: TcpReport, trip: float) -> bool:
    """Whether a time-out explains how long a handshake took: one of its packets was lost.

    Where only SYN-ACKs were repeated, too: a UE that sent or got the SYN was connected by then.
    Where no later round trip crosses the path, a repeated SYN may be due to either.
    """
    syns, syn_acks = (
        tcp[end]["retransmissions"]["handshake"] for end in ("from_client", "from_server")
    )
    rest = (tcp["handshake_ms"] or 0.0) - trip
    waits = [(2**syns - 1) * first for first in _FIRST_TIMEOUTS_MS]
    if syns and trip > _NEXT_TO_MS:
        return any(abs(rest - wait) <= trip for wait in waits)
    return syns > 0 or syn_acks > 0


def _of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
