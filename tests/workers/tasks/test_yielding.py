"""What trainings leave to others."""

from __future__ import annotations

import os
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from workers.tasks.base import yielding


def niceness() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_training_is_nicer_than_what_comes_after_it_in_the_same_process() -> None:
    before, visited = niceness(), list[int]()

    def work(_: object) -> None:
        inner = threading.Thread(target=lambda: visited.append(niceness()))
        inner.start()
        inner.join()
        visited.append(niceness())

    job: Any = SimpleNamespace(settings=SimpleNamespace(training_nice=19))
    yielding(work)(job)
    assert (visited, niceness()) == ([19, 19], before)


def test_what_ends_it_is_heard_of() -> None:
    def work(_: object) -> None:
        raise KeyError("lost")

    job: Any = SimpleNamespace(settings=SimpleNamespace(training_nice=0))  # less than it is already does no harm
    with pytest.raises(KeyError, match="lost"):
        yielding(work)(job)
