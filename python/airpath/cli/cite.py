"""``airpath cite``."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate, output


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN|CAMPAIGN|STUDY]",
            help="A run directory, the folder of a campaign, or the name of a study. [default: "
            "airpath itself]",
        ),
    ] = None,
    archive: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also pack a simulated run into a zip file with RO-Crate metadata, for `airpath "
            "reproduce FILE`.",
        ),
    ] = None,
) -> None:
    """Print how to cite airpath, a run, a campaign or a study.

    Prints a paragraph for the methods section, then an entry for BibTeX. Standard error says if
    nobody else can obtain the version that was used.
    """
    from airpath.campaign.results import is_campaign, open_campaign
    from airpath.cite import citation
    from airpath.errors import InputError
    from airpath.runs.source import source
    from airpath.study.definition import load_study, study_names

    run = None
    if what is None:
        cited, of = citation.software(), source()
    elif what in study_names():
        cited, of = citation.study(load_study(what)), source()
    elif is_campaign(what):
        campaign = open_campaign(what)
        cited, of = citation.campaign(campaign), campaign.document.get("source")
    elif not os.path.lexists(what):
        near = difflib.get_close_matches(what, study_names(), n=1)
        hint = f"; did you mean the study {near[0]}?" if near else ""
        raise InputError(f"no run, campaign or study {what}{hint}")
    else:
        from airpath.runs.results import Run

        run = Run.open(what)
        cited, of = citation.run(run), run.provenance.get("source")
    if archive is not None:
        from airpath.cite.archive import pack

        if run is None:
            raise InputError("--archive is for a run; give its directory")
        narrate(f"archive: {archive}, {len(pack(run, archive))} files")
    output("\n\n".join(cited))
    if (doubt := citation.doubt(of)) is not None:
        narrate(f"note: {doubt}")
