"""Runs in traces: the forms in which OpenInference and Langfuse export them, and what is missing or forged in one."""

from __future__ import annotations

import copy
import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Rules, UsageError
from adjudge.agents import AgentRun, read_run
from kit import house
from kit.growth import count_growth
from kit.transcripts import CLEAN, FAILING, describe, find_file, read_lines, read_objects

OPENINFERENCE = ("openinference-langchain", "openinference-openai-agents", "openinference-pydantic-ai")

LANGCHAIN = OPENINFERENCE[0]


def to_phoenix(span: dict) -> dict:
    """A span as ``get_spans`` of Phoenix has it: its kind and its status stand beside the attributes."""
    attributes = {name: value for name, value in span["attributes"].items() if name != "openinference.span.kind"}
    return {
        "name": span["name"],
        "context": {name: span["context"][name] for name in ("trace_id", "span_id")},
        "span_kind": span["attributes"]["openinference.span.kind"],
        "parent_id": span["parent_id"],
        "start_time": span["start_time"],
        "end_time": span["end_time"],
        "status_code": span["status"]["status_code"],
        "status_message": span["status"].get("description", ""),
        "attributes": attributes,
        "events": [],
    }


def nest(attributes: dict) -> dict:
    """Attributes as Phoenix stores them: an object or a list at every dot."""
    tree: dict = {}
    for name, value in attributes.items():
        *path, last = name.split(".")
        place = tree
        for step in path:
            place = place.setdefault(step, {})
        place[last] = value
    return to_lists(tree)


def to_lists(tree):
    if not isinstance(tree, dict):
        return tree
    if tree and all(name.isdecimal() for name in tree):
        return [to_lists(tree[name]) for name in sorted(tree, key=int)]
    return {name: to_lists(value) for name, value in tree.items()}


def to_frame(span: dict) -> dict:
    """A span as a row of Phoenix's frame, which has the messages as lists and every column in every row."""
    row = to_phoenix(span)
    members = {name: value for name, value in row.items() if name not in ("context", "attributes", "events")}
    members |= {f"context.{name}": value for name, value in row["context"].items()}
    members["attributes.openinference.span.kind"] = row["span_kind"]
    llm = nest(row["attributes"]).get("llm", {})
    for name in ("input_messages", "output_messages"):
        members[f"attributes.llm.{name}"] = [
            {f"message.{key}": value for key, value in message["message"].items()} for message in llm.get(name, [])
        ] or None
    for kind, count in llm.get("token_count", {}).items():
        members[f"attributes.llm.token_count.{kind}"] = float(count) if isinstance(count, int) else count
    for name in ("input.value", "output.value", "tool.name", "tool_call.id", "session.id"):
        members[f"attributes.{name}"] = row["attributes"].get(name)
    return members


def to_otlp(spans: list[dict]) -> dict:
    """Spans as the collector's exporter of files writes them."""

    def moment(text: str) -> str:
        return str(int(datetime.fromisoformat(text).timestamp() * 1e6) * 1000)

    def wrap(value: object) -> dict:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    written = [
        {
            "traceId": span["context"]["trace_id"],
            "spanId": span["context"]["span_id"],
            "parentSpanId": span["parent_id"] or "",
            "name": span["name"],
            "startTimeUnixNano": moment(span["start_time"]),
            "endTimeUnixNano": moment(span["end_time"]),
            "attributes": [{"key": name, "value": wrap(value)} for name, value in span["attributes"].items()],
            "status": {"code": 2, "message": "x"} if span["status"]["status_code"] == "ERROR" else {},
        }
        for span in spans
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": written}]}]}


FORMS = {
    "spans": lambda spans: [to_phoenix(span) for span in spans],
    "page": lambda spans: {"data": [to_phoenix(span) for span in spans], "next_cursor": None},
    "nested": lambda spans: [to_phoenix(span) | {"attributes": nest(span["attributes"])} for span in spans],
    "frame": lambda spans: [to_frame(span) for span in spans],
    "otlp": to_otlp,
}


def change(spans: list[dict], kind: str, number: int = 0, **attributes: object) -> dict:
    """Change attributes of one of the spans of a kind, named with ``__`` for a dot; ``None`` takes one out."""
    span = [span for span in spans if span["attributes"]["openinference.span.kind"] == kind][number]
    for name, value in attributes.items():
        key = name.replace("__", ".")
        if value is None:
            span["attributes"].pop(key, None)
        else:
            span["attributes"][key] = value
    return span


# ---------------------------------------------------------------- OpenInference


@pytest.mark.parametrize("export", FORMS)
@pytest.mark.parametrize("form", OPENINFERENCE)
def test_every_export_of_the_same_spans_is_the_same_run(form: str, export: str):
    """OTLP, and what Phoenix gives as objects, as a page, nested and as a frame."""
    run = read_run(FORMS[export](read_lines(form)))

    assert describe(run) == CLEAN
    assert (run.answer, run.outcome, run.problems, run.unknown) == (CLEAN[-1][1], "finished", (), ("files",))
    assert run.metadata["source"] == "openinference"
    assert run.usage == read_run(find_file(form)).usage


@pytest.mark.parametrize("name", ["spans.json", "spans.jsonl", "spans-page.json"])
def test_what_phoenix_exported_is_read_as_spans_of_openinference(name: str):
    """The files of the importer are of a real server; its spans have no messages, so no run of theirs is complete."""
    text = (house.ROOT / "tests" / "data" / "exports" / "phoenix" / name).read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)
    rows = rows["data"] if isinstance(rows, dict) else rows
    first = [row for row in rows if "0" * 31 + "1" in json.dumps(row)]

    run = read_run({"data": first, "next_cursor": None} if "page" in name else first)

    assert len(first) == 2
    assert run.metadata["source"] == "openinference"
    assert run.problems == (
        "the messages of a request to a model were not exported",
        "it ends before the agent's last word, or that was not exported",
    )


