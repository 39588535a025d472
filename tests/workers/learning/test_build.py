"""The three build stages and the error of each."""

from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from workers.learning.backends import BackendError, get_backend
from workers.learning.build import (
    BindError,
    Completion,
    ComposeError,
    DeadLockError,
    IncompleteInputError,
    SpaceMismatchError,
    bind,
    complete,
    compose,
)
from workers.learning.components.base import Arrays, Component, Node, Spaces, Variable, reals
from workers.learning.components.network import Composite, DuelingHead, LinearHead, Pick, QNetwork, Trunk

Q_WIRES = {"observation": "observation", "mask": "mask"}
SPACES = {"observation": reals(6), "mask": spaces.MultiBinary(3), "action": spaces.Discrete(3)}


class Add(Component):
    takes: ClassVar = ("left", "right")

    def output_spaces(self, inputs: Spaces) -> Spaces:
        self.scalar(inputs, "left")
        return {"sum": inputs["left"]}

    def variables(self, inputs: Spaces) -> dict[str, Variable]:
        return {"bias": Variable((1,), 1)}

    def run(self, xp: Any, variables: Arrays, inputs: Arrays) -> Arrays:
        return {"sum": inputs["left"] + inputs["right"] + variables["bias"]}


class Pair(Composite):
    """Two inner calls of `Add`, by default first, then second; `calls` may be wired wrongly on purpose."""

    takes: ClassVar = ("x", "y")

    def __init__(self, first: dict[str, str], second: dict[str, str], result: str = "second.sum") -> None:
        self.one, self.other, self.wires, self.result = Add(), Add(), (first, second), result

    def calls(self) -> tuple[Node, ...]:
        return Node("first", self.one, self.wires[0]), Node("second", self.other, self.wires[1])

    def results(self) -> dict[str, str]:
        return {"sum": self.result}


FIRST, SECOND = {"left": "x", "right": "y"}, {"left": "first.sum", "right": "y"}


class Outer(Composite):
    """A composite in a composite."""

    takes: ClassVar = ("x", "y")

    def __init__(self, inner: Component) -> None:
        self.inner = inner

    def calls(self) -> tuple[Node, ...]:
        return (Node("inner", self.inner, {"x": "x", "y": "y"}),)

    def results(self) -> dict[str, str]:
        return {"sum": "inner.sum"}


def nested(pair: Pair, shape: tuple[int, ...] = ()) -> Completion:
    """The pair, two levels deep."""
    graph = compose(["x", "y"], [Node("outer", Outer(pair), {"x": "x", "y": "y"})])
    return complete(graph, {"x": reals(*shape), "y": reals()})


def q_network() -> QNetwork:
    return QNetwork(Trunk((8,)), LinearHead(3))


def test_compose_refuses_what_is_not_in_the_graph() -> None:
    with pytest.raises(ComposeError, match=r"'q'.*'observation'.*'somewhere'"):
        compose(["mask"], [Node("q", q_network(), {"observation": "somewhere", "mask": "mask"})])
    with pytest.raises(ComposeError, match=r"'q' has no input 'picture'"):
        compose(["observation"], [Node("q", q_network(), {"picture": "observation"})])
    with pytest.raises(ComposeError, match=r"more than once: q"):
        compose(["observation", "mask"], [Node("q", q_network(), Q_WIRES), Node("q", q_network(), Q_WIRES)])


def test_an_unwired_input_is_named() -> None:
    graph = compose(["observation"], [Node("q", q_network(), {"observation": "observation"})])
    with pytest.raises(IncompleteInputError, match=r"'q'.*'mask'"):
        complete(graph, SPACES)


def test_a_root_input_without_a_space_is_named() -> None:
    graph = compose(["observation", "mask"], [Node("q", q_network(), Q_WIRES)])
    with pytest.raises(IncompleteInputError, match=r"'q.head'.*'mask'"):
        complete(graph, {"observation": reals(6)})


def test_an_output_that_does_not_exist_is_named() -> None:
    graph = compose(
        [*SPACES], [Node("q", q_network(), Q_WIRES), Node("pick", Pick(), {"values": "q.value", "action": "action"})]
    )
    with pytest.raises(IncompleteInputError, match=r"'pick'.*'values'.*'q.value'"):
        complete(graph, SPACES)


