"""Specs of kind `inference`, and the changes accepted while one is served."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from app.charts.text import exact
from app.kinds.contract.inputs import InvalidInput, unknown_names
from app.kinds.fields import EarlyMaxLength, NonNegative, Positive, Slug, Strict, unique

LARGEST_BATCH, LARGEST_QUEUE = 1_024, 10_000
MOST_ACTIONS = 4_096
MOST_WAITING = 10_000
"""Most waiting requests of all users: each report loads and stores them, and a decision may name them all."""
MOST_SERVERS = 1_000
"""Most servers of all classes: a decision may start a batch on each."""
SHORTEST_CONTROL = 0.1
"""Shortest control interval in seconds. Reports come some milliseconds late, so that counts over shorter intervals are
noise. Logs are counted by control intervals, and simulated episodes decide at the end of each."""
DAY = 86_400.0
"""Seconds of a day: arrivals are modelled by time of day, and no episode is longer."""
MOST_INTERVALS = 10_000
"""Most control intervals, and so decisions, of an episode; bounds its cost without arrivals."""

Count = Annotated[int, Field(ge=0, le=MOST_SERVERS)]


class Variant(Strict):
    """A model that can answer a request; all variants answer the same requests, with different accuracy."""

    name: Slug
    accuracy: Annotated[float, Field(gt=0, le=1, description="share of correct answers, e.g. top-1")]


class ServerClass(Strict):
    """Identical servers, of which ``minimum`` to ``maximum`` are on; each serves one batch at a time."""

    name: Slug
    minimum: Count = 1
    maximum: Annotated[int, Field(ge=1, le=MOST_SERVERS)]
    cores: Positive = Field(default=1.0, description="cores or GPUs of one server")
    price_per_hour: NonNegative = Field(default=0.0, description="price of one server while on or starting")
    startup_seconds: NonNegative = Field(default=0.0, description="time from requesting a server to its first batch")
    switch_seconds: NonNegative = Field(default=0.0, description="time to load another variant before a batch")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum must be at most maximum: minimum {self.minimum}, maximum {self.maximum}")
        return self


class ResponseQuality(Strict):
    """Value of an answer by its delay: full until ``full_until``, zero from ``zero_at`` seconds on."""

    full_until: NonNegative
    zero_at: Positive
    shape: Literal["linear", "exponential"] = "linear"

    @model_validator(mode="after")
    def _falling(self) -> Self:
        if self.full_until >= self.zero_at:
            raise ValueError(
                "quality must not rise with delay: full_until must be less than zero_at: "
                f"full_until {exact(self.full_until)}, zero_at {exact(self.zero_at)}"
            )
        return self


class User(Strict):
    """A user, whose requests wait in a separate queue."""

    name: Slug
    weight: Positive = Field(default=1.0, description="relative weight of its requests")
    quality: ResponseQuality


class InferenceWeights(Strict):
    """Relative weights of the objective's terms."""

    quality: NonNegative = Field(default=1.0, description="weighted mean response quality, minus 1")
    fairness: NonNegative = Field(default=0.0, description="Jain's index of the users' mean qualities, minus 1")
    cost: NonNegative = Field(default=0.1, description="cost relative to running every server all the time")
    switching: NonNegative = Field(default=0.01, description="changes of a server's variant or power, per request")


def _few(servers: tuple[ServerClass, ...]) -> tuple[ServerClass, ...]:
    count = sum(one.maximum for one in servers)
    if count > MOST_SERVERS:
        raise ValueError(f"maximum of all server classes together must be at most {MOST_SERVERS:,}: {count:,}")
    return servers


def _ascending(batches: tuple[int, ...]) -> tuple[int, ...]:
    if list(batches) != sorted(set(batches)):
        raise ValueError(f"batch sizes must ascend: {list(batches)}")
    return batches


class InferenceSpec(Strict):
    """A workload of kind ``inference``."""

    name: Slug
    kind: Literal["inference"]
    variants: Annotated[
        tuple[Variant, ...], Field(min_length=1, max_length=16), EarlyMaxLength(), AfterValidator(unique)
    ]
    servers: Annotated[
        tuple[ServerClass, ...],
        Field(min_length=1, max_length=8),
        EarlyMaxLength(),
        AfterValidator(unique),
        AfterValidator(_few),
    ]
    users: Annotated[tuple[User, ...], Field(min_length=1, max_length=32), EarlyMaxLength(), AfterValidator(unique)]
    batches: Annotated[
        tuple[Annotated[int, Field(ge=1, le=LARGEST_BATCH)], ...],
        Field(min_length=1, max_length=16, description="allowed batch sizes; the smallest also takes fewer requests"),
        AfterValidator(_ascending),
    ] = (1, 2, 4, 8)
    queue_limit: Annotated[
        int,
        Field(ge=1, le=LARGEST_QUEUE, description="maximum waiting requests per user; a further one drops the oldest"),
    ] = 100
    control_seconds: Annotated[
        float, Field(ge=SHORTEST_CONTROL, le=DAY, description="time between decisions on how many servers are on")
    ] = 10.0
    episode_seconds: Annotated[
        float, Field(gt=0, le=DAY, description="length of a simulated episode; at most 10,000 times control_seconds")
    ] = 120.0
    weights: InferenceWeights = InferenceWeights()
    policies: Literal["one", "per_user"] = Field(
        default="one", description="`one` for all users, or one for each, with the user's name as role"
    )

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        actions = len(self.users) * len(self.variants) * len(self.batches)
        if actions > MOST_ACTIONS:
            raise ValueError(f"users × variants × batches must be at most {MOST_ACTIONS}: {actions}")
        if len(self.users) * self.queue_limit > MOST_WAITING:
            most = f"{MOST_WAITING:,} over {len(self.users)} users, {MOST_WAITING // len(self.users):,}"
            raise ValueError(f"queue_limit must be at most {most}: queue_limit {self.queue_limit:,}")
        longest = MOST_INTERVALS * self.control_seconds
        if self.episode_seconds > longest:
            text = f"episode_seconds {exact(self.episode_seconds)}, control_seconds {exact(self.control_seconds)}"
            raise ValueError(
                f"episode_seconds must be at most {MOST_INTERVALS:,} × control_seconds, {exact(longest)}: {text}"
            )
        return self


Spec = InferenceSpec


# Changes to an ``inference`` workload while it is served: prices, weights, response qualities.


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


def apply_patch(spec: Spec, patch: InferencePatch) -> Spec:
    """Return ``spec`` with ``patch`` applied.

    Raises:
        InvalidInput: ``patch`` names a server class, weight or user that the spec doesn't have.
        ValidationError: the result is no valid spec.
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
