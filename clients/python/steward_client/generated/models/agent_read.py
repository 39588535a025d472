from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.agent_read_standing import AgentReadStanding
from ..models.agent_read_status import AgentReadStatus

if TYPE_CHECKING:
    from ..models.agent_read_report import AgentReadReport


T = TypeVar("T", bound="AgentRead")


@_attrs_define
class AgentRead:
    """One trained agent: what it was trained on, and whether it serves decisions now."""

    workload: str
    version: int
    """ Counts from 1. """
    spec_version: int
    """ Version of the spec that it was trained under. """
    model_version: int
    """ Version of the domain model that it was trained on. """
    algorithm: str
    seed: int
    champion: bool
    """ Whether it serves decisions now, in any role. """
    promoted: bool
    """ Whether it has ever served decisions, even if it does not any more: `status` says what it is now. """
    status: AgentReadStatus
    """ Current status, by all promotions and rollbacks. """
    champion_since: datetime.datetime | None
    """ When it last became the champion; null if it was never promoted. """
    champion_until: datetime.datetime | None
    """ When it ceased to be the champion; null while it is, and if it was never promoted. """
    standing: AgentReadStanding
    """ Validity of its verdicts. `current`: valid. `re_evaluate`: an earlier version of the judge made them.
    `outdated`: the workload has targets, prices or weights that it was not trained for, and `standing_reason` says
    whether to train anew; evaluations do not assess it. """
    standing_reason: str
    """ Why its verdicts are not valid; empty if they are. """
    instead: str
    """ The current policy, and its comparison with the agent at the end of training; empty for the champion. """
    report: AgentReadReport
    """ The evaluation at the end of its training (`created_at`), which later promotions do not change: return with
    interval and by term, the same for every heuristic, the exact optimum if known, and in `reason` why it was
    promoted then or not. For some kinds also `pictures` of its behaviour; omitted in lists. """
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        version = self.version

        spec_version = self.spec_version

        model_version = self.model_version

        algorithm = self.algorithm

        seed = self.seed

        champion = self.champion

        promoted = self.promoted

        status = self.status.value

        champion_since: None | str
        if isinstance(self.champion_since, datetime.datetime):
            champion_since = self.champion_since.isoformat()
        else:
            champion_since = self.champion_since

        champion_until: None | str
        if isinstance(self.champion_until, datetime.datetime):
            champion_until = self.champion_until.isoformat()
        else:
            champion_until = self.champion_until

        standing = self.standing.value

        standing_reason = self.standing_reason

        instead = self.instead

        report = self.report.to_dict()

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "version": version,
                "spec_version": spec_version,
                "model_version": model_version,
                "algorithm": algorithm,
                "seed": seed,
                "champion": champion,
                "promoted": promoted,
                "status": status,
                "champion_since": champion_since,
                "champion_until": champion_until,
                "standing": standing,
                "standing_reason": standing_reason,
                "instead": instead,
                "report": report,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.agent_read_report import AgentReadReport  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        version = d.pop("version")

        spec_version = d.pop("spec_version")

        model_version = d.pop("model_version")

        algorithm = d.pop("algorithm")

        seed = d.pop("seed")

        champion = d.pop("champion")

        promoted = d.pop("promoted")

        status = AgentReadStatus(d.pop("status"))

        def _parse_champion_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                champion_since_type_0 = datetime.datetime.fromisoformat(data)

                return champion_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        champion_since = _parse_champion_since(d.pop("champion_since"))

        def _parse_champion_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                champion_until_type_0 = datetime.datetime.fromisoformat(data)

                return champion_until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        champion_until = _parse_champion_until(d.pop("champion_until"))

        standing = AgentReadStanding(d.pop("standing"))

        standing_reason = d.pop("standing_reason")

        instead = d.pop("instead")

        report = AgentReadReport.from_dict(d.pop("report"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        agent_read = cls(
            workload=workload,
            version=version,
            spec_version=spec_version,
            model_version=model_version,
            algorithm=algorithm,
            seed=seed,
            champion=champion,
            promoted=promoted,
            status=status,
            champion_since=champion_since,
            champion_until=champion_until,
            standing=standing,
            standing_reason=standing_reason,
            instead=instead,
            report=report,
            created_at=created_at,
        )

        agent_read.additional_properties = d
        return agent_read

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
