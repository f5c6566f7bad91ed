"""Results as OpenTelemetry events: what the SDK collects, and what a server receives over OTLP."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from typing import Any

import pytest

from adjudge import Gate, Judge, JudgeChain, JudgeResult, UsageError
from adjudge.testing import FaultyModel, ScriptedModel

pytestmark = pytest.mark.timed


NAME, VALUE, LABEL = (f"gen_ai.evaluation.{name}" for name in ("name", "score.value", "score.label"))
EXPLANATION = "gen_ai.evaluation.explanation"
SECRET = "the content is 4711"
GOOD = {"criteria": [{"reasoning": f"It says {SECRET}.", "score": 0.9}], "reasoning": SECRET}


class Collected:
    """An SDK whose events and spans end in memory."""

    def __init__(self) -> None:
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.memory, self.spans = InMemoryLogRecordExporter(), InMemorySpanExporter()
        self.logs = LoggerProvider(shutdown_on_exit=False)
        self.logs.add_log_record_processor(SimpleLogRecordProcessor(self.memory))
        self.traces = TracerProvider(shutdown_on_exit=False)
        self.traces.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = self.traces.get_tracer("tests")

    def make_emitter(self, **options: Any) -> Any:
        from adjudge.integrations.opentelemetry import EvaluationEmitter

        return EvaluationEmitter("politeness", **{"logger_provider": self.logs, **options})

    def read(self) -> list[Any]:
        return [item.log_record for item in self.memory.get_finished_logs()]

    def read_one(self) -> dict[str, Any]:
        [record] = self.read()
        return dict(record.attributes)


@pytest.fixture(autouse=True)
def package(require) -> None:
    present = find_spec("opentelemetry") and find_spec("opentelemetry.sdk")
    require("opentelemetry-sdk", present, "pip install opentelemetry-sdk")


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Collected:
    monkeypatch.delenv("OTEL_SEMCONV_STABILITY_OPT_IN", raising=False)
    return Collected()


@pytest.fixture
def opted_in(collected: Collected, monkeypatch: pytest.MonkeyPatch) -> Collected:
    monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", "http/dup, gen_ai_latest_experimental")
    return collected


def judge_once(emitter: Any, reply: Any = GOOD, **options: Any) -> JudgeResult:
    judge = Judge(ScriptedModel(reply), name="careful", on_result=emitter)
    return judge.evaluate_sync(SECRET, **{"criteria": "Is polite.", **options})


def test_a_result_is_an_event(collected: Collected):
    """Of the name that the conventions give it, with name, score and label, and nothing else."""
    result = judge_once(collected.make_emitter())
    [record] = collected.read()

    assert record.event_name == "gen_ai.evaluation.result"
    assert dict(record.attributes) == {NAME: "politeness", VALUE: 0.9, LABEL: "passed"}
    assert record.timestamp == int(result.created_at.timestamp() * 1_000_000) * 1000
    assert record.body is None


def test_a_score_is_a_double(collected: Collected):
    """A yes or no answer has 1.0 and not 1, which a backend would keep in another column."""
    judge_once(collected.make_emitter(), {"criteria": [{"reasoning": "r", "score": 1}]})

    value = collected.read_one()[VALUE]
    assert (type(value), value) == (float, 1.0)


@pytest.mark.parametrize("outcome", ["passed", "failed", "undecided"])
def test_the_label_is_the_outcome(collected: Collected, outcome: str):
    """There are three, and a dashboard can rely on them."""
    score = {"passed": 0.9, "failed": 0.1, "undecided": 7}[outcome]
    judge_once(collected.make_emitter(), {"criteria": [{"reasoning": "r", "score": score}]})

    assert collected.read_one()[LABEL] == outcome


@pytest.mark.parametrize(("fault", "reason"), [("error", "error"), ("refusal", "refused"), ("prose", "unparseable")])
def test_what_is_undecided_has_no_score_and_says_why(collected: Collected, fault: Any, reason: str):
    """Its reason is the error type; a score of 0 would be averaged with those that were given."""
    judge = Judge(FaultyModel(ScriptedModel(GOOD), [fault] * 2), on_result=collected.make_emitter())
    judge.evaluate_sync(SECRET, criteria="Is polite.")
    attributes = collected.read_one()

    assert attributes[LABEL] == "undecided"
    assert attributes["error.type"] == reason
    assert VALUE not in attributes


def test_no_content_is_in_an_event(collected: Collected):
    """Neither the content nor what the judge says of it, which may quote it."""
    result = judge_once(collected.make_emitter(span_attributes=True))
    [record] = collected.read()

    assert SECRET in result.reasoning
    assert SECRET not in repr((record.attributes, record.body))


def test_an_explanation_is_added_when_it_is_asked_for(collected: Collected):
    """Without characters that a terminal would act on."""
    reply = {"criteria": [{"reasoning": "r", "score": 0.9}], "reasoning": "It is\x1b[2J kind."}
    judge_once(collected.make_emitter(include_explanation=True), reply)

    assert collected.read_one()[EXPLANATION] == "It is·[2J kind."


def test_what_is_undecided_is_explained_by_its_reason(collected: Collected):
    """There is no reasoning to show."""
    judge_once(collected.make_emitter(include_explanation=True), RuntimeError("down"))

    assert collected.read_one()[EXPLANATION].startswith("undecided: error")


def test_an_event_belongs_to_the_span_it_was_asked_in(collected: Collected):
    """Also where the judgement ran on the thread of the synchronous calls."""
    judge = Judge(ScriptedModel(GOOD), on_result=collected.make_emitter())

    async def ask() -> None:
        await judge.evaluate(SECRET, criteria="Is polite.")

    with collected.tracer.start_as_current_span("chat") as span:
        judge.evaluate_sync(SECRET, criteria="Is polite.")
        asyncio.run(ask())
    expected = span.get_span_context()

    assert len(collected.read()) == 2
    assert {(record.trace_id, record.span_id) for record in collected.read()} == {(expected.trace_id, expected.span_id)}


def test_judgements_at_once_keep_to_their_own_spans(collected: Collected):
    """Each event has the span of the task that asked."""
    judge = Judge(ScriptedModel(GOOD), on_result=collected.make_emitter())

    async def ask(name: str) -> int:
        with collected.tracer.start_as_current_span(name) as span:
            await judge.evaluate(SECRET, criteria="Is polite.", metadata={"response_id": name})
        return span.get_span_context().span_id

    async def ask_all() -> dict[str, int]:
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(ask(name)) for name in "abcd"}
        return {name: task.result() for name, task in tasks.items()}

    spans = asyncio.run(ask_all())

    assert {record.attributes["gen_ai.response.id"]: record.span_id for record in collected.read()} == spans


def test_an_event_can_be_given_the_span_that_was_evaluated(collected: Collected):
    """For a judgement of an answer whose span has ended."""
    from opentelemetry import trace

    emitter = collected.make_emitter()
    with collected.tracer.start_as_current_span("chat") as span:
        pass
    with collected.tracer.start_as_current_span("evaluate later"):
        emitter.emit(judge_once(None), context=trace.set_span_in_context(span))
    [record] = collected.read()

    assert record.span_id == span.get_span_context().span_id


@pytest.mark.parametrize(
    ("response_id", "expected"),
    [("resp_1", "resp_1"), ("a\nb\x1b", "a b·"), ("x" * 900, "x" * 200), (7, None), ("", None), (None, None)],
)
def test_the_id_of_the_response_comes_from_the_metadata(
    collected: Collected, response_id: object, expected: str | None
):
    """It joins a result to an answer without a span: one short line, whatever was given."""
    judge_once(collected.make_emitter(), metadata={"response_id": response_id})

    assert collected.read_one().get("gen_ai.response.id") == expected


def test_a_span_has_no_attributes_unless_they_are_asked_for(collected: Collected):
    """They are the span's of somebody else."""
    with collected.tracer.start_as_current_span("chat"):
        judge_once(collected.make_emitter())

    assert dict(collected.spans.get_finished_spans()[0].attributes) == {}


