"""What notebooks show, and the methods of results."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.base.later import DOORS, later
from airpath.errors import InputError
from campaigns import SHORT

SETS = {"run.duration_s": 1}
HTML = "<script>alert(1)</script>"


def test_results_lead_upwards_by_the_doors_alone() -> None:
    """Every door is used, and leads to a function; and nothing else imports by name from below."""
    package = Path(airpath.__file__).parent
    below = [*package.glob("runs/*.py"), *package.glob("campaign/*.py"), package / "base/later.py"]
    used = {name for file in below for name in re.findall(r'later\("(\w+)"\)', file.read_text())}
    assert used == DOORS.keys()
    assert all(callable(later(name)) for name in DOORS)
    by_name = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "import_module" in file.read_text()
    }
    # The others are the package's names and the commands, which are imported when they are used.
    assert by_name == {"__init__.py", "base/later.py", "cli/__init__.py"}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> airpath.Campaign:
    definition = {**SHORT, "title": HTML, "seeds": 2}
    return airpath.sweep(definition, out=tmp_path_factory.mktemp("c") / "c", workers=1)


def test_a_run_shows_its_picture_its_findings_and_its_place(tmp_path: Path) -> None:
    run = airpath.run("random-loss", {**SETS, "title": HTML}, out=tmp_path / "run")
    found = run.explain()
    assert found["findings"] == run.findings
    assert airpath.Run.open(tmp_path / "run").findings == run.findings
    assert run.report(tmp_path / "run/report.html").is_file()
    shown = run._repr_html_()
    assert "<script" not in shown
    assert '<img alt="What happened, over time' in shown
    assert (tmp_path / "run/report.html").as_uri() in shown
    assert found["findings"][0]["evidence"].split("<")[0][:20] in shown
    assert len(shown) < 1_100_000


def test_findings_and_variants_are_dicts_that_show_themselves() -> None:
    found: Any = airpath.explain("random-loss", set=SETS)
    assert {"findings", "tried", "breakdowns"} <= found.keys()
    shown = found._repr_html_()
    assert shown.startswith("<p><b>Findings</b>")
    assert "loss" in shown
    tried: Any = airpath.whatif("random-loss", [["path.down.0.queue_packets=5"]], set=SETS, seeds=2)
    shown = tried._repr_html_()
    assert '<img alt="What each variant changes' in shown
    assert "path.down.0.queue_packets=5" in shown


def test_a_campaign_shows_its_verdict(campaign: airpath.Campaign) -> None:
    shown = campaign._repr_html_()
    assert "<script" not in shown
    assert "16 of 16 runs" in shown
    assert "carries the most" in shown
    assert '<img alt="What cc trades' in shown
    assert "<img alt=" in shown
    assert campaign.report(Path(campaign.place) / "report.html").is_file()


def test_a_campaign_is_compared_by_the_names_of_the_command(campaign: airpath.Campaign) -> None:
    figures = ["flows.goodput_mbps"]
    named = airpath.compare(campaign, figures=figures, axis="cc=reno,cubic")
    assert named.equals(airpath.compare(campaign, figures=figures, axis="cc"))
    assert named.equals(airpath.compare(campaign, campaign, figures, "cc", ("reno", "cubic")))
    with pytest.raises(InputError, match="compare two campaigns, or one campaign with axis="):
        airpath.compare(campaign)
    with pytest.raises(InputError, match="--axis cc=a: must be NAME=X,Y"):
        airpath.compare(campaign, axis="cc=a")
