"""The command line: one description for ``steward-run`` and ``steward run``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import wishes
from .wishes import Misuse, Wishes

SERVICE = "http://127.0.0.1:8080"
DESCRIPTION = """\
Run a command under Steward's decisions: it is started, limited, and given after
each of its iterations what is decided. Its output passes through unchanged; the
exit status is its own."""
EXAMPLES = """\
examples:
  %(prog)s --learn --deadline 30m -- python train.py
  %(prog)s --workload resnet18 --deadline 2h -- python train.py --epochs 90
  %(prog)s --learn --resource cpu=50..400/50%% \\
    --pattern 'pass (?P<iteration>\\d+) loss=(?P<loss>.+)' -- ./train"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Misuse(f"{message}; what belongs to the command stands after --")


def parser(program: str) -> argparse.ArgumentParser:
    """What may be said."""
    made = _Parser(
        program,
        usage="%(prog)s [options] -- COMMAND …",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    which = made.add_mutually_exclusive_group()
    which.add_argument("--workload", metavar="NAME", help="a workload of the service; default: named as the script")
    which.add_argument("--learn", action="store_true", help="register, profile and learn what is not known yet")
    made.add_argument("--name", help="with --learn: what the workload is called; default: as the script")
    made.add_argument("--deadline", metavar="TIME", help="seconds, or 30m, 1h30m: by when it is to be done")
    made.add_argument("--target", metavar="METRIC=VALUE", action="append", default=[], help="of another metric")
    made.add_argument("--resource", metavar="NAME=LEAST..MOST/STEP", action="append", default=[], help=_RESOURCE)
    made.add_argument("--iterations", metavar="N", type=int, help="with --learn: how many there are")
    where = made.add_argument_group("where iterations end (the client's callbacks, else the usual forms of output)")
    where.add_argument("--pattern", metavar="REGEX", help="of a line of output: (?P<iteration>\\d+), (?P<loss>…)")
    where.add_argument("--watch-file", metavar="FILE", type=Path, help="a log that the script writes: a line each")
    where.add_argument(
        "--marks", choices=("auto", "start", "end"), default="auto", help="whether lines begin or end one"
    )
    place = made.add_argument_group("where it runs")
    place.add_argument("--actuator", metavar="NAME", default="local", help="what starts and limits it; default: local")
    place.add_argument("--option", metavar="NAME=VALUE", action="append", default=[], help="of the actuator")
    place.add_argument(
        "--url", default=os.environ.get("STEWARD_URL") or SERVICE, help=f"the service; default: {SERVICE}"
    )
    place.add_argument("--data", metavar="FOLDER", type=Path, help="of the service that is started where none is")
    place.add_argument("--clean", action="store_true", help=_CLEAN)
    told = made.add_argument_group("what is told")
    told.add_argument("--plot", metavar="FILE", type=Path, help="draw the run to a .png, .svg or .html")
    told.add_argument("--quiet", action="store_true", help="only the summary")
    learning = made.add_argument_group("with --learn")
    learning.add_argument("--profile-iterations", metavar="N", type=int, default=24, help="to measure; default: 24")
    learning.add_argument("--budget", metavar="N", type=int, help="environment steps of the training")
    made.add_argument("command", nargs="*", metavar="COMMAND", help=argparse.SUPPRESS)
    return made


_CLEAN = "remove what a launcher of another machine left of this run, too; without a command only that"
_RESOURCE = "what may be set: cpu=50..400/50%% (of a core), memory=512..4096/512MiB"


def read(program: str, arguments: Sequence[str]) -> Wishes:
    """What was said.

    Raises:
        Misuse: it can't be meant.
    """
    said = parser(program).parse_args(list(arguments))
    if not said.command and not (said.clean and (said.workload or said.name)):
        raise Misuse(f"no command; {program} [options] -- python train.py")
    for name in ("iterations", "profile_iterations", "budget"):
        if (number := getattr(said, name)) is not None and number < 1:
            raise Misuse(f"--{name.replace('_', '-')} {number}: a number above 0 is accepted")
    if not said.url.startswith(("http://", "https://")):
        raise Misuse(f"--url {said.url}: http://HOST:PORT is accepted")
    if said.workload and said.resource:
        raise Misuse("--resource: a workload has its own; only --learn registers another")
    return Wishes(
        command=tuple(said.command),
        workload=said.workload or said.name or wishes.named(said.command),
        learn=said.learn,
        clean=said.clean,
        deadline=None if said.deadline is None else wishes.duration(said.deadline),
        targets=wishes.targets(said.target),
        resources=tuple(map(wishes.resource, said.resource)),
        iterations=said.iterations,
        pattern=None if said.pattern is None else wishes.pattern(said.pattern),
        watch_file=said.watch_file,
        marks=said.marks,
        actuator=said.actuator,
        options=wishes.pairs("--option", said.option),
        url=said.url.rstrip("/"),
        data=said.data,
        plot=said.plot,
        quiet=said.quiet,
        profile_iterations=said.profile_iterations,
        budget=said.budget,
    )
