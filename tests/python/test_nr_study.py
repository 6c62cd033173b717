"""The study nr-bbr-cubic: complete, fitted on the CUBIC rows alone, and its shapes can fail."""

from __future__ import annotations

from collections import Counter

from airpath.base.toml import read_toml
from airpath.study.definition import load_study

NAME = "nr-bbr-cubic"
PUBLISHED = {
    "unicom-phone-throughput": [578, 568],
    "unicom-phone-ping": [134, 54],
    "mobile-phone-throughput": [365, 593],
    "mobile-phone-ping": [168, 93],
    "mobile-phone-mdev": [195, 37],
    "unicom-module-throughput": [330, 352],
    "unicom-module-ping": [42, 62],
    "speedtest-ping": [[None, 100], [None, 100], 825],
}
TOLERANCES = {
    "unicom-phone-throughput": 0.20,
    "unicom-phone-ping": 0.30,
    "mobile-phone-throughput": 0.25,
    "mobile-phone-ping": 0.35,
    "speedtest-ping": 0.30,
}


def test_every_published_figure_has_an_entry() -> None:
    figures = {figure.id.removeprefix(f"{NAME}/"): figure for figure in load_study(NAME).figures}
    values = {name: figure.published for name, figure in figures.items() if figure.kind == "value"}
    assert values == PUBLISHED
    assert {name for name in figures if name not in values} == {"unicom-module", "proxy"}
    for name, tolerance in TOLERANCES.items():
        assert figures[name].tolerance == tolerance
        assert all(cell.tolerance == tolerance for cell in figures[name].cells)


def test_parameters_are_few_and_chosen_by_cubic_alone() -> None:
    study = load_study(NAME)
    of = Counter(parameter.of for parameter in study.parameters)
    assert max(of["China Unicom"], of["China Mobile"]) <= 4
    assert of["the USB module"] <= 2
    # Wire and WiFi are no networks of the study: what the source compares 5G with is an input.
    beside = {"the wire": "epon", "the WiFi": "wifi"}
    assert of.keys() == {"China Unicom", "China Mobile", "the USB module", *beside}
    for parameter in study.parameters:
        if parameter.of in beside:
            assert parameter.chosen_by == f"{NAME}/speedtest-ping/{beside[parameter.of]}"
            continue
        assert parameter.chosen_by.endswith("/cubic")
        (chooser,) = (leaf for leaf in study.leaves if leaf.id == parameter.chosen_by)
        assert not any("congestion" in entry for entry in chooser.sets)


def test_figures_set_what_the_source_varied_or_proposes() -> None:
    varied = {"flow.*.ue", "flow.0.congestion"}
    proposed = {"path.down.2.enabled", "path.up.0.enabled", "flow.2.enabled"}
    for figure in load_study(NAME).leaves:
        assert {entry.partition("=")[0] for entry in figure.sets} <= varied
        for part in figure.shape.get("of", []):
            for side in ("this", "than"):
                sets = {entry.partition("=")[0] for entry in part[side].get("set", [])}
                assert sets <= varied | proposed


def test_the_networks_differ_in_what_was_fitted_or_said() -> None:
    """And the values that the study names are those of its scenarios."""
    study = load_study(NAME)
    unicom, mobile = (
        read_toml(study.directory / f"scenario-{name}.toml") for name in ("unicom", "mobile")
    )
    assert {**unicom, "radio": None, "title": None} == {**mobile, "radio": None, "title": None}
    for network, scenario in (("China Unicom", unicom), ("China Mobile", mobile)):
        values = {each.key: each.value for each in study.parameters if each.of == network}
        radio = scenario["radio"]
        assert values["radio.channel.distance_m"] == f"{radio['channel']['distance_m']} m"
        megabytes = radio["rlc"]["buffer_bytes"] / 1e6
        assert values["radio.rlc.buffer_bytes"] == f"{megabytes:g} MB"
    module = {each.key: each.value for each in study.parameters if each.of == "the USB module"}
    link = unicom["radio"]["ue"][1]["host_link"]
    assert module["radio.ue.1.host_link.rate_mbps"] == f"{link['rate_mbps']} Mb/s"
    assert module["radio.ue.1.host_link.queue_bytes"] == f"{link['queue_bytes'] / 1e6:g} MB"
