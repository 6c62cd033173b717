"""``airpath diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from airpath.cli.console import aligned, complain, narrate, output
from airpath.errors import AirpathError, InputError

if TYPE_CHECKING:
    from airpath.causes.rank import BlameDocument
    from airpath.diagnose.files import FileDocument
    from airpath.diagnose.together import Together
    from airpath.documents import (
        CaptureReport,
        FlowReport,
        InterfaceReport,
        StreamReport,
        TcpReport,
    )

Shown = TypeVar("Shown")
_MOST_ROWS = 20
_HEAD = (
    "flow", "client", "server", "at", "start s", "time s", "MB up", "MB down", "Mb/s", "RTT client",
    "RTT server", "again", "late",
)  # fmt: skip


class Hide(Protocol):
    """A function that returns a text or a document in the form that is shown."""

    def __call__(self, value: Shown, /) -> Shown:
        """Return the value in the form that is shown."""


def _shown(value: Shown, /) -> Shown:
    return value


def command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Captures (pcap, pcapng), or the output of ping, iperf3, nuttcp, flent or ss "
            "-ti. Files may be compressed with gzip, captures also with zstd. - is standard "
            "input.",
        ),
    ],
    identify: Annotated[bool, typer.Option("--identify", help="Only identify each file.")] = False,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise",
            help="Anonymise addresses, also in file names and errors; addresses with a common "
            "prefix keep one.",
        ),
    ] = False,
    anonymise_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file with the key for --anonymise, at least 16 bytes: the same key always "
            "gives an address the same replacement. [default: a new key each time]",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write an HTML page about the files: what limits the flows and, for captures, "
            "charts of the flows down to single packets.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain captures and the outputs of network tools.

    Prints sentences about each file, and what limits its flows; for a capture also a table of the
    largest flows: bytes of IP each way (up: from the client), goodput of the direction with more
    data, median round trips in milliseconds from the capture point to the client and to the
    server, retransmitted packets, and packets out of order. docs/guides/captures.md says how each
    figure is measured. No result contains payload. Pings are combined with the outputs of other
    tools if both have absolute times, and give round trips with and without load. A file that
    cannot be read is reported on standard error, and the others are still read.
    """
    from airpath.diagnose.anonymise import Anonymiser, key_of
    from airpath.readers.recognise import STDIN
    from airpath.runs.directories import check_file_target

    if report is not None:
        if identify or STDIN in files:
            raise InputError("--report needs files, and cannot be combined with - or --identify")
        check_file_target(report)
    hide: Hide = _shown
    if anonymise or anonymise_key is not None:
        hide = Anonymiser(None if anonymise_key is None else key_of(anonymise_key)).document
    try:
        code = _diagnose(files, hide, report, identify=identify, json=json)
    except AirpathError as error:
        raise type(error)(hide(str(error))) from None
    raise typer.Exit(code)


def _diagnose(
    files: list[str], hide: Hide, report: Path | None, *, identify: bool, json: bool
) -> int:
    """Print what the files tell, as ``hide`` shows it; the exit code."""
    from airpath.diagnose import files as diagnosis
    from airpath.diagnose.together import is_one_case, together
    from airpath.readers.recognise import Recognised, recognise
    from airpath.runs import summary

    documents: list[FileDocument] = []
    read: list[Recognised] = []
    outputs: list[Recognised] = []
    refused: list[dict[str, str]] = []
    code = 0
    for name in files:
        try:
            read.append(recognise(name, read=not identify))
        except AirpathError as error:
            code = max(code, complain(hide(str(error)), error.exit_code))
            refused.append(hide({"file": name, "error": str(error)}))
    alone = not is_one_case(read)
    for found in read:
        try:
            document = hide(diagnosis.describe(found, alone=alone))
        except AirpathError as error:
            code = max(code, complain(hide(str(error)), error.exit_code))
            refused.append(hide({"file": found.name, "error": str(error)}))
            continue
        if not json:
            if documents and not identify:
                output("")
            _print(document)
        documents.append(document)
        outputs.append(found)
    joined = None if identify else hide(together(outputs))
    if report is not None and documents:
        names = [one.name for one in outputs]
        cases = list(zip(names, documents, strict=True))
        code = max(code, _write_report(report, cases, joined, hide))
    if json:
        output(summary.to_json({"files": documents, "refused": refused, "together": joined}))
    elif joined:
        output("\ntogether")
        for statement in joined["statements"]:
            output(f"  {statement['text']}")
        if joined["causes"]:
            _print_causes(joined["causes"])
    return code


