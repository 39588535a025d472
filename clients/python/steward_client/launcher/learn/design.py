"""Choice of the allocations to be measured: first space-filling ones, then those where the model is least certain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice

from steward_client.launcher.wishes import Resource

Allocation = dict[str, float]
Doubt = Callable[[Allocation], float]
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
MOST_CANDIDATES = 24


def filling(resources: Sequence[Resource]) -> Iterator[Allocation]:
    """Yield allocations without end: the largest, the smallest, then Halton points (Halton 1960), rounded to the grid.

    No allocation is repeated before all of a small grid have been yielded.
    """
    visited: list[Allocation] = []
    grid = 1
    for resource in resources:
        grid *= len(resource.levels)
    for point in _points(resources):
        if len(visited) == grid:
            visited = []
        if point not in visited:
            visited.append(point)
            yield dict(point)


def _points(resources: Sequence[Resource]) -> Iterator[Allocation]:
    yield {one.name: one.maximum for one in resources}
    yield {one.name: one.minimum for one in resources}
    for number in count(1):
        shares = (_radical_inverse(number, base) for base in PRIMES)
        yield {
            one.name: one.nearest(one.minimum + share * (one.maximum - one.minimum))
            for one, share in zip(resources, shares, strict=False)
        }


def _radical_inverse(number: int, base: int) -> float:
    """Radical inverse of a number in a base: its digits mirrored at the point, in [0, 1)."""
    inverse, scale = 0.0, 1.0
    while number:
        scale /= base
        number, digit = divmod(number, base)
        inverse += digit * scale
    return inverse


def most_doubted(resources: Sequence[Resource], doubt: Doubt, measured: Mapping[tuple[float, ...], int]) -> Allocation:
    """The allocation with the highest relative uncertainty; among equals the one measured least often.

    Args:
        resources: the resources; a grid of more than 24 allocations is sampled.
        doubt: width of the prediction interval, divided by its mean.
        measured: number of measurements by allocation, as values in the resources' order; each reduces the doubt.
    """
    grid = [[round(value, 9) for value in one.levels] for one in resources]
    small = len(grid) == 1 and len(grid[0]) <= MOST_CANDIDATES
    candidates = [{resources[0].name: value} for value in grid[0]] if small else _spread(resources)

    def worth(allocation: Allocation) -> tuple[float, int]:
        times = measured.get(tuple(allocation.values()), 0)
        return doubt(allocation) / (1 + times) ** 0.5, -times  # what is averaged is known better by its root

    return max(candidates, key=worth)


def _spread(resources: Sequence[Resource]) -> list[Allocation]:
    return list(islice(filling(resources), MOST_CANDIDATES))
