"""The compiled part of airpath: scenario parser, simulator, tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, Self, TypedDict, final, overload, type_check_only

from airpath.documents import (
    CaptureReport,
    Environment,
    Explanation,
    FailedFlow,
    FlowSockets,
    Packets,
    Parity,
    ProgramReport,
    Report,
    RunSummary,
    Segments,
    Snapshot,
    VariantRow,
    View,
)
from airpath.emulation.identity import Identity

__version__: str
__commit__: str | None
"""Of a wheel, the commit that it was built from; ``-dirty`` follows if files differed from it."""
__bpf__: bool
"""Whether programs inside the kernel are built in."""

@type_check_only
class ArrowStream(Protocol):
    """Anything that exports the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@type_check_only
class Problem(TypedDict):
    """A problem of a scenario."""

    file: str | None
    line: int | None
    column: int | None
    set: str | None
    message: str
    help: str | None
    allowed: str | None

@final
class Start:
    """The beginning of a connection."""

    @property
    def seed(self) -> int:
        """Seed of the connection's random numbers, from 0 to 2^64 - 1."""

    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""

    @property
    def initial_window_segments(self) -> int:
        """Congestion window of a new connection (RFC 6928)."""

@final
class Ack:
    """An acknowledgement of new data."""

    @property
    def now_ns(self) -> int:
        """When it arrived, since the start of the run."""

    @property
    def snd_una_bytes(self) -> int:
        """Offset in the stream of the first byte that is not acknowledged (SND.UNA)."""

    @property
    def snd_nxt_bytes(self) -> int:
        """Offset in the stream of the next byte to send for the first time (SND.NXT)."""

    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""

    @property
    def acked_segments(self) -> int:
        """Segments by which a loss-based window may grow."""

    @property
    def delivered_segments(self) -> int:
        """Segments newly known to be delivered, cumulatively or by SACK."""

    @property
    def lost_segments(self) -> int:
        """Segments newly marked lost."""

    @property
    def ecn_echo(self) -> bool:
        """Whether it reports packets marked by ECN."""

    @property
    def rtt_ns(self) -> int | None:
        """RTT of the newest segment that it delivers; None if that was retransmitted."""

    @property
    def srtt_ns(self) -> int:
        """Smoothed RTT."""

    @property
    def min_rtt_ns(self) -> int:
        """Smallest RTT of the connection."""

    @property
    def in_flight_segments(self) -> int:
        """Segments in flight, before anything is sent in response."""

    @property
    def cwnd_limited(self) -> bool:
        """Whether cwnd limited the sender in the window that this acknowledges."""

    @property
    def paced(self) -> bool:
        """Whether the sender paces."""

    @property
    def pacing_wait_ns(self) -> int:
        """How long pacing delays the next transmission."""

    @property
    def state(self) -> Literal["open", "recovery", "loss"]:
        """State of the sender: no recovery, fast recovery, after a time-out."""

    @property
    def delivery_rate_bps(self) -> float | None:
        """Delivery rate in payload bits per second; None without a sample, or if loss-based."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender when the segment was sent."""

@final
class Loss:
    """A congestion event."""

    @property
    def now_ns(self) -> int:
        """When it was inferred, since the start of the run."""

    @property
    def flight_segments(self) -> int:
        """Segments that were sent and not acknowledged (FlightSize, RFC 5681 2)."""

    @property
    def by_timeout(self) -> bool:
        """Whether the retransmission timer expired; otherwise a loss or marks were reported."""

@final
class Interval:
    """What the acknowledgements of an interval say."""

    @property
    def start_ns(self) -> int:
        """When it began, since the start of the run."""

    @property
    def end_ns(self) -> int:
        """When it ended."""

    @property
    def mss_bytes(self) -> int:
        """Payload bytes of a full segment."""

    @property
    def acks(self) -> int:
        """Number of acknowledgements."""

    @property
    def delivered_segments(self) -> int:
        """Segments newly known to be delivered."""

    @property
    def delivered_bps(self) -> float:
        """Payload bits that were delivered, per second."""

    @property
    def lost_segments(self) -> int:
        """Segments newly marked lost."""

    @property
    def timeouts(self) -> int:
        """Retransmission time-outs."""

    @property
    def rtt_ns(self) -> int | None:
        """Smallest RTT of the interval; None without a sample."""

    @property
    def srtt_ns(self) -> int:
        """Smoothed RTT at its end."""

    @property
    def min_rtt_ns(self) -> int:
        """Smallest RTT of the connection."""

    @property
    def in_flight_segments(self) -> int:
        """Segments in flight at its end."""

    @property
    def app_limited(self) -> bool:
        """Whether the application limited the sender."""

