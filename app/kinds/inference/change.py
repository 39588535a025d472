"""What of an ``inference`` workload may change while it is served: prices, weights, response qualities."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.inputs import InvalidInput, unknown_names
from app.kinds.fields import NonNegative, Positive
from app.kinds.inference.spec import InferenceWeights, ResponseQuality, Spec


class InferencePatch(BaseModel):
    """Changes that apply at once; omitted fields stay as they are."""

    model_config = ConfigDict(extra="forbid")

    prices: Annotated[
        dict[str, NonNegative], Field(description="New prices per server-hour, by class.", examples=[{"cpu": 0.3}])
    ] = {}
    weights: Annotated[
        dict[str, NonNegative],
        Field(description="New weights of the objective's terms; 0 disables a term.", examples=[{"cost": 0.2}]),
    ] = {}
    qualities: Annotated[dict[str, ResponseQuality], Field(description="New response qualities, by user.")] = {}
    users: Annotated[dict[str, Positive], Field(description="New relative weights of users.", examples=[{"a": 2}])] = {}


def changed(spec: Spec, patch: InferencePatch) -> Spec:
    """A spec with a patch applied.

    Raises:
        InvalidInput: a server class, weight or user that the spec hasn't.
    """
    users = [user.name for user in spec.users]
    issues = [
        *unknown_names("prices", patch.prices, [server.name for server in spec.servers]),
        *unknown_names("weights", patch.weights, list(InferenceWeights.model_fields)),
        *unknown_names("qualities", _plain(patch.qualities), users),
        *unknown_names("users", patch.users, users),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for server in fields["servers"]:
        server["price_per_hour"] = patch.prices.get(server["name"], server["price_per_hour"])
    for user in fields["users"]:
        user["quality"] = _plain(patch.qualities).get(user["name"], user["quality"])
        user["weight"] = patch.users.get(user["name"], user["weight"])
    fields["weights"] |= patch.weights
    return Spec.model_validate(fields)


def _plain(qualities: dict[str, ResponseQuality]) -> dict[str, Any]:
    return {user: quality.model_dump() for user, quality in qualities.items()}
