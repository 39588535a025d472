"""Command line of ``steward-run`` and ``steward run``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from . import wishes
from .actuators.requests import GRANT_SECONDS
from .wishes import Misuse, Wishes

SERVICE = "http://127.0.0.1:8080"
DESCRIPTION = """\
Run a command under Steward's decisions: start it, limit its resources, and give
it a new decision after each iteration. Its output passes through unchanged. The
exit status is its own, 128+n if signal n ended it; if it was never started: 1
refused by the service, 2 usage error, 3 service unreachable, 127 not started."""
EXAMPLES = """\
examples:
  %(prog)s --deadline 30m -- python train.py
  %(prog)s --learn --deadline 30m -- python train.py
  %(prog)s --workload resnet18 --deadline 2h -- python train.py --epochs 90
  %(prog)s --learn --resource cpu=50..400/50%% \\
    --pattern 'pass (?P<iteration>\\d+) loss=(?P<loss>.+)' -- ./train"""


ALIKE = 0.8
"""Least similarity (0 to 1) of an unknown option to the one that is suggested."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        unknown = message.partition("unrecognized arguments: ")[2].split()
        like = get_close_matches(unknown[0], self._option_string_actions, 1, ALIKE) if unknown else []
        meant = f" (did you mean {like[0]}?)" if like else ""
        shown = "steward run launch --help" if self.prog == "steward run" else f"{self.prog} --help"
        raise Misuse(f"{message}{meant}; options of the command go after --; see {shown}")


def parser(program: str) -> argparse.ArgumentParser:
    """The parser of the command line; it raises Misuse for usage errors, instead of exiting."""
    parser = _Parser(
        program,
        usage="%(prog)s [options] -- COMMAND …",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--workload", metavar="NAME", help="name of a registered workload")
    which.add_argument("--learn", action="store_true", help="register, profile and train the workload as needed")
    parser.add_argument("--name", help="name of a workload that is registered if there is none; default: the script's")
    parser.add_argument("--deadline", metavar="TIME", help="time to finish in: seconds, or 30m, 1h30m")
    parser.add_argument(
        "--target", metavar="METRIC=VALUE", action="append", default=[], help="target for another metric; repeatable"
    )
    parser.add_argument("--max-cost", metavar="COST", help="stop the command before an iteration that would cost more")
    parser.add_argument(
        "--max-duration", metavar="TIME", help="stop the command after this time: seconds, or 30m, 1h30m"
    )
    parser.add_argument("--policy", metavar="RULE", help="rule to follow instead of the agent or default rule: hold, …")
    parser.add_argument(
        "--advise", action="store_true", help="change nothing: show what is recommended, and its savings"
    )
    parser.add_argument("--resource", metavar="NAME=LEAST..MOST/STEP", action="append", default=[], help=_RESOURCE)
    parser.add_argument(
        "--iterations", metavar="N", type=int, help="number of iterations; default: as the command says"
    )
    where = parser.add_argument_group(
        "detecting iterations (default: client callbacks, else progress bars, 'Epoch 3/90', '3/90')"
    )
    where.add_argument(
        "--pattern", metavar="REGEX", help="output line to match: (?P<iteration>\\d+), (?P<total>\\d+), (?P<loss>…)"
    )
    where.add_argument(
        "--watch-file", metavar="FILE", type=Path, help="log written by the script, one line per iteration"
    )
    where.add_argument(
        "--marks",
        choices=("auto", "start", "end"),
        default="auto",
        help="whether lines mark the start or end of an iteration",
    )
    place = parser.add_argument_group("where to run")
    place.add_argument(
        "--actuator", metavar="NAME", default="local", help="what starts and limits the command; default: local"
    )
    place.add_argument(
        "--option", metavar="NAME=VALUE", action="append", default=[], help="actuator option; repeatable"
    )
    place.add_argument(
        "--url", default=os.environ.get("STEWARD_URL") or SERVICE, help=f"address of the service; default: {SERVICE}"
    )
    place.add_argument(
        "--data", metavar="FOLDER", type=Path, help="data folder of a service started if none is running"
    )
    place.add_argument("--grant-timeout", metavar="TIME", help=_GRANT)
    place.add_argument("--queue-timeout", metavar="TIME", help=_QUEUE)
    place.add_argument("--checkpoint", action="store_true", help=_CHECKPOINT)
    place.add_argument("--clean", action="store_true", help=_CLEAN)
    output_group = parser.add_argument_group("output")
    output_group.add_argument("--plot", metavar="FILE", type=Path, help="write a plot of the run: .png, .svg or .html")
    output_group.add_argument("--mlflow", metavar="URI", nargs="?", const="", help=_MLFLOW)
    output_group.add_argument(
        "--quiet", action="store_true", help="print only the summary, warnings, and further starts"
    )
    output_group.add_argument(
        "--no-output", dest="output", action="store_false", help="don't send a failed command's last lines of output"
    )
    learning = parser.add_argument_group("with --learn")
    learning.add_argument(
        "--profile-iterations", metavar="N", type=int, default=24, help="iterations to measure; default: 24"
    )
    learning.add_argument("--profile-jobs", action="store_true", help=_PROFILE_JOBS)
    learning.add_argument("--no-restart", dest="restart", action="store_false", help=_NO_RESTART)
    learning.add_argument("--budget", metavar="N", type=int, help="environment steps of the training")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help=argparse.SUPPRESS)
    return parser


