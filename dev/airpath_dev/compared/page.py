"""What was compared, as a table, and the page of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from airpath_dev.harness import heading, table

from .judge import Compared, Verdict
from .rules import RULES, TCPTRACE, TSHARK, text

_FIGURES = {
    "flows": "TCP flows of a file",
    "packets": "packets",
    "bytes": "bytes of payload",
    "again or late": "packets retransmitted or out of order, together",
    "again, late": "each of the two separately",
    "round trips": "round trips: count, minimum, mean, maximum",
    "bytes in flight": "bytes in flight: each value",
}


HEAD = "tool | figure | compared: | equal: | by a rule: | unexplained:"


def rows(compared: Sequence[Compared]) -> list[list[str]]:
    """Return one row for each tool and figure."""
    found = []
    verdicts = [one for each in compared for one in each.verdicts]
    for reader in (TSHARK, TCPTRACE):
        for figure, words in _FIGURES.items():
            of = [one for one in verdicts if (one.reader, one.figure) == (reader, figure)]
            if not of:
                continue
            unexplained = sum(one.rules is None for one in of)
            equal = sum(one.is_equal for one in of)
            counts = [len(of), equal, len(of) - equal - unexplained, unexplained]
            found.append([reader, words, *(f"{count:,}" for count in counts)])
    return found


def unexplained(compared: Sequence[Compared]) -> list[Verdict]:
    """Differences that no rule explains."""
    return [one for each in compared for one in each.verdicts if one.rules is None]


def page(compared: Sequence[Compared], versions: Sequence[str]) -> list[str]:
    """The page, in Markdown."""
    flows = sum(one.flows for one in compared)
    not_read = Counter(why for one in compared for _, why in one.not_read)
    rules = Counter(
        (one.reader, rule) for each in compared for one in each.verdicts for rule in one.rules or ()
    )
    lines = [
        heading("Captures as read by airpath, tshark and tcptrace", "captures-compared", *versions),
        "The command runs the tools on every capture in the folder that `AIRPATH_PCAPS` names, and "
        "fails if a difference has no rule.",
        "",
        f"{len(compared)} captures of real networks with {flows} TCP flows. "
        "Each figure is compared once per file, flow, or end of a flow.",
        "",
        table(HEAD, rows(compared)),
        "",
        f"tcptrace has no connection for {sum(not_read.values())} of the flows, because it does "
        "not read their encapsulation: "
        + ", ".join(f"{why} ({count})" for why, count in sorted(not_read.items()))
        + ".",
        "",
        "## The rules",
        "A rule explains a difference only if it accounts for all of it. "
        "`dev/airpath_dev/compared/model.py` implements the rules of "
        "[the guide](../guides/captures.md#tcp-metrics) a second time, with a switch for "
        "each rule of the other tool. Without switches it must yield "
        "airpath's figures, and with some of them the other tool's, down to the last value. The "
        "tables count the smallest set of switches that does so. For retransmitted and late "
        "packets, both tools label each packet, and the rule follows from the packet. Statements "
        "that name no tool are airpath's rules.",
        "",
    ]
    for reader in (TSHARK, TCPTRACE):
        used = [
            [f"`{rule}`", f"{rules[reader, rule]:,}", text(rule, reader)]
            for rule in RULES
            if rules[reader, rule]
        ]
        lines += [f"### {reader}", table("rule | differences: | ", used), ""]
    return lines[:-1]