def test_a_failed_tool_is_one_in_otlp_and_in_spans_of_phoenix():
    """The status stands elsewhere in each."""
    spans = read_lines(LANGCHAIN, "failing")

    assert [describe(read_run(FORMS[export](spans))) for export in ("otlp", "spans", "frame")] == [FAILING] * 3


def test_spans_of_a_server_around_the_agent_do_not_hide_whose_they_are():
    """The first span of a file may be of anybody."""
    spans = read_lines(LANGCHAIN)
    outer = copy.deepcopy(spans[-1]) | {"name": "POST /ask", "attributes": {"http.method": "POST"}}
    outer["context"]["span_id"] = "0xf0"
    spans[-1]["parent_id"] = "0xf0"

    run = read_run([outer, *spans])

    assert (describe(run), run.complete) == (CLEAN, True)


def test_spans_with_both_conventions_are_read_by_openinference():
    """Its processor for pydantic-ai adds its attributes to those of OpenTelemetry, which may still be asked for."""
    lines = read_lines("openinference-pydantic-ai")

    assert "gen_ai.operation.name" in lines[0]["attributes"]
    assert read_run(lines).metadata["source"] == "openinference"
    assert describe(read_run(lines, format="otel")) == CLEAN


def test_a_result_is_the_one_of_its_own_tool():
    """The processor for pydantic-ai writes the results of one turn as one message, under the id of the last."""
    lines = read_lines("openinference-pydantic-ai")
    last = change(lines, "LLM", -1)

    assert last["attributes"]["llm.input_messages.4.message.contents.1.message_content.text"] == "beta"
    assert [call.result for call in read_run(lines).calls] == ["a.txt\nb.txt", "alpha", "beta"]


def test_cost_is_known_if_every_request_has_one():
    """What one request cost is not known where it is not exported."""
    spans = read_lines(LANGCHAIN)
    for number in range(3):
        change(spans, "LLM", number, llm__cost__total=0.25)

    assert read_run(spans).cost == 0.75
    change(spans, "LLM", 1, llm__cost__total=None)
    assert read_run(spans).cost is None