@final
class SteppedRun:
    """A run of a scenario that pauses for its agents' decisions, in the thread that created it."""

    def __new__(
        cls, scenario: Scenario, seed: int, flows: list[int], interval_ms: float | None = None
    ) -> Self:
        """Begin a run.

        ``flows``: places in ``scenario.flows`` of the TCP flows for which agents decide; the agents
        have the numbers from 0. ``interval_ms``: time between two decisions; None: a smoothed RTT.
        """

    def advance(self) -> bool:
        """Run until an agent is to decide; False at the end. Raises ``CongestionError``."""

    def interval(self, agent: int) -> Interval:
        """Return what an agent's flow has seen since this was last asked."""

    def cwnd_segments(self, agent: int) -> float | None:
        """Return cwnd of an agent's flow; None before its connection exists."""

    def decide(self, agent: int, cwnd_segments: float) -> None:
        """Set cwnd of an agent's flow, which takes effect at once when the run goes on.

        Raises ``CongestionError`` for an impossible one. Without a decision cwnd stays as it is.
        """

    def is_done(self, agent: int) -> bool:
        """Whether an agent's flow will not send anything more."""

    @property
    def now_ns(self) -> int:
        """Simulated time so far."""

    def finish(self) -> Result:
        """End the run where it is."""

@final
class Window:
    """The window that a congestion control decides."""

    cwnd_segments: float
    """Congestion window, from 1 to 10,000,000; fractions accumulate."""
    ssthresh_segments: float
    """Slow start threshold, 1 or more; infinite before the first congestion."""
    pacing_bps: float | None
    """Pacing rate in payload bits per second, at least a segment per ``rto.max_ms``; None: as the
    profile paces. Only a model-based class may set it."""

@type_check_only
class PreparedCongestion(Protocol):
    """An object for one connection: ``airpath.congestion.Prepared``."""

    @property
    def class_name(self) -> str: ...
    @property
    def model_based(self) -> bool: ...
    @property
    def interval_ms(self) -> float | None: ...
    @property
    def methods(self) -> dict[str, Callable[..., object]]: ...

@final
class CongestionLibrary:
    """A shared library with a congestion control, which stays loaded."""

    def __new__(cls, path: Path) -> Self:
        """Check and load it, which runs its code. Raises ``CongestionError``."""

    @property
    def name(self) -> str:
        """Name of the algorithm in tables."""

    @property
    def content(self) -> bytes:
        """Content of the file."""

def congestion_interface() -> str:
    """Return the interface of libraries, a file of Rust that needs only the standard library."""

class CongestionError(ValueError):
    """A congestion control that cannot go on; its cause is what it raised."""

class ScenarioError(ValueError):
    """A scenario that cannot be run; ``str(error)`` is the rendered message, all problems in it."""

    problems: list[Problem]

@type_check_only
class ScenarioFlow(TypedDict):
    """A flow of a scenario."""

    index: int
    """Its place in the file, counted from 0."""
    id: str
    kind: str
    """``bulk``, ``file``, ``udp`` or ``ping``."""
    direction: str
    """``down`` or ``up``."""
    congestion: str | None
    """The sender's congestion control; None without TCP."""
    profile: str | None
    """Name of the TCP profile; None without TCP."""
    simulated_only: list[tuple[str, str, str]]
    """What no kernel can be told and is not as in the profile: key, its value, the profile's."""

@type_check_only
class CoreUe(TypedDict):
    """A UE of a scenario with a core network."""

    index: int
    name: str
    imsi: str
    key: str | None
    opc: str | None
    apn: str

@type_check_only
class CoreNetwork(TypedDict):
    """The settings of ``[core]``, and the UEs."""

    subscribers: str
    keys: str | None
    pool: str
    apn: str
    rrc_setup_ms: float
    attach_ms: float
    session_ms: float
    access: str
    ues: list[CoreUe]

