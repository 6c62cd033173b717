"""What UDP phases showed, by direction and rate.

Loss is the share of the datagrams sent that did not arrive (RFC 7680), the reordered ratio is over
those that did (RFC 4737 4.1), and jitter is that of RFC 3550 6.4.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from airpath.base.text import milliseconds, percent, plural, rate
from airpath.measure.document import Record, Udp, UdpDocument
from airpath.measure.plan import UDP_SHARES, Phase


def lost_share(one: Udp | UdpDocument) -> float:
    """Datagrams that were lost over those that were sent."""
    return one["lost"] / max(1, one["sent"])


def phases_together(pairs: Sequence[tuple[Phase, Record]]) -> list[UdpDocument]:
    """Sum up the phases of each direction and rate, rates from low to high."""
    found: dict[tuple[str, str], list[Udp]] = {}
    for phase, one in pairs:
        if one["udp"] is not None and one["udp"]["sent"]:
            key = (phase.direction or "down", phase.treatment.name)
            found.setdefault(key, []).append(one["udp"])
    order = list(UDP_SHARES)
    keys = sorted(found, key=lambda key: (key[0], order.index(key[1]) if key[1] in order else 0))
    return [_together(*key, found[key]) for key in keys]


def _together(direction: str, treatment: str, all_: Sequence[Udp]) -> UdpDocument:
    sent, lost, duplicates, reordered, discarded, bursts = (
        sum(column)
        for column in zip(
            *(
                (
                    one["sent"], one["lost"], one["duplicates"],
                    one["reordered"], one["discarded"], one["loss_bursts"],
                )
                for one in all_
            ),
            strict=True,
        )
    )  # fmt: skip
    arrived = [one for one in all_ if one["sent"] > one["lost"]]
    return {
        "direction": direction,
        "treatment": treatment,
        "phases": len(all_),
        "sent_mbps": fmean(one["sent_mbps"] for one in all_),
        "received_mbps": fmean(one["received_mbps"] for one in all_),
        "sent": sent,
        "lost": lost,
        "lost_share": lost / sent,
        "duplicates": duplicates,
        "reordered": reordered,
        "reordered_share": reordered / max(1, sent - lost),
        "discarded": discarded,
        "loss_bursts": bursts,
        "longest_burst": max(one["longest_burst"] for one in all_),
        "jitter_ms": fmean(one["jitter_ms"] for one in arrived) if arrived else 0.0,
        "delay_ms": {
            key: fmean(one["delay_ms"][key] for one in arrived)
            for key in (arrived[0]["delay_ms"] if arrived else ())
        },
    }


def sentences(all_: Sequence[UdpDocument]) -> Iterator[str]:
    """A line for each rate: loss, its bursts, reordering, jitter, and how long datagrams waited."""
    for one in all_:
        share = UDP_SHARES.get(one["treatment"], 0.0)
        said = [f"{percent(one['lost_share'])} lost"]
        if one["loss_bursts"]:
            longest = one["longest_burst"]
            said[0] += f" in {plural(one['loss_bursts'], 'burst')} of at most {longest}"
        if one["discarded"]:
            said.append(f"{one['discarded']} of them in the receiving host, which was too slow")
        said.append(f"{percent(one['reordered_share'])} reordered")
        if one["sent"] > one["lost"]:
            said.append(f"jitter {milliseconds(one['jitter_ms'])}")
            said.append(f"delayed by up to {milliseconds(one['delay_ms']['p95'])} (p95)")
        yield (
            f"{one['direction']}, UDP at {percent(share)} of the rate found "
            f"({rate(one['sent_mbps'])}): {', '.join(said)}"
        )