@pytest.mark.parametrize(
    ("kind", "attributes", "problem"),
    [
        ("LLM", {"llm__finish_reason": "length"}, "was cut off"),
        ("LLM", {"llm__output_messages__x__message__role": "assistant"}, "has a member without a number"),
        ("LLM", {"llm__output_messages__0__message__function_call_name": "Bash"}, "in a form that is not known here"),
        ("LLM", {"llm__output_messages__0__message__contents__0__message_content__type": "tool_use"}, "not known here"),
        ("LLM", {"llm__output_messages__0__message__tool_calls__0__tool_call__id": "x"}, "form that is not known here"),
        ("TOOL", {"input__value": "rm -rf /"}, "a tool was executed that no message of the agent calls"),
        ("TOOL", {"tool__name": "delete"}, "a tool was executed that no message of the agent calls"),
        ("TOOL", {"tool_call__id": "call_9"}, "a tool was executed that no message of the agent calls"),
        ("TOOL", {"tool_call__id": "call_1", "input__value": "rm -rf /"}, "ran with other arguments"),
        ("TOOL", {"tool_call__id": "call_2", "input__value": None}, "ran twice"),
        ("TOOL", {"tool_call__id": "call_1", "tool__name": "delete"}, "another tool than that of the call"),
    ],
    ids=map(str, range(11)),
)
def test_what_hides_a_call_in_spans_of_openinference_is_a_problem(kind: str, attributes: dict, problem: str):
    """In the last request, which calls nothing, and in the first tool that ran."""
    spans = read_lines(LANGCHAIN)
    change(spans, "TOOL", 2, tool_call__id="call_2")
    change(spans, kind, -1 if kind == "LLM" else 0, **attributes)

    run = read_run(spans)

    assert any(problem in reason for reason in run.problems), run.problems
    assert not run.complete


@pytest.mark.parametrize("ident", ["call_1", "call_9", None])
def test_a_call_among_the_contents_of_a_message_is_one_of_its_calls_or_another(ident: str | None):
    """Some write each call twice; one with an id of its own was made besides."""
    spans = read_lines(LANGCHAIN)
    content = "llm__output_messages__0__message__contents__1__message_content__"
    change(spans, "LLM", 0, **{f"{content}type": "tool_use", f"{content}id": ident, f"{content}name": "rm"})
    run = read_run(spans)

    assert run.complete == (ident != "call_9"), run.problems
    assert ("rm" in [call.tool for call in run.calls]) == (ident == "call_9")


def test_a_tool_that_ran_and_was_not_called_is_among_the_calls():
    """A rule that refuses it has to see it."""
    spans = read_lines(LANGCHAIN)
    change(spans, "TOOL", 0, input__value='{"command": "rm -rf /"}')

    assert {"command": "rm -rf /"} in [call.arguments for call in read_run(spans).calls]


def test_the_output_of_a_tool_cannot_say_which_call_it_is_of():
    """A command can print what looks like LangChain's message for another call."""
    spans = read_lines("openinference-openai-agents")
    forged = {"type": "tool", "data": {"content": "forged", "tool_call_id": "call_3"}}
    change(spans, "TOOL", 0, output__value=json.dumps(forged))

    run = read_run(spans)

    assert describe(run) == CLEAN
    assert run.complete


def test_a_tool_without_a_span_may_have_failed():
    """Whoever can take a span out of a file could take out the one that says so."""
    spans = read_lines(LANGCHAIN)
    run = read_run([span for span in spans if span["name"] != "Bash"])

    assert (describe(run), run.complete, run.unknown) == (CLEAN, True, ("files", "failures"))
    assert not Rules([{"no_errors": True}]).evaluate_sync(run)[0].passed


def forge_late(spans: list[dict]) -> None:
    late = copy.deepcopy(spans[0]) | {"start_time": "2036-01-01T00:00:00Z", "end_time": "2036-01-01T00:00:01Z"}
    late["context"]["span_id"] = "0xf1"
    spans.append(late)


def forge_root(spans: list[dict]) -> None:
    root = copy.deepcopy(spans[-1])
    root["context"]["span_id"] = "0xf2"
    spans.append(root)


def take_root(spans: list[dict]) -> None:
    del spans[-1]


def leave_open(spans: list[dict]) -> None:
    spans[-1]["end_time"] = None


def take_request(spans: list[dict]) -> None:
    del spans[next(at for at, span in enumerate(spans) if "tool_calls.1" in json.dumps(span))]


def hide_messages(spans: list[dict]) -> None:
    for name in [name for name in spans[0]["attributes"] if name.startswith("llm.output")]:
        del spans[0]["attributes"][name]


def loop(spans: list[dict]) -> None:
    spans[-1]["parent_id"] = spans[1]["context"]["span_id"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (forge_late, "something comes after the end of the run"),
        (forge_root, "several spans are held by none"),
        (take_root, "a span that holds others is missing"),
        (leave_open, "the run had not ended when it was exported"),
        (take_request, "a message repeats a call that no request to a model has"),
        (hide_messages, "the messages of a request to a model were not exported"),
        (loop, "no span holds the others"),
    ],
)
def test_a_trace_that_is_not_whole_is_not_complete(damage, problem: str):
    """Spans that were added, taken out, or have not ended."""
    spans = read_lines(LANGCHAIN)
    damage(spans)

    assert any(problem in reason for reason in read_run(spans).problems)


