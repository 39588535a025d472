"""A policy is asked, and held to what it may do."""

from __future__ import annotations

from app.kinds.contract.policy import Policy, Situation


class IllegalAction(ValueError):
    """A policy chose what it may not."""


def asked(policy: Policy, situation: Situation) -> list[int]:
    """What a policy does in B situations.

    Raises:
        IllegalAction: an action is not one of the view's legal ones.
    """
    actions: list[int] = policy.act(situation).action.tolist()
    mask = situation.view.mask
    for row, action in enumerate(actions):  # as arrays it would take longer for the one that a service asks for
        if not (0 <= action < mask.shape[1] and mask[row, action]):
            raise IllegalAction(f"{policy.name} chose action {action}, which is not legal here")
    return actions
