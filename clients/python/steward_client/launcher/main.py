"""``steward-run``: runs a command under Steward's decisions, and prints a summary at its end."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from steward_client.errors import StewardError, Unreachable
from steward_client.mlflow_sink import MlflowSink, MlflowUnavailable

from . import arguments, plot, summary
from .actuators import leftovers, registry
from .actuators.contract import ActuatorError
from .governed import Governed, targets
from .interrupts import Interrupted, ignore_signals, interruptible
from .learn.learning import CommandEnded, Learning
from .learn.profile import Profile
from .learn.specification import check_same
from .service import JobFailed, Json, Service, error_line
from .serving import service_at
from .terminal import columns, say
from .watched import Watched
from .wishes import Misuse, Resource, Wishes

REFUSED, MISUSED, UNREACHABLE, NOT_STARTED = 1, 2, 3, 127
PROGRAM = "steward-run"


def main(words: Sequence[str] | None = None, program: str = PROGRAM) -> int:
    """Entry point of ``steward-run``: run a command line and return the exit status.

    The status is the command's own (128 + n if signal n ended it); without a start 1 refused by the service, 2 usage
    error, 3 service unreachable, 127 not started. ``words``: arguments, None: the process's own.
    """
    try:
        wishes = arguments.read(program, sys.argv[1:] if words is None else words)
        plot.check(wishes.plot)
        with interruptible():
            return launch(wishes)
    except Misuse as error:
        return _print_failure(program, error, MISUSED)
    except (StewardError, JobFailed) as error:
        return _print_failure(program, error, REFUSED)
    except Unreachable as error:
        return _print_failure(program, error, UNREACHABLE)
    except CommandEnded as error:
        return _print_failure(program, error, error.status)
    except ActuatorError as error:
        return _print_failure(program, error, NOT_STARTED)
    except Interrupted as error:
        say(error.what, program)
        return error.status


def launch(wishes: Wishes) -> int:
    """Run the command under Steward's decisions and return its exit status.

    Raises:
        Misuse: the options contradict the workload.
        StewardError, Unreachable, JobFailed: the service refused, didn't respond, or a job failed.
        ActuatorError: the command can't be started.
        CommandEnded: it has ended, and something failed afterwards.
    """
    _listen()
    if not wishes.command:
        return _clean(wishes)
    _check_start(wishes)
    with (
        tempfile.TemporaryDirectory(prefix="steward-run-") as name,
        service_at(wishes, Path(name), say) as service,
        closing(Learning(wishes, service, Path(name), say)) as learning,
    ):
        try:
            going = learning.do() if wishes.learn else learning.begin() if _begins(wishes) else None
            status = learning.status
            if status is None or not learning.over:
                status = _govern(wishes, service, learning.spec or _workload(wishes, service), Path(name), going)
        except (Misuse, StewardError, JobFailed, Unreachable, ActuatorError) as error:
            if learning.status is None:
                raise
            raise CommandEnded(learning.status, " ".join(str(error).split())) from error
        learning.rest(own=service.own, status=status)
        return status


def _begins(wishes: Wishes) -> bool:
    """Whether a launch that doesn't train an agent registers its workload if the service has none of that name: it has
    a deadline, and no ``--workload``."""
    return wishes.deadline is not None and not wishes.registered


def _check_start(wishes: Wishes) -> None:
    """Refuse what can't work before a service is started for it, which takes seconds.

    Raises:
        ActuatorError: no such actuator is installed, or there is no such program on this machine.
    """
    registry.factory(wishes.actuator)
    program = wishes.command[0]
    if wishes.actuator == "local" and shutil.which(program) is None and not Path(program).exists():
        raise ActuatorError(f"{program}: No such file or directory")
    if wishes.watch_file is not None and not wishes.watch_file.parent.is_dir():
        folder = wishes.watch_file.parent
        say(f"--watch-file {wishes.watch_file}: folder {folder} does not exist; the command would have to make it")


def _clean(wishes: Wishes) -> int:
    """Remove what earlier launchers left under the run's name, without running a command; exit status 0."""
    with closing(registry.create(wishes.actuator, {}, dict(wishes.options))) as actuator:
        leftovers.remove(actuator, wishes.run_name, say, every=True)
    return 0


def _govern(wishes: Wishes, service: Service, spec: Json, folder: Path, going: Profile | None) -> int:
    targets(wishes, spec)
    ranges = {resource["name"]: Resource.of_spec(resource).range for resource in spec["resources"]}
    actuator = going.watched.actuator if going else registry.create(wishes.actuator, ranges, dict(wishes.options))
    try:
        wishes.check_place(actuator)
        watched = going.watched if going else Watched(wishes, actuator, folder, say, spec["iterations"])
        known = going.rows if going else None
        with closing(Governed(wishes, service, spec, watched, say, known, _sink(wishes))) as governed:
            status = governed.drive()
    finally:
        with ignore_signals():
            actuator.close()
    _conclude(governed, wishes)
    return status


def _sink(wishes: Wishes) -> MlflowSink | None:
    """What logs to MLflow; None if that isn't asked for, or not possible, which is said: the command runs anyway."""
    if wishes.mlflow is None:
        return None
    try:
        return MlflowSink(wishes.mlflow, name=wishes.run_name)
    except MlflowUnavailable as error:
        say(f"decisions are not logged to MLflow: {error}")
        return None


def _workload(wishes: Wishes, service: Service) -> Json:
    row = service.get_or_none(f"/workloads/{wishes.workload}")
    if row is None:
        there = [one["name"] for one in service.call("GET", "/workloads?limit=20")["items"]]
        known = f"there are: {', '.join(there)}" if there else "there is none"
        without = " without --workload" if wishes.registered else ""
        makes = f"--deadline 30m, or --learn,{without} registers one for the command"
        raise Misuse(f"{service.url} has no workload {wishes.workload!r} ({known}); {makes}")
    spec: Json = row["spec"]
    if "resources" not in spec or "iterations" not in spec:
        raise Misuse(
            f"workload {wishes.workload!r} is of kind {spec.get('kind')!r}; one that goes through iterations is run"
        )
    check_same(wishes, spec)
    return spec


def _conclude(governed: Governed, wishes: Wishes) -> None:
    plain = "utf" not in (sys.stderr.encoding or "").lower()
    for line in summary.lines(governed):
        say(line)
    if not wishes.quiet:
        for line in summary.picture(governed, columns(), plain=plain):
            say(line)
    if wishes.plot is not None and governed.rows:
        try:
            plot.draw(governed, wishes.plot, governed.deadline)
            say(f"picture: {wishes.plot}")
        except OSError as error:  # the command is done: its status stands
            say(f"plot not written: {wishes.plot}: {error.strerror}")


def _listen() -> None:
    """Print the client's log messages in the launcher's own form."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            why = f": {error_line(record.exc_info[1])}" if record.exc_info and record.exc_info[1] else ""  # type: ignore[arg-type]
            say(f"{record.getMessage()}{why}")

    logger = logging.getLogger("steward_client")
    logger.handlers, logger.propagate = [Lines(logging.INFO)], False
    logger.setLevel(logging.INFO)


def _print_failure(program: str, error: BaseException, status: int) -> int:
    say(" ".join(str(error).split()), program)
    return status


if __name__ == "__main__":
    sys.exit(main())
