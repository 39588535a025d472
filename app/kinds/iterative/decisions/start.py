"""What a run of kind ``iterative`` may be started with."""

from typing import Annotated

from pydantic import Field

from app.kinds.contract.kind import RunStart
from app.kinds.fields import Finite, Probability
from app.kinds.iterative.decisions.report import UpcomingIteration
from app.kinds.iterative.spec import Target
from app.kinds.iterative.upcoming import MOST_UPCOMING

Name = Annotated[str, Field(max_length=63)]


class IterationRunStart(RunStart):
    """Start a live run of iterations."""

    targets: dict[Name, Target] = Field(
        default={}, description="Targets of this run only, by metric; the workload's apply otherwise.", max_length=16
    )
    probabilities: dict[Name, Probability | None] = Field(
        default={},
        description="Required probabilities of meeting targets, for this run only, by metric; null: the weights "
        "decide. The workload's apply otherwise.",
        max_length=16,
    )
    first_iteration: int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="First iteration to be reported, if not the workload's first: earlier ones are over and were not "
        "measured, or not by this run. Targets of the whole run apply to what is left.",
    )
    features: dict[Name, Finite] | None = Field(
        default=None, description="Features of the first iteration, if known: all of them.", max_length=8
    )
    upcoming: list[UpcomingIteration] = Field(
        default=[], max_length=MOST_UPCOMING, description="The iterations after the first, in order, as in a report."
    )
