"""``airpath doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from airpath.cli.console import output


def command(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Restore interfaces that a killed `airpath emulate --gateway` left changed, "
            "instead of checking. Needs root; does nothing if nothing was left.",
        ),
    ] = False,
) -> None:
    """Check what this machine can do, what is missing and how to get it."""
    from airpath.emulation import doctor
    from airpath.runs import summary

    if undo:
        restored = doctor.undo()
        if json:
            output(summary.to_json({"restored": restored}))
        else:
            for sentence in restored or ["there is nothing to undo"]:
                output(sentence)
        return
    findings = doctor.examine()
    if json:
        output(summary.to_json(doctor.as_json(findings)))
        return
    width = max(len(found.name) for found in findings)
    for found in findings:
        state = "yes" if found.found else "no "
        output(f"{state}  {found.name:{width}}  {found.detail}")
        if found.found:
            continue
        indent = f"     {'':{width}}  "
        output(f"{indent}needed for: {found.needed_for}")
        output(f"{indent}without: {found.cost or 'this does not work'}")
        remedy = found.remedy or "none is known"
        output(f"{indent}remedy: " + remedy.rstrip().replace("\n", f"\n{indent}"))
