"""What iperf 2 and iperf3 printed: text, JSON and CSV; whole, cut short, or failed."""

from __future__ import annotations

import re

from airpath.readers import iperf_json, iperf_text
from airpath.readers.iperf_output import Connection, Interval, IperfOutput, IperfTest, joined

__all__ = ["Connection", "Interval", "IperfOutput", "IperfTest", "joined", "read"]
_JSON = re.compile(r'^\{(?=\s*(?:"|\}|$))', re.MULTILINE)
"""A line that begins a document; other lines may come before it, as in logs."""
_ARRAY = re.compile(r"^\[\s*(?=\{)")
_LOGGED = re.compile(
    r"^(?:[\w.-]{1,80} +\| )?(?:\d{4}-\d\d-\d\d[T ]\S{5,30} (?:std(?:out|err) [FP] )?)?(?=\{\")",
    re.MULTILINE,
)
"""What logs write before a document: its source and its time."""


def read(text: str, name: str = "iperf3") -> IperfOutput:
    """Read what iperf printed; InputError if this is not what iperf prints, or says nothing."""
    body = text.lstrip("\ufeff \t\r\n")
    if body.startswith("["):
        body = _ARRAY.sub("", body, count=1)
    body = _LOGGED.sub("", body) if '{"' in body else body
    output = iperf_json.read(body, name) if _JSON.search(body) else iperf_text.read(text, name)
    tests = joined(output.tests)
    if len(tests) < len(output.tests):
        output.of_file.append(
            "the file has both ends of a test: the server's is not listed as another one"
        )
    output.tests = tests
    return output