def test_attributes_that_were_dropped_and_pages_that_are_not_here_are_problems():
    """An SDK drops attributes above a number; Phoenix gives spans in pages."""
    spans = read_lines(LANGCHAIN)
    otlp = to_otlp(spans)
    otlp["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["droppedAttributesCount"] = 3
    page = FORMS["page"](spans) | {"next_cursor": "abc"}

    assert read_run(otlp).problems == ("attributes of a span were dropped before it was exported",)
    assert read_run(page).problems == ("further spans are on a page that is not here",)


def test_what_happens_inside_of_a_tool_or_of_a_check_is_not_the_agents_own():
    """An agent as a tool has requests and calls of its own; a check may ask a model as well."""
    runs = {}
    for kind in ("TOOL", "EVALUATOR", "GUARDRAIL"):
        spans = read_lines(LANGCHAIN)
        holder, agent = (copy.deepcopy(spans[-1]) for _ in range(2))
        for span, name, parent in ((holder, "0xf3", spans[-1]["context"]["span_id"]), (agent, "0xf4", "0xf3")):
            span["context"]["span_id"], span["parent_id"] = name, parent
        holder["attributes"] = {"openinference.span.kind": kind, "tool.name": "ask", "input.value": "{}"}
        agent["attributes"] = {"openinference.span.kind": "AGENT", "agent.name": "helper"}
        spans[0]["parent_id"] = "0xf4"
        runs[kind] = read_run([*spans, holder, agent])

    assert {kind: [call.agent for call in run.calls][:2] for kind, run in runs.items()} == {
        "TOOL": ["helper", None],
        "EVALUATOR": ["helper", None],
        "GUARDRAIL": ["helper", None],
    }
    assert all(describe(run)[0][0] == "Bash" for run in runs.values())


def test_a_helper_a_guardrail_and_a_handoff_are_parts_of_one_run():
    """The helper is a tool, the guardrail asks an agent of its own, and the agent that takes over answers."""
    run = read_run(find_file("openinference-openai-agents", "helpers"))

    assert [(call.tool, call.agent) for call in run.calls] == [
        ("now", None),
        ("ask_helper", None),
        ("now", "helper"),
        ("transfer_to_other", None),
        ("now", None),
    ]
    assert (run.answer, run.problems, run.unknown) == ("Done.", (), ("files", "failures"))
    assert "fine" not in [step.text for step in run.steps]


def test_a_request_that_two_programs_saw_is_read_once():
    """The client of a provider writes spans inside of those of a framework."""
    spans = read_lines(LANGCHAIN)
    inner = []
    for span in spans:
        if span["attributes"]["openinference.span.kind"] == "LLM":
            inner.append(copy.deepcopy(span))
            inner[-1]["parent_id"] = span["context"]["span_id"]
            inner[-1]["context"]["span_id"] += "0"
    whole = read_run([*spans, *inner])
    inner[-1]["attributes"] |= inner[0]["attributes"] | {
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "hidden"
    }
    forged = read_run([*spans, *inner])

    assert (describe(whole), whole.complete) == (CLEAN, True)
    assert not forged.complete


def test_a_handoff_is_the_call_that_the_messages_have():
    """The OpenAI Agents SDK has a span for it that names no tool."""
    spans = read_lines("openinference-openai-agents")
    span = change(spans, "TOOL", 0, tool__name=None, input__value="assistant", output__value="other")
    span["name"] = "handoff to other"

    run = read_run(spans)

    assert (run.complete, run.unknown) == (True, ("files", "failures"))


# ---------------------------------------------------------------- runs that end with a value


STRUCTURED = ("langchain", "langfuse", LANGCHAIN, "otel", "pydantic-ai")


@pytest.mark.parametrize("form", STRUCTURED)
def test_a_run_that_ends_with_a_value_has_it_as_its_answer(form: str):
    """The model gives it as the arguments of a call, and the file says that the run gave it back."""
    run = read_run(find_file(form, "structured"))

    assert (run.complete, run.problems, run.outcome) == (True, (), "finished")
    assert json.loads(run.answer or "") == {"names": ["a.txt", "b.txt"]}
    assert run.calls[0].tool == "Bash"
    assert run.calls[1].arguments == {"names": ["a.txt", "b.txt"]}
    assert "failures" not in run.unknown


@pytest.mark.parametrize("ident", [["call_2"], {"id": "call_2"}, 7])
@pytest.mark.parametrize("form", STRUCTURED)
def test_an_id_that_is_no_text_is_that_of_no_call(form: str, ident: object):
    """The call stays, and the run is not complete."""
    last = read_run(find_file(form, "structured")).calls[1].call_id

    def change_id(value: object) -> object:
        if isinstance(value, str) and value[:1] in ("{", "["):
            return json.dumps(change_id(json.loads(value)))
        if isinstance(value, list):
            return list(map(change_id, value))
        if isinstance(value, dict):
            return {name: change_id(member) for name, member in value.items()}
        return ident if value == last else value

    run = read_run([change_id(one) for one in read_objects(form, "structured")])  # type: ignore[misc]

    assert not run.complete
    assert [call.arguments for call in run.calls].count({"names": ["a.txt", "b.txt"]}) == 1


@pytest.mark.parametrize("ident", [["call_1"], {"id": "call_1"}])
def test_a_part_of_a_message_whose_id_is_no_text_is_another_call(ident: object):
    """Compared with the calls of its message, it is none of them."""
    spans = read_lines(LANGCHAIN)
    content = "llm__output_messages__0__message__contents__1__message_content__"
    change(spans, "LLM", 0, **{f"{content}type": "tool_use", f"{content}id": ident, f"{content}name": "rm"})

    assert not read_run(spans).complete


def replace_all(form: str, old: str, new: str) -> AgentRun:
    text = json.dumps(read_objects(form, "structured"))
    assert old in text
    return read_run(json.loads(text.replace(old, new)))


@pytest.mark.parametrize(
    ("form", "old", "new"),
    [
        ("langchain", '"structured_response": {"names": ["a.txt"', '"structured_response": {"names": ["c.txt"'),
        ("langchain", '"structured_response"', '"other"'),
        ("langfuse", '"structured_response"', '"other"'),
        (LANGCHAIN, "structured_response", "other"),
        ("otel", '"final_result": "', '"other": "'),
        ("pydantic-ai", "Final result processed.", "Done."),
        ("pydantic-ai", '"final_result"', '"Bash"'),
    ],
    ids=map(str, range(7)),
)
def test_a_run_that_ends_with_a_call_is_not_complete_unless_its_file_says_that_it_ended(form: str, old: str, new: str):
    """A run that was cut off after any call would look the same."""
    run = replace_all(form, old, new)

    assert (run.complete, run.answer, run.outcome) == (False, None, "failed")


# ---------------------------------------------------------------- Langfuse


def read_trace(script: str = "clean") -> dict:
    return read_objects("langfuse", script)[0]


def test_every_export_of_the_same_observations_is_the_same_run(tmp_path):
    """The trace of the API and of the page, observations as a page of the API, as a list and in lines."""
    trace = read_trace()
    observations = trace["observations"]
    page = {"data": observations, "meta": {"page": 1, "limit": 50, "totalItems": len(observations), "totalPages": 1}}
    beside = {"trace": {**trace, "observations": None}, "observations": observations}
    lines = tmp_path / "observations.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in observations), "utf-8")

    for source in (trace, page, beside, observations, lines):
        run = read_run(source)
        assert (describe(run), run.problems, run.answer) == (CLEAN, (), CLEAN[-1][1])
        assert run.duration_ms is not None
        assert run.usage is not None
        assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 15)
        assert run.cost is None


