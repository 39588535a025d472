"""The demo's picture as PNG and HTML, made without a network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean

from app.charts.figures import Figure
from app.charts.timeline import Course, counts, courses, lasting, shaded
from app.demo import drawing
from app.demo.serving.load import BURST
from app.demo.serving.networks import SIZES
from app.demo.serving.play import Played, Response

GIVEN_UP = "given up"


def save(played: Sequence[Played], seconds: float, folder: Path) -> list[Path]:
    """Write ``inference.png`` and the self-contained ``inference.html``; both paths. The first run is Steward's."""
    return drawing.save(figures(played, seconds), folder / "inference.png")


def figures(played: Sequence[Played], seconds: float) -> list[Figure]:
    """Charts of arrivals, queue lengths, Steward's networks, and quality per user, with the burst shaded; ``seconds``
    in all.
    """
    own = played[0]
    users = sorted({response.request.user for response in own.responses})
    came = _by_second(own, lambda response: response.request.user, users)
    chosen = _by_second(own, lambda response: response.variant or GIVEN_UP, [*SIZES, GIVEN_UP])
    quality = {f"{one.name}, {user}": _quality(one, user) for one in played for user in users}
    drawn = [
        counts("Requests that came in each second", "requests", came, 1.0, "By user; shaded: the burst."),
        courses("How many waited", "requests", {one.name: one.waiting for one in played}, "By run.", steps=True),
        counts("Which network answered them", "requests", chosen, 1.0, f"Under {own.name}."),
        courses("Response quality", "mean quality", quality, "Of the requests that came in each second, by user."),
    ]
    return [shaded(lasting(one, seconds), BURST[0] * seconds, BURST[1] * seconds) for one in drawn]


def _by_second(one: Played, of: Callable[[Response], str], names: Sequence[str]) -> dict[str, Course]:
    found = Counter((of(response), int(response.request.at)) for response in one.responses)
    courses = {name: [(float(at), float(found[name, at])) for at in sorted({at for _, at in found})] for name in names}
    return {name: course for name, course in courses.items() if any(count for _, count in course)}


def _quality(one: Played, user: str) -> Course:
    """Mean quality of the requests that arrived in each second, as (middle of the second, quality)."""
    by_second = defaultdict[int, list[float]](list)
    for response in one.responses:
        if response.request.user == user:
            by_second[int(response.request.at)].append(response.quality)
    return [(at + 0.5, mean(values)) for at, values in sorted(by_second.items())]