def test_a_span_can_have_the_attributes_too(collected: Collected):
    """All but ``error.type``: the operation of the span did not fail because nobody could judge it."""
    with collected.tracer.start_as_current_span("chat"):
        judge_once(collected.make_emitter(span_attributes=True), RuntimeError("down"))
    [span] = collected.spans.get_finished_spans()

    assert dict(span.attributes) == {NAME: "politeness", LABEL: "undecided"}
    assert collected.read_one()["error.type"] == "error"


def test_who_evaluated_is_told_on_request_alone(opted_in: Collected):
    """The judge's name, the digest of the question and the type, as long as they are experimental."""
    result = judge_once(opted_in.make_emitter())
    attributes = opted_in.read_one()

    assert attributes["gen_ai.evaluation.evaluator.id"] == "careful"
    assert attributes["gen_ai.evaluation.evaluator.version"] == result.question
    assert attributes["gen_ai.evaluation.evaluator.type"] == "llm_judge"


def test_the_request_is_read_when_the_emitter_is_made(opted_in: Collected, monkeypatch: pytest.MonkeyPatch):
    """A variable that is set later changes no emitter that is in use."""
    emitter = opted_in.make_emitter()
    monkeypatch.delenv("OTEL_SEMCONV_STABILITY_OPT_IN")
    judge_once(emitter)

    assert "gen_ai.evaluation.evaluator.id" in opted_in.read_one()


