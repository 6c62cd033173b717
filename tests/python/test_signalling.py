"""What base station and core signal in a capture: tshark reads it, and the keys stay secret."""

from __future__ import annotations

import errno
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import _core as compiled
from airpath.drivers import emulate
from airpath.drivers.options import EmulationOptions
from airpath.emulation import attach, signalling
from airpath.emulation.oam import subscribers
from airpath.emulation.oam.subscribers import Subscriber
from airpath.emulation.signalling import Signalling, aka, asn1, capture, sctp
from conftest import UNEXPLAINED, Command
from emulated import needs, printed

KEY = "465b5ce8b199b49faa5f0a2ee238a6bc"
OPC = "cd63cb71954a9f4e48a5994e37a02baf"
IMSI = "001010000000001"
BEGAN_NS, END_NS = 1_700_000_000 * 10**9, 10**10

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is missing")

ATTACH = [
    "InitialUEMessage, Attach request, PDN connectivity request",
    "DownlinkNASTransport, Authentication request",
    "UplinkNASTransport, Authentication response",
    "DownlinkNASTransport, Security mode command",
    "UplinkNASTransport, Security mode complete",
    "DownlinkNASTransport, ESM information request",
    "UplinkNASTransport, ESM information response",
]
SESSION = [
    "InitialContextSetupRequest, Attach accept, Activate default EPS bearer context request",
    "InitialContextSetupResponse",
    "UplinkNASTransport, Attach complete, Activate default EPS bearer context accept",
]
RELEASE = ["UEContextReleaseCommand", "UEContextReleaseComplete"]
DETACH = [
    "UplinkNASTransport, Detach request (EPS detach)",
    "DownlinkNASTransport, Detach accept",
    *RELEASE,
]
REGISTRATION = [
    "InitialUEMessage, Registration request",
    "DownlinkNASTransport, Authentication request",
    "UplinkNASTransport, Authentication response",
    "DownlinkNASTransport, Security mode command",
    "UplinkNASTransport, Security mode complete, Registration request",
    "InitialContextSetupRequest, Registration accept",
    "InitialContextSetupResponse",
    "UplinkNASTransport, Registration complete",
    "UplinkNASTransport, UL NAS transport, PDU session establishment request",
]
PDU_SESSION = [
    "PDUSessionResourceSetupRequest, DL NAS transport, PDU session establishment accept",
    "PDUSessionResourceSetupResponse",
]
DEREGISTRATION = [
    "UplinkNASTransport, Deregistration request (UE originating)",
    "DownlinkNASTransport, Deregistration accept (UE originating)",
    *RELEASE,
]


def _core(database: Path, access: str = "lte", **changes: str) -> Any:
    ue = {"index": 0, "name": "phone", "imsi": IMSI, "key": KEY, "opc": OPC, "apn": "internet"}
    return {"subscribers": str(database), "pool": "10.45.0.0/24", "apn": "internet",
            "access": access, "rrc_setup_ms": 50.0, "attach_ms": 210.0, "session_ms": 100.0,
            "ues": [{**ue, **changes}]}  # fmt: skip


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "subscribers.db"
    subscribers.add(file, Subscriber(IMSI, KEY, OPC, ambr_down_mbps=50.0, ambr_up_mbps=0.5))
    subscribers.add(file, Subscriber("001010000000002", KEY, OPC, apn="ims", qci=8, qfi=5))
    return file


def _written(file: Path, core: Any, seed: int = 7) -> Path:
    """A capture of a whole run, or of one that is refused."""
    attempts = attach.attempts(core)
    signals = Signalling(core, attempts, seed)
    if isinstance(attempts[-1].outcome, attach.Refusal):
        signals.write_refusal(file, BEGAN_NS)
    else:
        capture.create(file, "server", [])
        signals.add(file, BEGAN_NS, END_NS)
    return file


