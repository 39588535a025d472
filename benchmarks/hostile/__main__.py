"""See ``benchmarks.hostile``."""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.cli.server.serve import tune_malloc
from app.main import tune_garbage_collection
from benchmarks.hostile import CASES
from benchmarks.hostile.formats import ACCEPTED, FAILED, REFUSED, dumped, every
from benchmarks.hostile.run import Found, tried
from benchmarks.hostile.service import Service
from migrations.runner import upgrade
from tests.servers import postgres_program, postgres_server

DUMPS = "PostgreSQL backup"


def all_tried(cases: int, seed: int, names: Sequence[str]) -> Iterator[tuple[str, Found]]:
    """What becomes of so many files of each format, or of those whose names hold one of these."""
    logging.disable(logging.CRITICAL)
    tune_malloc()  # as the service does
    with tempfile.TemporaryDirectory() as folder:
        service = Service(Path(folder))
        tune_garbage_collection()
        for form in every(service, Path(folder)):
            if not names or any(name in form.name for name in names):
                yield form.name, tried(form, cases, seed)
        service.close()
        if (not names or any(name in DUMPS for name in names)) and postgres_program("initdb"):
            with postgres_server() as server:
                upgrade(server.url())
                yield DUMPS, tried(dumped(server.url(), Path(folder)), cases, seed)


def main() -> None:
    """Send them, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hostile")
    parser.add_argument("names", nargs="*", help="formats whose names hold one of these; all without any")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    head = f"{'format':42}{'cases':>8}{'refused':>9}{'accepted':>9}{'5xx':>5}{'ms/kB':>8}  {'slowest':18}"
    print(f"{head}{'longest':>8}{'MB more':>8}")
    for name, match in all_tried(options.cases, options.seed, options.names):
        _show(name, match)


def _show(name: str, result: Found) -> None:
    counts = result.outcomes
    slowest, way, place = result.slowest
    print(
        f"{name:42}{counts.total():8,}{counts[REFUSED]:9,}{counts[ACCEPTED]:9,}{counts[FAILED]:5}{slowest:8.1f}  "
        f"{f'{way} {place}':18}{result.longest:6.1f} s{result.grown / 1e6:8.1f}",
        flush=True,
    )
    for failure in result.failures:
        print(f"    {failure}", flush=True)


if __name__ == "__main__":
    main()
