"""Run a program inside a scenario's network: the kernel's TCP over the model, on the real clock.

With a gateway, the model is instead between real devices at two interfaces of the host.

Packets are counted inside the model, so the run directory has the tables of a simulation: links,
radio, drops. The command is the traffic; on request the kernel's sockets also run the scenario's
flows. The TCP keys of those flows set up the kernel: congestion control, buffers, options.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from airpath import scenario as scenarios
from airpath.base.stopping import StoppedError, deferred
from airpath.drivers.options import EmulationOptions
from airpath.drivers.simulate import kept_failed, write_tables
from airpath.emulation import attach, congestion, gateway, identity, printed, rootless
from airpath.emulation.signalling import Signalling
from airpath.errors import AirpathError, InputError, reason
from airpath.runs import describe, summary
from airpath.runs import provenance as prov
from airpath.runs.directories import PendingDirectory, default_name
from airpath.runs.results import Run, RunDirectory

if TYPE_CHECKING:
    from airpath import _core
    from airpath.documents import Environment, ObserverReport, ProgramReport
    from airpath.emulation.document import Emulation, GatewayEntry, ProgramEntry, Tunnel
    from airpath.emulation.host_changes import Change
    from airpath.runs.document import Provenance, RunDocument

PROGRAMS = "programs"
"""What the scenario's programs wrote, in the run directory: NAME.stdout, NAME.stderr."""

CAPTURE = "capture.pcapng"
"""Every packet at each end, in the run directory, if it was asked for."""

VERIFIER_LOG = "verifier.log"
"""Why the kernel refused a BPF object, in the directory of a failed run."""

INVALID = 3
"""Exit code of a run that does not count, because packets were late."""

FLOWS_DID_NOT_RUN = "The scenario's flows did not run; the programs are the traffic."
DEVICES_ARE_THE_TRAFFIC = (
    "The scenario's flows and programs did not run; the devices are the traffic."
)
THE_DEVICES_OWN = (
    "TCP and addresses are the devices' own; NATs of the path filter without changing addresses."
)
THE_KERNELS_OWN = (
    "Delayed ACKs, the first RTO and slow start are the kernel's own, whatever the profile says."
)
OUR_SLOW_START = (
    "Delayed ACKs and the first RTO are the kernel's own, whatever the profile says; CUBIC counts "
    "as Linux does, without cwnd.slow_start_limit_segments."
)


CHOSEN_CONGESTION = (
    "The congestion control was chosen for the kernel; findings simulate the scenario's own."
)


def emulate(scenario: _core.Scenario, options: EmulationOptions) -> Run:
    """Run a scenario on the real clock until its command, its programs or its flows end."""
    if not (options.command or options.flows or scenario.programs or options.gateway):
        raise InputError("there is no command to run, and the scenario has no [[program]]")
    if options.gateway is None:
        return _emulate(scenario, options, ())
    with gateway.prepared(options.gateway) as changes:
        return _emulate(scenario, options, changes)


