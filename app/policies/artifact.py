"""Policy artifacts: tables, serialisation, and memories of recurrent policies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.tensors import read_header, read_json, read_tensors, write_tensors
from app.policies.base import RETURN_SCALE, Arrays, IncompatibleArtifact, Published
from app.policies.functions import mask_actions
from app.policies.network import NetworkPolicy

# A table of Q values over discretised observations.


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """Greedy policy of a table of Q values for N actions.

    ``config``: ``algorithm``; ``entries``, indices of the observation's entries that are read; ``low``, ``high``,
    ``bins``, the range of each and its number of equal bins (values beyond fall into the outermost). ``arrays``: ``q``
    [cells, N], in hundredths of return."""

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """Name of the algorithm that trained it."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Build the policy from a config and arrays.

        Raises:
            IncompatibleArtifact: the table is missing, or its size doesn't match ``config``.
        """
        cells = prod(config["bins"])
        if "q" not in arrays or arrays["q"].shape[:-1] != (cells,):
            raise IncompatibleArtifact(f"the table should have {cells} rows named q")
        if len({len(config[name]) for name in ("entries", "low", "high", "bins")}) != 1:
            raise IncompatibleArtifact("entries, low, high and bins should be as many as each other")
        return cls(config, arrays)

    def cell(self, observation: NDArray[np.floating]) -> NDArray[np.intp]:
        """Return the row of the table, [B], for B observations [B, D] of D entries."""
        return cell(observation, self.config)

    def act(self, situation: Situation) -> Choice:
        """Choose the legal action of the highest Q in each of B rows, [B]; ``values`` are all Q in return, [B, N]."""
        observation, q = situation.view.observation, self.arrays["q"]
        values = mask_actions(q[cell(observation, self.config)], situation.view.mask)
        return Choice(values.argmax(axis=1), values / RETURN_SCALE)


def cell(observation: NDArray[np.floating], config: dict[str, Any]) -> NDArray[np.intp]:
    """Return the row of the table, [B], for B observations [B, D] of D entries. ``config``: ``entries``, indices of the
    entries that are read; ``low``, ``high``, ``bins``: range and number of equal bins of each."""
    row = np.zeros(len(observation), np.intp)
    for entry, low, high, bins in zip(config["entries"], config["low"], config["high"], config["bins"], strict=True):
        position = (observation[:, entry] - low) / (high - low) * bins
        row = row * bins + np.clip(position.astype(np.intp), 0, bins - 1)
    return row


# Artifacts are safetensors files with a JSON header; evaluations use the same files as decisions.


FORMAT = 1
BY_ROLE = "by_role"
Families = Mapping[str, type[Published]]
SHARED: Families = {"network": NetworkPolicy, "table": TablePolicy}
"""Policy classes by name that any kind can publish; kinds may add others."""


@dataclass(frozen=True, eq=False)
class Artifact:
    """A loaded policy, with the kind and the layout for which it was trained.

    Attributes:
        policy: the policy; None with ``roles``.
        kind: name of the workload's kind.
        observation: names of the observation's entries; empty if it scores any number of candidates.
        actions: number of its actions; 0: any number of candidates.
        experience: conditions of its training, in its kind's terms.
        roles: policies trained together, by role; empty for a single policy.
    """

    policy: Any
    observation: tuple[str, ...]
    actions: int
    experience: Any
    kind: str
    roles: Mapping[str, Artifact] = field(default_factory=dict)

    def check(self, kind: str, observation: Sequence[str], actions: int) -> None:
        """Check that the policy fits a workload's kind, observation entries and number of actions.

        Raises:
            IncompatibleArtifact: it doesn't fit; the message says why.
        """
        if kind != self.kind:
            raise IncompatibleArtifact(f"the policy was made for kind {self.kind}; this workload is of kind {kind}")
        if tuple(observation) != self.observation or actions != self.actions:
            raise IncompatibleArtifact(
                f"the policy reads {len(self.observation)} observation entries and {self.actions} actions of another "
                f"spec; this workload has {len(observation)} and {actions}"
            )


class Parts(NamedTuple):
    """Version of the format (None: missing), header, and arrays by name."""

    version: str | None
    header: dict[str, Any]
    arrays: Arrays


def save(
    policy: Published,
    kind: str,
    observation: Sequence[str],
    actions: int,
    experience: Mapping[str, Any],
    families: Families = SHARED,
) -> bytes:
    """Serialise a policy with its kind and layout to an artifact's bytes.

    ``kind``, ``observation``, ``actions`` and ``experience`` as in ``Artifact``; ``families``: policy classes by name.
    """
    header = {
        "kind": kind,
        "policy": next(name for name, family in families.items() if isinstance(policy, family)),
        "config": policy.config,
        "observation": observation,
        "actions": actions,
        "experience": experience,
    }
    return write_tensors(policy.arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def save_roles(parts: Mapping[str, bytes]) -> bytes:
    """Combine one kind's artifacts, given by role, in one artifact; ``by_role`` returns each unchanged.

    Raises:
        ValueError: they are of several kinds, or there are none.
    """
    kinds = {kind_of(part) for part in parts.values()}
    if len(kinds) != 1:
        raise ValueError(f"policies that answer together must be of one kind, not {', '.join(sorted(kinds)) or 'none'}")
    header = {"kind": kinds.pop(), "policy": BY_ROLE}
    arrays = {role: np.frombuffer(part, np.uint8) for role, part in parts.items()}
    return write_tensors(arrays, {"format": str(FORMAT), "header": json.dumps(header, sort_keys=True)})


def by_role(data: bytes) -> dict[str, bytes]:
    """Return the artifacts combined by ``save_roles``, by role; {} for a single policy; raises IncompatibleArtifact if
    ``data`` is no artifact."""
    result = parts(data)
    if result.header.get("policy") != BY_ROLE:
        return {}
    return {role: array.tobytes() for role, array in sorted(result.arrays.items())}


def kind_of(data: bytes) -> str:
    """Return the name of an artifact's kind; raises IncompatibleArtifact if the bytes are no artifact."""
    return str(parts(data).header.get("kind", ""))


