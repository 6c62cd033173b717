"""``airpath whatif``: variants on common seeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.cli.whatif import _of_congestion_control
from airpath.errors import InputError

SHORT = "path.down.0.queue_packets=20"


def test_one_table_compares_the_variants(cli: Any) -> None:
    bbr = 'flow.0.congestion="bbr" run.duration_s=30'
    code, out, err = cli("whatif", "random-loss", "--try", bbr, "--seeds", "3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == '(1) flow.0.congestion="bbr" run.duration_s=30'
    (goodput,) = [line for line in lines if line.startswith("goodput of download")]
    assert goodput.endswith("*")
    assert " Mb/s (" in goodput


def test_the_table_fits_a_terminal_and_names_what_a_variant_costs(cli: Any) -> None:
    tries = ["--try", SHORT, "--try", 'path.down.0.aqm="codel"']
    code, out, _ = cli("whatif", "bufferbloat", *tries, "--seeds", "2")
    assert code == 0
    tables = out.partition("\n\n")[2].partition("\n\nNothing in this scenario is random")[0]
    assert max(map(len, tables.splitlines())) <= 80
    assert "as it is   (1) queue_packets=20\n" in tables
    assert 'as it is   (2) aqm="codel"\n' in tables
    assert out.splitlines()[-1].startswith("(2) is a trade-off: better RTT (p95) of download, ")
    assert out.endswith("; worse goodput of download.\n")


def test_nobody_wins_inside_the_noise(cli: Any) -> None:
    code, out, _ = cli("whatif", "random-loss", "--try", "flow.0.initial_window_segments=11")
    assert code == 0
    assert "*" not in out.rpartition("\n\n")[0]


def test_the_document_has_each_seed() -> None:
    answer = airpath.whatif("bufferbloat", [SHORT, {"path.down.0.aqm": "codel"}], seeds=2, seed=7)
    assert answer["seeds"] == [7, 8]
    assert answer["variants"] == [[], [SHORT], ['path.down.0.aqm="codel"']]
    row = next(row for row in answer["rows"] if row["metric"] == "goodput_mbps")
    assert row["more_is_better"] is True
    base, short, _ = row["cells"]
    assert base is not None
    assert short is not None
    assert base["change"] is None
    assert len(short["values"]) == 2
    run = airpath.run("bufferbloat", {"path.down.0.queue_packets": 20}, seed=7)
    assert short["values"][0] == run.summary["flows"][0]["goodput_mbps"]
    again = airpath.whatif("bufferbloat", [SHORT], seeds=2, seed=7, workers=1)
    assert again["rows"][0]["cells"] == answer["rows"][0]["cells"][:2]


def test_json_is_the_same_document(cli: Any) -> None:
    code, out, _ = cli("whatif", "bufferbloat", "--try", SHORT, "--seeds", "2", "--json")
    assert code == 0
    assert json.loads(out) == airpath.whatif("bufferbloat", [SHORT], seeds=2)


@pytest.mark.parametrize(("name", "begins"), [("a.svg", "<svg"), ("a.html", "<!DOCTYPE html>")])
def test_the_chart(cli: Any, name: str, begins: str) -> None:
    arguments = ["--try", SHORT, "--seeds", "2", "--chart", name]
    code, _, err = cli("whatif", "bufferbloat", *arguments)
    assert (code, err) == (0, f"chart: {name}\n")
    text = Path(name).read_text()
    assert text.startswith(begins)
    assert SHORT in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--try", "flow.0.windw_bytes=1"], "did you mean `window_bytes`"),
        (["--try", " "], "--try is empty"),
        (["--try", SHORT, "--chart", "a.gif"], "a.gif: the name of a chart must end in"),
        (["--try", SHORT, "--seeds", "5000"], "must be from 1 to 1000"),
    ],
)
def test_wrong_use_is_refused(cli: Any, arguments: list[str], message: str) -> None:
    code, out, err = cli("whatif", "bufferbloat", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_setting_without_effect_is_named(cli: Any) -> None:
    """A window of 20 kB never loses anything, so CUBIC's beta is never used."""
    arguments = ["--set", "flow.0.window_bytes=20000", "--seeds", "2"]
    tries = ["--try", "flow.0.cubic.beta=0.5", "--try", "flow.0.window_bytes=30000"]
    code, out, _ = cli("whatif", "wire", *arguments, *tries)
    assert code == 0
    assert "\n(1) made no difference: every figure is the same with each seed." in out
    assert "does not depend on the congestion control" in out


def test_a_variant_that_is_the_base_is_called_so(cli: Any) -> None:
    queue = "path.down.0.queue_packets"
    tries = ["--try", f"{queue}=20", "--try", "flow.0.start_s=0"]
    code, out, _ = cli("whatif", "bufferbloat", "--set", f"{queue}=20", *tries, "--seeds", "2")
    assert code == 0
    assert "\n(1) is the same as the base, which already has that value." in out
    assert "\n(2) is the same as the base" in out
    assert "made no difference" not in out
    assert "congestion control" not in out


def test_a_wrong_variant_is_named_by_its_option(cli: Any) -> None:
    key = "path.down.0.queue_packets"
    code, _, err = cli("whatif", "bufferbloat", "--try", f"{key}=oops")
    assert (code, f"error: --try {key}=oops: " in err, "--set" in err) == (2, True, False)
    code, _, err = cli("whatif", "bufferbloat", "--set", f"{key}=oops", "--try", f"{key}s=3")
    assert (code, f"error: --set {key}=oops: " in err) == (2, True)


def test_a_wrong_setting_is_named_by_its_argument_in_python() -> None:
    key = "path.down.0.queue_packets"
    with pytest.raises(InputError, match=f"^error: variants {key}=oops: "):
        airpath.whatif("bufferbloat", [[f"{key}=oops"]])
    with pytest.raises(InputError, match=f"^error: set {key}=oops: "):
        airpath.whatif("bufferbloat", [{"run.seed": 2}], set=[f"{key}=oops"])
    with pytest.raises(InputError, match="variants takes KEY=VALUE strings"):
        airpath.whatif("bufferbloat", [[3]])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("setting", "is_one"),
    [
        ("flow.0.congestion=bbr", True),
        ("profile.mine.cubic.beta=0.5", True),
        ("flow.*.hystart.low_window=4", True),
        ("profile.cubic.options.sack=false", False),
        ("radio.ue.0.imsi=1", False),
        ("run.seed=2", False),
    ],
)
def test_a_key_of_the_congestion_control_is_known(setting: str, is_one: bool) -> None:
    assert _of_congestion_control(setting) == is_one


def test_retransmissions_are_shown_and_are_neither_best_nor_a_trade_off(cli: Any) -> None:
    arguments = ["--set", "run.duration_s=3", "--seeds", "2"]
    code, out, _ = cli("whatif", "bufferbloat", *arguments, "--try", "path.down.0.queue_packets=20")
    assert code == 0
    shown = next(line for line in out.splitlines() if line.startswith("retransmitted segments of"))
    # Without the variant nothing is lost: there is no relative change from zero.
    assert shown.split()[3:] == ["download", "0", "%", "4", "%"], shown
    assert out.count("retransmitted segments") == 1
