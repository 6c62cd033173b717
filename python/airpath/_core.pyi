"""The compiled part of airpath: scenario parser, simulator, tables."""

from collections.abc import Callable
from typing import Any, Protocol, final, type_check_only

__version__: str
__bpf__: bool
"""Whether programs inside the kernel are built in."""

@type_check_only
class ArrowStream(Protocol):
    """Anything that exports the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class ScenarioError(ValueError):
    """A scenario that cannot be run; ``str(error)`` is the rendered message, all problems in it."""

    problems: list[dict[str, Any]]
    """One dict a problem: ``file``, ``line``, ``column``, ``set``, ``message``, ``help``."""

@final
class Scenario:
    """A checked scenario: if it exists, it can be run."""

    @property
    def name(self) -> str:
        """Short name: the stem of the file name."""

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
    def core(self) -> dict[str, Any] | None:
        """What ``[core]`` says, and who the UEs are (``ues``); None without it."""

    @property
    def resolved_toml(self) -> str:
        """The scenario with every default and every ``--set`` written out."""

    @property
    def flows(self) -> list[dict[str, Any]]:
        """One dict a flow: ``id``, ``kind``, ``direction``, ``congestion``, ``profile``."""

    @property
    def lateness_bound_s(self) -> float:
        """What 99 % of an emulation's packets may be late."""

    @property
    def program_lines(self) -> list[tuple[str, str, str]]:
        """Name, end and command line of what an emulation runs."""

    @property
    def programs(self) -> list[str]:
        """Names of what an emulation runs."""

def parse(text: str, name: str, directory: str | None, sets: list[str]) -> Scenario:
    """Parse and check a scenario.

    ``name`` is what messages call the text: the path as typed, or the name of a shipped scenario.
    ``directory`` is where relative trace files are looked up; ``sets`` holds ``KEY=VALUE`` entries.
    Raises ``ScenarioError``.
    """

def profiles() -> list[str]:
    """Names of the built-in TCP profiles."""

def radio_presets() -> list[tuple[str, str]]:
    """Name and description of every radio preset."""

def shipped() -> list[tuple[str, str]]:
    """Names and TOML texts of the scenarios that come with airpath."""

def secret_keys() -> list[str]:
    """Names of the keys of ``[[radio.ue]]`` that are secret."""

def secret_hash(key: str, imsi: str, value: str) -> str:
    """Return what stands for a secret in what a run writes; a hash stands for itself."""

def schema() -> str:
    """JSON schema of the scenario file."""

def reference() -> str:
    """Reference of every scenario key, as Markdown."""

@final
class Result:
    """What one simulation left behind."""

    @property
    def summary(self) -> dict[str, Any]:
        """``seed``, ``simulated_s``, ``events``, ``flows``, ``pings``, ``links``."""

    def table(self, name: str) -> ArrowStream:
        """Return a table by name: times are int64 nanoseconds since the start of the run."""

    def table_names(self) -> list[str]:
        """Names of the tables, in a fixed order."""

    def write_parquet(self, directory: str, metadata: dict[str, str]) -> list[tuple[str, str]]:
        """Write ``NAME.parquet`` for every table into an existing directory.

        Those that could not be written leave no file; their names, each with the reason.
        """

def explain(
    scenario: Scenario,
    text: str,
    name: str,
    directory: str | None,
    sets: list[str],
    seed: int,
    full: bool,
    threads: int,
    progress: Callable[[int], bool] | None = None,
) -> dict[str, Any]:
    """Try what may hold a scenario back: ``findings``, ``tried`` and ``runs``.

    Text, name, directory and sets are those that ``parse`` made the scenario of. ``progress`` is
    told how many simulations have ended, and stops the rest by returning False
    (``KeyboardInterrupt``).
    """

def simulate(
    scenario: Scenario,
    seed: int,
    progress: Callable[[float], bool] | None = None,
) -> Result:
    """Run a scenario on the virtual clock; releases the GIL.

    ``progress`` is called now and then with the simulated time in seconds, from the thread that
    runs; when it returns False the simulation stops and raises ``KeyboardInterrupt``.
    """

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
    def report(self) -> dict[str, Any]:
        """What the forwarder counted: ``directions``, ``links``, ``flows``, ``inside``."""

    @property
    def facts(self) -> dict[str, Any]:
        """Kernel, sysctls, counters, addresses."""

    @property
    def partial(self) -> list[str]:
        """Why the result is partial, a sentence each; empty: it is whole."""

    @property
    def failed(self) -> list[dict[str, str]]:
        """Flows of the scenario that failed: ``id`` and ``because``."""

    @property
    def sockets(self) -> list[dict[str, Any]]:
        """What the kernel said of the TCP flows: ``id``, ``sender``, ``receiver``."""

    @property
    def parity(self) -> dict[str, Any] | None:
        """``left``, ``dropped``, ``same``, ``first_difference``; None if not asked for."""

    @property
    def programs(self) -> list[dict[str, Any]]:
        """One dict a program: ``name``, ``at``, ``command``, its times and its ``code``."""

    @property
    def result(self) -> Result:
        """Summary and tables, as a simulation has them."""

def enter_user_namespace() -> None:
    """Make this process root in a user namespace of its own. Raises ``OSError``.

    Only as long as it has one thread.
    """

@final
class Monitor:
    """Sees what an emulation does, from another thread."""

    def snapshot(self) -> dict[str, Any] | None:
        """Return the newest counters and states; None before the first.

        ``time_s``, ``directions`` (down, up), ``links``, ``cells``, ``ues``, ``mobility``,
        ``flows``. Counters begin at the start of the run.
        """

def emulate(
    scenario: Scenario,
    seed: int,
    command: list[str],
    servers: list[str],
    place: str | None = None,
    quiet: bool = False,
    bare: bool = False,
    capture: str | None = None,
    files: str | None = None,
    output: int | None = None,
    error: int | None = None,
    monitor: Monitor | None = None,
    flows: bool = False,
    parity: bool = False,
    progress: Callable[[float], bool] | None = None,
    sessions: list[tuple[int, int, int, float, float, int, int]] | None = None,
    user: tuple[int, int, list[int]] | None = None,
    limited: bool = False,
    environment: list[tuple[str, str]] | None = None,
) -> Emulated:
    """Run a command inside a scenario's network, on the real clock; releases the GIL.

    With ``flows`` the scenario's flows run too, or alone if the command is empty; ``progress`` is
    then called as by ``simulate``. ``parity`` plays the packets again on the virtual clock.

    ``bare`` leaves the model out: packets are passed on as they come, for comparison.
    ``capture`` is a pcapng file to be written, ``files`` a directory for what the scenario's
    programs write. Without a command they decide when the run ends. ``output`` and ``error``
    are descriptors for what the command writes. ``monitor`` shows what happens.
    ``sessions`` are those of UEs that attach: place in the scenario, address as a number, QFI, the
    times in ms after which the UE is attached and has a session, and its AMBR down and up in b/s,
    0 for no limit. Programs run as ``user`` (user, group, other groups; None: as this process), and
    if ``limited`` without capabilities but CAP_NET_RAW, and for root those with which it gives up
    being root; ``environment`` is what they have otherwise than this process.

    Raises ``ValueError`` for what cannot be emulated, ``OSError`` for what is not allowed here.
    """
