"""``python -m workers.kinds.workflow.simulator``, the process behind ``steward simulate``.

The trace's format decides which simulator plays it.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import NamedTuple

from app.kinds.contract.inputs import InvalidInput
from app.kinds.workflow.formats.reading import Reading, pieces
from workers.kinds.workflow.simulator import dag
from workers.kinds.workflow.simulator import simulate as batches
from workers.kinds.workflow.simulator.simulate import SimulatedSequence, parse_arguments, summary_json, text

DONE, REFUSED, INTERRUPTED = 0, 1, 130


class Player(NamedTuple):
    """The functions that read a trace file, and that simulate the requested strategies on its content."""

    read: Callable[[Namespace], Reading]
    play: Callable[[Namespace, Reading], list[SimulatedSequence]]


def player(options: Namespace) -> Player:
    """Choose the player by the file's first byte: a brace means JSON, hence a workflow; else it is a batch log.

    Raises:
        OSError: the file can't be read.
        InvalidInput: it is a broken gzip file.
    """
    start = next(iter(pieces(options.trace)), b"")
    is_workflow = start.lstrip().startswith(b"{")
    return Player(dag.read, dag.played_graphs) if is_workflow else Player(batches.read, batches.simulate_sequences)


def main(arguments: list[str] | None = None) -> int:
    """Read, simulate and print; return the exit status: 0, 1 after an error on standard error, 130 if interrupted.

    Raises SystemExit if an option is unknown or invalid.
    """
    options = parse_arguments(arguments)
    try:
        by = player(options)
        reading = by.read(options)
        rows = by.play(options, reading)
        if options.plot is not None:
            _draw(options, rows)
    except InvalidInput as error:
        for issue in error.errors:
            print(f"{options.trace}{issue.pointer}: {issue.message} ({issue.value!r})", file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"steward simulate: {error.filename}: {error.strerror}", file=sys.stderr)
        return REFUSED
    except ValueError as error:
        print(f"steward simulate: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    summary = summary_json(options, reading, rows)
    print(json.dumps(summary) if options.json else text(summary))
    return DONE


def _draw(options: Namespace, rows: list[SimulatedSequence]) -> None:
    from workers.evaluation.report.plots import save
    from workers.kinds.workflow.evaluation.pictures import picture, window

    several = len({row.first for row in rows}) > 1
    names = [f"{row.strategy} {row.first}:{row.trace.tasks}" if several else row.strategy for row in rows]
    stretches = {
        first: window(same[0].trace, [row.schedule for row in same])
        for first in {row.first for row in rows}
        for same in [[row for row in rows if row.first == first]]
    }
    pictures = [
        picture(name, row.trace, row.nodes, row.schedule, stretch=stretches[row.first])
        for name, row in zip(names, rows, strict=True)
    ]
    save(options.plot, options.trace.name, pictures)


if __name__ == "__main__":
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; nothing may be flushed at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = DONE
    sys.exit(status)