def test_observations_that_were_cut_anywhere_are_not_complete(tmp_path):
    """In the order in which they began, and in that in which they ended."""
    for order in ("startTime", "endTime"):
        rows = sorted(read_trace()["observations"], key=lambda row: row[order])
        last = max(at for at, row in enumerate(rows) if row["type"] == "GENERATION" or not row["parentObservationId"])
        for count in range(1, last + 1):
            text = "".join(json.dumps(row) + "\n" for row in rows[:count])
            for rest in ("", json.dumps(rows[count])[:80]):
                path = tmp_path / "cut.jsonl"
                path.write_text(text + rest, "utf-8")
                assert not read_run(path, format="langfuse").complete, (order, count)


def test_texts_of_json_are_read_as_the_values_that_they_are():
    """The API leaves inputs and outputs as texts unless it is asked for more."""
    trace = read_trace()
    for row in trace["observations"]:
        row |= {name: json.dumps(row[name]) for name in ("input", "output") if not isinstance(row[name], str)}

    assert describe(read_run(trace)) == CLEAN


CALL = {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls backup"}'}}

SHAPES = {
    "chat": (
        {"messages": [{"role": "user", "content": "Look."}], "tools": []},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        [{"role": "tool", "tool_call_id": "call_1", "content": "a.txt"}],
        {"role": "assistant", "content": "Done."},
    ),
    "anthropic": (
        [{"role": "user", "content": [{"type": "text", "text": "Look."}]}],
        [{"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": "ls backup"}}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "a.txt"}]}],
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Done."}]},
    ),
    "responses": (
        "Look.",
        [
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "call_id": "call_1", "name": "Bash", "arguments": '{"command": "ls backup"}'},
        ],
        [{"type": "function_call_output", "call_id": "call_1", "output": "a.txt"}],
        [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}],
    ),
    "otel": (
        [{"role": "user", "parts": [{"type": "text", "content": "Look."}]}],
        [
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "id": "call_1", "name": "Bash", "arguments": {"command": "ls backup"}}],
            }
        ],
        [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": "a.txt"}]}],
        [{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}],
    ),
}
"""Messages as several programs write them: what is asked, a call, its result, the answer."""


