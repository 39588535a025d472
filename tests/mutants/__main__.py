"""Would the tests notice? Each mutant of a module is run against the module's tests; those that pass them survive.

`python -m tests.mutants [part of a module's name …] [--most 12] [--seed 0]`. Every mutant has a process of its own,
forked from one that has imported the libraries, and a time limit; a mutant that hangs is noticed, too. Tests that need
servers are left out: what a fault does to SQLite it does to PostgreSQL.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from tests.mutants.hook import install
from tests.mutants.mutations import Mutant, mutants
from tests.mutants.targets import TARGETS

LIBRARIES = ("numpy", "scipy.stats", "torch", "sklearn.gaussian_process", "sqlalchemy", "fastapi.testclient", "celery",
             "hypothesis", "optuna", "gymnasium")  # fmt: skip
KNOWN = Path(__file__).with_name("SURVIVORS.md")
OPTIONS = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-m", "not servers")
POLL_SECONDS = 0.05
PASSED = 0


def run_tests(module: str, mutant: Mutant | None, limit_seconds: float) -> int | None:
    """Exit code of the module's tests with that fault in it; None where they took too long."""
    child = os.fork()
    if not child:
        _in_child(module, mutant)
    until = time.monotonic() + limit_seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(POLL_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _in_child(module: str, mutant: Mutant | None) -> None:
    """Runs the tests in a session of its own, silently, and never returns."""
    os.setsid()
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    if mutant is not None:
        install(module, mutant)
    code = 1
    with suppress(BaseException):  # a module that cannot be imported is noticed, too
        code = int(pytest.main([*OPTIONS, *TARGETS[module]]))
    os._exit(code)


def check(module: str, most: int | None, seed: int, known: str) -> tuple[int, int]:
    """Noticed and tried of a module; its survivors are printed."""
    started = time.monotonic()
    if (code := run_tests(module, None, 3600.0)) != PASSED:
        raise SystemExit(f"{module}: its tests do not pass without any fault (exit code {code}): {TARGETS[module]}")
    limit = 20.0 + 4.0 * (time.monotonic() - started)
    result = mutants(Path(_origin(module)).read_text())
    tried = result if most is None or most >= len(result) else random.Random(seed).sample(result, most)
    survivors = [one for one in tried if run_tests(module, one, limit) == PASSED]
    print(f"{module}: {len(tried) - len(survivors)} of {len(tried)} noticed ({len(result)} there are)", flush=True)
    for one in sorted(survivors, key=lambda one: one.line):
        print(f"  line {one.line}, {one.text}{' (listed)' if one.text in known else ''}", flush=True)
    return len(tried) - len(survivors), len(tried)


def _origin(module: str) -> str:
    """The module's file; found without importing it or its packages."""
    path = Path(*module.split(".")).with_suffix(".py")
    return str(path)


def main(arguments: Sequence[str]) -> None:
    """Check the modules that were asked for: all, or those in whose names one of the arguments is."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="parts of modules' names; all of them if there are none")
    parser.add_argument("--most", type=int, help="mutants of each module, drawn by chance")
    parser.add_argument("--seed", type=int, default=0, help="of that draw")
    options = parser.parse_args(arguments)
    wanted = [module for module in TARGETS if not options.modules or any(part in module for part in options.modules)]
    for library in LIBRARIES:
        if importlib.util.find_spec(library.split(".")[0]):
            importlib.import_module(library)
    known = KNOWN.read_text() if KNOWN.exists() else ""
    results = [check(module, options.most, options.seed, known) for module in wanted]
    noticed, tried = (sum(column) for column in zip(*results, strict=True)) if results else (0, 0)
    print(f"in all: {noticed} of {tried} noticed ({noticed / max(tried, 1):.0%})")


if __name__ == "__main__":
    main(sys.argv[1:])
