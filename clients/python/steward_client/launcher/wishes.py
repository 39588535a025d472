"""Options of a launch (`Wishes`), parsed from texts of the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from .actuators.contract import UNITS, Actuator, Queued, Range, amount
from .actuators.requests import GRANT_SECONDS

NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)"
RESOURCE = re.compile(
    rf"(?P<name>[a-z][a-z0-9_]*)=(?P<low>{NUMBER})\.\.(?P<high>{NUMBER})(?:/(?P<step>{NUMBER}))?\s*(?P<unit>\S*)"
)
DURATION = re.compile(rf"(?P<count>{NUMBER})(?P<unit>ms|s|m|h|d|)")
SECONDS = {"ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
LARGEST_COST = 1e100
LONGEST = 1e9  # seconds; waits of clocks end not much later
MOST_LEVELS = 20_000
STEPS = 1e-6
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")  # as the service accepts names


class Misuse(ValueError):
    """An option is invalid; the message is one line with its value and what is accepted."""


@dataclass(frozen=True)
class Resource:
    """A resource to be set between two bounds in steps, all in ``unit``."""

    name: str
    minimum: float
    maximum: float
    step: float
    unit: str

    @property
    def levels(self) -> list[float]:
        """All values, in ascending order."""
        count = round((self.maximum - self.minimum) / self.step) + 1
        return [self.minimum + self.step * number for number in range(count)]

    @property
    def range(self) -> Range:
        """Bounds and step for an actuator."""
        return Range(self.minimum, self.maximum, self.step)

    def nearest(self, value: float) -> float:
        """The level nearest to a value."""
        number = round((min(max(value, self.minimum), self.maximum) - self.minimum) / self.step)
        return self.minimum + self.step * number

    @classmethod
    def of_spec(cls, spec: dict[str, Any]) -> Resource:
        """The resource from a registered workload's spec; raises KeyError if a member is missing."""
        return cls(spec["name"], spec["minimum"], spec["maximum"], spec["step"], spec.get("unit", ""))