def _emulate(scenario: _core.Scenario, options: EmulationOptions, changes: Sequence[Change]) -> Run:
    programs = [] if options.gateway else scenario.program_lines
    who = identity.announced(options.user, programs, options.variables)
    seed = scenario.seed if options.seed is None else options.seed
    started, began = time.time_ns(), time.monotonic()
    boot_ns = started - time.monotonic_ns()
    # The kernel's packets are not the same twice: neither are two runs.
    identifier = hashlib.sha256(f"{scenario.sha256} {seed} {started}".encode()).hexdigest()[:12]
    record = prov.provenance(scenario, [seed], options.command_line, identifier)
    out = options.out or Path("runs") / default_name(scenarios.stem(scenario), identifier)
    attempts = attach.attempts(scenario.core) if scenario.core else []
    signals = Signalling.of(scenario.core if options.capture else None, attempts, seed)
    with PendingDirectory(out, numbered=options.out is None) as pending:
        try:
            sessions = _attached(attempts, options, signals, pending.path / CAPTURE, started)
            emulated, written = _emulated(scenario, options, pending.path, sessions, who)
        except attach.AttachError as refused:
            raise _failed(pending, record, scenario, refused) from None
        except ValueError as refused:
            raise InputError(str(refused)) from None
        except OSError as failed:
            hint = _refused(failed, pending.path) or "`airpath doctor` says what this machine lacks"
            said = AirpathError(f"emulation failed: {reason(failed)}\n{hint}")
            raise _failed(pending, record, scenario, said) from None
        final = None
        try:
            with deferred():
                # Before anything else: nothing makes these packets again.
                missing = write_tables(
                    emulated.result, pending.path, prov.table_metadata(scenario, seed)
                )
                _refuse_shut(options, pending.path)
                document = summary.of_result(
                    emulated.result, scenario, identifier, time.monotonic() - began
                )
                document["emulation"] = _section(emulated, options, sessions, who, changes)
                zero_ns = boot_ns + emulated.report["clock_origin_ns"]
                missing += _add(signals, pending.path / CAPTURE, document, zero_ns)
                document["run"]["partial"] = partial = [*emulated.partial, *missing]
                _read_printed(written, document, pending.path)
                record.update(
                    {
                        "driver": "emulate",
                        "wall_s": document["run"]["wall_s"],
                        "partial": partial,
                        "emulation": emulated.environment,
                    }
                )
                pending.free_reserve()
                RunDirectory(pending.path).write(document, record, scenario.resolved_toml)
                final = pending.commit()
        except KeyboardInterrupt:
            if final is None:
                _failed(pending, record, scenario, AirpathError("interrupted twice"))
                raise
            raise StoppedError(final, partial) from None
        except AirpathError as failed:
            raise _failed(pending, record, scenario, failed) from None
        except Exception as bug:
            _failed(pending, record, scenario, AirpathError(f"{type(bug).__name__}: {bug}"))
            raise
    tables = RunDirectory(final).tables([seed])
    return Run(document, record, scenario.resolved_toml, tables, final)


def _emulated(
    scenario: _core.Scenario,
    options: EmulationOptions,
    directory: Path,
    sessions: Sequence[attach.Session],
    who: identity.Identity,
) -> tuple[_core.Emulated, printed.CommandOutput | None]:
    """Run the emulation; also return the command's output, if its format is known."""
    from airpath import _core

    with printed.kept(options.command, options.output) as (output, written):
        emulated = _core.emulate(
            scenario,
            replace(options, output=output),
            capture=directory / CAPTURE if options.capture else None,
            files=directory / PROGRAMS,
            sessions=sessions,
            identity=who,
        )
    return emulated, written


def _attached(
    attempts: Sequence[attach.Attempt],
    options: EmulationOptions,
    signals: Signalling | None,
    capture: Path,
    began_ns: int,
) -> list[attach.Session]:
    """Announce the sessions, or write a capture that shows why a UE is refused."""
    try:
        sessions = attach.sessions(attempts)
    except attach.AttachError as refused:
        if signals is None:
            raise
        if signals.lacks is not None:
            raise attach.AttachError(f"{refused}\n  {signals.lacks}") from None
        signals.write_refusal(capture, began_ns)
        raise
    if options.attached is not None:
        options.attached(sessions)
    return sessions


def _add(signals: Signalling | None, file: Path, document: RunDocument, zero_ns: int) -> list[str]:
    """Add the signalling to a capture whose time 0 was then; return what is missing."""
    if signals is None:
        return []
    if signals.lacks is not None:
        document["emulation"]["limits"].append(signals.lacks)
        return []
    try:
        signals.add(file, zero_ns, round(document["run"]["duration_s"] * 1e9))
    except OSError as error:
        return [f"the capture lacks {signals.protocol} and NAS: {reason(error)}"]
    return []


def _refused(error: OSError, directory: Path) -> str | None:
    """Write the log of the kernel's verifier, and return its end; None: it refused nothing."""
    log: str | None = getattr(error, "verifier_log", None)
    if log is None:
        return None
    (directory / VERIFIER_LOG).write_text(log + "\n", encoding="utf-8")
    return congestion.log_end(log)


def _read_printed(
    written: printed.CommandOutput | None, document: RunDocument, directory: Path
) -> None:
    """Keep what the command wrote beside what the programs wrote, and read all of it."""
    for program in document["emulation"]["programs"]:
        if written is not None and program["kind"] == "command":
            (directory / PROGRAMS).mkdir(exist_ok=True)
            name = f"{PROGRAMS}/{printed.COMMAND}.stdout"
            while (directory / name).exists():
                # A program of the scenario has that name.
                name = name.replace(printed.COMMAND, f"{printed.COMMAND}-of-user", 1)
            (directory / name).touch(0o600, exist_ok=False)
            (directory / name).write_bytes(written.bytes())
            program["stdout"] = name
    # It adds to a flow what its program printed.
    printed.add(document, directory)


