from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.train_request_algorithm import TrainRequestAlgorithm
from ..models.train_request_device import TrainRequestDevice
from ..models.train_request_executor import TrainRequestExecutor
from ..models.train_request_imitate_type_0 import TrainRequestImitateType0
from ..models.train_request_require_item import TrainRequestRequireItem
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.online_settings import OnlineSettings


T = TypeVar("T", bound="TrainRequest")


@_attrs_define
class TrainRequest:
    """Options of a training; all are optional."""

    algorithm: TrainRequestAlgorithm | Unset = TrainRequestAlgorithm.AUTO
    """ `auto` trains several, stops the worse ones early and keeps the best; when continuing an agent, it is that
    agent's own. `online` keeps learning: after each window of time it trains on what runs reported in it, and each
    version that does better on it than the serving one is published and serves next. """
    online: None | OnlineSettings | Unset = UNSET
    """ Options of algorithm `online`; besides them, only `seed`, `device`, `start_from`, `model` and
    `equivalence_margin` then apply. """
    budget: int | None | Unset = UNSET
    """ Environment steps per seed, shared by the competing algorithms: the same request gives the same agent on any
    machine. Default: set by the kind (2,000,000 for an iterative workload). """
    seed: int | Unset = 0
    """ The same seed and samples give the same result. """
    seeds: int | None | Unset = UNSET
    """ Number of seeds to try, starting at `seed`, on all workers in parallel; the best is kept. Default: three
    with `auto`, otherwise one. """
    executor: TrainRequestExecutor | Unset = TrainRequestExecutor.SERIAL
    """ In one process; with actors and a learner over shared memory; or the same on a Ray cluster (extra). """
    device: TrainRequestDevice | Unset = TrainRequestDevice.AUTO
    """ Device that computes networks; `auto` takes the fastest available. """
    start_from: int | None | Unset = UNSET
    """ Version of an agent to continue training; the result is a new version. Its policy is continued; what is not
    published with it, such as a critic, starts anew. """
    imitate: None | TrainRequestImitateType0 | Unset = UNSET
    """ Start by imitating a heuristic, or the planner, in the simulator. """
    model: int | None | Unset = UNSET
    """ Version of the domain model to train on; default: the newest. """
    promote: bool | Unset = True
    """ Whether the agent becomes the champion when it is good enough; otherwise it waits. If a workload has a
    policy per role, these are trained, evaluated and promoted together. """
    require: list[TrainRequestRequireItem] | Unset = UNSET
    """ Evidence required for a promotion: `shadow`, runs it shadowed without a loss under the domain model;
    `off_policy`, an evaluation that scored it on logged runs without a loss. """
    equivalence_margin: float | Unset = 0.01
    """ Margin of practical equivalence, as a share of the best heuristic's return: a loss within it fails no agent,
    a gain within it promotes none. """
    force: bool | Unset = False
    """ Train even if there is nothing to gain: where even a policy that knows all noise gains less than the margin
    over the workload's tuned rule. No effect for kinds without tuned rules. """
    priority: int | Unset = 0
    """ A tenant's waiting jobs start in order of priority, highest first; the order among tenants ignores it. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.online_settings import OnlineSettings  # noqa: PLC0415

        algorithm: str | Unset = UNSET
        if not isinstance(self.algorithm, Unset):
            algorithm = self.algorithm.value

        online: dict[str, Any] | None | Unset
        if isinstance(self.online, Unset):
            online = UNSET
        elif isinstance(self.online, OnlineSettings):
            online = self.online.to_dict()
        else:
            online = self.online

        budget: int | None | Unset
        if isinstance(self.budget, Unset):
            budget = UNSET
        else:
            budget = self.budget

        seed = self.seed

        seeds: int | None | Unset
        if isinstance(self.seeds, Unset):
            seeds = UNSET
        else:
            seeds = self.seeds

        executor: str | Unset = UNSET
        if not isinstance(self.executor, Unset):
            executor = self.executor.value

        device: str | Unset = UNSET
        if not isinstance(self.device, Unset):
            device = self.device.value

        start_from: int | None | Unset
        if isinstance(self.start_from, Unset):
            start_from = UNSET
        else:
            start_from = self.start_from

        imitate: None | str | Unset
        if isinstance(self.imitate, Unset):
            imitate = UNSET
        elif isinstance(self.imitate, TrainRequestImitateType0):
            imitate = self.imitate.value
        else:
            imitate = self.imitate

        model: int | None | Unset
        if isinstance(self.model, Unset):
            model = UNSET
        else:
            model = self.model

        promote = self.promote

        require: list[str] | Unset = UNSET
        if not isinstance(self.require, Unset):
            require = []
            for require_item_data in self.require:
                require_item = require_item_data.value
                require.append(require_item)

        equivalence_margin = self.equivalence_margin

        force = self.force

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if algorithm is not UNSET:
            field_dict["algorithm"] = algorithm
        if online is not UNSET:
            field_dict["online"] = online
        if budget is not UNSET:
            field_dict["budget"] = budget
        if seed is not UNSET:
            field_dict["seed"] = seed
        if seeds is not UNSET:
            field_dict["seeds"] = seeds
        if executor is not UNSET:
            field_dict["executor"] = executor
        if device is not UNSET:
            field_dict["device"] = device
        if start_from is not UNSET:
            field_dict["start_from"] = start_from
        if imitate is not UNSET:
            field_dict["imitate"] = imitate
        if model is not UNSET:
            field_dict["model"] = model
        if promote is not UNSET:
            field_dict["promote"] = promote
        if require is not UNSET:
            field_dict["require"] = require
        if equivalence_margin is not UNSET:
            field_dict["equivalence_margin"] = equivalence_margin
        if force is not UNSET:
            field_dict["force"] = force
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.online_settings import OnlineSettings  # noqa: PLC0415

        d = dict(src_dict)
        _algorithm = d.pop("algorithm", UNSET)
        algorithm: TrainRequestAlgorithm | Unset
        if isinstance(_algorithm, Unset):
            algorithm = UNSET
        else:
            algorithm = TrainRequestAlgorithm(_algorithm)

        def _parse_online(data: object) -> None | OnlineSettings | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                online_type_0 = OnlineSettings.from_dict(data)

                return online_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | OnlineSettings | Unset, data)

        online = _parse_online(d.pop("online", UNSET))

        def _parse_budget(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        budget = _parse_budget(d.pop("budget", UNSET))

        seed = d.pop("seed", UNSET)

        def _parse_seeds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        seeds = _parse_seeds(d.pop("seeds", UNSET))

        _executor = d.pop("executor", UNSET)
        executor: TrainRequestExecutor | Unset
        if isinstance(_executor, Unset):
            executor = UNSET
        else:
            executor = TrainRequestExecutor(_executor)

        _device = d.pop("device", UNSET)
        device: TrainRequestDevice | Unset
        if isinstance(_device, Unset):
            device = UNSET
        else:
            device = TrainRequestDevice(_device)

        def _parse_start_from(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        start_from = _parse_start_from(d.pop("start_from", UNSET))

        def _parse_imitate(data: object) -> None | TrainRequestImitateType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                imitate_type_0 = TrainRequestImitateType0(data)

                return imitate_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TrainRequestImitateType0 | Unset, data)

        imitate = _parse_imitate(d.pop("imitate", UNSET))

        def _parse_model(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        model = _parse_model(d.pop("model", UNSET))

        promote = d.pop("promote", UNSET)

        _require = d.pop("require", UNSET)
        require: list[TrainRequestRequireItem] | Unset = UNSET
        if _require is not UNSET:
            require = []
            for require_item_data in _require:
                require_item = TrainRequestRequireItem(require_item_data)

                require.append(require_item)

        equivalence_margin = d.pop("equivalence_margin", UNSET)

        force = d.pop("force", UNSET)

        priority = d.pop("priority", UNSET)

        train_request = cls(
            algorithm=algorithm,
            online=online,
            budget=budget,
            seed=seed,
            seeds=seeds,
            executor=executor,
            device=device,
            start_from=start_from,
            imitate=imitate,
            model=model,
            promote=promote,
            require=require,
            equivalence_margin=equivalence_margin,
            force=force,
            priority=priority,
        )

        return train_request
