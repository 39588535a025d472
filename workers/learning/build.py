"""The three stages from a description to something that runs: compose → complete → bind.

* `compose` joins components by wires, and opens composites up into their inner calls; no spaces, no arrays. Errors:
  ComposeError (a call to or a wire from something that is not in the graph, two nodes of one name).
* `complete` lets spaces flow from the root inputs. A component is input-complete when the spaces of all its inputs are
  known; only then it gets its variables. Errors: IncompleteInputError (a port that nothing is wired to, or a source
  without a space), DeadLockError (components that wait for each other), SpaceMismatchError.
* `bind` draws the variables' starting values, puts them on a backend and allocates memories. Error: BindError.

Every error names component and input, those inside composites by their path ('q.trunk'). Each stage is timed;
`Bound.report` says how long each took. (After Schaarschmidt, Mika, Fricke & Yoneki, RLgraph, SysML 2019.)
"""

from workers.learning.components.base import Node
from workers.learning.stages.alone import run_alone
from workers.learning.stages.bind import Bound, BuildReport, bind
from workers.learning.stages.complete import Completed, complete
from workers.learning.stages.compose import Graph, compose
from workers.learning.stages.errors import (
    BindError,
    BuildError,
    CompleteError,
    ComposeError,
    DeadLockError,
    IncompleteInputError,
    SpaceMismatchError,
)

__all__ = [
    "BindError",
    "Bound",
    "BuildError",
    "BuildReport",
    "CompleteError",
    "Completed",
    "ComposeError",
    "DeadLockError",
    "Graph",
    "IncompleteInputError",
    "Node",
    "SpaceMismatchError",
    "bind",
    "complete",
    "compose",
    "run_alone",
]
