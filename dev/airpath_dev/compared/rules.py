"""Why two readers of one capture report different figures: each rule is a switch of the model."""

from __future__ import annotations

TSHARK, TCPTRACE = "tshark", "tcptrace"

RULES = {
    "fragments": "A packet in a tunnel whose outer packet is fragmented counts in airpath as soon "
    "as the first fragment is there, which has the inner headers. {reader} leaves it out if a "
    "fragment is missing.",
    "lengths": "{reader} trusts the frame's length where it is shorter than the IP header says; "
    "airpath trusts the header.",
    "seen-before": "Bytes that were seen before are retransmissions, however soon they arrive. "
    "{reader} calls them out of order within 3 ms or the handshake's round trip.",
    "filled-late": "Bytes that were never seen and fill a gap are retransmissions if they arrive "
    "later than the sender's side of the path takes (3 ms at least), or after three duplicate "
    "acknowledgements. {reader} has a different limit: 3 ms or the handshake's round trip, since "
    "the highest byte.",
    "filled-early": "Bytes that were never seen and fill a gap within that time are out of order; "
    "{reader} counts from the highest byte, and checks for a fast retransmission first.",
    "acknowledged": "Bytes that were never seen but acknowledged before they arrived are out of "
    "order; {reader} calls them a spurious retransmission.",
    "rtt-again": "An acknowledgement that covers retransmitted data gives no round trip (RFC 6298 "
    "3); {reader} measures from the first transmission.",
    "rtt-own": "An acknowledgement that covers retransmitted data gives no round trip; {reader} "
    "excludes only the retransmitted segment itself.",
    "rtt-late": "Data that fills a gap gives no round trip, nor does an acknowledgement of data "
    "that was selectively acknowledged before; {reader} measures there too.",
    "rtt-exact": "An acknowledgement ends the round trip of the last segment that it covers; "
    "{reader} requires that it end exactly where a segment does.",
    "rtt-loss": "{reader} takes no round trip from a segment if one with lower numbers was "
    "retransmitted, or arrived late, after it.",
    "parts": "{reader} treats a packet of which only some bytes were seen before as several "
    "segments, and counts it both as a retransmission and as out of order.",
    "empty": "A packet without data also reveals a gap before its sequence number; for {reader} "
    "only data does.",
    "resets": "{reader} also uses the acknowledgement numbers of resets, and of packets without "
    "the ACK flag; they often do not belong to the connection.",
    "flight-again": "Bytes in flight are recorded when new data is sent; {reader} also records "
    "them when data is retransmitted.",
    "flight-selective": "{reader} subtracts what the last acknowledgement selectively "
    "acknowledged.",
    "flight-edge": "Data in flight begins at the last acknowledgement; for {reader} it begins at "
    "the lowest segment that it has seen and that is not acknowledged. That lies above the "
    "acknowledgement behind a gap, and below it for data retransmitted after it was acknowledged.",
    "flight-gap": "{reader} records nothing from a gap until the other end's next packet.",
    "flight-flags": "SYN and FIN occupy a sequence number; {reader} does not count it as in "
    "flight.",
    "split": "{reader} begins a new connection between the same ends after a reset, or after a "
    "long silence; its parts are compared together.",
}
"""``{reader}`` is tshark or tcptrace."""

IN_FLIGHT = (
    "flight-again", "flight-selective", "flight-edge", "flight-gap", "flight-flags", "resets",
    "lengths",
)  # fmt: skip
ROUND_TRIPS = ("rtt-again", "rtt-late", "rtt-exact", "resets", "lengths")
TCPTRACE_ROUND_TRIPS = (
    "rtt-exact", "rtt-late", "rtt-loss", "rtt-own", "rtt-again", "parts", "empty",
)  # fmt: skip
TCPTRACE_AGAIN = ("empty", "parts")


def text(rule: str, reader: str) -> str:
    """The rule in words, of that reader."""
    return RULES[rule].format(reader=reader)
