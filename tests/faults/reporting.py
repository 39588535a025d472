"""Runs whose reports never stop coming, whatever is in their way: what was acknowledged is counted, and checked."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, Self

import httpx

from tests.integration.caller import SPEC, WORKLOAD
from tests.recovering import recovering
from tests.servers import wait_until

RECOVERY_SECONDS = 150  # 30 on an idle machine
PATIENCE_SECONDS = 0.1
AGAIN = (500, 502, 503)


def report(number: int) -> dict[str, Any]:
    """Each is another one, so that what is doubled or mixed up shows."""
    return {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 1.0 + number}}


class Reporting:
    """As many clients as runs, each of which repeats a report until it is acknowledged."""

    def __init__(self, url: str, runs: int = 3, headers: Mapping[str, str] | None = None) -> None:
        self.url, self.statuses, self._headers = url, set[int](), headers
        self.acknowledged: dict[str, list[dict[str, Any]]] = {}
        self._ended = threading.Event()
        answer = httpx.post(f"{url}/workloads", json={**SPEC, "iterations": 100_000}, timeout=60, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        for _ in range(runs):
            begun = httpx.post(f"{url}/runs", json={"workload": WORKLOAD}, timeout=60, headers=headers)
            assert begun.status_code == 201, begun.text
            self.acknowledged[begun.json()["id"]] = []
        self._threads = [threading.Thread(target=self._go, args=(run,), daemon=True) for run in self.acknowledged]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._wait_for_more(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(90)

    @property
    def counts(self) -> dict[str, int]:
        return {run: len(answers) for run, answers in self.acknowledged.items()}

    def wait_for_more(self, number: int) -> None:
        """After a fault: wait until so many more reports of every run are acknowledged."""
        with recovering():
            self._wait_for_more(1)
        self._wait_for_more(number - 1)

    def _wait_for_more(self, number: int) -> None:
        before = self.counts
        wait_until(
            lambda: all(now >= before[run] + number for run, now in self.counts.items()),
            RECOVERY_SECONDS,
            f"{number} more reports of every run",
        )

    def _go(self, run: str) -> None:
        answers = self.acknowledged[run]
        while not self._ended.is_set():
            try:
                with httpx.Client(base_url=self.url, timeout=40, headers=self._headers) as http:
                    while not self._ended.is_set():
                        answer = http.put(f"/runs/{run}/iterations/{len(answers)}", json=report(len(answers)))
                        self.statuses.add(answer.status_code)
                        if answer.status_code in (200, 201):
                            answers.append(answer.json())
                        elif answer.status_code in AGAIN:
                            time.sleep(PATIENCE_SECONDS)
                        else:
                            raise AssertionError(answer.text)
            except httpx.HTTPError:
                time.sleep(PATIENCE_SECONDS)

    def check(self) -> None:
        """What was acknowledged is there once, as it was acknowledged; at most one more, whose answer was lost."""
        for run, answers in self.acknowledged.items():
            stored, link = list[Any](), f"/runs/{run}/iterations?limit=500"
            while link:
                page = httpx.get(f"{self.url}{link}", timeout=60, headers=self._headers).json()
                stored += page["items"]
                link = page["next"]
            assert [one["iteration"] for one in stored] == list(range(len(stored)))
            assert len(answers) <= len(stored) <= len(answers) + 1
            for number, (one, answer) in enumerate(zip(stored, answers, strict=False)):
                assert one["report"]["metrics"]["iteration_seconds"] == 1.0 + number
                assert one["decision"]["allocation"] == answer["allocation"]
                assert one["decision"]["reason"] == answer["reason"]
