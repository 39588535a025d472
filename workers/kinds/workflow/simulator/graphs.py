"""``steward simulate`` on workflows: planned or dispatched on several nodes."""

from argparse import Namespace

from app.kinds.workflow.formats.notation import nodes_written
from app.kinds.workflow.formats.reading import Reading
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.layout import nodes_of
from workers.kinds.workflow.simulator.progress import watched
from workers.kinds.workflow.simulator.request import SimulatedSequence, strategies
from workers.kinds.workflow.simulator.schedule import figures
from workers.kinds.workflow.simulator.workflows import NAMES, scheduled


def read(arguments: Namespace) -> Reading:
    """The workflow; see ``read_wfformat`` for what it raises."""
    return read_wfformat(arguments.trace)


def played(arguments: Namespace, reading: Reading) -> list[SimulatedSequence]:
    """Every strategy on the whole workflow.

    Raises:
        ValueError: what is asked does not fit a workflow; the option is named.
    """
    for option in ("sequences", "order", "agent"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option} is for batch logs; this is a workflow")
    if arguments.backfilling != "none":
        raise ValueError("--backfilling is for batch logs; this is a workflow")
    if arguments.nodes is None:
        raise ValueError("--nodes: say what the workflow runs on, as in 4x16@1.0")
    types = nodes_written(arguments.nodes, arguments.bandwidth, arguments.startup, arguments.billing, arguments.rented)
    nodes, trace, found = nodes_of(types), reading.trace, []
    if arguments.exact_runtimes:
        trace = trace._replace(estimate=trace.runtime)
    for name in watched(strategies(arguments.strategy, "heft", NAMES)):
        schedule = scheduled(trace, nodes, name, online=arguments.online, seed=arguments.seed)
        found.append(SimulatedSequence(name, 0, trace, nodes, schedule, figures(trace, nodes, schedule)))
    return found
