"""The training of an agent for an ``iterative`` workload in this process."""

from collections.abc import Callable
from time import perf_counter

from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.spec import Spec
from workers.kinds.iterative.training.problem import IterativeTraining
from workers.learning.training.competition import Competition
from workers.learning.training.driver import Training
from workers.learning.training.request import Request


def training(
    spec: Spec,
    table: ModelTable,
    request: Request,
    checkpoint: bytes | None = None,
    *,
    champion: bytes | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Training:
    """A training in simulators of the domain model; see ``Competition``."""
    problem = IterativeTraining(spec, table, request.seed)
    return Training(Competition(problem, request, champion, clock), checkpoint)
