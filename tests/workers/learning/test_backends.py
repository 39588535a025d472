"""Backends: gradients against finite differences, and who may know which one runs."""

import ast
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

import workers.learning
from workers.learning.backends import get_backend
from workers.learning.build import Node, bind, complete, compose
from workers.learning.components.base import Arrays, Component
from workers.learning.components.network import DuelingHead, QNetwork, Trunk
from workers.learning.spaces import Spaces, reals

ROOT = Path(workers.learning.__file__).parent
BACKEND_MODULES = {"torch", "jax", "tensorflow", "array_api_compat"}


class Square(Component):
    takes: ClassVar = ("values",)

    def gives(self, inputs: Spaces) -> Spaces:
        return {"values": inputs["values"]}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"values": inputs["values"] ** 2}


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_backends_are_imported_in_their_folder_alone() -> None:
    files = [path for path in ROOT.rglob("*.py") if path.parent.name != "backends"]
    assert len(files) > 10
    assert {
        str(path.relative_to(ROOT)): imported(path) & BACKEND_MODULES
        for path in files
        if imported(path) & BACKEND_MODULES
    } == {}


def test_no_component_asks_for_its_backend() -> None:
    for path in (ROOT / "components").glob("*.py"):
        assert "get_backend" not in path.read_text(), path.name


def test_gradient_equals_finite_differences() -> None:
    backend, rng = get_backend("torch"), np.random.default_rng(0)
    network = QNetwork(Trunk((5,), "tanh"), DuelingHead(3))
    shapes = {"observation": reals(4), "mask": spaces.MultiBinary(3)}
    square = Node("square", Square(), {"values": "q.values"})
    completed = complete(compose([*shapes], [Node("q", network, {name: name for name in shapes}), square]), shapes)
    bound = bind(completed, backend, rng)
    start = rng.normal(0, 0.5, bound.report.parameters).astype(np.float32)
    feeds = {
        "observation": backend.asarray(rng.normal(size=(6, 4)).astype(np.float32)),
        "mask": backend.asarray(np.ones((6, 3), np.bool_)),
    }

    def value(flat: np.ndarray) -> float:
        backend.assign(bound.stores["online"], backend.asarray(flat.astype(np.float32)))
        with backend.without_gradient():
            return float((bound.run(("square.values",), feeds)["square.values"]).mean())

    value(start)
    _, gradient = bound.gradient("square.values", (), feeds)
    found = backend.to_numpy(gradient)
    steps = np.eye(len(start), dtype=np.float32) * 1e-2
    differences = [(value(start + step) - value(start - step)) / 2e-2 for step in steps]
    np.testing.assert_allclose(found, differences, rtol=0.02, atol=2e-3)
