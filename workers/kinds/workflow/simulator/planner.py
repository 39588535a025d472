"""Plans for workflows, by the kind's own functions, compiled."""

from app.kinds.workflow.scheduling import placement, ranks
from app.kinds.workflow.scheduling.placement import Plan, Rule
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem
from workers.kinds.workflow.simulator import annealing
from workers.kinds.workflow.simulator.compiling import compilable, kernel

compilable(placement.opened, placement.grown, placement.earliest, placement.split, placement.occupy)
compilable(placement.arrival, placement.bill, placement.offer, placement.planned, ranks.first_ready)
compilable(annealing.used, annealing.replayed, annealing.supplied, annealing.timed, annealing.restored)
compilable(annealing.critical_chain, annealing.turned, annealing.turns_open, annealing.soonest)
compilable(annealing.beside, annealing.put)
compilable(annealing.relatives, annealing.turn_for, annealing.attempt, annealing.bills, annealing.worth_of)
place = kernel(placement.planned)
anneal = kernel(annealing.annealed)
COMPILED_RANKS = ranks.Ranks(
    kernel(ranks.upward), kernel(ranks.downward), kernel(ranks.optimistic), kernel(ranks.first_ready)
)


def plan(given: Problem, rule: Rule) -> Plan:
    """Where and when each task of ``given`` runs by ``rule``."""
    return place(given.graph, given.work, given.fleet, rule)


def plan_by(given: Problem, strategy: str) -> Plan:
    """The same, by one of ``STRATEGIES``."""
    return plan(given, STRATEGIES[strategy](given))
