from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.backfill_window import BackfillWindow
    from ..models.scored import Scored
    from ..models.workflow_plan import WorkflowPlan


T = TypeVar("T", bound="QueueReason")


@_attrs_define
class QueueReason:
    """Reason as a stable code and as text, with the figures behind it."""

    code: str
    text: str
    strategy: str
    """ Strategy whose order was followed. """
    backfilling: str
    """ Backfilling mechanism. """
    first: None | Scored | Unset = UNSET
    """ The most urgent task. """
    runner_up: None | Scored | Unset = UNSET
    """ The next most urgent task. """
    window: BackfillWindow | None | Unset = UNSET
    plan: None | Unset | WorkflowPlan = UNSET
    """ For workflows, if an agent is requested. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.backfill_window import BackfillWindow  # noqa: PLC0415
        from ..models.scored import Scored  # noqa: PLC0415
        from ..models.workflow_plan import WorkflowPlan  # noqa: PLC0415

        code = self.code

        text = self.text

        strategy = self.strategy

        backfilling = self.backfilling

        first: dict[str, Any] | None | Unset
        if isinstance(self.first, Unset):
            first = UNSET
        elif isinstance(self.first, Scored):
            first = self.first.to_dict()
        else:
            first = self.first

        runner_up: dict[str, Any] | None | Unset
        if isinstance(self.runner_up, Unset):
            runner_up = UNSET
        elif isinstance(self.runner_up, Scored):
            runner_up = self.runner_up.to_dict()
        else:
            runner_up = self.runner_up

        window: dict[str, Any] | None | Unset
        if isinstance(self.window, Unset):
            window = UNSET
        elif isinstance(self.window, BackfillWindow):
            window = self.window.to_dict()
        else:
            window = self.window

        plan: dict[str, Any] | None | Unset
        if isinstance(self.plan, Unset):
            plan = UNSET
        elif isinstance(self.plan, WorkflowPlan):
            plan = self.plan.to_dict()
        else:
            plan = self.plan

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "code": code,
                "text": text,
                "strategy": strategy,
                "backfilling": backfilling,
            }
        )
        if first is not UNSET:
            field_dict["first"] = first
        if runner_up is not UNSET:
            field_dict["runner_up"] = runner_up
        if window is not UNSET:
            field_dict["window"] = window
        if plan is not UNSET:
            field_dict["plan"] = plan

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.backfill_window import BackfillWindow  # noqa: PLC0415
        from ..models.scored import Scored  # noqa: PLC0415
        from ..models.workflow_plan import WorkflowPlan  # noqa: PLC0415

        d = dict(src_dict)
        code = d.pop("code")

        text = d.pop("text")

        strategy = d.pop("strategy")

        backfilling = d.pop("backfilling")

        def _parse_first(data: object) -> None | Scored | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                first_type_0 = Scored.from_dict(data)

                return first_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Scored | Unset, data)

        first = _parse_first(d.pop("first", UNSET))

        def _parse_runner_up(data: object) -> None | Scored | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                runner_up_type_0 = Scored.from_dict(data)

                return runner_up_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Scored | Unset, data)

        runner_up = _parse_runner_up(d.pop("runner_up", UNSET))

        def _parse_window(data: object) -> BackfillWindow | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                window_type_0 = BackfillWindow.from_dict(data)

                return window_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BackfillWindow | None | Unset, data)

        window = _parse_window(d.pop("window", UNSET))

        def _parse_plan(data: object) -> None | Unset | WorkflowPlan:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                plan_type_0 = WorkflowPlan.from_dict(data)

                return plan_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WorkflowPlan, data)

        plan = _parse_plan(d.pop("plan", UNSET))

        queue_reason = cls(
            code=code,
            text=text,
            strategy=strategy,
            backfilling=backfilling,
            first=first,
            runner_up=runner_up,
            window=window,
            plan=plan,
        )

        queue_reason.additional_properties = d
        return queue_reason

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
