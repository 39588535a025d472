"""Batches grow with the load, and isolate failures."""

from __future__ import annotations

import asyncio

from app.http.batching import MicroBatch


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

    found = asyncio.run(run())
    assert [found[0], *found[2:]] == [b"6", b"3", b"2"]
    assert isinstance(found[1], ZeroDivisionError)