def _failed(
    pending: PendingDirectory,
    record: Provenance,
    scenario: _core.Scenario,
    error: AirpathError,
) -> AirpathError:
    """Keep what an emulation wrote before it failed; the error that says where."""
    if pending.committed:
        return error
    record.update({"driver": "emulate", "failed": str(error)})
    written = [path for path in pending.path.iterdir() if not path.name.startswith(".airpath-")]
    if not written:
        return error
    with suppress(OSError, AirpathError):
        pending.free_reserve()
        summary.write_json(pending.path / "provenance.json", record)
        (pending.path / "scenario.toml").write_text(scenario.resolved_toml, encoding="utf-8")
    return kept_failed(pending, error)


def exit_code(run: Run) -> int:
    """Return the exit code: the command's.

    If that is 0, it is 3 for a run that does not count, and 1 for one that is partial. Without a
    command it is that of the first program that failed.
    """
    emulation = run.summary["emulation"]
    return (
        int(emulation["exit_code"])
        or (0 if emulation["valid"] else INVALID)
        or int(bool(run.partial))
    )


def shell() -> list[str]:
    """Return the command where none is given."""
    return [os.environ.get("SHELL") or "/bin/sh"]


def sentences(run: Run) -> list[str]:
    """Report how the run went."""
    emulation = run.summary["emulation"]
    said = []
    for direction, counts in emulation["directions"].items():
        late = counts["lateness_us"]
        dropped = sum(counts["dropped"].values())
        line = f"{direction}: {counts['left']} packets left, {dropped} dropped"
        if late:
            most, all_of_them = late["p99"], late["max"]
            line += f"; 99 % at most {most:.0f} us late, all at most {all_of_them:.0f} us"
        if host := counts["host_us"]:
            line += (
                f"; 99 % of the acknowledgements returned within {host['p99']:.0f} us of the data"
            )
        said.append(line)
    said += [f"flow {one['id']} failed: {one['because']}" for one in emulation["failed_flows"]]
    for program in emulation["programs"]:
        said += [
            f"{program['name']} at {program['at']}: {lost['bytes']} bytes of {kind} are not kept: "
            f"{lost['because']}"
            for kind, lost in program["dropped"].items()
        ]
        if (sentence := _about(program)) is not None:
            said.append(sentence)
    if emulation["other_flows"]:
        least = "at least " if emulation["more_flows"] else ""
        count = f"{least}{emulation['other_flows']} of {emulation['flows']} flows"
        said.append(
            f"{count} share the row `others`: at most 1000 at a time get a row of their own"
        )
    if (between := emulation.get("gateway")) is not None:
        said += gateway.sentences(between)
    said += emulation["limits"]
    said += _sender_records(emulation["observer"])
    said += describe.partial(run.summary)
    if not emulation["valid"]:
        said.append(f"this run does not count: {emulation['invalid_because']}")
    return said


def _limits(environment: Environment) -> list[str]:
    """What this machine, or this user, does not allow."""
    limits = [rootless.LIMITS] if environment["user_namespace"] else []
    if not environment["real_time"]:
        limits.append(rootless.NO_PRIORITY)
    if environment["asleep_because"] is not None:
        limits.append(
            f"idle processors may sleep, which delays packets: {environment['asleep_because']}"
        )
    for end in environment["ends"]:
        limits += [
            f"{end['name']}: {what}: {why}"
            for what, why in end["refused"].items()
            # Its routes say it too.
            if not what.startswith("net.ipv4.tcp_congestion_control=")
        ]
    return limits


def _tunnel(emulated: _core.Emulated) -> Tunnel | None:
    setup, report = emulated.environment["tunnel"], emulated.report["tunnel"]
    return None if setup is None else {**setup, "directions": report}


def _sender_records(observer: ObserverReport) -> list[str]:
    """Report what the tables lack about the senders."""
    said = []
    if observer["because"]:
        said.append(
            f"the senders were polled only every {observer['poll_ms']:g} ms: {observer['because']}"
        )
    if observer["lost_records"]:
        said.append(f"{observer['lost_records']} records of the senders were lost")
    if observer["forgotten_sockets"]:
        said.append(
            f"the tables lack the windows and events of {observer['forgotten_sockets']} "
            "sockets, because there were too many"
        )
    if observer["crowded_records"]:
        said.append(
            f"{observer['crowded_records']} readings of sockets were left out, because too many "
            "were open"
        )
    if observer["unmatched_sockets"]:
        said.append(
            f"{observer['unmatched_sockets']} sockets do not belong to any flow of the model"
        )
    return said


