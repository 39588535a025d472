"""Nouns whose commands follow from what is said of them, and no more but for jobs, which are of three sorts."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from app.cli.nouns.catalogue import JOB, JOBS, MODEL, SERIES, WORKLOAD
from app.cli.nouns.commands import Fields, File, Wait, Workload, group
from app.cli.nouns.contract import Action
from app.cli.options import SERVICE, STATUSES, AsJson, Url


def register(cli: typer.Typer) -> None:
    """Add their groups to the ``steward`` command."""
    for noun in (WORKLOAD, SERIES, MODEL):
        cli.add_typer(group(noun))
    jobs = group(JOB)
    cli.add_typer(jobs)
    jobs.command(epilog=STATUSES)(create)


def create(
    what: Annotated[Literal["fit", "train", "evaluate"], typer.Argument(help="Type of job.")],
    workload: Workload,
    fields: Fields = None,
    file: File = None,
    wait: Wait = False,
    as_json: AsJson = False,
    url: Url = SERVICE,
) -> None:
    """Queue a job and print it: steward job create fit resnet18."""
    from app.cli.remote.perform import perform

    given = () if "{workload}" in JOBS[what] else ("workload",)
    action = Action("create", JOBS[what], "", given=given, fields=True, result="")
    said = {"workload": workload, "fields": fields, "file": file, "wait": wait, "as_json": as_json, "url": url}
    perform(action, said)