def make_trace(ask: object, call: object, result: object, answer: object) -> dict:
    common = {"traceId": "t", "parentObservationId": "root", "level": "DEFAULT", "endTime": "2026-11-24T10:00:09Z"}
    first = {"id": "g1", "type": "GENERATION", "name": "model", "startTime": "2026-11-24T10:00:01Z"}
    second = {"id": "g2", "type": "GENERATION", "name": "model", "startTime": "2026-11-24T10:00:03Z"}
    root = {"id": "root", "type": "AGENT", "name": "agent", "startTime": "2026-11-24T10:00:00Z"}
    tool = {"id": "t1", "type": "TOOL", "name": "Bash", "startTime": "2026-11-24T10:00:02Z"}
    costs = {"costDetails": {"total": 0.5}, "usageDetails": {"input": 3, "input_cached_tokens": 2, "output": 1}}
    return {
        "id": "t",
        "sessionId": "s",
        "observations": [
            {**common, **root, "parentObservationId": None},
            {**common, **first, **costs, "input": ask, "output": call},
            {**common, **tool, "input": {"command": "ls backup"}, "output": "a.txt"},
            {**common, **second, **costs, "input": result, "output": answer},
        ],
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_messages_are_read_in_the_forms_of_several_makers(shape: str):
    """Langfuse keeps what each client hands it."""
    run = read_run(make_trace(*SHAPES[shape]))

    assert [step.text for step in run.steps if step.role == "user"] == ["Look."]
    assert describe(run) == [("Bash", {"command": "ls backup"}, "a.txt", None), ("text", "Done.")]
    assert (run.problems, run.answer, run.cost, run.metadata["session"]) == ((), "Done.", 1.0, "s")
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.cached_tokens, run.usage.output_tokens) == (10, 4, 2)


@pytest.mark.parametrize(
    ("place", "changes", "problem"),
    [
        (3, {"output": {"answer": "Done."}}, "were not exported"),
        (3, {"output": None}, "were not exported"),
        (3, {"output": [{"type": "new_call", "name": "rm"}]}, "has a part that is not known here"),
        (3, {"output": {"role": "assistant", "content": "x", "tool_calls": ["rm"]}}, "form that is not known here"),
        (2, {"input": {"command": "rm -rf /"}}, "a tool was executed that no message of the agent calls"),
        (2, {"name": "delete"}, "a tool was executed that no message of the agent calls"),
        (2, {"metadata": {"tool_call_id": "call_1"}, "input": "rm -rf /"}, "ran with other arguments"),
        (2, {"metadata": {"tool_call_id": "call_1"}, "name": "delete"}, "another tool than that of the call"),
        (2, {"parentObservationId": "other"}, "a span that holds others is missing"),
        (0, {"endTime": None}, "the run had not ended when it was exported"),
        (2, {"startTime": "2026-11-24T11:00:00Z"}, "something comes after the end of the run"),
        (2, {"id": "g1"}, "a span stands there twice"),
    ],
    ids=map(str, range(12)),
)
def test_what_hides_a_call_in_observations_is_a_problem(place: int, changes: dict, problem: str):
    """What is in no known form, missing, forged or doubled."""
    trace = make_trace(*SHAPES["chat"])
    trace["observations"][place] |= changes

    assert any(problem in reason for reason in read_run(trace).problems), read_run(trace).problems


