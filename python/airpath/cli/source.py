"""Which campaign a command is about."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[CAMPAIGN]",
        help="Folder or URL of a campaign. [default: the newest in campaigns]",
    ),
]


def source_or_newest(campaign: str | None) -> str:
    """The campaign that was named, or the newest."""
    from airpath.campaign.results import newest_campaign

    if campaign is not None:
        return campaign
    newest = newest_campaign(Path("campaigns"))
    narrate(f"newest campaign: {newest}")
    return str(newest)