@dataclass(frozen=True)
class Wishes:
    """Options of a launch.

    Attributes:
        command: program and arguments.
        workload: the workload's name at the service.
        registered: whether it must be registered already.
        learn: whether to register, profile and train the workload, as far as that hasn't been done.
        clean: whether to remove also what launchers of other machines left under this name.
        deadline: seconds from the command's start; None: the workload's.
        targets: targets of other metrics, in their units.
        max_cost: cost at which the command is stopped, in the currency of prices; None: no limit.
        max_seconds: seconds from the command's start, and of its iterations, after which it is stopped; None: no limit.
        grant_seconds: time after which a request that waits for room is withdrawn.
        queue_seconds: time after which a job that has not started is cancelled; None: an hour for each that only
            measures, and without limit for the run's own.
        policy: name of the rule that decides; None: the agent or the default rule.
        advise: whether the command keeps the largest allocation, and decisions are only shown.
        resources: resources to be set; empty: the workload's, or this machine's CPU.
        iterations: number of iterations; None: unknown.
        pattern, watch_file, marks: how to detect iterations that the command doesn't report.
        actuator, options: name of the actuator, and its options.
        url, data: address of the service, and data folder of an embedded one (None: ``STEWARD_DATA_DIR``).
        mlflow: tracking URI of MLflow, to which decisions are logged; empty: that of the environment; None: not logged.
        plot: file for a plot of the run; None: none.
        output: whether the last lines of a failed command's output are sent to the service.
        checkpoint: whether the command continues from a checkpoint of its own when it is started again.
        restart: whether a command that ended while it was measured may be restarted.
        profile_iterations: number of iterations to measure.
        profile_jobs: whether they are measured by short jobs side by side, one for each allocation.
        budget: environment steps of the training; None: 250,000.
    """

    command: tuple[str, ...]
    workload: str
    registered: bool = False
    learn: bool = False
    clean: bool = False
    deadline: float | None = None
    targets: tuple[tuple[str, float], ...] = ()
    max_cost: float | None = None
    max_seconds: float | None = None
    grant_seconds: float = GRANT_SECONDS
    queue_seconds: float | None = None
    policy: str | None = None
    advise: bool = False
    resources: tuple[Resource, ...] = ()
    iterations: int | None = None
    pattern: re.Pattern[str] | None = None
    watch_file: Path | None = None
    marks: str = "auto"
    actuator: str = "local"
    options: tuple[tuple[str, str], ...] = ()
    url: str = "http://127.0.0.1:8080"
    data: Path | None = None
    mlflow: str | None = None
    plot: Path | None = None
    quiet: bool = False
    output: bool = True
    checkpoint: bool = False
    restart: bool = True
    profile_iterations: int = 24
    profile_jobs: bool = False
    budget: int | None = None

    @property
    def caps(self) -> dict[str, float]:
        """The run's caps as the service takes them; empty: none."""
        result = {"cost": self.max_cost, "seconds": self.max_seconds}
        return {name: limit for name, limit in result.items() if limit is not None}

    def check_place(self, actuator: Actuator) -> None:
        """Refuse options that would have no effect where the command runs.

        Advice goes to the launcher alone, so the command gets no run to report to by itself, whose decisions it would
        take for its allocation: the launcher must see its iterations.

        Raises:
            Misuse: advice is wanted, and the command doesn't see the launcher's files, nor the launcher its output, and
                no file is watched; or a time-out is wanted for a queue that isn't known.
        """
        if self.queue_seconds is not None and not isinstance(actuator, Queued):
            raise Misuse(f"--queue-timeout with actuator {self.actuator}: it knows of no queue; slurm is accepted")
        seen = actuator.shares_files or getattr(actuator, "passes_output", True) or self.watch_file
        if self.advise and not seen:
            raise Misuse(
                f"--advise with actuator {self.actuator}: iterations can't be seen, as with these options the command "
                "doesn't see the launcher's files, nor the launcher its output; --watch-file FILE is accepted, or for "
                "slurm --option shared=yes, where both see the same folders"
            )

    @property
    def run_name(self) -> str:
        """Name of the launch's containers, pods and jobs."""
        return f"steward-{self.workload}"


def resource(text: str) -> Resource:
    """Parse a resource: ``cpu=50..400/50%`` is CPU from 50 to 400 % of a core in steps of 50.

    Raises:
        Misuse: it is malformed, has another unit than its name requires, or the step doesn't divide the range.
    """
    match = RESOURCE.fullmatch(text.strip())
    if not match:
        raise Misuse(f"--resource {text}: NAME=LEAST..MOST/STEP is accepted, for example cpu=50..400/50%")
    low, high, step = (float(match[part] or 1) for part in ("low", "high", "step"))
    unit = match["unit"] or UNITS.get(match["name"], "")
    if not (0 <= low < high and 0 < step <= (high - low) * (1 + STEPS)):
        raise Misuse(f"--resource {text}: the least must be below the most, from 0 on, and the step fit between them")
    if unit != UNITS.get(match["name"], unit):
        raise Misuse(f"--resource {text}: {match['name']} is counted in {UNITS[match['name']] or 'pieces'}, not {unit}")
    steps = (high - low) / step
    if steps > MOST_LEVELS:
        raise Misuse(f"--resource {text}: at most {MOST_LEVELS:,} steps are accepted")
    if abs(steps - round(steps)) > STEPS:
        fitting = low + round(steps) * step
        raise Misuse(
            f"--resource {text}: the step must divide the range; {amount(low)}..{amount(fitting)}/{amount(step)} would"
        )
    return Resource(match["name"], low, high, step, unit)


def duration(text: str, option: str = "--deadline") -> float:
    """Parse a duration such as ``90``, ``30m`` or ``1h30m`` into seconds; ``option`` is named in error messages.

    Raises:
        Misuse: it is malformed, not above 0, or longer than 30 years.
    """
    matches = list(DURATION.finditer(text.strip()))
    if not text.strip() or "".join(part[0] for part in matches) != text.strip():
        raise Misuse(f"{option} {text}: not a duration; 90s, 30m, 1h30m are accepted")
    seconds = sum(float(part["count"]) * SECONDS[part["unit"]] for part in matches)
    if not 0 < seconds <= LONGEST:
        raise Misuse(f"{option} {text}: a duration above 0 is accepted, up to 30 years, such as 90s, 1h30m")
    return seconds