def _read(file: Path, display_filter: str, *fields: str) -> list[list[str]]:
    """Rows of tshark, which deciphers null ciphering and checks the checksums."""
    options = ("nas-eps.null_decipher:TRUE", "nas-5gs.null_decipher:TRUE",
               "sctp.checksum:TRUE", "ip.check_checksum:TRUE")  # fmt: skip
    words = [word for option in options for word in ("-o", option)]
    words += [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-n", "-r", str(file), *words, "-Y", display_filter, "-T", "fields"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Some versions of tshark put colons between the bytes of a TEID.
    return [line.replace(":", "").split("\t") for line in done.stdout.splitlines()]


def _without_complaint(file: Path) -> list[str]:
    """The messages, once tshark finds nothing wrong in any packet."""
    wrong = "_ws.malformed || _ws.expert.severity >= 0x600000 || _ws.unreassembled"
    bad_sums = "sctp.checksum.status == 0 || ip.checksum.status == 0"
    assert not _read(file, f"{wrong} || {bad_sums}", "frame.number", "_ws.expert.message")
    rows = _read(file, "s1ap || ngap", "_ws.col.Info")
    # tshark adds the cause of a release.
    return [row[0].partition(" [")[0] for row in rows]


@needs_tshark
@pytest.mark.parametrize(
    ("access", "interface", "expected"),
    [
        ("lte", "s1-mme", [*ATTACH, *SESSION, *DETACH]),
        ("nr", "n2", [*REGISTRATION, *PDU_SESSION, *DEREGISTRATION]),
    ],
)
def test_tshark_reads_attach_and_detach(
    database: Path, tmp_path: Path, access: str, interface: str, expected: list[str]
) -> None:
    file = _written(tmp_path / "c.pcapng", _core(database, access))
    assert _without_complaint(file) == expected
    rows = _read(file, "s1ap || ngap", "frame.interface_name", "frame.time_epoch", "ip.src")
    assert {row[0] for row in rows} == {interface}
    times_ns = [int(row[1].replace(".", "")) - BEGAN_NS for row in rows]
    assert times_ns == sorted(times_ns)
    # 50 ms until the RRC connection, 210 ms until attach_complete, 100 ms until time 0.
    assert times_ns[:2] == [-310_000_000, -280_000_000]
    assert times_ns[7] == -100_000_000
    first_of_detach = len(expected) - 4
    assert times_ns[first_of_detach - 1] == 0
    assert times_ns[first_of_detach:][:2] == [END_NS, END_NS + 30_000_000]
    up = [
        name.startswith(("Uplink", "InitialUE")) or name.endswith(("Response", "Complete"))
        for name in expected
    ]
    assert [row[2] == "10.78.0.2" for row in rows] == up


@needs_tshark
def test_an_lte_session_is_the_ues(database: Path, tmp_path: Path) -> None:
    file = _written(tmp_path / "c.pcapng", _core(database))
    ((imsi,),) = _read(file, "nas_eps.nas_msg_emm_type == 0x41", "e212.imsi")
    assert imsi == IMSI
    request = "s1ap.procedureCode == 9 && s1ap.initiatingMessage_element"
    fields = ("s1ap.transportLayerAddressIPv4", "s1ap.gTP_TEID", "s1ap.qCI",
              "s1ap.uEaggregateMaximumBitRateDL", "s1ap.uEaggregateMaximumBitRateUL",
              "nas_eps.esm.pdn_ipv4", "gsm_a.gm.sm.apn")  # fmt: skip
    assert _read(file, request, *fields) == [
        ["10.78.0.1", "20000001", "9", "50000000", "500000", "10.45.0.2", "internet"]
    ]
    response = "s1ap.procedureCode == 9 && s1ap.successfulOutcome_element"
    assert _read(file, response, *fields[:2]) == [["10.78.0.2", "10000001"]]


@needs_tshark
def test_an_nr_session_is_the_ues(database: Path, tmp_path: Path) -> None:
    file = _written(tmp_path / "c.pcapng", _core(database, "nr"))
    ((msin,),) = _read(file, "nas_5gs.mm.message_type == 0x41 && !nas_5gs.mm.message_type == 0x5e",
                       "nas_5gs.mm.suci.msin")  # fmt: skip
    assert msin == "0000000001"
    request = "ngap.procedureCode == 29 && ngap.initiatingMessage_element"
    fields = ("ngap.TransportLayerAddressIPv4", "ngap.gTP_TEID", "ngap.fiveQI",
              "nas_5gs.sm.qfi", "nas_5gs.sm.pdu_addr_inf_ipv4", "nas_5gs.cmn.dnn")  # fmt: skip
    assert _read(file, request, *fields) == [
        ["10.78.0.1", "20000001", "9", "9", "10.45.0.2", "internet"]
    ]
    rates = ("ngap.uEAggregateMaximumBitRateDL", "ngap.uEAggregateMaximumBitRateUL")
    assert _read(file, request, *rates) == [["50000000", "500000"]]
    response = "ngap.procedureCode == 29 && ngap.successfulOutcome_element"
    assert _read(file, response, *fields[:2]) == [["10.78.0.2", "10000001"]]


UNKNOWN, WRONG_KEY = {"imsi": "001010000000009"}, {"key": OPC}
NO_NETWORK, NOT_SUBSCRIBED = {"apn": "corporate"}, {"imsi": "001010000000002"}


@needs_tshark
@pytest.mark.parametrize(
    ("changes", "field", "cause", "messages"),
    [
        (UNKNOWN, "nas_eps.emm.cause", "8", 2),
        (WRONG_KEY, "nas_eps.emm.cause", "20", 4),
        (NO_NETWORK, "nas_eps.esm.cause", "0x1b", 8),
        (NOT_SUBSCRIBED, "nas_eps.esm.cause", "0x21", 8),
    ],
)
def test_an_lte_refusal_carries_its_cause(
    database: Path, tmp_path: Path, changes: dict[str, str], field: str, cause: str, messages: int
) -> None:
    file = _written(tmp_path / "c.pcapng", _core(database, **changes))
    said = _without_complaint(file)
    assert said[-2:] == RELEASE
    assert len(said) == messages + 2
    ((found,),) = _read(file, field, field)
    assert int(found, 0) == int(cause, 0)
    # A PDN connection that is refused fails the attach: EMM cause #19.
    outer = [row[0] for row in _read(file, "nas_eps.emm.cause", "nas_eps.emm.cause")]
    assert outer == ["19" if "esm" in field else cause]


@needs_tshark
@pytest.mark.parametrize(
    ("changes", "field", "cause", "last"),
    [
        (UNKNOWN, "nas_5gs.mm.5gmm_cause", 7, "UEContextReleaseComplete"),
        (WRONG_KEY, "nas_5gs.mm.5gmm_cause", 20, "UEContextReleaseComplete"),
        (NO_NETWORK, "nas_5gs.sm.5gsm_cause", 27, "PDU session establishment reject"),
        (NOT_SUBSCRIBED, "nas_5gs.sm.5gsm_cause", 33, "PDU session establishment reject"),
    ],
)
def test_an_nr_refusal_carries_its_cause(
    database: Path, tmp_path: Path, changes: dict[str, str], field: str, cause: int, last: str
) -> None:
    file = _written(tmp_path / "c.pcapng", _core(database, "nr", **changes))
    assert last in _without_complaint(file)[-1]
    ((found,),) = _read(file, field, field)
    assert int(found, 0) == cause


@needs_tshark
def test_several_ues_share_an_association(database: Path, tmp_path: Path) -> None:
    """Their messages take turns, and each has its own identities."""
    core = _core(database)
    second = "001010000000003"
    subscribers.add(database, Subscriber(second, KEY, OPC))
    core["ues"].append({**core["ues"][0], "index": 1, "name": "tablet", "imsi": second})
    file = _written(tmp_path / "c.pcapng", core)
    said = _without_complaint(file)
    assert said == [name for name in [*ATTACH, *SESSION, *DETACH] for _ in range(2)]
    rows = _read(file, "s1ap", "s1ap.ENB_UE_S1AP_ID", "sctp.data_tsn", "ip.src")
    # A release command names the pair of identities a second time.
    assert [row[0][0] for row in rows] == ["1", "2"] * (len(said) // 2)
    tsns = [int(row[1]) for row in rows if row[2] == "10.78.0.2"]
    assert tsns == list(range(len(tsns)))
    addresses = _read(file, "nas_eps.esm.pdn_ipv4", "nas_eps.esm.pdn_ipv4", "s1ap.gTP_TEID")
    assert addresses == [["10.45.0.2", "20000001"], ["10.45.0.3", "20000002"]]


@pytest.mark.parametrize("access", ["lte", "nr"])
def test_bytes_follow_from_the_seed_and_have_no_key(
    database: Path, tmp_path: Path, access: str
) -> None:
    core = _core(database, access)
    first, again, other = (
        _written(tmp_path / f"{name}.pcapng", core, seed).read_bytes()
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    )
    assert first == again
    assert first != other
    for secret in (KEY, OPC):
        assert bytes.fromhex(secret) not in first
        assert secret.encode() not in first
    (attempt,) = attach.attempts(core)
    assert KEY not in repr(attempt)
    assert KEY not in repr(Signalling(core, [attempt], 7).attempts)


def test_milenage_is_that_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test set 1 of TS 35.208 4.3."""
    monkeypatch.setattr(aka, "MANAGEMENT_FIELD", bytes.fromhex("b9b9"))
    made = aka.vector(
        bytes.fromhex(KEY),
        bytes.fromhex(OPC),
        bytes.fromhex("23553cbe9637a89d218ae64dae47bf35"),
        bytes.fromhex("ff9bb4d0b607"),
    )
    assert made.res.hex() == "a54211d5e3ba50bf"
    assert made.keys[:16].hex() == "b40ba9a3c58b2a05bbf0d987b21bf8cb"
    assert made.keys[16:].hex() == "f769bcd751044604127672711c6d3441"
    concealed = int("ff9bb4d0b607", 16) ^ int("aa689c648370", 16)
    assert made.autn.hex() == f"{concealed:012x}b9b94a9ffac354dfafb3"


def test_keys_of_5g_are_those_of_another_implementation() -> None:
    """P1 Security's CryptoMobile (conv.py) computes the same from these values."""
    made = aka.vector(
        bytes.fromhex(KEY),
        bytes.fromhex(OPC),
        bytes.fromhex("23553cbe9637a89d218ae64dae47bf35"),
    )
    serving = "5G:mnc001.mcc001.3gppnetwork.org"
    assert aka.response_5g(made, serving).hex() == "f236a7417272bfb2d66d4d670733b527"
    keys = aka.keys_5g(made, serving, IMSI)
    assert keys.integrity.hex() == "81ed5517ff0514865c82ac0de489aea3"
    assert keys.base_station.hex() == (
        "e7a6d7d03ed80d9cd7d02074b4e97b3f3d067844bbe9d591256c0c7ce85c1fb8"
    )


def test_integrity_is_that_of_the_specification() -> None:
    """Test set 2 of 128-EIA2 (TS 33.401 C.2)."""
    code = aka.integrity_code(
        bytes.fromhex("d3c5d592327fb11c4035c6680af8c6d1"),
        0x398A59B4,
        0x1A,
        bytes.fromhex("484583d5afe082ae"),
        downlink=True,
    )
    assert code.hex() == "b93787e6"


def test_crc32c_has_the_usual_check_value() -> None:
    assert sctp._crc32c(b"123456789") == 0xE3069283


def test_an_element_that_a_message_has_not_is_refused() -> None:
    from pycrate_asn1dir import S1AP

    with pytest.raises(KeyError, match="DownlinkNASTransport has no TAI"):
        asn1.Encoder(S1AP).pdu("DownlinkNASTransport", {"TAI": {}})


def test_other_packets_stay_between(tmp_path: Path) -> None:
    file = tmp_path / "c.pcapng"
    capture.create(file, "server", [(1000 + number, bytes([number] * 60)) for number in range(3)])
    whole = file.read_bytes()
    capture.add(file, "s1-mme", [(10, b"a" * 61)], [(2000, b"b" * 62)])
    assert file.stat().st_mode & 0o777 == 0o600
    report: Any = compiled.read_capture(file)
    assert [one["name"] for one in report["interfaces"]] == ["server", "s1-mme"]
    assert report["backward_times"] == 0
    packets = whole[whole.index(bytes([0] * 60)) - 28 :]
    assert packets in file.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.pcapng"]


def test_a_full_disk_leaves_the_capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.pcapng"
    capture.create(file, "server", [(1000, b"a" * 60)])
    whole = file.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        capture.add(file, "s1-mme", [(10, b"a" * 60)], [])
    assert file.read_bytes() == whole
    assert [entry.name for entry in tmp_path.iterdir()] == ["c.pcapng"]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An emulation whose UE the core does not know."""
    monkeypatch.chdir(tmp_path)
    subscribers.add(tmp_path / "subscribers.db", Subscriber("001010000000002", KEY, OPC))

    def call(*, captured: bool) -> str:
        options = EmulationOptions(command=["true"], capture=captured, out=tmp_path / "run")
        with pytest.raises(attach.AttachError) as error:
            emulate.emulate(airpath.load("lte-private"), options)
        return str(error.value)

    return call


@needs_tshark
def test_a_refused_run_keeps_its_capture(refused: Any, tmp_path: Path) -> None:
    said = refused(captured=True)
    assert "EMM cause #8" in said
    assert said.splitlines()[1].startswith("  what was written is kept: ")
    kept = tmp_path / "run.failed"
    names = {entry.name for entry in kept.iterdir() if not entry.name.startswith(".")}
    assert names == {"capture.pcapng", "provenance.json", "scenario.toml"}
    assert len(_without_complaint(kept / "capture.pcapng")) == 4
    assert KEY not in (kept / "scenario.toml").read_text()


def test_without_a_capture_nothing_is_kept(refused: Any, tmp_path: Path) -> None:
    assert len(refused(captured=False).splitlines()) == 1
    assert not list(tmp_path.glob("run*"))


def test_without_pycrate_the_extra_is_named(
    refused: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signalling, "find_spec", lambda _: None)
    hint = "the capture lacks S1AP and NAS, which need pycrate: pip install 'airpath[core]'"
    lines = refused(captured=True).splitlines()
    assert lines[1:] == [f"  {hint}"]
    assert not list(tmp_path.glob("run*"))
    signals = Signalling(_core(tmp_path / "none.db"), [], 1)
    document: Any = {"emulation": {"limits": []}}
    assert emulate._add(signals, tmp_path / "c.pcapng", document, 0) == []
    assert document["emulation"]["limits"] == [hint]


@needs("ip", "ping", "nft", "tshark")
@pytest.mark.parametrize("preset", ["lte-20", "nr-n78"])
def test_an_emulations_capture_has_its_signalling(
    airpath_command: Command, tmp_path: Path, preset: str
) -> None:
    """At the times of its events, around its packets, with the TEIDs that these have."""
    add = ("--key", KEY, "--opc", OPC)
    assert airpath_command("subscriber", "add", IMSI, *add).returncode == 0
    sets = ("--set", f"radio.preset={preset}", "--out", str(tmp_path / "run"))
    command = ("--", "ping", "-4", "-c", "2", "-i", "0.1", "server")
    done = airpath_command(
        "emulate", *UNEXPLAINED, "lte-private", "--capture", "--json", *sets, *command
    )
    emulation = printed(done)["emulation"]
    (session,) = emulation["gtpu"]["sessions"]
    file = tmp_path / "run/capture.pcapng"
    messages = _without_complaint(file)
    assert len(messages) == (14 if preset == "lte-20" else 15)
    rows = _read(file, "frame", "frame.time_epoch", "frame.interface_name")
    signals = [index for index, row in enumerate(rows) if row[1] in ("s1-mme", "n2")]
    before = 2 * (len(messages) - 4)
    assert signals == [*range(before), *range(len(rows) - 8, len(rows))]
    times_ns = [int(row[0].replace(".", "")) for row in rows]
    events = pl.read_parquet(tmp_path / "run/events.parquet")
    (detach_ns,) = events.filter(pl.col("kind") == "detach")["time_ns"]
    zero_ns = times_ns[before - 1]
    assert times_ns[-8] - zero_ns == pytest.approx(detach_ns, abs=1)
    assert zero_ns < min(times_ns[before:-8]) < max(times_ns[before:-8]) <= times_ns[-8]
    teids = {
        int(word, 16)
        for row in _read(file, "s1ap || ngap", "s1ap.gTP_TEID", "ngap.gTP_TEID")
        for word in row
        if word
    }
    assert teids == {session["teid_up"], session["teid_down"]}
    assert teids == {int(row[0], 16) for row in _read(file, "gtp", "gtp.teid")}
