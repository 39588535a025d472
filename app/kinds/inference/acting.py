"""A policy is asked, and held to what it may do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Policy, Situation


class IllegalAction(ValueError):
    """A policy chose what it may not."""


def asked(policy: Policy, situation: Situation) -> list[int]:
    """What a policy does in B situations.

    Raises:
        IllegalAction: an action is not one of the view's legal ones.
    """
    return legal(policy.name, policy.act(situation).action.tolist(), situation.view.mask)


def legal(name: str, actions: list[int], mask: NDArray[np.bool_]) -> list[int]:
    """The actions of B situations, made sure of.

    Raises:
        IllegalAction: one is not legal by ``mask`` [B, N]; ``name``: of the policy that chose it.
    """
    for row, action in enumerate(actions):  # as arrays it would take longer for the one that a service asks for
        if not (0 <= action < mask.shape[1] and mask[row, action]):
            raise IllegalAction(f"{name} chose action {action}, which is not legal here")
    return actions