def workload(text: str, option: str) -> str:
    """Check a workload's name; ``option`` is named in the error.

    Raises:
        Misuse: the service would not accept it.
    """
    if not NAME.fullmatch(text):
        raise Misuse(
            f"{option} {text}: a lower-case letter or digit, then up to 62 of these and . _ - are accepted, such as "
            f"{default_name((text,))}"
        )
    return text


def cost(text: str) -> float:
    """Parse a cost, a number above 0 in the currency of prices; raises Misuse for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= LARGEST_COST:
        raise Misuse(f"--max-cost {text}: a number above 0 is accepted, in the currency of the workload's prices")
    return value


def pairs(option: str, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Parse texts NAME=VALUE into names and values; ``option`` is named in error messages.

    Raises:
        Misuse: a text lacks ``=``, name or value.
    """
    split = [text.partition("=") for text in texts]
    for name, equals, value in split:
        if not (name and equals and value):
            raise Misuse(f"{option} {name}{equals}{value}: NAME=VALUE is accepted")
    return tuple((name, value) for name, _, value in split)


def targets(texts: Iterable[str]) -> tuple[tuple[str, float], ...]:
    """Parse texts METRIC=VALUE into metrics and targets, in the metrics' units.

    Raises:
        Misuse: a text is malformed, or its value is not a number above 0.
    """
    targets = []
    for name, value in pairs("--target", texts):
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not 0 < number < float("inf"):
            raise Misuse(f"--target {name}={value}: a number above 0 is accepted")
        targets.append((name, number))
    return tuple(targets)


def pattern(text: str) -> re.Pattern[str]:
    r"""Compile a regular expression with a group ``iteration``: ``epoch (?P<iteration>\d+).*loss=(?P<loss>[\d.]+)``.

    Raises:
        Misuse: it is malformed, or has no such group.
    """
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise Misuse(f"--pattern {text}: not a valid regular expression: {error}") from error
    if "iteration" not in pattern.groupindex:
        raise Misuse(f"--pattern {text}: it needs a group (?P<iteration>\\d+), the number of the iteration")
    return pattern


def default_name(command: Iterable[str]) -> str:
    """Default name of a workload for a command: its script's or module's name as a slug of at most 63 characters."""
    parts = list(command)
    scripts = [part for part in parts[1:] if not part.startswith("-") and Path(part).suffix in (".py", ".sh", ".R")]
    modules = [after.rpartition(".")[2] for part, after in pairwise(parts) if part == "-m"]
    chosen = Path((scripts or modules or parts)[0]).name
    slug = re.sub(r"[^a-z0-9._-]+", "-", chosen.removesuffix(Path(chosen).suffix).lower()).strip("-._")
    return slug[:63] or "command"


def percent(share: float, places: int = 0) -> str:
    """Format a share of 1 in per cent: ``47 %``."""
    return f"{100 * share:.{places}f} %"


def of_deadline(seconds: float, deadline: float) -> str:
    """Format what a command took as a share of its deadline: ``70 % of the deadline of 1 min 30 s``."""
    return f"{percent(seconds / deadline)} of the deadline of {duration_text(deadline)}"


def duration_text(seconds: float) -> str:
    """Format seconds in the two largest units that fit: ``1 h 02 min``, ``2 min``, ``4.21 s``, ``12.3 ms``."""
    whole, least, small = round(seconds), 1.0, "s"
    for size, unit, part, rest in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            left = whole % size // part
            return f"{whole // size:,} {unit}" + (f" {left:02} {rest}" if left else "")
    if 0 < seconds < 0.9995:  # which has less than a second in three digits
        least, small = (1e-3, "ms") if seconds >= 0.9995e-3 else (1e-6, "µs")
    return f"{float(f'{seconds / least:.3g}'):g} {small}"