def _about(program: ProgramEntry) -> str | None:
    """What went wrong with a program other than the command."""
    who = f"{program['name']} at {program['at']}"
    if program["kind"] == "command":
        return None
    if program["code"]:
        last = f": {program['said']}" if program["said"] else ""
        return f"{who} failed with code {program['code']} after {program['ended_s']:.1f} s{last}"
    if program["silent"]:
        return f"{who} did not listen for TCP connections within 5 s"
    if program["started_s"] is None:
        return f"{who} was not started: the run was over"
    return None


def _program(program: ProgramReport) -> ProgramEntry:
    """Add where its output is."""
    files = {kind: f"{PROGRAMS}/{program['name']}.{kind}" for kind in ("stdout", "stderr")}
    said = {key: value for key, value in program.items() if key != "written"}
    if program["written"] is None:
        return cast("ProgramEntry", {**said, "stdout": None, "stderr": None, "dropped": {}})
    # Of each stream, if anything.
    dropped = {
        kind: {"bytes": one["dropped_bytes"], "because": one["dropped_because"]}
        for kind, one in zip(files, program["written"], strict=True)
        if one["dropped_bytes"]
    }
    return cast("ProgramEntry", {**said, **files, "dropped": dropped})


def _gateway(
    emulated: _core.Emulated,
    options: EmulationOptions,
    changes: Sequence[Change],
) -> GatewayEntry | None:
    report = emulated.report["gateway"]
    if options.gateway is None or report is None:
        return None
    return gateway.entry(options.gateway, changes, report)


def _refuse_shut(options: EmulationOptions, directory: Path) -> None:
    """Raise ``AirpathError`` if a congestion control that was chosen closed its window for good."""
    if not options.congestion:
        return
    import polars as pl

    samples = pl.read_parquet(directory / "samples.parquet")
    last = samples.sort("time_ns").group_by("flow", maintain_order=True).last()
    shut = last.filter(pl.col("cwnd_segments") == 0)["flow"].cast(pl.String).to_list()
    if shut:
        flows = ", ".join(shut)
        said = f"the congestion control of {flows} set cwnd to 0, so that nothing could leave"
        raise AirpathError(said)


def _section(
    emulated: _core.Emulated,
    options: EmulationOptions,
    sessions: Sequence[attach.Session],
    who: identity.Identity,
    changes: Sequence[Change],
) -> Emulation:
    report = emulated.report
    not_emulated = [OUR_SLOW_START if emulated.environment["slow_starts"] else THE_KERNELS_OWN]
    if options.gateway is not None:
        not_emulated = [DEVICES_ARE_THE_TRAFFIC, THE_DEVICES_OWN]
    elif not options.flows:
        not_emulated.insert(0, FLOWS_DID_NOT_RUN)
    if options.congestion:
        not_emulated.append(CHOSEN_CONGESTION)
    return {
        "valid": emulated.invalid is None,
        "invalid_because": emulated.invalid,
        "exit_code": emulated.code,
        "interrupted": emulated.interrupted,
        "command": list(options.command),
        "servers": list(options.servers),
        "user": who.document(),
        "programs": [_program(program) for program in emulated.programs],
        "coalesce_bytes": emulated.environment["coalesce_bytes"],
        "io": emulated.environment["io"],
        "real_time": emulated.environment["real_time"],
        "processors_awake": emulated.environment["awake"],
        "limits": _limits(emulated.environment),
        "observer": emulated.environment["observer"],
        "hystart": {end["name"]: end["hystart"] for end in emulated.environment["ends"]},
        "flows": report["flows"],
        "other_flows": report["other_flows"],
        "more_flows": report["more_flows"],
        "inside": report["inside"],
        "directions": report["directions"],
        "scenario_flows": options.flows,
        "failed_flows": emulated.failed,
        "sockets": emulated.sockets,
        "ack_gaps": {gaps["id"]: gaps["gap_ms"] for gaps in report["ack_gaps"]},
        "parity": emulated.parity,
        "nats": emulated.environment["nats"],
        "gtpu": _tunnel(emulated),
        "slow_starts": emulated.environment["slow_starts"],
        "congestion": emulated.environment["congestion"],
        "not_emulated": not_emulated,
        "sessions": [session.document() for session in sessions],
        "gateway": _gateway(emulated, options, changes),
    }
