"""Mutated files of every format, some of each; ``python -m benchmarks.hostile`` sends ten thousand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.hostile import PARTS
from benchmarks.hostile.__main__ import DUMPS
from benchmarks.hostile.formats import ACCEPTED, FAILED, Format, dumped, every
from benchmarks.hostile.run import cases, tried
from benchmarks.hostile.service import Service

CASES = 10


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(tmp_path_factory.mktemp("hostile"))
    yield service
    service.close()


@pytest.fixture(scope="module")
def formats(service: Service) -> list[Format]:
    assert service.settings.data_dir is not None
    return list(every(service, Path(service.settings.data_dir)))


def test_each_format_is_recorded_with_one_part(formats: list[Format]) -> None:
    names = [*(form.name for form in formats), DUMPS]
    assert [sum(part in name for part in PARTS) for name in names] == [1] * len(names)


def test_sound_files_are_taken_and_whatever_becomes_of_them_nothing_fails(formats: list[Format]) -> None:
    assert len({form.name for form in formats}) == len(formats) >= 25
    for form in formats:
        assert {form.take(seed)[0] for seed in form.seeds} == {ACCEPTED}, form.name
        for way, content in cases(form, CASES, 0):
            outcome, result = form.take(content)
            assert outcome != FAILED, (form.name, way, result)


@pytest.mark.servers
def test_dumps_of_postgresql_are_checked_or_refused(postgres_url: str, tmp_path: Path) -> None:
    form = dumped(postgres_url, tmp_path)
    assert form.take(form.seeds[0]) == (ACCEPTED, "")
    named = form.seeds[0].replace(b"FK CONSTRAINT", b"\xc6K CONSTRAINT")  # is quoted in what pg_restore says
    assert named != form.seeds[0]
    assert form.take(named)[0] != FAILED
    result = tried(form, CASES // 2)
    assert result.outcomes.total() == CASES // 2
    assert (result.outcomes[FAILED], result.failures) == (0, [])
