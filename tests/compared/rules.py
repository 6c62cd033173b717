"""Why two readers of one capture tell different figures: each reason is a switch of the model."""

from __future__ import annotations

TSHARK, TCPTRACE = "tshark", "tcptrace"

RULES = {
    "fragments": "A packet in a tunnel whose outer packet came in parts counts here as soon as the "
    "first part is there, which has the inner headers. {reader} leaves it out if a part is "
    "missing.",
    "lengths": "{reader} believes the frame where it is shorter than its IP header says; here the "
    "header counts.",
    "seen-before": "Bytes that were seen before are sent again, however soon. {reader} calls them "
    "out of order within 3 ms or the handshake's round trip.",
    "filled-late": "Bytes that were never seen and fill a gap were sent again if they come later "
    "than the sender's side of the path takes (3 ms at least), or after three duplicate "
    "acknowledgements. {reader} has another limit: 3 ms or the handshake's round trip, since the "
    "highest byte.",
    "filled-early": "Bytes that were never seen and fill a gap within that time are out of order; "
    "{reader} counts from the highest byte, and a fast retransmission first.",
    "acknowledged": "Bytes that were never seen but acknowledged before they came are out of "
    "order; {reader} calls them a spurious retransmission.",
    "rtt-again": "No round trip is measured by an acknowledgement that covers what was sent twice "
    "(RFC 6298 3); {reader} measures from the first time.",
    "rtt-own": "The same; {reader} leaves out only the segment itself that was sent twice.",
    "rtt-late": "No round trip is measured by what fills a gap, nor by an acknowledgement of what "
    "was selectively acknowledged before; {reader} measures there too.",
    "rtt-exact": "An acknowledgement ends the round trip of the last segment that it covers; "
    "{reader} wants it to end exactly where a segment does.",
    "rtt-loss": "{reader} measures nothing by a segment if one with lower numbers was sent again, "
    "or came late, after it.",
    "parts": "{reader} takes a packet of which some bytes were seen before and others were not "
    "for several segments, and counts it as sent again and as out of order.",
    "empty": "A packet without data shows a gap before its number too; for {reader} only data "
    "does.",
    "resets": "{reader} also goes by the acknowledgement numbers of resets, and of packets without "
    "the flag ACK; they are often none of the connection's.",
    "flight-again": "Bytes in flight are told when new data is sent; {reader} also tells them when "
    "data is sent again.",
    "flight-selective": "{reader} takes off what the last acknowledgement selectively "
    "acknowledged.",
    "flight-edge": "What is in flight begins at the last acknowledgement; for {reader} at the "
    "lowest segment that it has seen and that is not acknowledged, which lies above it behind a "
    "gap, and below it for what was sent again after it was acknowledged.",
    "flight-gap": "{reader} tells nothing from a gap until the other end's next packet.",
    "flight-flags": "SYN and FIN take a number of the sequence space; {reader} leaves it out of "
    "what is in flight.",
    "split": "{reader} begins another connection between the same ends after a reset, or after a "
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