@pytest.mark.parametrize(
    ("decided_by", "own", "expected"),
    [
        ("judge", None, "llm_judge"),
        ("judge", "deterministic", "deterministic"),
        ("rule", None, "deterministic"),
        ("human", "llm_judge", "human"),
        ("policy", "llm_judge", None),
    ],
)
def test_the_type_follows_who_decided(opted_in: Collected, decided_by: Any, own: Any, expected: str | None):
    """A rule is deterministic, a person is human, and where a policy decided nobody evaluated."""
    emitter = opted_in.make_emitter(evaluator_type=own)
    emitter(JudgeResult(outcome="passed", judge="it", decided_by=decided_by))

    assert opted_in.read_one().get("gen_ai.evaluation.evaluator.type") == expected


def test_chains_and_gates_emit_too(opted_in: Collected):
    """A chain's hook emits its one result, and a gate's what it decides by, rules included."""
    emitter = opted_in.make_emitter()
    seats = [Judge(ScriptedModel(RuntimeError("down")), name="broken"), Judge(ScriptedModel(GOOD), name="careful")]
    JudgeChain(seats, name="both", on_result=emitter).evaluate_sync(SECRET, criteria="Is polite.")
    Gate("door", rules=[{"regex": "4711", "absent": True}], on_result=emitter).check_sync(SECRET)
    chain, gate = (dict(record.attributes) for record in opted_in.read())

    assert (chain["gen_ai.evaluation.evaluator.id"], chain[LABEL]) == ("both", "passed")
    assert (gate["gen_ai.evaluation.evaluator.type"], gate[LABEL]) == ("deterministic", "failed")


def test_without_an_sdk_nothing_happens(collected: Collected):
    """The API alone swallows events, and the judgement is what it would have been."""
    assert judge_once(collected.make_emitter(logger_provider=None)).passed
    assert collected.read() == []


def test_an_exporter_that_fails_changes_no_outcome(collected: Collected):
    """The hook's error is logged, and the result is the caller's."""

    class Broken:
        def get_logger(self, *arguments: object, **options: object) -> Any:
            return self

        def emit(self, *arguments: object, **options: object) -> None:
            raise OSError("no route to host")

    assert judge_once(collected.make_emitter(logger_provider=Broken())).passed


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"include_explanation": "no"},
        {"span_attributes": 1},
        {"evaluator_type": "robot"},
    ],
    ids=repr,
)
def test_what_cannot_be_is_said_when_the_emitter_is_made(options: dict[str, Any]):
    """With the argument, its value and what it may be."""
    from adjudge.integrations.opentelemetry import EvaluationEmitter

    with pytest.raises(UsageError, match=next(iter(options))):
        EvaluationEmitter(**{"name": "politeness", **options})


def test_only_results_are_emitted(collected: Collected):
    """Something else handed to an emitter is a mistake that is told."""
    with pytest.raises(UsageError, match="JudgeResult"):
        collected.make_emitter().emit({"outcome": "passed"})


@contextmanager
def receive() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """An OTLP receiver on this machine: its address, and the path and body of each request."""
    requests: list[tuple[str, bytes]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            packed = self.headers.get("content-encoding") == "gzip"
            requests.append((self.path, gzip.decompress(body) if packed else body))
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_collector_receives_the_event(opted_in: Collected, require):
    """Over OTLP: one log record with the event's name, its attributes, and the ids of trace and span."""
    present = find_spec("opentelemetry.exporter") and find_spec("opentelemetry.exporter.otlp.proto.http")
    require("the exporter", present, "pip install opentelemetry-exporter-otlp-proto-http")
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    with receive() as (address, requests):
        opted_in.logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{address}/v1/logs")))
        with opted_in.tracer.start_as_current_span("chat") as span:
            judge_once(opted_in.make_emitter(), {"criteria": [{"reasoning": "r", "score": 0.25}]})
        opted_in.logs.shutdown()
    [(path, body)] = requests
    [resource] = ExportLogsServiceRequest.FromString(body).resource_logs
    [scope] = resource.scope_logs
    [record] = scope.log_records
    attributes = {item.key: item.value for item in record.attributes}

    assert path == "/v1/logs"
    assert (scope.scope.name, record.event_name) == ("adjudge", "gen_ai.evaluation.result")
    assert record.trace_id == span.get_span_context().trace_id.to_bytes(16)
    assert record.span_id == span.get_span_context().span_id.to_bytes(8)
    assert attributes[NAME].string_value == "politeness"
    assert attributes[VALUE].double_value == 0.25
    assert attributes[LABEL].string_value == "failed"
    assert attributes["gen_ai.evaluation.evaluator.type"].string_value == "llm_judge"
    assert SECRET.encode() not in body
