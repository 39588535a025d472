"""Small inference workloads, and policies to play them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.spec import InferenceSpec
from workers.inputs import Conditions
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.kinds.inference.simulator.world import InferenceWorld

Chooser = Callable[[NDArray[np.bool_]], NDArray[np.int64]]


def layout(
    users: int = 1, variants: int = 1, servers: Sequence[dict[str, Any]] | None = None, **changes: Any
) -> Layout:
    """A system whose answers lose nothing by delay within hours, unless ``quality`` says otherwise."""
    quality = changes.pop("quality", {"full_until": 0.0, "zero_at": 36_000.0})
    values = {
        "name": "small",
        "kind": "inference",
        "variants": [{"name": f"v{i}", "accuracy": 0.5 + 0.5 * (i + 1) / variants} for i in range(variants)],
        "servers": servers or [{"name": "cpu", "minimum": 1, "maximum": 1}],
        "users": [{"name": f"u{i}", "quality": quality} for i in range(users)],
        "batches": [1],
        "queue_limit": 5_000,
        **changes,
    }
    return Layout(InferenceSpec.model_validate(values))


def service(
    layout: Layout, seconds: Any, rate: Sequence[float] = (), spread: float = 0.0, variation: float = 0.0
) -> Any:
    """Its domain model: ``seconds`` are broadcast to [C, V, K]; the same rate all day."""
    users, variants, batches = layout.shape
    log = np.log(np.broadcast_to(np.asarray(seconds, float), (len(layout.servers), variants, batches)))
    rates = np.array(rate or [1.0] * users, float)[:, None]
    measured = np.ones((len(layout.servers), variants), bool)
    return ServiceModel(log[None].copy(), np.full(variants, spread), rates, np.full(users, variation), measured)


def world(
    layout: Layout, model: Any, batch: int, seed: int = 0, recorded: RecordedArrivals | None = None, **wish: Any
) -> Any:
    """B episodes of it, reseeded so that they differ."""
    result = InferenceWorld(layout, [model], Conditions(batch, seed, **wish), recorded)

    class Different:
        def begin(self, world: Any) -> None:
            world.reseed(seed + 1)

        def conditions(self, world: Any) -> None:
            del world

    if wish.get("purpose") != "learning":
        result.disturbances.append(Different())
    return result


def first_legal(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first action but waiting that is legal, or waiting."""
    return np.where(mask[:, 1:].any(axis=1), 1 + mask[:, 1:].argmax(axis=1), 0)


def random_legal(seed: int) -> Chooser:
    """Any legal action."""
    random = np.random.default_rng(seed)
    return lambda mask: np.where(mask, random.random(mask.shape), -1.0).argmax(axis=1)


def played(result: Any, choose: Chooser) -> NDArray[np.float64]:
    """Outcomes of each episode, all steps together, [B, O]."""
    result.reset()
    counted = result.outcome_increments.copy()
    for _ in range(result.steps):
        step = result.step(choose(result.view.mask))
        counted += result.outcome_increments
        if step.done.all():
            return counted
    raise AssertionError("an episode takes more decisions than the world says")