def _write_report(
    report: Path, cases: list[tuple[str, FileDocument]], joined: Together | None, hide: Hide
) -> int:
    """The page of the files; the exit code."""
    from airpath.report.capture import write_case_report

    try:
        write_case_report(cases, joined, report)
    except AirpathError as error:
        return complain(hide(str(error)), error.exit_code)
    narrate(hide(f"report: {report}"))
    return 0


def _print(document: FileDocument) -> None:
    compressed = ", compressed" if document["compressed"] else ""
    capture = document.get("capture")
    if capture is None:
        output(f"{document['file']}: {document['kind']}{compressed}")
    else:
        output(
            f"{document['file']}: {document['kind']}{compressed}, {capture['packets']} packets in "
            f"{capture['duration_s']:.3f} s"
        )
    for statement in document.get("statements", []):
        output(f"  {statement['text']}")
    if "causes" in document:
        _print_causes(document["causes"])
    if capture and capture["flows"]:
        output(_table(capture))


def _print_causes(blamed: BlameDocument) -> None:
    from airpath.causes.suspect import costs

    if not blamed["causes"]:
        output(f"causes: {blamed['because']}")
        return
    output("causes, the likeliest first:")
    for number, cause in enumerate(blamed["causes"], 1):
        names = " or ".join(cause["causes"])
        output(f"  {number}. {names} ({costs(cause)}): {cause['evidence']}")
        where = []
        if cause["frames"]:
            where.append("packets " + ", ".join(str(one) for one in cause["frames"]))
        if cause["at_s"]:
            where.append("at " + ", ".join(f"{one:.3f}" for one in cause["at_s"]) + " s")
        if where:
            output(f"     See {'; '.join(where)}.")
        output(f"     {cause['advice']}")


def _table(capture: CaptureReport) -> str:
    from airpath.readers.flows import total_bytes

    flows = sorted(capture["flows"], key=lambda one: -total_bytes(one))
    rows = [_HEAD, *(_row(flow, capture["interfaces"]) for flow in flows[:_MOST_ROWS])]
    lines = aligned(rows, (0, *range(4, len(_HEAD))))
    if len(flows) > _MOST_ROWS:
        lines.append(f"and {len(flows) - _MOST_ROWS} more; --json lists them")
    return "\n".join(lines)


def _row(flow: FlowReport, interfaces: list[InterfaceReport]) -> tuple[str, ...]:
    from airpath.diagnose import datagrams

    tcp = flow["tcp"]
    figures = _figures(tcp) if tcp else datagrams.figures(flow)
    return (
        str(flow["id"]),
        _end(flow["protocol"], flow["client"], flow["client_port"]),
        _end("", flow["server"], flow["server_port"]),
        _point(flow, interfaces),
        f"{flow['start_s']:.3f}",
        f"{flow['duration_s']:.3f}",
        f"{flow['from_client']['bytes'] / 1e6:.3f}",
        f"{flow['from_server']['bytes'] / 1e6:.3f}",
        *figures,
    )


def _figures(tcp: TcpReport) -> tuple[str, ...]:
    streams = (tcp["from_client"], tcp["from_server"])
    main = max(streams, key=lambda stream: stream["data_bytes"])

    def rtt(stream: StreamReport) -> str:
        return f"{stream['rtt_ms']['p50']:.2f}" if stream["rtt_ms"] else ""

    return (
        "" if main["goodput_mbps"] is None else f"{main['goodput_mbps']:.2f}",
        rtt(tcp["from_server"]),
        rtt(tcp["from_client"]),
        str(sum(stream["retransmissions"]["packets"] for stream in streams)),
        str(sum(stream["out_of_order_packets"] for stream in streams)),
    )


def _end(protocol: str, address: str, port: int) -> str:
    shown = f"[{address}]" if ":" in address and port else address
    return f"{protocol} {shown}:{port}".strip() if port else f"{protocol} {shown}".strip()


def _point(flow: FlowReport, interfaces: list[InterfaceReport]) -> str:
    """Where the flow was seen: the interface's name, and the tunnel."""
    name = interfaces[flow["interface"]]["name"]
    if name is None and len(interfaces) > 1:
        name = str(flow["interface"])
    tunnel = None if flow["tunnel"] == "none" else flow["tunnel"]
    return " ".join(part for part in (name, tunnel) if part) or "-"