def test_components_that_wait_for_each_other_are_named() -> None:
    graph = compose(
        ["x"],
        [
            Node("one", Add(), {"left": "x", "right": "other.sum"}),
            Node("other", Add(), {"left": "x", "right": "one.sum"}),
        ],
    )
    with pytest.raises(
        DeadLockError, match=r"'one' \(input 'right'\) waits for 'other', 'other' \(input 'right'\) waits for 'one'"
    ):
        complete(graph, {"x": reals()})


def test_a_mismatch_names_node_component_and_input() -> None:
    graph = compose(
        [*SPACES], [Node("q", q_network(), Q_WIRES), Node("pick", Pick(), {"values": "q.values", "action": "action"})]
    )
    with pytest.raises(SpaceMismatchError, match=r"node 'pick': component 'Pick': input 'action'"):
        complete(graph, {**SPACES, "action": spaces.Discrete(4)})


def test_a_shared_component_must_see_the_same_spaces() -> None:
    shared = q_network()
    graph = compose(
        [*SPACES, "wide"], [Node("q", shared, Q_WIRES), Node("p", shared, {"observation": "wide", "mask": "mask"})]
    )
    with pytest.raises(SpaceMismatchError, match=r"'p.trunk'.*shared with 'q.trunk'"):
        complete(graph, {**SPACES, "wide": reals(9)})


def test_inner_calls_compute_in_order_and_own_their_variables_by_path() -> None:
    bound = bind(nested(Pair(FIRST, SECOND)), get_backend("numpy"), np.random.default_rng(0))
    views = bound.stores["online"].views
    assert set(views) == {"inner.first/bias", "inner.second/bias"}
    x, y = np.ones(3, np.float32), np.full(3, 2.0, np.float32)
    outputs = bound.run(("outer.sum", "outer.inner.first.sum"), {"x": x, "y": y})
    first = x + y + views["inner.first/bias"]
    np.testing.assert_array_equal(outputs["outer.inner.first.sum"], first)
    np.testing.assert_array_equal(outputs["outer.sum"], first + y + views["inner.second/bias"])
    fed = bound.run(("outer.sum",), {"outer.inner.first.sum": x, "y": y})["outer.sum"]
    np.testing.assert_array_equal(fed, x + y + views["inner.second/bias"])


def test_an_inner_call_of_what_is_not_in_the_composite_is_named() -> None:
    with pytest.raises(ComposeError, match=r"'outer.inner.second': input 'left' is wired to 'third.sum', which is not"):
        nested(Pair(FIRST, {"left": "third.sum", "right": "y"}))
    with pytest.raises(ComposeError, match=r"'outer.inner.second' has no input 'middle'; it takes left, right"):
        nested(Pair(FIRST, {"middle": "first.sum"}))
    with pytest.raises(ComposeError, match=r"'outer.inner': output 'sum' is 'third.sum', which is not in the graph"):
        nested(Pair(FIRST, SECOND, "third.sum"))
    looped = Outer(Add())
    looped.inner = looped
    with pytest.raises(ComposeError, match=r"'loop.inner' holds itself"):
        compose(["x", "y"], [Node("loop", looped, {"x": "x", "y": "y"})])


def test_an_inner_input_that_is_incomplete_is_named() -> None:
    with pytest.raises(IncompleteInputError, match=r"'outer.inner.second': nothing is wired to its input 'right'"):
        nested(Pair(FIRST, {"left": "first.sum"}))
    with pytest.raises(IncompleteInputError, match=r"'outer.inner.second'.*'left'.*'outer.inner.first.total'"):
        nested(Pair(FIRST, {"left": "first.total", "right": "y"}))
    with pytest.raises(IncompleteInputError, match=r"'outer': nothing is wired to its input 'y'"):
        complete(compose(["x"], [Node("outer", Outer(Pair(FIRST, SECOND)), {"x": "x"})]), {"x": reals()})


def test_inner_calls_that_wait_for_each_other_are_named() -> None:
    text = (
        r"'outer.inner.first' \(input 'right'\) waits for 'outer.inner.second', 'outer.inner.second' \(input 'left'\)"
    )
    with pytest.raises(DeadLockError, match=text):
        nested(Pair({"left": "x", "right": "second.sum"}, SECOND))


