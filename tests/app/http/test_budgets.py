"""What a request may take at most, for every operation at its largest legal input; its time is a benchmark's matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.budget_cases import CASES, Case
from benchmarks.budgets import Service, hold, missing, over, service

STREAMED = {
    "download_policy",
    "follow_job",
    "list_audit",
    "list_iterations",
    "list_samples",
    "read_evaluation_report",
    "upload_samples",
}
"""Operations whose answers, or bodies, are files or are sent in pieces."""


@pytest.fixture(scope="module")
def serving() -> Iterator[Service]:
    """A service as it is run, but for keys of the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("STEWARD_")]:
            patch.delenv(name)
        with service() as result:
            yield result


def test_every_operation_has_a_case() -> None:
    assert missing() == set()
    assert {case.operation for case in CASES if case.streamed} == STREAMED


COSTLY = "inference, 9,984 requests come twice"
"""It takes as long as twenty others; the largest reports of all other kinds are not slow."""


def parameter(case: Case) -> Any:
    name = f"{case.operation}, {case.name}".rstrip(", ")
    return pytest.param(case, id=name, marks=[pytest.mark.slow] if case.name == COSTLY else [])


@pytest.mark.parametrize("case", [parameter(case) for case in CASES])
def test_memory_and_answer_are_within_the_budget(serving: Service, case: Case) -> None:
    taken, body = hold(serving, case)
    assert over(case, taken, body) == []
