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

from ..models.run_patch_state_type_0 import RunPatchStateType0
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.caps import Caps
    from ..models.run_patch_targets_type_0 import RunPatchTargetsType0


T = TypeVar("T", bound="RunPatch")


@_attrs_define
class RunPatch:
    """The state in which a run ends, and why; or other targets or caps of a running run."""

    state: None | RunPatchStateType0 | Unset = UNSET
    """ Final state. """
    reason: None | str | Unset = UNSET
    """ Reason of the end, such as an exception or an exit status. """
    output: None | str | Unset = UNSET
    """ Last lines of the output of the run's process. Only the run itself has them, not lists; they are deleted
    with it. """
    outcome: Literal["cap_reached"] | None | Unset = UNSET
    """ With state `cancelled` or `failed`: it was stopped at a cap, also if no decision says `stop`. """
    targets: None | RunPatchTargetsType0 | Unset = UNSET
    """ New targets of this run alone, by metric, from its next decision on; null: the workload's applies again. Not
    together with a state. """
    caps: Caps | None | Unset = UNSET
    """ Limits of this run from its next decision on, in place of the former ones; null: none. Not together with a
    state. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.run_patch_targets_type_0 import RunPatchTargetsType0  # noqa: PLC0415

        state: None | str | Unset
        if isinstance(self.state, Unset):
            state = UNSET
        elif isinstance(self.state, RunPatchStateType0):
            state = self.state.value
        else:
            state = self.state

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        output: None | str | Unset
        if isinstance(self.output, Unset):
            output = UNSET
        else:
            output = self.output

        outcome: Literal["cap_reached"] | None | Unset
        if isinstance(self.outcome, Unset):
            outcome = UNSET
        else:
            outcome = self.outcome

        targets: dict[str, Any] | None | Unset
        if isinstance(self.targets, Unset):
            targets = UNSET
        elif isinstance(self.targets, RunPatchTargetsType0):
            targets = self.targets.to_dict()
        else:
            targets = self.targets

        caps: dict[str, Any] | None | Unset
        if isinstance(self.caps, Unset):
            caps = UNSET
        elif isinstance(self.caps, Caps):
            caps = self.caps.to_dict()
        else:
            caps = self.caps

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if state is not UNSET:
            field_dict["state"] = state
        if reason is not UNSET:
            field_dict["reason"] = reason
        if output is not UNSET:
            field_dict["output"] = output
        if outcome is not UNSET:
            field_dict["outcome"] = outcome
        if targets is not UNSET:
            field_dict["targets"] = targets
        if caps is not UNSET:
            field_dict["caps"] = caps

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.run_patch_targets_type_0 import RunPatchTargetsType0  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_state(data: object) -> None | RunPatchStateType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                state_type_0 = RunPatchStateType0(data)

                return state_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RunPatchStateType0 | Unset, data)

        state = _parse_state(d.pop("state", UNSET))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_output(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        output = _parse_output(d.pop("output", UNSET))

        def _parse_outcome(data: object) -> Literal["cap_reached"] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            outcome_type_0 = cast(Literal["cap_reached"], data)
            if outcome_type_0 != "cap_reached":
                raise ValueError(f"outcome_type_0 must match const 'cap_reached', got '{outcome_type_0}'")
            return outcome_type_0
            return cast(Literal["cap_reached"] | None | Unset, data)

        outcome = _parse_outcome(d.pop("outcome", UNSET))

        def _parse_targets(data: object) -> None | RunPatchTargetsType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                targets_type_0 = RunPatchTargetsType0.from_dict(data)

                return targets_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RunPatchTargetsType0 | Unset, data)

        targets = _parse_targets(d.pop("targets", UNSET))

        def _parse_caps(data: object) -> Caps | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                caps_type_0 = Caps.from_dict(data)

                return caps_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Caps | None | Unset, data)

        caps = _parse_caps(d.pop("caps", UNSET))

        run_patch = cls(
            state=state,
            reason=reason,
            output=output,
            outcome=outcome,
            targets=targets,
            caps=caps,
        )

        return run_patch
