"""What every registered kind must hold, run with the examples that the kind itself gives.

Its other half, which learns, is held by ``test_learned_kind.py``.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import vl_convert
from numpy.testing import assert_equal
from pydantic import TypeAdapter, ValidationError

from app.charts.figures import Figure
from app.kinds.contract.engine import ADDED, DecisionBase, EncodedDecision, Pending, Shadow, Snapshot
from app.kinds.contract.inputs import Contradiction, IncompatibleModel, InvalidInput, Sample
from app.kinds.contract.kind import Earlier, Kind, RunStart, changed_terms
from app.kinds.contract.run_outcome import EndedRun
from app.kinds.contract.samples import ExecutionBase, SampleCodec
from app.kinds.contract.views import Learnt, RunHistory, Step
from app.kinds.engine import HOLD, Choices, Compiled, DecidedBy
from app.kinds.fields import Slug, converted, in_full
from app.kinds.registry import KINDS, AnyDecision, AnyExecution, AnyReport, layout_of, parse_spec, read_spec
from app.policies.artifact import Artifact
from app.samples.body import EXPORTS, FORMATS
from tests import batched
from tests.answers import all_answered

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


FEATURED = "iterative with a feature"


@pytest.fixture(params=[*KINDS, FEATURED])
def kind(request: pytest.FixtureRequest) -> Kind:
    if request.param != FEATURED:
        return KINDS[request.param]
    return dataclasses.replace(KINDS["iterative"], example=batched.EXAMPLE)


def spec_of(kind: Kind) -> Any:
    return read_spec(copy.deepcopy(dict(kind.example.spec)))


def compiled(kind: Kind) -> Compiled:
    spec = spec_of(kind)
    return kind.engine.compile(Snapshot("w", spec.name, 1, spec, layout_of(spec), None, None, None, None, 1))


def test_without_earlier_workloads_that_can_be_read_there_is_no_prior(kind: Kind) -> None:
    spec = spec_of(kind)

    def unreadable() -> Any:
        raise IncompatibleModel("its table can't be read")

    assert kind.prior(layout_of(spec), []) is None
    assert kind.prior(layout_of(spec), [Earlier(spec, unreadable)] * 2) is None


def begin(kind: Kind, on: Compiled) -> EncodedDecision:
    start = kind.start.model_validate({"workload": on.snapshot.name, **kind.example.start})
    return kind.engine.begin(on, "r", start, NOW)


def pending(kind: Kind, on: Compiled, state: Any, n: int, run: str = "r") -> Pending:
    read = kind.engine.read(on, state, n, kind.engine.decode(msgspec.json.encode(kind.example.reports[n])))
    return Pending(run, n, state, read, dict(kind.example.start), None)


def step(kind: Kind, on: Compiled, state: Any, n: int, run: str = "r") -> EncodedDecision:
    """The answer to report n."""
    return all_answered(kind.engine.answer(on, [pending(kind, on, state, n, run)], NOW))[0]


def walked(kind: Kind, on: Compiled, reports: int) -> Any:
    """The state after so many reports."""
    state = begin(kind, on).state
    for n in range(reports):
        state = step(kind, on, state, n).state
    return state


def test_terms_are_within_their_bounds_and_none_has_changed_where_the_spec_has_not(kind: Kind) -> None:
    spec = spec_of(kind)
    terms = kind.terms(spec)
    assert all(term.low <= term.value <= term.high for term in terms.values())
    assert changed_terms(terms, kind.terms(spec)) == []
    assert set(kind.terms(kind.apply_patch(spec, kind.patch.model_validate(kind.example.patch)))) == set(terms)


def test_roles_are_names_each_once(kind: Kind) -> None:
    roles = kind.roles(spec_of(kind))
    assert [TypeAdapter(Slug).validate_python(role) for role in roles] == list(dict.fromkeys(roles)) != []


class TestModels:
    """Spec, patch, start, report, decision and execution."""

    def test_a_spec_is_read_back_as_it_was(self, kind: Kind) -> None:
        spec = spec_of(kind)
        assert (spec.kind, type(spec)) == (kind.name, kind.spec)
        assert read_spec(spec.model_dump(mode="json")) == spec
        assert layout_of(spec).spec is spec

    def test_every_model_is_told_apart_by_its_kind(self, kind: Kind) -> None:
        for model in (kind.spec, kind.engine.report, kind.decision, kind.execution):
            schema = TypeAdapter(model).json_schema()["properties"]["kind"]
            assert schema.get("const") == kind.name or schema.get("enum") == [kind.name]
        assert issubclass(kind.start, RunStart)
        assert issubclass(kind.execution, ExecutionBase)
        assert DecisionBase.model_fields.keys() <= kind.decision.model_fields.keys()

    def test_its_example_changes_something_and_an_empty_patch_does_not(self, kind: Kind) -> None:
        spec = spec_of(kind)
        assert kind.apply_patch(spec, kind.patch.model_validate(kind.example.patch)) != spec
        assert kind.apply_patch(spec, kind.patch.model_validate({})) == spec

    def test_unknown_fields_are_refused(self, kind: Kind) -> None:
        for model in (kind.patch, kind.start, kind.engine.report):
            with pytest.raises(ValidationError):
                TypeAdapter(model).validate_python({"workload": "w", "colour": 1})
        with pytest.raises(ValidationError):
            parse_spec({**kind.example.spec, "colour": 1})

    def test_it_is_described_in_words(self, kind: Kind) -> None:
        assert all(kind.describe(spec_of(kind)))
        decision = TypeAdapter(AnyDecision).validate_json(begin(kind, compiled(kind)).decision)
        assert isinstance(kind.summarise(decision), str)


class TestEngine:
    """Reports into decisions: states survive storage, answers depend on nothing else, nothing changes in place."""

    def test_every_answer_is_a_decision_of_the_schema_with_its_fields(self, kind: Kind) -> None:
        on = compiled(kind)
        begun = begin(kind, on)
        answers, state = [begun.decision], begun.state
        for n in range(len(kind.example.reports)):
            answered = step(kind, on, state, n)
            answers.append(answered.decision)
            state = answered.state
        for n, answer in enumerate(answers):
            plain = msgspec.json.decode(answer)
            assert type(TypeAdapter(AnyDecision).validate_json(answer)) is kind.decision
            assert {*plain} == {name for name in kind.decision.model_fields if name not in ADDED}
            assert (plain["kind"], plain["run"], plain["reported"]) == (kind.name, "r", None if n == 0 else n - 1)
            assert plain["iteration"] == n
            assert plain["reason"]["text"]
            fields = kind.decision.model_validate(plain).model_dump(mode="json", exclude={"decided_at", *ADDED})
            assert fields == {name: value for name, value in plain.items() if name != "decided_at"}

    def test_a_stored_state_goes_on_as_if_nothing_had_happened(self, kind: Kind) -> None:
        on = compiled(kind)
        for reports in range(len(kind.example.reports)):
            state = walked(kind, on, reports)
            stored = bytes(kind.engine.serialise(state))
            restored = kind.engine.restore(msgspec.json.decode(stored))
            assert bytes(kind.engine.serialise(restored)) == stored
            assert step(kind, on, restored, reports).decision == step(kind, on, state, reports).decision

    def test_without_a_domain_model_no_report_tells_of_a_drift(self, kind: Kind) -> None:
        on = compiled(kind)
        answered = begin(kind, on)
        for n in range(len(kind.example.reports)):
            answered = step(kind, on, answered.state, n)
            assert answered.residuals is None

    def test_no_state_changes_in_place(self, kind: Kind) -> None:
        on, last = compiled(kind), len(kind.example.reports) - 1
        state = walked(kind, on, last)
        before = bytes(kind.engine.serialise(state))
        step(kind, on, state, last)
        assert bytes(kind.engine.serialise(state)) == before

    def test_a_report_that_does_not_fit_names_its_field_and_leaves_the_state(self, kind: Kind) -> None:
        on = compiled(kind)
        state = walked(kind, on, 1)
        before = bytes(kind.engine.serialise(state))
        with pytest.raises(InvalidInput) as caught:
            kind.engine.read(on, state, 1, kind.engine.decode(msgspec.json.encode(kind.example.unfit)))
        assert caught.value.errors[0].pointer.startswith("/")
        assert bytes(kind.engine.serialise(state)) == before

    @pytest.mark.parametrize("body", [b"{", b"[]", b'{"colour": 1}', b'"x"', b"\xff"])
    def test_what_is_no_report_is_refused(self, kind: Kind, body: bytes) -> None:
        with pytest.raises(InvalidInput):
            kind.engine.decode(body)

    def test_reports_that_say_the_same_are_the_same_bytes(self, kind: Kind) -> None:
        report = dict(kind.example.reports[0])
        same = [report, dict(reversed(report.items())), {"kind": kind.name, **report}]
        assert type(TypeAdapter(AnyReport).validate_python(same[2])) is kind.engine.report
        encoded = [
            msgspec.json.encode(kind.engine.decode(msgspec.json.encode(one)), order="deterministic") for one in same
        ]
        assert encoded[0] == encoded[1] == encoded[2]

    def test_several_runs_are_answered_as_each_by_itself(self, kind: Kind) -> None:
        on = compiled(kind)
        waiting = [pending(kind, on, walked(kind, on, n), n, f"r{n}") for n in range(len(kind.example.reports))]
        together = all_answered(kind.engine.answer(on, waiting, NOW))
        for one, answered in zip(waiting, together, strict=True):
            [alone] = all_answered(kind.engine.answer(on, [one], NOW))
            assert answered.decision == alone.decision


class Broken:
    """An agent whose use raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("out of order")