@final
class Scenario:
    """A checked scenario: if it exists, it can be run."""

    @property
    def name(self) -> str:
        """Short name: the stem of the file name."""

    def with_sets(self, sets: list[str], option: str) -> Scenario:
        """Set more keys, with ``KEY=VALUE`` entries that ``option`` gave.

        Raises ``ScenarioError``.
        """

    @property
    def given(self) -> tuple[str, str, str | None, list[str]]:
        """Text, name, directory and sets: what it was parsed of."""

    @property
    def title(self) -> str:
        """One line for people."""

    @property
    def seed(self) -> int:
        """Seed that the scenario names; a run may override it."""

    @property
    def duration_s(self) -> float:
        """Simulated time at the most, in seconds."""

    @property
    def coalesce_bytes(self) -> int:
        """Bytes that an emulation hands to the kernel at once; see ``emulation.coalesce_bytes``."""

    @property
    def sha256(self) -> str:
        """Hash of ``resolved_toml``, in hexadecimal."""

    @property
    def core(self) -> CoreNetwork | None:
        """What ``[core]`` says, and who the UEs are (``ues``); None without it."""

    @property
    def resolved_toml(self) -> str:
        """The scenario with every default and every ``--set`` written out."""

    @property
    def flows(self) -> list[ScenarioFlow]:
        """The flows that are enabled, in the file's order."""

    @property
    def lateness_bound_s(self) -> float:
        """What 99 % of an emulation's packets may be late."""

    @property
    def program_lines(self) -> list[tuple[str, str, str]]:
        """Name, end and command line of what an emulation runs."""

    @property
    def programs(self) -> list[str]:
        """Names of what an emulation runs."""

def parse(
    text: str, name: str, directory: str | None, sets: list[str], option: str = "--set"
) -> Scenario:
    """Parse and check a scenario.

    ``name`` is what messages call the text: the path as typed, or the name of a shipped scenario.
    ``directory`` is where relative trace files are looked up; ``sets`` holds ``KEY=VALUE`` entries,
    which messages say ``option`` gave. Raises ``ScenarioError``.
    """

def profiles() -> list[str]:
    """Names of the built-in TCP profiles."""

def radio_presets() -> list[tuple[str, str]]:
    """Name and description of every radio preset."""

def shipped() -> list[tuple[str, str]]:
    """Names and TOML texts of the scenarios that come with airpath."""

def redacted(text: str) -> str:
    """Return a text with ``…`` for each secret, in whatever spelling."""

def secret_hash(key: str, imsi: str, value: str) -> str:
    """Return what stands for a secret in what a run writes; a hash stands for itself."""

def schema() -> str:
    """JSON schema of the scenario file."""

def reference() -> str:
    """Reference of every scenario key, as Markdown."""

@final
class RunFigures:
    """The figures of one run, for ``explain``."""

@final
class Result:
    """What one simulation left behind."""

    @property
    def figures(self) -> RunFigures:
        """The figures without the tables."""

    @property
    def summary(self) -> RunSummary:
        """The figures of this seed."""

    @property
    def capture_lacks(self) -> str | None:
        """What the capture lacks, and why; None: nothing, or there is none."""

    def table(self, name: str) -> ArrowStream:
        """Return a table by name: times are int64 nanoseconds since the start of the run."""

    def table_names(self) -> list[str]:
        """Names of the tables, in a fixed order."""

    def write_parquet(self, directory: Path, metadata: dict[str, str]) -> list[tuple[str, str]]:
        """Write ``NAME.parquet`` for every table into an existing directory.

        Those that could not be written leave no file; their names, each with the reason.
        """

def explain(
    scenario: Scenario,
    seed: int,
    repeat: int,
    budget: Literal["quick", "full"],
    threads: int,
    known: list[RunFigures],
    progress: Callable[[int], bool] | None = None,
) -> Explanation:
    """Try what may hold a scenario back: ``findings``, ``tried``, ``seeds``, ``runs``, ``events``.

    It is about ``repeat`` seeds; ``known`` has the figures of the first ones, where they ran
    already. ``progress`` is told how many simulations have ended, and stops the rest by returning
    False (``KeyboardInterrupt``).
    """

def compare(
    scenario: Scenario,
    variants: list[Scenario],
    seeds: list[int],
    threads: int,
    progress: Callable[[int], bool] | None = None,
) -> list[VariantRow]:
    """Run a scenario and its variants on common seeds; one entry a figure."""

