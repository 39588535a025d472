"""``steward simulate`` on workflows: planned or dispatched on several nodes."""

from argparse import Namespace

from app.kinds.workflow.formats.notation import nodes_written
from app.kinds.workflow.formats.reading import Reading
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.layout import nodes_of
from workers.kinds.workflow.simulator.progress import watched
from workers.kinds.workflow.simulator.request import Played, strategies
from workers.kinds.workflow.simulator.schedule import figures
from workers.kinds.workflow.simulator.workflows import NAMES, scheduled


def read(asked: Namespace) -> Reading:
    """The workflow; see ``read_wfformat`` for what it raises."""
    return read_wfformat(asked.trace)


def played(asked: Namespace, reading: Reading) -> list[Played]:
    """Every strategy on the whole workflow.

    Raises:
        ValueError: what is asked does not fit a workflow; the option is named.
    """
    for option in ("sequences", "order", "agent"):
        if getattr(asked, option) is not None:
            raise ValueError(f"--{option} is for batch logs; this is a workflow")
    if asked.backfilling != "none":
        raise ValueError("--backfilling is for batch logs; this is a workflow")
    if asked.nodes is None:
        raise ValueError("--nodes: say what the workflow runs on, as in 4x16@1.0")
    types = nodes_written(asked.nodes, asked.bandwidth, asked.startup, asked.billing, asked.rented)
    nodes, trace, found = nodes_of(types), reading.trace, []
    if asked.exact_runtimes:
        trace = trace._replace(estimate=trace.runtime)
    for name in watched(strategies(asked.strategy, "heft", NAMES)):
        schedule = scheduled(trace, nodes, name, online=asked.online, seed=asked.seed)
        found.append(Played(name, 0, trace, nodes, schedule, figures(trace, nodes, schedule)))
    return found
