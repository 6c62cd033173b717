"""``airpath sweep``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, cast

import typer

from airpath.base.choices import Explain
from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import AsJson, Report

if TYPE_CHECKING:
    from airpath.base.choices import Cluster
    from airpath.campaign.definition import Definition, Until
    from airpath.campaign.results import Campaign


CampaignFile = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN",
        help="A campaign file, or the name of a shipped campaign.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="The folder of the results, or a URL such as s3://bucket/name. "
        "[default: campaigns/NAME]",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of threads, or of the cluster's workers; results do not depend on it. "
        "[default: all cores]",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Run on the workers of this Dask scheduler, which you must trust: tcp://HOST:8786.",
    ),
]
ClusterKind = Annotated[
    str | None,
    typer.Option(
        metavar="KIND",
        help="Start a Dask cluster with --workers workers and run there: local (processes "
        "on this machine) or slurm (jobs).",
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="With --resume: simulate failed runs again."),
]
UntilWidth = Annotated[
    str | None,
    typer.Option(
        metavar="ci=N%",
        help="Add seeds to each combination until half of the 95 % interval is below N % of the "
        "mean.",
    ),
]
Figure = Annotated[
    str | None,
    typer.Option(
        metavar="FIGURE",
        help="The figure for --until. [default: flows.goodput_mbps]",
    ),
]
MaxSeeds = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=10,
        help="The most seeds per combination with --until. [default: 1000]",
    ),
]
Explaining = Annotated[
    Explain | None,
    typer.Option(
        help="Find what limits each run; costs ten to thirty extra runs per run. [default: "
        "as in the file, or off]",
    ),
]


def command(
    campaign: CampaignFile,
    out: Out = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    cluster: ClusterKind = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Simulate only runs that are not yet in DIR.")
    ] = False,
    retry_failed: RetryFailed = False,
    until: UntilWidth = None,
    figure: Figure = None,
    max_seeds: MaxSeeds = None,
    explain: Explaining = None,
    report: Report = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only check the campaign and estimate its cost."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Run a campaign: many runs over the keys of scenarios, here or on a cluster.

    Every scenario is checked before the first run starts, and a sample of the runs gives an
    estimate of how long all will take. The results are Parquet files with one row for each run,
    flow, group, ping, link and finding; read them with `airpath query`, `plot`, `compare` and
    `report`. Ctrl-C keeps finished runs, and --resume continues.
    """
    from airpath.campaign import definition as definitions
    from airpath.campaign.sweep import check_engine, estimate, sweep
    from airpath.errors import InputError
    from airpath.runs import summary
    from airpath.runs.directories import check_file_target

    if report is not None:
        check_file_target(report)
    if retry_failed and not resume:
        raise InputError("--retry-failed needs --resume")
    check_engine(workers, scheduler, cluster)
    definition = definitions.load(campaign)
    if until is None and (figure is not None or max_seeds is not None):
        raise InputError("--figure and --max-seeds need --until")
    if until is not None:
        definition = dataclasses.replace(
            definition, until=_until(until, figure, max_seeds, definition)
        )
    if check:
        about = estimate(definition, workers, explain)
        if json:
            output(summary.to_json(dataclasses.asdict(about)))
        else:
            output(about.sentence())
        return
    with progress_bar("simulating") as bar:
        done = sweep(
            definition,
            out=out,
            workers=workers,
            scheduler=scheduler,
            # `sweep` refuses an unknown cluster.
            cluster=cast("Cluster | None", cluster),
            resume=resume,
            retry_failed=retry_failed,
            explain=explain,
            progress=bar,
            tell=narrate,
        )
    if json:
        output(summary.to_json({"out": done.place, **done.document}))
    else:
        _say(done)
    if report is not None:
        from airpath.report.campaign import write_campaign_report

        write_campaign_report(done, report)
        narrate(f"report: {report}")
    if done.document["failed"]:
        raise typer.Exit(1)


def _until(text: str, figure: str | None, max_seeds: int | None, definition: Definition) -> Until:
    import re

    from airpath.campaign.definition import Until
    from airpath.campaign.figures import parse_figure
    from airpath.errors import InputError

    found = re.fullmatch(r"ci\s*=\s*(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    share = 0.0 if found is None else float(found[1]) / (100 if found[2] else 1)
    if not 0 < share < 1:
        raise InputError(f"--until {text}: must be ci=N%, above 0 % and below 100 %, e.g. ci=2%")
    if len(definition.seeds) < 10:
        raise InputError(
            f"--until needs seeds = 10 or more in {definition.file}: with fewer, an interval means "
            "little"
        )
    if figure is not None:
        parse_figure(figure)
    before = definition.until or Until(share)
    return Until(share, figure or before.figure, max_seeds or before.max_seeds)


def _overhead(share: float) -> str:
    from airpath.base.text import percent

    return "nearly all" if share > 0.95 else percent(max(0.0, share))


def _say(done: Campaign) -> None:
    from airpath.base.text import plural, runs_of

    about = done.document
    told = runs_of(about["runs"], about["cells"], about["seeds"])
    if about["recovered"]:
        told += f", {about['recovered']} of them from before"
    if about["simulated"]:
        told += f"; took {about['wall_s']:.1f} s with {plural(about['workers'], 'worker')}, "
        told += f"{_overhead(about['overhead'] or 0.0)} of it start-up and writing"
    output(told)
    if about["failed"]:
        output(
            f"{plural(about['failed'], 'run')} failed; their scenarios are in {done.place}/failed"
        )
    output(f"results: {done.place}")