@pytest.mark.parametrize("meta", [{"cursor": "abc"}, {"page": 1, "totalPages": 2}])
def test_a_page_of_observations_with_another_after_it_is_not_complete(meta: dict):
    """Both versions of the API give them in pages."""
    page = {"data": make_trace(*SHAPES["chat"])["observations"], "meta": meta}

    assert read_run(page).problems == ("further observations are on a page that is not here",)


def test_the_first_observation_of_a_trace_may_be_held_by_one_that_is_not_exported():
    """Langfuse keeps the spans of models alone, and marks which of them is the first."""
    rows = make_trace(*SHAPES["chat"])["observations"]
    rows[0] |= {"parentObservationId": "http", "isRootObservation": True}

    assert read_run(rows).complete


def test_observations_of_two_traces_are_no_run():
    """Neither by themselves nor below a trace of another id."""
    trace = make_trace(*SHAPES["chat"])
    for damaged in ({**trace, "id": "other"}, [*trace["observations"], {**trace["observations"][1], "traceId": "u"}]):
        with pytest.raises(UsageError, match="2 traces"):
            read_run(damaged)
    assert "line 2 is another trace" in read_run([trace, trace]).problems


def test_a_trace_without_its_observations_is_no_transcript():
    """The list of traces has their ids alone, and the export of the table none of them."""
    trace = read_trace()
    for damaged in ({**trace, "observations": ["o1", "o2"]}, {**trace, "observations": []}):
        with pytest.raises(UsageError):
            read_run(damaged)


# ---------------------------------------------------------------- files of somebody who means harm


def test_spans_that_hold_one_another_in_a_long_row_are_read():
    """Each is looked at once: the square of their number would keep the reader busy for hours."""
    spans = read_lines(LANGCHAIN)
    row = []
    for number in range(60_000):
        parent = {"span_id": f"r{number}", "trace_id": spans[0]["context"]["trace_id"]}
        kind = {"openinference.span.kind": "LLM" if number % 2 else "AGENT"}
        row.append({"context": parent, "parent_id": f"r{number + 1}", "attributes": kind})

    assert not read_run([*spans, *row]).complete


def test_numbers_of_otlp_that_are_none_are_left_as_texts():
    """Each of them would raise in Python."""
    for text in ("--5", "\u00b2", "9" * 5000, "-"):
        otlp = to_otlp(read_lines(LANGCHAIN))
        span = otlp["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        span["attributes"].append({"key": "llm.token_count.prompt", "value": {"intValue": text}})
        span["endTimeUnixNano"] = text
        assert read_run(otlp).usage is None


WORDS = """
    llm input_messages output_messages message role content contents message_content tool_calls tool_call function name
    arguments id tool input output value type text session token_count prompt completion openinference span kind cost
    0 1 x
"""

NAMES = st.lists(st.sampled_from(["", *WORDS.split()]), min_size=1, max_size=8).map(".".join)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)