def variant_rows(measured: list[list[list[tuple[str, str, float, bool]]]]) -> list[VariantRow]:
    """Compare figures that were measured elsewhere, as ``compare`` does.

    ``measured`` has, by variant and pair, the flow, name and value of each figure, and whether the
    value is a result. A transfer that did not complete has an estimate instead.
    """

def table_columns() -> dict[str, list[tuple[str, str, bool]]]:
    """Every table that a run can have, each with its columns: name, type, whether it may be null.

    A type is one of Rust's, ``text``, or ``name`` for text with a dictionary.
    """

def simulate(
    scenario: Scenario,
    seed: int,
    progress: Callable[[float], bool] | None = None,
    accounted: bool = False,
    capture: Path | None = None,
    congestion: Sequence[
        tuple[int, str, Callable[[], PreparedCongestion] | CongestionLibrary]
    ] = ...,
) -> Result:
    """Run a scenario on the virtual clock; releases the GIL.

    ``progress`` is called now and then with the simulated time in seconds, from the thread that
    runs; when it returns False the simulation stops and raises ``KeyboardInterrupt``.

    ``accounted``: its summary also has ``breakdowns``. ``capture``: the headers of every packet at
    the server and at the UEs are written to this pcapng file. Raises ``OSError`` if it cannot be
    made. ``congestion``: places of flows in the file, each with a name for tables, and a library or
    what returns a new object. Raises ``CongestionError`` if one of those cannot go on.
    """

@final
class Batch:
    """The rows of a batch of runs; the first column of each table is ``run``."""

    def table(self, name: str) -> ArrowStream:
        """Return a table by name: ``runs``, ``flows``, ``groups``, ``pings`` or ``links``."""

    def table_names(self) -> list[str]:
        """Names of the tables, in a fixed order."""

    @property
    def events(self) -> list[int]:
        """Events of each run, in the order of the jobs; 0 for one that failed."""

def simulate_batch(
    jobs: list[tuple[int, Scenario, int]],
    threads: int,
    keep_on: Callable[[], bool] | None,
) -> Batch:
    """Simulate runs: their numbers in the campaign, scenarios and seeds; releases the GIL.

    A run that panics has a row in ``runs`` that says so, and takes nothing from the others.
    ``keep_on`` is asked now and then; when it returns False, all stops (``KeyboardInterrupt``).
    """

def worked_s() -> float:
    """Return the processor time of the calling thread's calls into the core so far, in seconds.

    The work is done in a thread of its own, whose time the calling thread's clock does not show.
    Threads that the work starts are not counted.
    """

def check_variants(
    text: str, name: str, directory: str | None, variants: list[list[str]], threads: int
) -> list[tuple[str | None, str | None]]:
    """Parse variants of a scenario; releases the GIL. Each gives its hash, or what is wrong."""

@final
class Emulated:
    """What one emulation left behind."""

    @property
    def code(self) -> int:
        """The command's exit code; 128 and the number of the signal that ended it."""

    @property
    def invalid(self) -> str | None:
        """Why the run does not count; None: it does."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or a signal to this process asked the programs to end."""

    @property
    def report(self) -> Report:
        """What the forwarder counted: ``directions``, ``links``, ``flows``, ``inside``."""

    @property
    def environment(self) -> Environment:
        """Kernel, sysctls, counters, addresses."""

    @property
    def partial(self) -> list[str]:
        """Why the result is partial, a sentence each; empty: it is whole."""

    @property
    def failed(self) -> list[FailedFlow]:
        """Flows of the scenario that failed: ``id`` and ``because``."""

    @property
    def sockets(self) -> list[FlowSockets]:
        """What the kernel said of the TCP flows: ``id``, ``sender``, ``receiver``."""

    @property
    def parity(self) -> Parity | None:
        """``left``, ``dropped``, ``same``, ``first_difference``; None if not asked for."""

    @property
    def programs(self) -> list[ProgramReport]:
        """One dict a program: ``name``, ``at``, ``command``, its times and its ``code``."""

    @property
    def result(self) -> Result:
        """Summary and tables, as a simulation has them."""

def read_capture(path: str | Path | None, head: bytes | None = None) -> CaptureReport:
    """Read a capture to its end; releases the GIL.

    Without a path it comes from standard input, of which ``head`` was read before. Raises
    ``ValueError`` for what is no capture, and ``OSError``.
    """

