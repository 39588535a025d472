from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..models.inference_spec_policies import InferenceSpecPolicies
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.inference_weights import InferenceWeights
    from ..models.server_class import ServerClass
    from ..models.user import User
    from ..models.variant import Variant


T = TypeVar("T", bound="InferenceSpec")


@_attrs_define
class InferenceSpec:
    """A workload of kind ``inference``."""

    name: str
    kind: Literal["inference"]
    variants: list[Variant]
    servers: list[ServerClass]
    users: list[User]
    batches: list[int] | Unset = UNSET
    """ allowed batch sizes; the smallest also takes fewer requests """
    queue_limit: int | Unset = 100
    """ maximum waiting requests per user; a further one drops the oldest """
    control_seconds: float | Unset = 10.0
    """ time between decisions on how many servers are on """
    episode_seconds: float | Unset = 120.0
    """ length of a simulated episode; at most 10,000 times control_seconds """
    weights: InferenceWeights | Unset = UNSET
    """ Relative weights of the objective's terms. """
    policies: InferenceSpecPolicies | Unset = InferenceSpecPolicies.ONE
    """ `one` for all users, or one for each, with the user's name as role """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        kind = self.kind

        variants = []
        for variants_item_data in self.variants:
            variants_item = variants_item_data.to_dict()
            variants.append(variants_item)

        servers = []
        for servers_item_data in self.servers:
            servers_item = servers_item_data.to_dict()
            servers.append(servers_item)

        users = []
        for users_item_data in self.users:
            users_item = users_item_data.to_dict()
            users.append(users_item)

        batches: list[int] | Unset = UNSET
        if not isinstance(self.batches, Unset):
            batches = self.batches

        queue_limit = self.queue_limit

        control_seconds = self.control_seconds

        episode_seconds = self.episode_seconds

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        policies: str | Unset = UNSET
        if not isinstance(self.policies, Unset):
            policies = self.policies.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "kind": kind,
                "variants": variants,
                "servers": servers,
                "users": users,
            }
        )
        if batches is not UNSET:
            field_dict["batches"] = batches
        if queue_limit is not UNSET:
            field_dict["queue_limit"] = queue_limit
        if control_seconds is not UNSET:
            field_dict["control_seconds"] = control_seconds
        if episode_seconds is not UNSET:
            field_dict["episode_seconds"] = episode_seconds
        if weights is not UNSET:
            field_dict["weights"] = weights
        if policies is not UNSET:
            field_dict["policies"] = policies

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.inference_weights import InferenceWeights  # noqa: PLC0415
        from ..models.server_class import ServerClass  # noqa: PLC0415
        from ..models.user import User  # noqa: PLC0415
        from ..models.variant import Variant  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        kind = cast(Literal["inference"], d.pop("kind"))
        if kind != "inference":
            raise ValueError(f"kind must match const 'inference', got '{kind}'")

        variants = []
        _variants = d.pop("variants")
        for variants_item_data in _variants:
            variants_item = Variant.from_dict(variants_item_data)

            variants.append(variants_item)

        servers = []
        _servers = d.pop("servers")
        for servers_item_data in _servers:
            servers_item = ServerClass.from_dict(servers_item_data)

            servers.append(servers_item)

        users = []
        _users = d.pop("users")
        for users_item_data in _users:
            users_item = User.from_dict(users_item_data)

            users.append(users_item)

        batches = cast(list[int], d.pop("batches", UNSET))

        queue_limit = d.pop("queue_limit", UNSET)

        control_seconds = d.pop("control_seconds", UNSET)

        episode_seconds = d.pop("episode_seconds", UNSET)

        _weights = d.pop("weights", UNSET)
        weights: InferenceWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = InferenceWeights.from_dict(_weights)

        _policies = d.pop("policies", UNSET)
        policies: InferenceSpecPolicies | Unset
        if isinstance(_policies, Unset):
            policies = UNSET
        else:
            policies = InferenceSpecPolicies(_policies)

        inference_spec = cls(
            name=name,
            kind=kind,
            variants=variants,
            servers=servers,
            users=users,
            batches=batches,
            queue_limit=queue_limit,
            control_seconds=control_seconds,
            episode_seconds=episode_seconds,
            weights=weights,
            policies=policies,
        )

        return inference_spec