VALUES = st.recursive(
    SCALARS | st.sampled_from(["LLM", "TOOL", "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(kind=st.sampled_from(["LLM", "TOOL", "AGENT", "CHAIN"]), attributes=st.dictionaries(NAMES, VALUES, max_size=8))
def test_whatever_names_the_attributes_have_there_is_a_run_or_a_named_error(kind: str, attributes: dict):
    """Flat, nested and both at once."""
    spans = read_lines(LANGCHAIN)
    span = change(spans, kind if kind != "AGENT" else "CHAIN")
    span["attributes"] |= {**attributes, "openinference.span.kind": kind}

    check(spans)


@given(place=st.integers(0, 3), member=st.sampled_from(["input", "output", "metadata", "usageDetails"]), value=VALUES)
def test_whatever_an_observation_holds_there_is_a_run_or_a_named_error(place: int, member: str, value: object):
    """Langfuse takes any JSON as an input and as an output."""
    trace = make_trace(*SHAPES["chat"])
    trace["observations"][place][member] = value

    check(trace)


def check(source) -> None:
    try:
        run = read_run(source)
    except UsageError:
        return
    assert run.complete == (not run.problems)
    assert AgentRun.from_dict(run.to_dict()) == run


def test_a_second_agent_that_no_other_called_is_a_problem():
    """A handler that runs its agent twice in one trace: the words of the second run are in no step."""
    spans = read_lines("otel")
    again = json.loads(json.dumps(spans).replace("alpha and beta", "a password"))
    for span in again:
        span["context"]["span_id"] = f"{span['context']['span_id']}2"
        span["parent_id"] = span["parent_id"] and f"{span['parent_id']}2"
        span["start_time"] = span["start_time"].replace("2026", "2027")
        span["end_time"] = span["end_time"].replace("2026", "2027")
        for name in ("gen_ai.tool.call.id", "gen_ai.input.messages", "gen_ai.output.messages"):
            if name in span["attributes"]:
                span["attributes"][name] = span["attributes"][name].replace("call_", "again_")

    run = read_run([*spans, *again])

    assert run.answer == CLEAN[-1][1]
    assert "several agents are held by none, so they are not those of one run" in run.problems


def make_span(name: str, parent: str | None, kind: str, attributes: dict) -> dict:
    """A span as the SDK writes it, with a kind of OpenInference."""
    return {
        "name": name,
        "context": {"trace_id": "t", "span_id": name},
        "parent_id": parent,
        "start_time": "2026-11-23T17:29:21Z",
        "end_time": "2026-11-23T17:29:22Z",
        "status": {"status_code": "OK"},
        "attributes": {"openinference.span.kind": kind} | attributes,
    }


def test_a_call_with_large_arguments_that_many_spans_name_is_copied_once():
    """Each span is a few bytes, and a copy for each would be all of the arguments."""

    def read(size: int) -> None:
        call = {"type": "tool_call", "id": "c", "name": "f", "arguments": {"numbers": list(range(size))}}
        replies = json.dumps([{"role": "assistant", "parts": [call]}])
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": replies}
        executed = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c", "gen_ai.tool.name": "f"}
        spans = [make_span(f"s{number}", None, "", executed) for number in range(size)]
        read_run([make_span("chat", None, "", attributes), *spans], format="otel")

    assert count_growth(read, 50) < 6


@pytest.mark.parametrize("kind", ["AGENT", None])
def test_an_agent_is_asked_for_its_kind_and_its_name_once(kind: str | None):
    """Its attributes are looked through for them, and not again for each span that it holds."""

    def read(size: int) -> None:
        others: dict = {f"a.{number}": 1 for number in range(20 * size)}
        if kind is None:
            others = {"openinference.span.kind": None, "openinference": {"span.kind": "AGENT"} | others}
        agent = make_span("agent", "tool", "AGENT", others)
        held = [make_span(f"s{number}", "agent", "CHAIN", {}) for number in range(size)]
        read_run([make_span("tool", None, "TOOL", {}), agent, *held])

    assert count_growth(read, 50) < 6


def test_a_sub_agent_has_its_own_name_and_the_agent_that_has_the_tool_none():
    """An agent in a tool gives its name to what is in it; of an agent that is in none, the tools' insides have none."""
    call = {"llm.output_messages": [{"message.role": "assistant", "message.tool_calls": [make_called("c")]}]}
    inner = {"llm.output_messages": [{"message.role": "assistant", "message.tool_calls": [make_called("d")]}]}
    third = {"llm.output_messages": [{"message.role": "assistant", "message.tool_calls": [make_called("e")]}]}
    spans = [
        make_span("agent", None, "AGENT", {"agent.name": "outer"}),
        make_span("ask", "agent", "LLM", call),
        make_span("tool", "agent", "TOOL", {"tool.name": "f", "tool_call.id": "c"}),
        make_span("bare", "tool", "LLM", third),
        make_span("helper", "tool", "AGENT", {"agent.name": "helper"}),
        make_span("answer", "helper", "LLM", inner),
    ]

    assert {call.call_id: call.agent for call in read_run(spans).calls} == {"c": None, "d": "helper", "e": "sub-agent"}


def make_called(name: str) -> dict:
    """A call of a tool in a message of OpenInference."""
    return {"tool_call.id": name, "tool_call.function": {"name": "f", "arguments": "{}"}}