class TestFailures:
    """Every report is answered whatever fails; one run's trouble, or a shadow's, is no other's."""

    @pytest.fixture(autouse=True)
    def uses(self, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have agents used even where there is nothing to choose."""
        choose = kind.engine.serving.choose

        def using(on: Compiled, batch: Any, agent: Any, *rest: Any) -> Choices:
            choice = choose(on, batch, agent, *rest)
            return choice if agent is None else agent.used

        monkeypatch.setattr(kind.engine.serving, "choose", using)

    def broken(self, kind: Kind) -> Compiled:
        """The workload with an agent that fails."""
        on = compiled(kind)
        on.agent, on.decided_by = Broken(), DecidedBy("agent", "broken")
        return on

    def test_where_an_agent_raises_the_heuristic_answers(self, kind: Kind) -> None:
        on = self.broken(kind)
        state = begin(kind, on).state
        for n in range(len(kind.example.reports)):
            answered = step(kind, on, state, n)
            state, plain = answered.state, msgspec.json.decode(answered.decision)
            assert (plain["source"], plain["policy"]) == ("fallback", on.heuristic)
            text = "broken failed (RuntimeError: out of order)" in plain["reason"]["text"]
            assert text or n  # a kind may say it once

    def test_a_state_goes_on_after_a_fallback_as_after_storage(self, kind: Kind) -> None:
        on, well = self.broken(kind), compiled(kind)
        state = begin(kind, on).state
        for n in range(len(kind.example.reports) - 1):
            state = step(kind, on, state, n).state
            restored = kind.engine.restore(msgspec.json.decode(kind.engine.serialise(state)))
            for one in (on, well):
                assert step(kind, one, restored, n + 1).decision == step(kind, one, state, n + 1).decision

    @pytest.mark.parametrize("agent", [False, True])
    def test_a_run_that_nobody_can_decide_holds_and_leaves_the_others_alone(
        self, kind: Kind, agent: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        on, serving = self.broken(kind) if agent else compiled(kind), kind.engine.serving
        waiting = [pending(kind, on, begin(kind, on).state, 0, f"r{n}") for n in range(3)]
        alone = [all_answered(kind.engine.answer(on, [one], NOW))[0].decision for one in waiting]
        gathered, gather, choose = list[str | None](), serving.gather, serving.choose

        def noting(on: Compiled, several: Sequence[Pending]) -> Any:
            gathered[:] = [one.run for one in several]
            return gather(on, several)

        def choosy(*values: Any) -> Choices:
            choice = choose(*values)
            if "r1" in gathered:
                raise FloatingPointError("r1")
            return choice

        with monkeypatch.context() as patch:
            patch.setattr(serving, "gather", noting)
            patch.setattr(serving, "choose", choosy)
            first, current, last = all_answered(kind.engine.answer(on, waiting, NOW))
        assert [first.decision, last.decision] == [alone[0], alone[2]]
        plain = msgspec.json.decode(current.decision)
        assert (plain["run"], plain["source"], plain["policy"]) == ("r1", "fallback", HOLD)
        assert plain["noop"] == serving.hold(on, waiting[1], "").noop
        assert "FloatingPointError: r1" in plain["reason"]["text"]
        restored = kind.engine.restore(msgspec.json.decode(kind.engine.serialise(current.state)))
        with suppress(Contradiction):  # the next report may tell of what was not started
            assert step(kind, on, restored, 1).decision == step(kind, on, current.state, 1).decision

    def test_shadows_that_fail_say_so_and_change_nothing(self, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kind.engine.serving, "agent", lambda _, result: result.policy)
        on, state = compiled(kind), begin(kind, compiled(kind)).state
        shadows = [Shadow(2, None, "it is gone"), Shadow(3, Artifact(Broken(), (), 0, {}, kind.name))]
        without = [pending(kind, on, state, 0, f"r{n}") for n in range(2)]
        waiting = [msgspec.structs.replace(one, shadow=other) for one, other in zip(without, shadows, strict=True)]
        decisions, usual = (
            [msgspec.json.decode(one.decision) for one in all_answered(kind.engine.answer(on, several, NOW))]
            for several in (waiting, without)
        )
        entries = [one.pop("shadow") for one in decisions]
        problems = [(one["agent"], one["problem"]) for one in entries]
        assert problems == [(2, "it is gone"), (3, "RuntimeError: out of order")]
        assert [one.pop("shadow") for one in usual] == [None, None]
        assert decisions == usual


def codec(kind: Kind) -> SampleCodec:
    return kind.samples(layout_of(spec_of(kind)))


def read(kind: Kind, media_type: str, body: bytes) -> list[Sample]:
    """The executions of a body."""
    form = codec(kind).formats[media_type]
    pieces = iter(body.split(b"\n")) if form.lines else iter([body])
    items = list(form.reader(codec(kind), "x" if form.named else None).read(pieces))
    assert all(isinstance(one, Sample) for one in items)
    return [one for one in items if isinstance(one, Sample)]


def stored(sample: Sample) -> Any:
    """As it comes out of its table."""
    return SimpleNamespace(
        name=sample.execution,
        source="upload",
        iterations=sample.iterations,
        data=sample.data,
        created_at=NOW,
        summary=sample.summary,
    )


class TestSamples:
    """Executions: read, kept, told and handed out."""

    def test_every_format_has_an_example_that_is_read_and_kept(self, kind: Kind) -> None:
        assert kind.example.samples.keys() == codec(kind).formats.keys()
        for media_type, body in kind.example.samples.items():
            once, again = read(kind, media_type, body), read(kind, media_type, body)
            assert once
            assert [(one.digest, one.data) for one in once] == [(one.digest, one.data) for one in again]
            read_back = codec(kind).read(stored(once[0]), reports=True)
            assert type(read_back) is kind.execution
            assert (read_back.execution, read_back.iterations) == (once[0].execution, once[0].iterations)
            assert TypeAdapter(AnyExecution).validate_json(read_back.model_dump_json()) == read_back

    def test_what_is_exported_reads_back_as_it_was_kept(self, kind: Kind) -> None:
        here = codec(kind)
        for media_type, how in here.exports.items():
            sample = read(kind, media_type, kind.example.samples[media_type])[0]
            text = how.head(here) + "".join(how.body(here, stored(sample)))
            [again] = read(kind, media_type, text.encode())
            assert again.digest == sample.digest
            assert_equal(here.unpack(again.data), here.unpack(sample.data))

    def test_a_run_becomes_an_execution_of_its_name(self, kind: Kind) -> None:
        sample = codec(kind).of_run("r", kind.example.reports)
        assert sample is not None
        assert sample.execution == "r"
        assert codec(kind).read(stored(sample), reports=False).iterations == sample.iterations > 0
        assert codec(kind).of_run("r", []) is None

    def test_no_two_kinds_read_a_media_type_under_different_limits(self, kind: Kind) -> None:
        for media_type, form in codec(kind).formats.items():
            assert (FORMATS[media_type].limit, FORMATS[media_type].lines) == (form.limit, form.lines)
        assert codec(kind).exports.keys() <= EXPORTS.keys()


class TestOutcomes:
    """Whether a run met its targets: judged before its first report, and after all of the example's."""

    def test_a_finished_run_is_judged_with_a_reason(self, kind: Kind) -> None:
        on = compiled(kind)
        answered, reports = begin(kind, on), list[dict[str, Any]]()
        for n in range(len(kind.example.reports) + 1):
            state = kind.engine.restore(msgspec.json.decode(kind.engine.serialise(answered.state)))
            run = EndedRun(dict(kind.example.start), msgspec.json.decode(answered.decision), state.state, reports)
            verdict = kind.judge(on, run)
            assert verdict.met in (True, False, None)
            assert verdict.reason
            assert n or verdict.met is None  # nothing is reported
            if n < len(kind.example.reports):
                answered = step(kind, on, answered.state, n)
                assert isinstance(answered.risk, str)
                reports.append(in_full(converted(kind.example.reports[n], kind.engine.report)))


class TestViews:
    """What pages show: figures that can be drawn and read, of runs before their first report and after it."""

    def shown(self, kind: Kind, on: Compiled, reports: int) -> RunHistory:
        begun = begin(kind, on)
        steps, state = [], begun.state
        for n in range(reports):
            answered = step(kind, on, state, n)
            state = answered.state
            report = in_full(converted(kind.example.reports[n], kind.engine.report))
            steps.append(Step(n, report, msgspec.json.decode(answered.decision), NOW))
        return RunHistory(dict(kind.example.start), msgspec.json.decode(begun.decision), state.state, reports, steps, 1)

    def test_a_run_is_shown_in_facts_and_figures(self, kind: Kind) -> None:
        if kind.views is None:
            pytest.skip(f"kind {kind.name} shows nothing of its own")
        on, most = compiled(kind), len(kind.example.reports)
        for reports in (0, most):
            shown = self.shown(kind, on, reports)
            assert all(fact.name and fact.value for fact in kind.views.facts(on, shown))
            figures = kind.views.run(on, shown)
            assert bool(figures) == bool(reports)
            self.check(figures)
            assert all(one.policy and one.allocation for one in kind.views.alternatives(on, shown))
            for table in kind.views.tables(on, shown):
                assert table.rows
                assert {len(row) for row in table.rows} == {len(table.columns)}
            assert kind.views.tables(on, shown._replace(live=False)) == []
            before = kind.views.hindsight(on, shown)
            assert before.explanation.endswith(".")
            self.check(before.figures)
            last = shown.steps[-1].decision if shown.steps else shown.first
            assert all(isinstance(part, str) for part in kind.views.details(last))

    def test_a_workload_is_shown_with_and_without_samples(self, kind: Kind) -> None:
        if kind.views is None:
            pytest.skip(f"kind {kind.name} shows nothing of its own")
        on = compiled(kind)
        self.check([*kind.views.workload(on, Learnt(None, [])), *kind.views.policy(on)])

    def check(self, figures: Sequence[Figure]) -> None:
        for figure in figures:
            assert figure.title
            assert figure.caption.endswith((".", ")"))
            assert figure.rows
            assert {len(row) for row in figure.rows} == {len(figure.columns)}
            assert json.loads(json.dumps(figure.spec, allow_nan=False)) == figure.spec
            assert vl_convert.vegalite_to_svg(figure.spec).startswith("<svg")
