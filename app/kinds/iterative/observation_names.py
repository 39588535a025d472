"""What each entry of an observation is, derived from the spec alone."""

from math import prod

from app.kinds.iterative.spec import Spec

AHEAD = 4
"""Coming iterations that an observation describes."""


def observation_names(spec: Spec) -> tuple[str, ...]:
    """Names of the entries of an observation, [D], in their order; a policy reads no workload with others."""
    targeted = [m for m in spec.metrics if m.target is not None]
    actions = prod(2 * r.max_steps + 1 for r in spec.resources)
    return (
        *(f"allocation.{r.name}" for r in spec.resources),
        *(f"measured.{m.name}" for m in targeted),
        *(f"left.{m.name}" for m in targeted if m.scope == "run"),
        *(f"effect.{m.name}" for m in spec.metrics),
        "progress",
        *(f"feature.{f.name}" for f in spec.features),
        *(f"target.{m.name}" for m in targeted),
        "weight.sla",
        "weight.cost",
        "weight.change",
        *(f"price.{r.name}" for r in spec.resources),
        *(f"length.{ahead}" for ahead in range(AHEAD)),
        *(f"scaling.{ahead}" for ahead in range(AHEAD)),
        *(f"advice.{action}" for action in range(actions)),
    )