def load(data: bytes, families: Families = SHARED) -> Artifact:
    """Load an artifact, by ``families`` (policy classes by name). Its ``experience`` is a JSON object.

    Raises:
        IncompatibleArtifact: unknown format, unknown policy class, or no artifact.
    """
    each = {role: _single(parts(part), families) for role, part in by_role(data).items()}
    result = parts(data)
    return Artifact(None, (), 0, {}, str(result.header.get("kind", "")), each) if each else _single(result, families)


def _single(parts: Parts, families: Families) -> Artifact:
    version, header, arrays = parts
    if version != str(FORMAT) or str(header.get("policy")) not in families:
        raise IncompatibleArtifact(
            f"format {version}, policy {header.get('policy')!r}; this version reads format {FORMAT} and "
            f"{', '.join(families)}"
        )
    try:
        policy = families[header["policy"]].build(header["config"], dict(arrays))
        return Artifact(policy, tuple(header["observation"]), header["actions"], header["experience"], header["kind"])
    except IncompatibleArtifact:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # whatever a header may say instead
        raise IncompatibleArtifact(f"its parts don't fit: {type(error).__name__}: {error}") from error


def parts(data: bytes) -> Parts:
    """Split an artifact into header and arrays; raises IncompatibleArtifact if the bytes are no artifact."""
    try:
        metadata, arrays = read_tensors(data)
    except ValueError as error:
        raise IncompatibleArtifact(f"not a policy artifact: {error}") from error
    return Parts(metadata.get("format"), header(data), arrays)


def header(data: bytes) -> dict[str, Any]:
    """Return an artifact's JSON header, from its whole bytes or their beginning.

    Raises:
        IncompatibleArtifact: the bytes are no artifact, or end within the header.
    """
    try:
        body = read_json(read_header(data)["header"])
    except (ValueError, KeyError) as error:
        raise IncompatibleArtifact(f"not a policy artifact: {error}") from error
    if not isinstance(body, dict):
        raise IncompatibleArtifact("not a policy artifact: its header is not an object")
    return body


# Hidden states of recurrent policies between two reports of a run, by agent version.
#
# The champion and the shadow each have their own state. Each sees a report once, and
# advances its state once; an agent that joins a run late begins with zeros.


Memory = NDArray[np.float32]
Memories = Mapping[int, Memory]
"""Hidden state [H] by agent version."""
NOTHING: Memories = MappingProxyType({})


def recalled(memories: Sequence[Memories], version: int | None) -> Memory | None:
    """Return the hidden states [B, H] of agent ``version`` in B runs, zeros where missing; None if no run has one."""
    if version is None or not any(memories):
        return None
    known = [one.get(version) for one in memories]
    width = next((len(one) for one in known if one is not None), 0)
    return np.array([np.zeros(width) if one is None else one for one in known], np.float32) if width else None


def memories_of(memories: Memories, versions: Iterable[int | None]) -> dict[int, Memory]:
    """Return the hidden states [H] of the agents ``versions`` in a run, by version; those without one are left out."""
    return {version: memories[version] for version in versions if version is not None and version in memories}


def stored(memories: Memories) -> dict[int, list[float]]:
    """Return a run's hidden states by version, as lists of numbers for JSON."""
    return {version: memory.tolist() for version, memory in memories.items()}


def restored(fields: Mapping[str, Any]) -> Memories:
    """Return the hidden states from the JSON that ``stored`` made, equal bit by bit."""
    return {int(version): np.array(memory, np.float32) for version, memory in fields.items()}


def weight(memories: Memories) -> int:
    """Return the size in bytes of the numbers in a run's hidden states."""
    return sum(memory.nbytes for memory in memories.values()) if memories else 0
