"""Batches grow with the load, and isolate failures."""

from __future__ import annotations

import asyncio

import pytest

from app.http.batching import PATIENCE_SECONDS, RETURN_SECONDS, Gathering, MicroBatch


def test_what_arrives_together_is_evaluated_together() -> None:
    batches: list[tuple[str, list[int]]] = []

    def evaluate(key: str, items: list[int]) -> list[bytes]:
        batches.append((key, items))
        return [f"{key}{item}".encode() for item in items]

    async def run() -> list[bytes]:
        batch = MicroBatch(evaluate, largest=8)
        return list(await asyncio.gather(*(batch.submit("ab"[i % 2], i) for i in range(20))))

    assert asyncio.run(run()) == [f"{'ab'[i % 2]}{i}".encode() for i in range(20)]
    assert all(len(items) <= 8 for _, items in batches)
    assert len(batches) == 6


def test_one_bad_item_fails_alone() -> None:
    def evaluate(_: str, items: list[int]) -> list[bytes]:
        return [b"%d" % (6 // item) for item in items]

    async def run() -> list[bytes | BaseException]:
        batch = MicroBatch(evaluate)
        return await asyncio.gather(*(batch.submit("a", i) for i in (1, 0, 2, 3)), return_exceptions=True)

    result = asyncio.run(run())
    assert [result[0], *result[2:]] == [b"6", b"3", b"2"]
    assert isinstance(result[1], ZeroDivisionError)


class Arrivals:
    """A gathering into which what comes is counted, on a clock of its own."""

    def __init__(self, usual: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.come, self.seconds, self.flushed = 0, 0.0, list[int]()
        self.gathering = Gathering(lambda: self.come, self._flush, 8, lambda: usual)
        monkeypatch.setattr("app.http.batching.time.perf_counter", lambda: self.seconds)

    def arrive(self) -> None:
        self.come += 1
        self.gathering.note_arrival()

    def _flush(self) -> None:
        self.flushed.append(self.come)
        self.come = 0

    async def flush(self) -> None:
        """Wait until something is."""
        async with asyncio.timeout(60):
            while not self.flushed:
                await asyncio.sleep(RETURN_SECONDS)


async def test_what_usually_comes_together_is_waited_for_but_not_long(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Arrivals(3, monkeypatch)
    arrivals.arrive()
    await asyncio.sleep(20 * RETURN_SECONDS)
    assert not arrivals.flushed
    arrivals.seconds = RETURN_SECONDS
    await arrivals.flush()
    assert arrivals.flushed == [1]


async def test_as_many_as_usual_wait_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Arrivals(2, monkeypatch)
    arrivals.arrive()
    arrivals.arrive()
    await asyncio.sleep(0)
    assert arrivals.flushed == [2]


async def test_who_makes_them_as_many_as_usual_is_not_waited_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.http.batching.RETURN_SECONDS", 60.0)
    arrivals = Arrivals(2, monkeypatch)
    arrivals.arrive()
    for _ in range(3):
        await asyncio.sleep(0)
    assert not arrivals.flushed
    arrivals.arrive()
    await arrivals.flush()
    assert arrivals.flushed == [2]


async def test_more_keep_being_waited_for_while_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Arrivals(8, monkeypatch)
    arrivals.seconds = RETURN_SECONDS
    for _ in range(5):
        arrivals.arrive()
        await asyncio.sleep(0)
    assert not arrivals.flushed
    arrivals.seconds += PATIENCE_SECONDS
    await arrivals.flush()
    assert arrivals.flushed == [5]