_CHECKPOINT = (
    "the command continues from its last checkpoint when it is started again: changes may restart it, where they must "
    "(slurm, elastic)"
)
_GRANT = "give up an allocation that waits for room after this time: seconds, or 30m; default: 10m"
_QUEUE = (
    "cancel a job that has not started after this time in the queue (slurm): seconds, or 30m; default: 1h for those of "
    "--profile-jobs, no limit for the run's own"
)
_CLEAN = "also remove what launchers on other machines left of this run; without a command, do only that"
_NO_RESTART = (
    "start the command once only; without this, one that ends before enough is measured is started again, and once "
    "more under decisions; each start is announced"
)
_PROFILE_JOBS = (
    "measure by short jobs side by side, one for each allocation, that are ended then (slurm); needs no --checkpoint, "
    "but a command that may run several times at once"
)
_MLFLOW = (
    "log decisions and outcome to MLflow, to the run MLFLOW_RUN_ID, or to a new one that the command's start_run() "
    "continues; default address: MLFLOW_TRACKING_URI"
)
_RESOURCE = "resource to set: cpu=50..400/50%% (of a core), memory=512..4096/512MiB"


def read(program: str, arguments: Sequence[str]) -> Wishes:
    """Parse a command line's arguments.

    Raises:
        Misuse: an argument is missing, malformed, or contradicts another.
    """
    options = parser(program).parse_args(list(arguments))
    if not options.command and not (options.clean and (options.workload or options.name)):
        raise Misuse(f"no command; {program} [options] -- python train.py")
    for name in ("iterations", "profile_iterations", "budget"):
        if (number := getattr(options, name)) is not None and number < 1:
            raise Misuse(f"--{name.replace('_', '-')} {number}: a number above 0 is accepted")
    if not options.url.startswith(("http://", "https://")):
        raise Misuse(f"--url {options.url}: http://HOST:PORT is accepted")
    if options.advise and options.learn:
        raise Misuse("--advise changes nothing, --learn measures by changes; --advise needs earlier runs, or samples")
    if options.workload and options.resource:
        raise Misuse("--resource: a workload has its own; another --name registers another")
    return Wishes(
        command=tuple(options.command),
        workload=_name(options),
        registered=options.workload is not None,
        learn=options.learn,
        clean=options.clean,
        deadline=None if options.deadline is None else wishes.duration(options.deadline),
        targets=wishes.targets(options.target),
        max_cost=None if options.max_cost is None else wishes.cost(options.max_cost),
        grant_seconds=wishes.duration(options.grant_timeout, "--grant-timeout")
        if options.grant_timeout
        else GRANT_SECONDS,
        queue_seconds=None
        if options.queue_timeout is None
        else wishes.duration(options.queue_timeout, "--queue-timeout"),
        max_seconds=None if options.max_duration is None else wishes.duration(options.max_duration, "--max-duration"),
        resources=tuple(map(wishes.resource, options.resource)),
        policy=options.policy,
        advise=options.advise,
        iterations=options.iterations,
        pattern=None if options.pattern is None else wishes.pattern(options.pattern),
        watch_file=options.watch_file,
        marks=options.marks,
        actuator=options.actuator,
        options=wishes.pairs("--option", options.option),
        url=options.url.rstrip("/"),
        data=options.data,
        mlflow=options.mlflow,
        plot=options.plot,
        quiet=options.quiet,
        output=options.output,
        checkpoint=options.checkpoint,
        restart=options.restart,
        profile_iterations=options.profile_iterations,
        profile_jobs=options.profile_jobs,
        budget=options.budget,
    )


def _name(options: argparse.Namespace) -> str:
    """The workload's name: as the options say, else the command's."""
    for option in ("workload", "name"):
        if (given := getattr(options, option)) is not None:
            return wishes.workload(given, f"--{option}")
    return wishes.default_name(options.command)