def test_what_waits_for_a_dead_lock_is_not_taken_for_it() -> None:
    pair = [Node("b", Add(), {"left": "x", "right": "c.sum"}), Node("c", Add(), {"left": "x", "right": "b.sum"})]
    graph = compose(["x"], [Node("a", Add(), {"left": "x", "right": "b.sum"}), *pair])
    with pytest.raises(DeadLockError) as caught:
        complete(graph, {"x": reals()})
    assert "'b' (input 'right') waits for 'c'" in str(caught.value)
    assert "'a'" not in str(caught.value)


def test_a_mismatch_inside_is_named_by_path_component_and_input() -> None:
    with pytest.raises(SpaceMismatchError, match=r"node 'outer.inner.first': component 'Add': input 'left' has space"):
        nested(Pair(FIRST, SECOND), (4,))
    graph = compose([*SPACES], [Node("q", QNetwork(Trunk((8,)), LinearHead(5)), Q_WIRES)])
    with pytest.raises(SpaceMismatchError, match=r"node 'q.head': component 'LinearHead': input 'mask'"):
        complete(graph, SPACES)


def test_nodes_of_one_component_share_variables_and_sets_differ() -> None:
    shared = q_network()
    graph = compose(
        [*SPACES],
        [
            Node("q", shared, Q_WIRES),
            Node("again", shared, Q_WIRES),
            Node("target", shared, Q_WIRES, variables="target"),
        ],
    )
    backend = get_backend("torch")
    bound = bind(complete(graph, SPACES), backend, np.random.default_rng(0))
    parameters = 6 * 8 + 8 + 8 * 3 + 3
    assert bound.report.parameters == parameters
    store = bound.stores["online"]
    store.views = backend.cut(store.layout, backend.asarray(np.full(parameters, 0.1, np.float32)))
    feeds = {
        "observation": backend.asarray(np.ones((2, 6), np.float32)),
        "mask": backend.asarray(np.ones((2, 3), np.bool_)),
    }
    outputs = bound.run(("q.values", "again.values", "target.values"), feeds)
    assert (outputs["q.values"] == outputs["again.values"]).all()
    assert (outputs["q.values"] != outputs["target.values"]).all()


def test_order_follows_the_wires_not_the_list() -> None:
    nodes = [
        Node("last", Add(), {"left": "first.sum", "right": "x"}),
        Node("first", Add(), {"left": "x", "right": "x"}),
    ]
    completed = complete(compose(["x"], nodes), {"x": reals()})
    assert [node.name for node in completed.order] == ["first", "last"]
    bound = bind(completed, get_backend("numpy"), np.random.default_rng(0))
    outputs = bound.run(("last.sum",), {"x": np.ones(1, np.float32)})
    first, last = bound.stores["online"].views["first.bias"], bound.stores["online"].views["last.bias"]
    np.testing.assert_allclose(outputs["last.sum"], 3.0 + first + last)


def test_a_wire_that_cannot_be_had_is_a_bind_error() -> None:
    bound = bind(
        complete(compose([*SPACES], [Node("q", q_network(), Q_WIRES)]), SPACES),
        get_backend("numpy"),
        np.random.default_rng(0),
    )
    with pytest.raises(BindError, match=r"'mask' is needed for q.values"):
        bound.run(("q.values",), {"observation": np.ones((2, 6), np.float32)})
    network = QNetwork(Trunk((8,)), DuelingHead(3))
    bound = bind(
        complete(compose([*SPACES], [Node("q", network, Q_WIRES)]), SPACES),
        get_backend("numpy"),
        np.random.default_rng(0),
    )
    with pytest.raises(BackendError, match=r"numpy .* component 'q.head' \(DuelingHead\) has no gradients of its own"):
        bound.gradient("q.values", ("q.values",), dict.fromkeys(SPACES))
    with pytest.raises(BackendError, match=r"unknown backend 'abacus'"):
        get_backend("abacus")


def test_the_report_times_the_stages() -> None:
    report = bind(
        complete(compose([*SPACES], [Node("q", q_network(), Q_WIRES)]), SPACES),
        get_backend("torch"),
        np.random.default_rng(0),
    ).report
    assert report.nodes == 2  # trunk and head
    assert min(report.compose_seconds, report.complete_seconds, report.bind_seconds) > 0
    assert report.compose_seconds + report.complete_seconds + report.bind_seconds < 1.0
