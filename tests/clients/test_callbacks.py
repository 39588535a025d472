"""Callbacks in the real libraries: tiny models, one process, and a launcher's file; those not installed are skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client.callbacks.pytorch import Reported
from steward_client.callbacks.reporter import Reporter, _number, plain
from steward_client.callbacks.sklearn import partial_fit

from tests.clients.cutting import Cutting
from tests.clients.test_run import Handler, forwarded, state_of, workload
from tests.clients.test_training import nobody_launches, reports

__all__ = ["forwarded", "nobody_launches", "workload"]
ROWS = 32
X = np.linspace(-1, 1, ROWS)[:, None] * np.ones((1, 3))
Y = (X[:, 0] > 0).astype(np.float64)
Lines = Callable[[], list[dict[str, Any]]]
QUIET = pytest.mark.filterwarnings("ignore")  # of libraries that are not ours


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lines:
    file, decision = tmp_path / "lines", tmp_path / "decision"
    decision.write_text('{"iteration": 0, "allocation": {"threads": 2}}')
    monkeypatch.setenv("STEWARD_ITERATIONS", str(file))
    monkeypatch.setenv("STEWARD_ALLOCATION", str(decision))
    return lambda: [json.loads(line) for line in file.read_text().splitlines()]


def check(result: list[dict[str, Any]], metric: str, iterations: int = 3) -> None:
    assert [line["iteration"] for line in result] == list(range(iterations))
    assert all(line["metrics"]["iteration_seconds"] > 0 for line in result)
    values = [line["metrics"][metric] for line in result]
    assert len(set(values)) > 1  # it learns


def by_pytorch(folder: Path) -> None:
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimiser = torch.optim.SGD(model.parameters(), 0.5)
    inputs, truth = torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32)[:, None]
    for _ in (steps := Reported(range(3), batch=ROWS)):
        loss = torch.nn.functional.mse_loss(model(inputs), truth)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        steps.log(loss=loss, gradients=model.weight.grad)


def by_sklearn(folder: Path) -> None:
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(loss="log_loss", random_state=0)
    partial_fit(model, [(X, Y)] * 3, classes=[0, 1], score=lambda it: {"Loss": np.abs(it.coef_).sum()})


def by_lightning(folder: Path) -> None:
    pytest.importorskip("lightning")
    import lightning
    import torch
    from steward_client.callbacks.lightning import StewardCallback

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
            loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), 0.1)

    data = torch.utils.data.TensorDataset(torch.tensor(X).float(), torch.tensor(Y)[:, None].float())
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[StewardCallback(batch=16)],
        default_root_dir=folder,
    )
    trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=16))


def by_huggingface(folder: Path, every: Literal["epoch", "step"] = "epoch", logging: str = "steps") -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    import torch
    from steward_client.callbacks.huggingface import StewardCallback
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": torch.nn.functional.mse_loss(self.layer(x)[:, 0], labels)}

    rows = [{"x": torch.tensor(x).float(), "labels": torch.tensor(y).float()} for x, y in zip(X, Y, strict=True)]
    requested = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=3,
        per_device_train_batch_size=ROWS,
        logging_steps=1,
        logging_strategy=logging,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        learning_rate=0.1,
    )
    Trainer(Model(), requested, train_dataset=rows, callbacks=[StewardCallback(every=every)]).train()


def by_keras(folder: Path, every: Literal["epoch", "batch"] = "epoch") -> None:
    os.environ["KERAS_BACKEND"] = "torch"
    keras = pytest.importorskip("keras")
    from steward_client.callbacks.keras import StewardCallback

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(X, Y, epochs=3, batch_size=ROWS, verbose=0, callbacks=[StewardCallback(every=every)])


def by_xgboost(folder: Path) -> None:
    xgboost = pytest.importorskip("xgboost")
    from steward_client.callbacks.xgboost import StewardCallback

    data = xgboost.DMatrix(X, Y)
    options = {"objective": "binary:logistic", "nthread": 1}
    xgboost.train(options, data, 3, evals=[(data, "train")], verbose_eval=False, callbacks=[StewardCallback()])


def by_lightgbm(folder: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    from steward_client.callbacks.lightgbm import steward_callbacks

    data = lightgbm.Dataset(X, Y, params={"min_data_in_bin": 1, "verbose": -1})
    options = {"num_threads": 1, "verbose": -1, "min_data_in_leaf": 2, "metric": "l2"}
    lightgbm.train(options, data, 3, valid_sets=[data], callbacks=[*steward_callbacks()])


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pytorch": (by_pytorch, "loss"),
    "sklearn": (by_sklearn, "loss"),
    "lightning": (by_lightning, "loss"),
    "huggingface": (by_huggingface, "loss"),
    "huggingface-logging-epochs": (partial(by_huggingface, logging="epoch"), "loss"),
    "huggingface-steps": (partial(by_huggingface, every="step"), "loss"),
    "keras": (by_keras, "loss"),
    "keras-batches": (partial(by_keras, every="batch"), "loss"),
    "xgboost": (by_xgboost, "train_logloss"),
    "lightgbm": (by_lightgbm, "training_l2"),
}


@QUIET
@pytest.mark.parametrize(
    ("reported", "left"),
    [
        ({"num_train_epochs": 3, "max_steps": 30}, 3),
        ({"num_train_epochs": 3, "max_steps": 30, "epoch": 1.6}, 2),  # goes on from within an epoch
        ({"num_train_epochs": sys.maxsize, "max_steps": 30}, None),  # of a stream
    ],
)
def test_huggingface_tells_how_many_epochs_there_will_be(
    lines: Lines, reported: dict[str, Any], left: int | None
) -> None:
    pytest.importorskip("transformers")
    from steward_client.callbacks.huggingface import StewardCallback
    from transformers import TrainerControl, TrainerState, TrainingArguments

    callback, state = StewardCallback(), TrainerState(is_world_process_zero=True, **reported)
    requested: tuple[Any, Any, Any] = (TrainingArguments(report_to=[]), state, TrainerControl())
    callback.on_train_begin(*requested)
    callback.on_epoch_begin(*requested)
    callback.on_epoch_end(*requested)
    callback.on_log(*requested, logs={"eval_loss": 0.5})  # what is evaluated after an epoch is of it
    callback.on_train_end(*requested)
    (line,) = lines()
    assert (line.get("total"), line["metrics"]["eval_loss"]) == (left, 0.5)


@QUIET
def test_keras_tells_how_many_calls_there_will_be_and_needs_no_parameters(lines: Lines) -> None:
    os.environ["KERAS_BACKEND"] = "torch"
    keras = pytest.importorskip("keras")
    from steward_client.callbacks.keras import StewardCallback

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse", steps_per_execution=4)
    for result in ({"epochs": 2, "steps": 8}, {}):  # a loop of one's own may tell nothing
        loop = keras.callbacks.CallbackList([StewardCallback(every="batch")], model=model, **result)
        loop.on_train_begin()
        loop.on_epoch_begin(0)
        loop.on_train_batch_begin(0)
        loop.on_train_batch_end(0, {"loss": 1.0})
        loop.on_epoch_end(0)
        loop.on_train_end()
    assert [line.get("total") for line in lines()] == [4, None]


COUNTED = WAYS.keys() - {"xgboost"}
"""Where it is known, and told, how many iterations there will be."""


@QUIET
@pytest.mark.parametrize("library", WAYS)
def test_a_library_reports_its_iterations_and_is_silent_alone(
    library: str, lines: Lines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, metric = WAYS[library]
    train(tmp_path)
    check(lines(), metric)
    assert [line.get("total") for line in lines()] == [3 if library in COUNTED else None] * 3
    for name in ("STEWARD_ITERATIONS", "STEWARD_ALLOCATION"):
        monkeypatch.delenv(name)
    if library in ("pytorch", "sklearn", "xgboost", "lightgbm"):  # the others do the same, at a greater cost
        train(tmp_path)
        assert len(lines()) == 3


def test_a_callback_without_a_launcher_imports_no_http_and_reports_nothing() -> None:
    reporter = Reporter()
    for _ in range(2):
        reporter.begin()
        reporter.log({"loss": 1.0})
        reporter.end()
    assert reporter.epoch is None
    assert reporter.allocation == {}


@pytest.mark.parametrize("rank", ["RANK", "SLURM_PROCID"])
def test_one_of_many_processes_reports(lines: Lines, monkeypatch: pytest.MonkeyPatch, rank: str) -> None:
    monkeypatch.setenv(rank, "1")
    assert list(Reported("ab")) == ["a", "b"]
    monkeypatch.setenv(rank, "0")
    assert list(Reported("ab")) == ["a", "b"]
    assert len(lines()) == 2


def test_a_loop_sees_its_allocation(lines: Lines) -> None:
    steps = Reported(range(2))
    assert [steps.reporter.allocation for _ in steps] == [{"threads": 2}] * 2


def test_reports_go_over_http_to_the_run_that_is_named(
    client: TestClient, workload: str, forwarded: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cutting(forwarded, lambda _: None).running() as service:
        with steward.Run(service.url, workload) as launcher:
            monkeypatch.setenv("STEWARD_URL", service.url)
            monkeypatch.setenv("STEWARD_RUN", launcher.id)
            for _ in (steps := Reported(range(3), batch=128)):
                steps.log(Loss=float("nan"), accuracy=0.5)
            assert state_of(client, launcher.id)["state"] == "running"
        assert [one["features"] for one in reports(client, launcher.id)] == [{"batch": 128}] * 3


@pytest.mark.parametrize("run", ["unknown", "refused"])
def test_nothing_about_reporting_ends_a_training(
    client: TestClient,
    workload: str,
    forwarded: Handler,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    run: str,
) -> None:
    with Cutting(forwarded, lambda _: None).running() as service:
        monkeypatch.setenv("STEWARD_URL", service.url)
        known = client.post("/runs", json={"workload": workload}).json()["id"]
        monkeypatch.setenv("STEWARD_RUN", known if run == "refused" else "no such run")
        assert list(Reported(range(3))) == [0, 1, 2]  # without the feature that its workload asks for
    assert "StewardError" in caplog.text


def test_what_is_on_its_way_is_sent_before_the_process_ends(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    run = client.post("/runs", json={"workload": workload}).json()["id"]
    script = (
        "from steward_client.callbacks.reporter import Reporter; it = Reporter(features={'batch': 1})\n"
        "for _ in range(3): it.begin(); it.end()"
    )
    with Cutting(forwarded, lambda _: None).running() as service:
        fields = {**os.environ, "STEWARD_URL": service.url, "STEWARD_RUN": run}
        subprocess.run([sys.executable, "-c", script], env=fields, check=True, timeout=120)
    assert state_of(client, run)["iterations"] == 3


def test_how_many_there_will_be_counts_those_of_loops_before(lines: Lines, tmp_path: Path) -> None:
    for before, steps in ((0, range(2)), (2, iter(range(2))), (4, range(3))):
        (tmp_path / "decision").write_text(json.dumps({"iteration": before}))
        list(Reported(steps))
    assert [line.get("total") for line in lines()] == [2, 2, None, None, 7, 7, 7]


def test_a_tensor_that_has_a_slope_is_a_number() -> None:
    import torch

    assert _number(torch.ones(1, requires_grad=True)) == 1.0


def test_names_become_plain() -> None:
    assert [plain(name) for name in ("Train/Loss", "eval-l2", "!", "x" * 99)] == [
        "train_loss",
        "eval_l2",
        "unnamed",
        "x" * 63,
    ]
