"""``steward.run``: a training loop under decisions, synchronous or asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from types import TracebackType
from typing import Self

from typing_extensions import override

from .background import Background
from .channel import Channel
from .display import Shown, Summary, address, choose_service
from .epochs import WAIT_SHARE, Epoch, Loop
from .errors import StewardError
from .iterative import Refusals, Run
from .launched import channel_of_launcher
from .live import Service
from .outage import WAIT_SECONDS
from .reaction import Apply
from .retry import Retry
from .stored import Rows, history


class Epochs:
    """Epochs to iterate over with ``for`` or ``async for``, from ``EpochRun.epochs``."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    def __len__(self) -> int:
        return len(self._loop.numbers)

    def __iter__(self) -> Iterator[Epoch]:
        for _ in self._loop.numbers:
            epoch = self._loop.begin()
            try:
                yield epoch
            except GeneratorExit:
                epoch.stop_reacting()
                raise
            done, seconds = self._loop.end(epoch)
            wait([done], seconds)

    async def __aiter__(self) -> AsyncIterator[Epoch]:
        for _ in self._loop.numbers:
            epoch = self._loop.begin()
            try:
                yield epoch
            except GeneratorExit:
                await asyncio.to_thread(epoch.stop_reacting)
                raise
            await asyncio.to_thread(epoch.stop_reacting)  # an allocation that is being applied may need this loop
            done, seconds = self._loop.end(epoch)
            await asyncio.wait([asyncio.wrap_future(done)], timeout=seconds)


class EpochRun(Shown):
    """A training loop under decisions, for ``with`` and ``async with``; made by ``run``.

    Args:
        channel: destination of the epochs' reports.
        workload: name of the workload.
        client: the service, for ``history`` and the page's URL.
    """

    def __init__(self, channel: Channel, workload: str = "", client: Service = None) -> None:
        self._channel, self.workload, self.client = channel, workload, client

    @property
    def id(self) -> str:
        """The run's id; empty if only a launcher knows it."""
        return self._channel.id

    @property
    def allocation(self) -> dict[str, float]:
        """The last decided allocation: amounts by resource, in the spec's units; empty if there is none."""
        return self._channel.allocation

    @property
    def iteration(self) -> int:
        """Number of the next epoch."""
        return self._channel.iteration

    @property
    def refused(self) -> StewardError | None:
        """Why the service refuses reports at the moment, with the fields; None: it doesn't."""
        return self._channel.refused

    @property
    def outcome(self) -> str | None:
        """The service's judgement of the ended run (``met``, ``missed``, …); None before, and below a launcher."""
        return self._channel.outcome

    def history(self) -> Rows:
        """A row for each reported epoch: ``iteration``, ``metric.<name>``, ``decision.reason``, … by the service.

        ::

            run.history().to_pandas().plot(x="iteration", y="metric.iteration_seconds")

        Reports that haven't been sent yet aren't among them; after the ``with`` block all are.

        Raises:
            RuntimeError: the run has not been started, or is a launcher's whose id isn't known here.
            StewardError, Unreachable: the service refused the call, or didn't respond in time.
        """
        if not self.id:
            raise RuntimeError("the run's id is not known here: it has not been started, or only its launcher knows it")
        return history(self.client, self.id)

    @override
    def _summary(self) -> Summary:
        iteration = self.iteration if self.id else None
        members = {"workload": self.workload or None, "outcome": self.outcome, "iteration": iteration}
        url = address(self.client)
        return Summary(self.id, members, f"{url}/ui/runs/{self.id}" if self.id else url)

    def epochs(self, count: int, *, wait_share: float = WAIT_SHARE, apply: Apply | None = None) -> Epochs:
        """The remaining epochs of ``count``; each is reported when the loop asks for the next one.

        Reporting does not block. The next epoch waits for the decision on the last one for at most ``wait_share`` of
        that epoch's duration; if that is too short, the previous decision holds. An epoch left by ``break`` or an
        exception is not reported, unless its ``end`` was called. Iterating raises StewardError only with
        ``refusals="raise"``, if an earlier report was refused.

        ``apply`` sets an allocation while an epoch runs, and is called in a thread if the epoch takes longer than
        expected and the decision says what to do then; without it, decisions are applied between epochs alone.

        Raises:
            ValueError: ``count`` or ``wait_share`` is below 0.
        """
        return Epochs(Loop(self._channel, count, wait_share, apply=apply))

    def __enter__(self) -> Self:
        self._channel.start()
        return self

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._channel.end(error)
        finally:
            self._channel.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, at)


def run(
    workload: str,
    client: Service = None,
    *,
    url: str | None = None,
    targets: Mapping[str, float] | None = None,
    probabilities: Mapping[str, float | None] | None = None,
    features: Mapping[str, float] | None = None,
    upcoming: Sequence[Mapping[str, float]] = (),
    retry: Retry | None = None,
    refusals: Refusals = "log",
) -> EpochRun:
    """Make a run of a workload, whose epochs are reported in the background.

    ::

        with steward.run("resnet18") as run:
            for epoch in run.epochs(90):
                loss = train_one_epoch(**epoch.allocation)
                epoch.log(loss=loss)

    Without ``client`` and under a launcher, which sets environment variables, the loop reports to the launcher and
    follows its allocations; no run is started.

    Args:
        workload: name of a registered workload.
        client: the service's address, or a generated client; None: ``STEWARD_URL``, or this machine's port 8080.
        url: the service's address, instead of ``client``.
        targets: targets of this run only, by metric.
        probabilities: probability (0 to 1) with which each target must be met, by metric; None: the weights decide.
        features: features of the first epoch, if known.
        upcoming: features of the epochs after it, in order, as far as they are known.
        retry: how start and end are repeated; None: by the defaults of ``Retry``.
        refusals: what happens to a report that the service itself refuses: ``log`` logs it once, keeps it and those
            after it, and retries it; ``raise`` raises at the next epoch, or at the end.

    Raises:
        ValueError: ``refusals`` has another value.
        StewardError, Unreachable: a launcher's run can't be continued.
    """
    client = choose_service(client, url)
    channel = channel_of_launcher(refusals, retry) if client is None else None
    if channel is None:
        channel = Background(
            Run(
                client,
                workload,
                targets=targets,
                probabilities=probabilities,
                features=features,
                upcoming=upcoming,
                retry=retry,
                wait_seconds=WAIT_SECONDS,
                refusals=refusals,
                unknown="omit",
            )
        )
    return EpochRun(channel, workload, client)
