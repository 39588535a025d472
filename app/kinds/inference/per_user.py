"""What one user's agent sees where every user has its own: a workload that no other user is in.

Its layout is that of a spec with this user alone: actions start batches of its requests, or turn servers on or off.
"""

from __future__ import annotations

from app.kinds.contract.engine import DEFAULT_ROLE
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.kinds.inference.state import State


def roles(spec: InferenceSpec) -> tuple[str, ...]:
    """The users' names, or the default role where one policy answers for all."""
    return (DEFAULT_ROLE,) if spec.policies == "one" else tuple(user.name for user in spec.users)


def layouts(layout: Layout) -> dict[str, Layout]:
    """The layout of each role's policy."""
    spec = layout.spec
    if spec.policies == "one":
        return {DEFAULT_ROLE: layout}
    return {user.name: Layout(spec.model_copy(update={"users": (user,)})) for user in spec.users}


def of_user(state: State, user: int) -> State:
    """B decisions as the agent of one user sees them: its own requests, and all servers."""
    own = slice(user, user + 1)
    return state._replace(
        waiting=state.waiting[:, own],
        oldest=state.oldest[:, own],
        newest=state.newest[:, own],
        rate=state.rate[:, own],
        quality=state.quality[:, own],
    )