def read_segments(path: Path, flow: int, from_client: bool) -> Segments:
    """Read the segments of a TCP flow, by its number.

    Its lists are columns, as those of ``read_flows``. Raises ``ValueError`` for what is no capture
    or no such flow, and ``OSError``.
    """

@overload
def read_flows(path: Path, wanted: list[tuple[int, bool]], most: int) -> list[Segments]: ...
@overload
def read_flows(path: Path, wanted: list[tuple[int, None]], most: int) -> list[Packets]: ...
@overload
def read_flows(
    path: Path, wanted: list[tuple[int, bool | None]], most: int
) -> list[Segments | Packets]:
    """Read flows of a capture packet by packet, in one pass; one dict for each that is wanted.

    A flow is wanted by its number: True and False are the segments of its client and of its server
    (``Segments``), None all of its packets (``Packets``); each holds the first ``most``.
    Lists are columns: bytes of 64-bit numbers, little endian, NaN for none. Raises
    ``ValueError`` for what is no capture or no such flow, and ``OSError``.
    """

def view_flows(path: Path, wanted: list[tuple[int, bool]], bins: int, packets: int) -> list[View]:
    """Read TCP flows of a capture to draw them; one view for each.

    A flow is wanted by its number; True is its client's data. ``bins`` is the number of bins at
    the finest level, ``packets`` the most packets that are listed. Columns are bytes: 64-bit or
    32-bit numbers, little endian. Raises ``ValueError`` for what is no capture or no such flow, and
    ``OSError``.
    """

def enter_user_namespace() -> None:
    """Make this process root in a user namespace of its own. Raises ``OSError``.

    Only as long as it has one thread.
    """

@final
class Monitor:
    """Sees what an emulation does, from another thread."""

    def snapshot(self) -> Snapshot | None:
        """Return the newest counters and states; None before the first.

        ``time_s``, ``directions`` (down, up), ``links``, ``cells``, ``ues``, ``mobility``,
        ``flows``. Counters begin at the start of the run.
        """

@type_check_only
class Session(Protocol):
    """A UE's session: ``airpath.emulation.session.Session``."""

    @property
    def index(self) -> int: ...
    @property
    def address(self) -> str: ...
    @property
    def qfi(self) -> int | None: ...
    @property
    def ambr_down_mbps(self) -> float | None: ...
    @property
    def ambr_up_mbps(self) -> float | None: ...
    @property
    def attached_ms(self) -> float: ...
    @property
    def established_ms(self) -> float: ...

@type_check_only
class EmulationOptions(Protocol):
    """The fields of ``airpath.drivers.options.EmulationOptions`` that the extension reads."""

    @property
    def command(self) -> Sequence[str]: ...
    @property
    def servers(self) -> Sequence[str]: ...
    @property
    def place(self) -> str | None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def flows(self) -> bool: ...
    @property
    def parity(self) -> bool: ...
    @property
    def bare(self) -> bool: ...
    @property
    def output(self) -> int | None: ...
    @property
    def error(self) -> int | None: ...
    @property
    def monitor(self) -> Monitor | None: ...
    @property
    def progress(self) -> Callable[[float], None] | None: ...

@type_check_only
class KernelCongestion(Protocol):
    """A congestion control for the kernel: ``airpath.emulation.congestion.Congestion``."""

    @property
    def flow(self) -> str | None: ...
    @property
    def name(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def sha256(self) -> str | None: ...
    @property
    def elf(self) -> bytes | None: ...

def check_congestion(choices: Sequence[KernelCongestion]) -> None:
    """Make congestion controls available to the kernel for a moment.

    Raises ``ValueError`` for what the host lacks and for what is no BPF congestion control, and
    ``OSError`` for what the kernel refuses; if that was its verifier, with the attribute
    ``verifier_log``.
    """

def emulate(
    scenario: Scenario,
    options: EmulationOptions,
    *,
    capture: Path | None = None,
    files: Path | None = None,
    sessions: Sequence[Session] = ...,
    identity: Identity | None = None,
) -> Emulated:
    """Run a scenario on the real clock; releases the GIL.

    With ``options.gateway`` there are no namespaces and no programs. ``capture`` is a pcapng file
    to create, ``files`` a directory for the output of programs, ``sessions`` are the sessions of
    attached UEs. Programs run as ``identity``, or as this process. Raises ``ValueError`` for what
    cannot be emulated, ``OSError`` for what is not allowed here.
    """
