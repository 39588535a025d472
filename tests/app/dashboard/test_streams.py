"""Events that tell a page to be loaded anew."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from app.dashboard import endpoints


@pytest.mark.parametrize(
    ("values", "events"),
    [
        ([(1, False), (1, False), (2, True)], ["changed", "changed", "ended"]),
        ([(7, True)], ["ended"]),
    ],
    ids=["goes on", "has ended"],
)
def test_a_page_is_told_at_once_since_it_is_older_than_its_stream(
    values: list[tuple[int, bool]], events: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened between the page and the stream would be seen with the next change only."""
    result = iter(values)

    async def looked(find: endpoints.Look) -> Any:
        return find()

    async def connected() -> bool:
        return False

    monkeypatch.setattr(endpoints, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(endpoints, "run_in_stream_thread", looked)
    keys = SimpleNamespace(holds=lambda _: True)
    request: Any = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(keys=keys)), is_disconnected=connected)
    settings: Any = SimpleNamespace(stream_seconds=60.0, stream_poll_seconds=0.0)
    caller: Any = SimpleNamespace(key="key")

    async def read() -> str:
        return "".join([part async for part in endpoints._stream(request, settings, caller, lambda: next(result))])

    text = [line.removeprefix("event: ") for line in asyncio.run(read()).splitlines() if line.startswith("event: ")]
    assert text == events
