"""Transcripts as runs: what the real tools wrote, and what whoever can write to a transcript may do to it."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.agents import AgentRun, read_run
from kit.growth import count_growth
from kit.transcripts import CLEAN, FAILING, describe, find_file, read_lines, read_objects

OPENINFERENCE = ("openinference-langchain", "openinference-openai-agents", "openinference-pydantic-ai")

WITH_PROMPT = (
    "claude-session",
    "codex-rollout",
    "langchain",
    "openai-agents",
    *OPENINFERENCE,
    "otel",
    "pydantic-ai",
)
"""Those that record what the user asked for."""

FORMS = ("claude-stream", "codex-json", *WITH_PROMPT)

EVERY = (*FORMS, "inspect", "langfuse")
"""With those that are one object, not many."""

LINES = ("claude-stream", "claude-session", "codex-json", "codex-rollout", *OPENINFERENCE, "otel")


@pytest.mark.parametrize("form", EVERY)
def test_every_reader_gives_the_same_run(form: str):
    """Every reader gives the same run."""
    run = read_run(find_file(form))

    assert describe(run) == CLEAN
    assert (run.answer, run.outcome, run.complete, run.problems) == (CLEAN[-1][1], "finished", True, ())
    assert AgentRun.from_dict(run.to_dict()) == run


@pytest.mark.parametrize("form", [*WITH_PROMPT, "inspect", "langfuse"])
def test_the_users_words_are_steps_where_they_are_recorded(form: str):
    """The user's words are steps where they are recorded."""
    assert [step.text for step in read_run(find_file(form)).steps if step.role == "user"] == ["What is in the backup?"]


@pytest.mark.parametrize("form", sorted(set(EVERY) - {"codex-json"}))
def test_calls_made_at_once_are_of_one_turn(form: str):
    """Codex prints the calls of one reply one after the other, as if each had waited for the one before."""
    turns = [step.turn for step in read_run(find_file(form)).steps if step.role == "assistant"]

    assert turns == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "form",
    [
        "claude-stream",
        "claude-session",
        "codex-json",
        "codex-rollout",
        "inspect",
        "langchain",
        "langfuse",
        "openinference-langchain",
        "pydantic-ai",
    ],
)
def test_a_failed_command_is_an_error(form: str):
    """A failed command is an error."""
    run = read_run(find_file(form, "failing"))

    assert describe(run) == FAILING
    assert run.complete


def test_spans_say_that_a_tool_failed_and_that_the_run_did():
    """Spans say that a tool failed and that the run did."""
    run = read_run(find_file("otel", "failing"))

    assert (run.calls[0].error, run.outcome, run.complete) == ("it failed", "failed", False)


def test_usage_cost_and_time_are_read_where_they_are():
    """Usage cost and time are read where they are."""
    stream, session = read_run(find_file("claude-stream")), read_run(find_file("claude-session"))
    codex, otel = read_run(find_file("codex-json")), read_run(find_file("otel"))

    assert (stream.cost, session.cost) == (0.00042, 0.00042)
    assert stream.duration_ms is not None
    assert stream.duration_ms > 0
    assert [(run.usage.input_tokens, run.usage.output_tokens) for run in (stream, session, codex) if run.usage] == [
        (30, 15)
    ] * 3
    assert (codex.cost, otel.cost) == (None, None)
    assert otel.usage is not None
    assert otel.usage.input_tokens == 175


@pytest.mark.parametrize("models", ["first", "second"])
def test_tokens_of_a_session_are_unknown_where_those_of_one_model_are(models: str, tmp_path: Path):
    """In whatever order its models are listed."""
    known, unknown = {"inputTokens": 5, "outputTokens": 5}, {"inputTokens": "many"}
    usage = {"a": unknown, "b": known} if models == "first" else {"a": known, "b": unknown, "c": known}
    path = tmp_path / "session.jsonl"
    lines = [json.loads(line) for line in find_file("claude-session").read_text("utf-8").splitlines()]
    lines = [line | ({"modelUsage": usage} if line.get("type") == "cost-state" else {}) for line in lines]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    assert read_run(path).usage is None


def test_what_a_source_does_not_record_is_unknown():
    """What a source does not record is unknown."""
    assert read_run(find_file("claude-stream")).unknown == ("files",)
    assert read_run(find_file("openai-agents")).unknown == ("files", "failures")


@pytest.mark.parametrize("form", EVERY)
def test_objects_are_read_as_their_file_is(form: str):
    """Objects are read as their file is."""
    path = find_file(form)
    objects = json.loads(path.read_text("utf-8")) if path.suffix == ".json" else read_lines(form)

    assert read_run(objects) == read_run(path)


@pytest.mark.parametrize("form", LINES)
def test_lines_are_read_as_their_file_is(form: str):
    """Lines are read as their file is."""
    assert read_run(find_file(form).read_text("utf-8").splitlines()) == read_run(find_file(form))


# ---------------------------------------------------------------- what is missing, forged or repeated


@pytest.mark.parametrize("form", LINES)
def test_a_file_that_was_cut_anywhere_is_not_complete(form: str, tmp_path):
    """At every line, and in the middle of each."""
    lines = find_file(form).read_text("utf-8").splitlines(keepends=True)
    # What comes after the agent's last word in a session is not the run's.
    last = max(at for at, line in enumerate(lines) if "alpha and beta" in line and '"last-prompt"' not in line)
    last = len(lines) - 1 if form != "claude-session" else last
    for count in range(1, last + 1):
        for rest in ("", lines[count][: len(lines[count]) // 2]):
            path = tmp_path / "cut.jsonl"
            path.write_text("".join(lines[:count]) + rest, "utf-8")
            try:
                run = read_run(path, format=form.partition("-")[0])
            except UsageError:  # nothing of the run is there yet
                continue
            assert not run.complete, (count, rest[:50])
            assert run.problems


def test_items_of_openai_in_lines_do_not_show_that_they_are_whole(tmp_path):
    """Cut after a text of the first reply, whose call follows as an item of its own, such a file would look whole."""
    items = read_objects("openai-agents")
    for count in range(1, len(items) + 1):
        path = tmp_path / "items.jsonl"
        path.write_text("".join(json.dumps(item) + "\n" for item in items[:count]), "utf-8")
        assert not read_run(path, format="openai").complete, count


def test_items_of_openai_that_end_with_a_commentary_are_not_complete():
    """Newer models say which of their words are the answer."""
    items = read_objects("openai-agents")
    phases = [{**item, "phase": "commentary"} if item.get("role") == "assistant" else item for item in items]
    whole = [*phases[:-1], {**phases[-1], "phase": "final_answer"}]

    assert [read_run(items).complete, read_run(whole).complete] == [True, True]
    assert read_run(phases).problems == read_run(phases[:2]).problems == ("it ends before the agent's last word",)


@pytest.mark.parametrize("form", EVERY)
def test_a_file_of_which_the_second_half_is_missing_is_no_complete_run(form: str, tmp_path):
    """By bytes, as a disk that is full leaves it: what is one JSON value cannot be read at all then."""
    text = find_file(form).read_bytes()
    path = tmp_path / find_file(form).name
    path.write_bytes(text[: len(text) // 2])

    try:
        assert not read_run(path).complete
    except UsageError:
        assert path.suffix == ".json"


@pytest.mark.parametrize("form", ["langchain", "pydantic-ai"])
def test_messages_that_were_cut_anywhere_are_not_complete(form: str):
    """Messages that were cut anywhere are not complete."""
    objects = read_objects(form)
    for count in range(1, len(objects)):
        run = read_run(objects[:count])
        assert not run.complete, count
        assert run.outcome == "failed"


def test_messages_of_langchain_are_read_as_its_graph_and_its_models_write_them():
    """Messages of LangChain are read as its graph and its models write them."""
    objects = read_objects("langchain")
    run = read_run(objects)
    dumped = [entry["data"] for entry in objects]

    assert read_run(dumped) == run
    assert read_run({"messages": objects, "files": []}) == run
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 15)
    held = read_run({"messages": objects[:2], "__interrupt__": [{"value": {}}]})
    assert (held.outcome, held.complete, held.answer) == ("held", False, None)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"content": [{"type": "server_tool_use", "name": "web_search"}]}, "has a part that is not known here"),
        ({"response_metadata": {"finish_reason": "length"}}, "was cut off"),
        ({"type": "remove"}, "is of a kind that is not known here"),
        ({"id": "m1"}, "stands there twice"),
        ({"invalid_tool_calls": [{"name": "Bash", "args": "{", "id": "x"}]}, "has no result"),
        ({"content": [{"type": "tool_use", "id": "x", "name": "rm"}]}, "is not among its calls"),
        ({"content": [{"type": "function_call", "id": "fc", "call_id": "x", "name": "rm"}]}, "is not among its calls"),
    ],
    ids=["hosted", "cut", "removed", "repeated", "invalid", "among its parts", "among its parts, of the provider"],
)
def test_what_hides_a_call_in_messages_of_langchain_is_a_problem(changes: dict, problem: str):
    """What hides a call in messages of LangChain is a problem."""
    messages = [entry["data"] for entry in read_objects("langchain")]
    messages[-1] = {**messages[-1], **changes}

    assert any(problem in reason for reason in read_run(messages).problems)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"parts": [{"part_kind": "new-kind"}]}, "has a part that is not known here"),
        ({"finish_reason": "length"}, "was cut off"),
        ({"state": "interrupted"}, "was cut off"),
        ({"conversation_id": "other"}, "is of another conversation"),
        ({"kind": "new-kind"}, "is of a kind that is not known here"),
    ],
    ids=["part", "cut", "interrupted", "other", "kind"],
)
def test_what_hides_a_call_in_messages_of_pydantic_ai_is_a_problem(changes: dict, problem: str):
    """What hides a call in messages of pydantic-ai is a problem."""
    messages = read_objects("pydantic-ai")
    messages[-1] = {**messages[-1], **changes}

    assert any(problem in reason for reason in read_run(messages).problems)


def read_sample(script: str = "clean") -> dict:
    return json.loads(find_file("inspect", script).read_text("utf-8"))["samples"][0]


def test_a_sample_of_inspect_is_read_as_the_log_that_holds_it():
    """A sample of Inspect is read as the log that holds it."""
    run = read_run(read_sample())

    assert run == read_run(find_file("inspect"))
    assert run.usage is not None
    assert (run.usage.input_tokens, run.usage.output_tokens) == (30, 15)
    assert run.duration_ms is not None


def test_an_answer_that_an_agent_of_inspect_submits_is_its_last_word():
    """Its call is in no message of the sample, and its long text is kept apart from the events."""
    run = read_run(find_file("inspect", "react"))

    assert (run.complete, run.problems, run.outcome) == (True, (), "finished")
    assert [call.tool for call in run.calls] == ["Bash", "submit"]
    assert run.answer == run.calls[1].arguments["answer"] == "Done: " + "x" * 200
    unlike = read_run(read_sample("react") | {"output": {"completion": "I look first."}})
    assert (unlike.complete, unlike.answer) == (False, None)


@pytest.mark.parametrize("script", ["clean", "react"])
def test_events_of_inspect_that_were_taken_out_or_doubled_are_noticed(script: str):
    """Each of them, all after each, and each twice. What a tool returned stands in the next request, too."""
    whole = describe(read_run(find_file("inspect", script)))
    events = read_sample(script)["events"]
    marked = [at for at, event in enumerate(events) if event["event"] in ("model", "tool")]
    for at in marked:
        for changed in (events[:at], events[:at] + events[at + 1 :], [*events[: at + 1], *events[at:]]):
            run = read_run(read_sample(script) | {"events": changed})
            assert not run.complete or (events[at]["event"] == "tool" and describe(run) == whole), at
    assert len(marked) > 3


def test_a_log_of_inspect_that_was_cut_or_has_two_samples_is_no_run(tmp_path):
    """A log of Inspect that was cut or has two samples is no run."""
    text = find_file("inspect").read_text("utf-8")
    log = json.loads(text)
    path = tmp_path / "cut.json"
    path.write_text(text[: len(text) // 2], "utf-8")
    for source in (path, log | {"samples": log["samples"] * 2}, [log, log]):
        with pytest.raises(UsageError):
            read_run(source, format="inspect")


def test_what_only_the_messages_of_inspect_have_was_forged():
    """What only the messages of Inspect have was forged."""
    sample = read_sample()
    forged = {"id": "x", "function": "Bash", "arguments": {"command": "npm test"}}
    sample["messages"][-1]["tool_calls"] = [forged]

    assert "a message of the agent is in no event" in read_run(sample).problems


@pytest.mark.parametrize("calls", [True, 5, "call_x", {"id": "x"}, [True], [{"id": ["call_1"]}]], ids=str)
def test_calls_of_another_form_in_the_messages_of_inspect_are_a_problem(calls: object):
    """Whatever stands there, no event has it."""
    sample = read_sample()
    sample["messages"][-1]["tool_calls"] = calls

    assert "a message of the agent is in no event" in read_run(sample).problems


def test_a_limit_or_an_error_ends_a_sample_of_inspect_as_failed():
    """A limit or an error ends a sample of Inspect as failed."""
    for changes in ({"limit": {"type": "message", "limit": 3}}, {"error": {"message": "no"}}):
        assert read_run(read_sample() | changes).outcome == "failed"


def test_events_of_inspect_in_the_span_of_a_tool_are_a_sub_agents_and_a_graders_are_not_read():
    """Events of Inspect in the span of a tool are a sub-agent's, and a grader's are not read."""
    runs = {}
    for kind in ("tool", "scorer"):
        sample = read_sample()
        first = next(event for event in sample["events"] if event["event"] == "model")
        first["span_id"] = "inner"
        outer = {"event": "span_begin", "id": "outer", "type": kind, "name": "x"}
        inner = {"event": "span_begin", "id": "inner", "parent_id": "outer", "type": "agent", "name": "x"}
        runs[kind] = read_run(sample | {"events": [outer, inner, *sample["events"]]})

    assert [call.agent for call in runs["tool"].calls] == ["sub-agent", None, None]
    assert ("text", "I look first.") not in describe(runs["tool"])
    assert "a tool was executed that no message of the agent calls" in runs["scorer"].problems


def test_a_range_of_messages_that_is_named_again_says_nothing_new():
    """Each message of the list is read once, with an id and without one."""
    sample = read_sample()
    for message in sample["events_data"]["messages"]:
        message.pop("id", None)
    sample["events_data"]["messages"] = sample["events_data"]["messages"][:1]
    for event in sample["events"]:
        if event["event"] == "model":
            event["input_refs"] = [[0, 1], [0, 0], [0, 1]]

    run = read_run(sample)

    assert [step.text for step in run.steps if step.role == "user"] == ["What is in the backup?"]
    assert run.complete


@pytest.mark.parametrize("ranges", [[], [[0, 0]], [[1, 0]], [[0, 99]], [["0", 1]]])
def test_ranges_that_name_no_message_are_a_problem(ranges: list):
    """What the model was sent is not in the log."""
    sample = read_sample()
    next(event for event in sample["events"] if event["event"] == "model")["input_refs"] = ranges

    assert "the messages of a request are not in the log" in read_run(sample).problems


@pytest.mark.parametrize("kind", ["main", "tool"])
def test_a_few_bytes_of_ranges_name_no_more_messages_than_there_are(kind: str):
    """In any order, of the agent and of a sub-agent: neither the time nor the memory is the product of both."""

    def read(size: int) -> None:
        ranges = [[size - place % size, size] for place in range(2 * size)] + [[0, size]] * size
        events = [{"event": "span_begin", "id": "s", "type": kind, "name": "x"}]
        events += [{"event": "model", "input_refs": ranges, "output": {}, "span_id": "s"}]
        read_run({"messages": [], "epoch": 1, "target": "", "events": events, "events_data": {"messages": [{}] * size}})

    assert count_growth(read, 50) < 6
    tracemalloc.start()
    try:
        read(500)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000, "with a list of all that is named: 500 * 1,000 entries, 4 MB and more"


def test_spans_of_inspect_in_one_another_take_time_by_their_number():
    """Each is looked at once, however many events are in the innermost."""

    def read(size: int) -> None:
        spans = [{"event": "span_begin", "id": f"s{n}", "parent_id": f"s{n - 1}", "type": "x"} for n in range(size)]
        events = [{"event": "info", "span_id": f"s{size - 1}"} for _ in range(size)]
        read_run({"messages": [], "epoch": 1, "target": "", "events": [*spans, *events]})

    assert count_growth(read, 50) < 6


@pytest.mark.parametrize("name", ["before", "first", "second", "third"])
@pytest.mark.parametrize("order", [1, -1])
def test_all_that_is_in_a_loop_of_spans_is_in_each_of_its_spans(name: str, order: int):
    """A loop with a scorer in it holds nothing of the agent's, wherever it is entered."""
    holders = {"before": "first", "first": "second", "second": "third", "third": "first"}
    loop = [
        {"event": "span_begin", "id": inner, "parent_id": outer, "type": "scorer" if inner == "second" else "x"}
        for inner, outer in holders.items()
    ]
    sample = read_sample()
    for event in sample["events"]:
        if event["event"] == "model":
            event["span_id"] = name
    entered = [{"event": "info", "span_id": each} for each in [*holders][::order]]

    run = read_run(sample | {"events": [*loop, *entered, *sample["events"]]})

    assert "a tool was executed that no message of the agent calls" in run.problems


def test_a_call_with_large_arguments_that_was_executed_many_times_is_copied_once():
    """Each execution is a few bytes, and a copy for each would be all of the arguments."""

    def read(size: int) -> None:
        call = {"id": "c", "function": "f", "arguments": {"numbers": list(range(size))}}
        message = {"id": "m", "role": "assistant", "content": "", "tool_calls": [call]}
        events = [{"event": "model", "input": [], "output": {"choices": [{"message": message}]}}]
        events += [{"event": "tool", "id": "c", "result": "x", "working_time": 1.0}] * size
        read_run({"messages": [], "epoch": 1, "target": "", "events": events})

    assert count_growth(read, 50) < 6


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"pending": True}, "was not at its end"),
        ({"input": [], "input_refs": [[0, 99]]}, "are not in the log"),
        ({"output": {"choices": [{"message": {"content": "x"}, "stop_reason": "max_tokens"}]}}, "was cut off"),
        ({"output": {"choices": [{"message": {"content": [{"type": "data"}]}}]}}, "not known here"),
        ({"output": {"choices": [{"message": {"content": "attachment://0"}}]}}, "keeps apart is missing"),
    ],
    ids=["pending", "messages", "cut", "part", "attachment"],
)
def test_what_hides_a_call_in_events_of_inspect_is_a_problem(changes: dict, problem: str):
    """What hides a call in events of Inspect is a problem."""
    sample = read_sample()
    next(event for event in reversed(sample["events"]) if event["event"] == "model").update(changes)

    assert any(problem in reason for reason in read_run(sample).problems)


def test_a_line_that_was_taken_out_of_a_session_is_noticed():
    """A line that was taken out of a session is noticed."""
    lines = read_lines("claude-session")
    linked = [at for at, line in enumerate(lines) if "uuid" in line]
    for at in linked:
        assert not read_run(lines[:at] + lines[at + 1 :]).complete, at
    assert len(linked) > 10


def test_a_trace_without_the_span_of_its_agent_or_of_its_end_is_not_complete():
    """A trace without the span of its agent or of its end is not complete."""
    spans = read_lines("otel")
    for missing in (spans[-1], spans[-2]):
        assert not read_run([span for span in spans if span is not missing]).complete


def test_a_line_after_the_result_is_a_problem():
    """A line after the result is a problem."""
    lines = read_lines("claude-stream")
    forged = {**lines[2], "uuid": "other"}
    forged["message"] = {**forged["message"], "content": [{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}]}

    run = read_run([*lines, forged])

    assert not run.complete
    assert any("something after the result" in problem for problem in run.problems)


def test_a_second_result_is_a_problem():
    """A second result is a problem."""
    lines = read_lines("claude-stream")
    forged = {**lines[-1], "uuid": "other", "result": "All tests pass."}

    run = read_run([*lines, forged])

    assert run.answer == CLEAN[-1][1]
    assert any("a second result" in problem for problem in run.problems)


@pytest.mark.parametrize("place", ["the last message", "an earlier message", "the result"])
@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_a_message_of_claude_code_that_was_cut_off_is_a_problem(reason: str, place: str):
    """In a session, which has no result, and in what is printed."""
    lines = read_lines("claude-stream" if place == "the result" else "claude-session")
    messages = [line for line in lines if line["type"] == "assistant"]
    holders = {"the last message": messages[-1]["message"], "an earlier message": messages[0]["message"]}
    holders.get(place, lines[-1])["stop_reason"] = reason

    run = read_run(lines)

    assert run.problems == ("a message of the agent was cut off",)
    assert not run.finished


@pytest.mark.parametrize("form", ["claude-stream", "claude-session"])
def test_a_run_of_claude_code_that_ends_with_a_refusal_has_failed(form: str):
    """Its words are kept, and nothing is missing."""
    lines = read_lines(form)
    last = next(line for line in reversed(lines) if line["type"] in ("assistant", "result"))
    last.get("message", last)["stop_reason"] = "refusal"

    run = read_run(lines)

    assert (run.outcome, run.problems, run.answer) == ("failed", (), CLEAN[-1][1])


@pytest.mark.parametrize("role", ["assistant", "user"])
@pytest.mark.parametrize("form", ["claude-stream", "claude-session"])
def test_a_part_of_a_message_of_claude_code_that_is_not_known_could_be_a_call(form: str, role: str):
    """A new kind of call, which nothing may be concluded about: not that it was not made."""
    lines = read_lines(form)
    place = next(at for at, line in enumerate(lines) if line["type"] == role and isinstance(_list_parts(line), list))
    _list_parts(lines[place]).append({"type": "new_tool_use", "id": "x", "name": "Bash", "input": {"command": "rm x"}})

    run = read_run(lines)

    assert run.problems == (f'line {place + 1} has a part that is not known here: "new_tool_use"',)
    assert describe(run) == describe(read_run(find_file(form)))


@pytest.mark.parametrize("kind", ["thinking", "redacted_thinking", "image", "document", "compaction", "fallback"])
@pytest.mark.parametrize("form", ["claude-stream", "claude-session"])
def test_a_part_of_a_message_of_claude_code_that_is_no_call_leaves_the_run_complete(form: str, kind: str):
    """Thoughts, attachments, and marks of the API: a rule about calls needs none of them."""
    lines = read_lines(form)
    for line in lines:
        if isinstance(_list_parts(line), list):
            _list_parts(line).insert(0, {"type": kind})

    run = read_run(lines)

    assert (run.complete, describe(run)) == (True, describe(read_run(find_file(form))))


@pytest.mark.parametrize("kind", ["progress", "system", "assistant_message", None])
@pytest.mark.parametrize("form", ["claude-stream", "claude-session"])
def test_a_line_of_claude_code_that_is_not_known_is_passed_over_unless_it_could_hold_a_call(
    form: str, kind: str | None
):
    """There are many, such as those about the queue; only messages tell what the agent did."""
    lines = read_lines(form)
    calls = [{"type": "tool_use", "id": "x", "name": "Bash", "input": {"command": "rm x"}}, {"type": "new_tool_use"}]
    harmless = [{"type": "text", "text": "Working."}, {"type": "web_search_tool_result"}, {"type": "thinking"}]
    for message in ({"content": harmless}, {"content": "Working."}, "Working.", None, {}):
        assert read_run([*lines[:2], {"type": kind, "message": message}, *lines[2:]]).complete

    for call in calls:
        line = {"type": kind, "message": {"content": [*harmless, call]}}
        problems = read_run([*lines[:2], line, *lines[2:]]).problems
        assert problems == ("line 3 may hold a call, and is of a kind that is not known here",)


def _list_parts(line: dict) -> Any:
    """The parts of a message, as a line of Claude Code has them; ``None`` for another line."""
    return line.get("message", {}).get("content")


DECLINED = {"content": [{"type": "text", "text": "Error: declined"}]}


@pytest.mark.parametrize(
    ("members", "error"),
    [
        ({"result": DECLINED, "error": None, "status": "failed"}, "Error: declined"),
        ({"result": {"content": []}, "error": None, "status": "failed"}, "[]"),
        ({"result": None, "error": {"message": "no such tool"}, "status": "failed"}, "no such tool"),
        ({"result": DECLINED, "error": None, "status": "completed"}, None),
    ],
)
def test_a_call_of_an_mcp_tool_that_codex_calls_failed_has_an_error(members: dict[str, Any], error: str | None):
    """Codex writes what a tool with ``isError`` returned as its result, with no error beside it."""
    lines = read_lines("codex-json")
    item = {"id": "i", "type": "mcp_tool_call", "server": "bank", "tool": "pay", "arguments": {}, **members}

    call = read_run([*lines[:-2], {"type": "item.completed", "item": item}, *lines[-2:]]).calls[-1]

    assert (call.tool, call.error) == ("mcp__bank__pay", error)
    assert (call.result is None) == (error is not None)


MCP_END = {"type": "mcp_tool_call_end", "call_id": "m1"}

ITEM_END = {"type": "item_completed", "item": {"type": "McpToolCall", "id": "m1"}}


@pytest.mark.parametrize("is_first", [False, True], ids=["after the output", "before it"])
@pytest.mark.parametrize(
    ("end", "failed"),
    [
        ({**MCP_END, "result": {"Ok": {**DECLINED, "isError": True}}}, True),
        ({**MCP_END, "result": {"Err": "no such tool"}}, True),
        ({**MCP_END, "result": "Ok"}, True),
        ({**MCP_END, "result": {"Ok": DECLINED}}, False),
        ({**ITEM_END, "item": {**ITEM_END["item"], "status": "failed"}}, True),  # type: ignore[dict-item]
        ({**ITEM_END, "item": {**ITEM_END["item"], "status": "completed"}}, False),  # type: ignore[dict-item]
        ({"type": "patch_apply_end", "call_id": "m1", "success": False}, True),
        ({"type": "patch_apply_end", "call_id": "m1", "success": True}, False),
        (None, None),
        ({"type": "item_completed", "item": {"type": "AgentMessage", "id": "m1"}}, None),
    ],
)
def test_a_rollout_of_codex_says_in_an_event_whether_a_call_failed(
    end: dict[str, Any] | None, failed: bool | None, is_first: bool
):
    """The output of the call does not, so that without the event nobody knows."""
    lines = read_lines("codex-rollout")
    place = next(place for place, line in enumerate(lines) if line["payload"].get("type") == "function_call")
    call = {"type": "function_call", "name": "mcp__bank__pay", "arguments": "{}", "call_id": "m1"}
    output = {"type": "function_call_output", "call_id": "m1", "output": "Error: declined"}
    made = [{"type": "response_item", "payload": payload} for payload in (call, output)]
    made.insert(1 if is_first else 2, {"type": "event_msg", "payload": end or {"type": "other"}})

    run = read_run([*lines[:place], *made, *lines[place:]])

    assert run.complete
    assert run.calls[0].error == ("Error: declined" if failed else None)
    assert ("failures" in run.unknown) == (failed is None)


def test_a_second_end_of_codex_is_a_problem():
    """A second end of Codex is a problem."""
    lines = read_lines("codex-json")

    assert any("a second end" in problem for problem in read_run([*lines, lines[-1]]).problems)
    assert not read_run([*lines, lines[4]]).complete


def test_a_line_of_codex_after_its_turn_is_a_problem():
    """A line of Codex after its turn is a problem."""
    lines = read_lines("codex-rollout")
    call = next(line for line in lines if line["payload"].get("type") == "function_call")
    forged = {**call, "payload": {**call["payload"], "call_id": "forged"}}
    result = {**call, "payload": {"type": "function_call_output", "call_id": "forged", "output": "ok"}}

    assert any("after the end" in problem for problem in read_run([*lines, forged, result]).problems)


def test_a_span_that_begins_after_the_end_of_its_run_is_a_problem():
    """A request to a model whose reply is another last word, and the execution of a call that the agent has made."""
    for name in ("chat", "execute_tool"):
        spans = read_lines("otel")
        span = next(span for span in reversed(spans) if span["name"].startswith(name))
        forged = span if name == "execute_tool" else json.loads(json.dumps(span))
        forged |= {"start_time": "2026-11-23T18:00:00Z", "end_time": "2026-11-23T18:00:01Z"}
        if name == "chat":
            forged["context"]["span_id"] = "0x1"
            spans.append(forged)
        run = read_run(spans)

        assert not run.complete
        assert "something comes after the end of the run" in run.problems


def test_a_request_after_the_end_of_a_sample_of_inspect_is_a_problem():
    """It has a call and its result, and gives another last word than the one in the sample's messages."""
    sample = read_sample()
    events = json.loads(json.dumps([event for event in sample["events"] if event["event"] in ("model", "tool")]))
    answered, called, last = events[0], events[1], events[-1]
    forged = {"id": "forged", "function": "Bash", "arguments": {"command": "npm test"}}
    answered["output"]["choices"][0]["message"] |= {"id": "m1", "content": "", "tool_calls": [forged]}
    called |= {"id": "forged", "arguments": forged["arguments"], "result": "ok"}
    last["output"]["choices"][0]["message"] |= {"id": "m2", "content": "All tests pass."}
    for number, event in enumerate((answered, called, last)):
        event["uuid"] = f"forged {number}"
    run = read_run(sample | {"events": [*sample["events"], answered, called, last]})

    assert run.problems == ("something comes after the end of the run",)


def test_a_session_of_claude_code_has_no_end_but_what_is_added_to_it_has_to_end_too():
    """As the page says: it can be resumed at any time, so that a turn after the last one is a turn."""
    lines = read_lines("claude-session")
    replies = [line for line in lines if line["type"] == "assistant"]
    call, answer = (json.loads(json.dumps(line)) for line in (replies[1], replies[-1]))
    call |= {"uuid": "u1", "parentUuid": replies[-1]["uuid"]}
    call["message"] |= {"id": "msg_x", "content": [{"type": "tool_use", "id": "x", "name": "Bash", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "ok"}]}
    made = {"type": "user", "uuid": "u2", "parentUuid": "u1", "sessionId": call["sessionId"], "message": result}
    answer |= {"uuid": "u3", "parentUuid": "u2"}

    assert read_run([*lines, call, made]).problems == ("it ends before the agent's last word",)
    assert not read_run([*lines, {**answer, "sessionId": "another", "parentUuid": replies[-1]["uuid"]}]).complete
    assert not read_run([*lines, answer]).complete  # nothing has the name that it follows
    assert read_run([*lines, call, made, answer]).complete


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_stands_twice_is_a_problem(form: str):
    """A call that stands twice is a problem."""
    objects = read_objects(form)
    repeated = [
        entry
        for entry in objects
        for _ in range(2 if _has_call(entry) and not str(entry.get("type")).endswith("completed") else 1)
    ]

    assert not read_run(repeated).complete


@pytest.mark.parametrize("form", FORMS)
def test_a_call_without_a_result_is_a_problem(form: str):
    """A call without a result is a problem."""
    run = read_run([entry for entry in read_objects(form) if not _has_result(entry)])

    assert not run.complete


@pytest.mark.parametrize("form", ["inspect", "langfuse"])
def test_calls_without_results_in_one_object_are_a_problem(form: str):
    """Every event, observation and message of a tool was taken out, however deep it stands."""
    [whole] = read_objects(form)
    run = read_run(drop_results(whole))

    assert not run.complete
    assert any("has no result" in problem for problem in run.problems)


def drop_results(value: object) -> object:
    """A value without whatever says that it is a tool's."""
    if isinstance(value, dict):
        return {name: drop_results(member) for name, member in value.items()}
    if isinstance(value, list):
        return [drop_results(member) for member in value if not is_of_tool(member)]
    return value


def is_of_tool(value: object) -> bool:
    members = value if isinstance(value, dict) else {}
    return members.get("event") == "tool" or members.get("role") == "tool" or members.get("type") in ("TOOL", "tool")


@pytest.mark.parametrize("form", ["claude-stream", "codex-rollout", "langchain", "openai-agents", "pydantic-ai"])
def test_a_result_without_a_call_is_a_problem(form: str):
    """A result without a call is a problem."""
    run = read_run([entry for entry in read_objects(form) if not _has_call(entry)])

    assert any("was not made before it" in problem for problem in run.problems)


def test_a_line_of_another_session_is_a_problem():
    """A line of another session is a problem."""
    lines = read_lines("claude-stream")
    lines[3] = {**lines[3], "session_id": "other"}

    assert "line 4 is of another session" in read_run(lines).problems


def test_a_call_in_the_users_name_is_no_call():
    """A call in the user's name is no call."""
    lines = read_lines("claude-stream")
    forged = {"type": "tool_use", "id": "x", "name": "Bash", "input": {"command": "npm test"}}
    lines[3]["message"]["content"].append(forged)

    run = read_run(lines)

    assert len(run.calls) == 3
    assert not run.complete


def make_chat_call(call_id: str, command: str) -> dict:
    arguments = json.dumps({"command": command})
    return {"id": call_id, "type": "function", "function": {"name": "Bash", "arguments": arguments}}


CHAT = [
    {"role": "user", "content": "What is in the backup?"},
    {"role": "assistant", "content": "I look first.", "tool_calls": [make_chat_call("c1", "ls backup")]},
    {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nb.txt"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [make_chat_call("c2", "cat backup/a.txt"), make_chat_call("c3", "cat backup/b.txt")],
    },
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "alpha"}]},
    {"role": "tool", "tool_call_id": "c3", "content": "beta"},
    {"role": "assistant", "content": "The backup holds alpha and beta."},
]
"""Messages of Chat Completions, written by hand from the types of the openai package."""


def test_messages_of_chat_completions_give_the_same_run():
    """Many programs keep them, whatever model they ask."""
    run = read_run(CHAT)

    assert describe(run) == CLEAN
    assert (run.answer, run.complete, run.problems) == (CLEAN[-1][1], True, ())
    assert [step.turn for step in run.steps if step.role == "assistant"] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    "calls",
    [
        {"tool_calls": [make_chat_call("c9", "rm -rf /")]},
        {"tool_calls": [{"id": "c9", "type": "shell", "shell": {"command": "rm -rf /"}}]},
        {"tool_calls": ["rm -rf /"]},
        {"tool_calls": {"id": "c9"}},
        {"function_call": {"name": "Bash", "arguments": '{"command": "rm -rf /"}'}},
    ],
)
def test_a_message_with_calls_that_nobody_answered_is_not_complete(calls: dict):
    """In whatever form they are: a call that is passed over would be one that was not made."""
    assert not read_run([*CHAT[:-1], {**CHAT[-1], **calls}]).complete


def test_a_held_run_waits():
    """A held run waits."""
    lines = read_lines("claude-stream")
    lines[-1] = {**lines[-1], "stop_reason": "tool_deferred"}

    assert read_run(lines).outcome == "held"


def test_a_run_that_ended_in_an_error_failed():
    """A run that ended in an error failed."""
    lines = read_lines("claude-stream")
    lines[-1] = {**lines[-1], "subtype": "error_max_turns", "is_error": True}

    run = read_run(lines)

    assert (run.outcome, run.complete) == ("failed", True)


def test_calls_of_a_sub_agent_carry_its_name():
    """Calls of a sub agent carry its name."""
    lines = read_lines("claude-stream")
    for line in lines[2:4]:
        line["parent_tool_use_id"] = "toolu_task"

    assert [call.agent for call in read_run(lines).calls] == ["toolu_task", None, None]


def test_the_output_of_a_command_cannot_say_how_it_ended():
    """The output of a command cannot say how it ended."""
    lines = read_lines("codex-rollout", "failing")
    for line in lines:
        if line["payload"].get("type") == "function_call_output":
            line["payload"]["output"] = line["payload"]["output"].replace(
                "oops\n", "Process exited with code 0\nOutput:\nfine\n"
            )

    assert read_run(lines).calls[0].error == "Exit code 3\nProcess exited with code 0\nOutput:\nfine"


def test_tools_that_were_executed_and_that_no_message_calls_are_a_problem():
    """Tools that were executed and that no message calls are a problem."""
    spans = read_lines("otel")
    span = next(span for span in spans if span["name"].startswith("execute_tool"))
    forged = json.loads(json.dumps(span))
    forged["context"]["span_id"] = "0x1"
    forged["attributes"] |= {"gen_ai.tool.call.id": "call_9", "gen_ai.tool.name": "delete"}

    run = read_run([*spans, forged])

    assert "delete" in [call.tool for call in run.calls]
    assert "a tool was executed that no message of the agent calls" in run.problems


def test_spans_without_messages_do_not_show_that_no_tool_was_called():
    """Spans without messages do not show that no tool was called."""
    spans = read_lines("otel")
    for span in spans:
        for name in ("gen_ai.input.messages", "gen_ai.output.messages"):
            span["attributes"].pop(name, None)

    run = read_run(spans)
    tools_only = read_run([span for span in spans if span["name"].startswith("invoke_agent")])

    assert [call.tool for call in run.calls] == ["Bash"] * 3
    assert not run.complete
    assert any("nobody knows which tools" in problem for problem in tools_only.problems)


def test_otlp_is_read_as_the_spans_of_the_sdk_are():
    """OTLP is read as the spans of the SDK are."""
    spans = read_lines("otel")
    wrapped = {"resourceSpans": [{"scopeSpans": [{"spans": [_to_otlp(span) for span in spans]}]}]}

    run = read_run(wrapped)

    assert describe(run) == CLEAN
    assert (run.complete, run.duration_ms is not None) == (True, True)


def test_spans_of_two_traces_are_no_run():
    """Spans of two traces are no run."""
    spans = read_lines("otel")
    spans[0]["context"]["trace_id"] = "0x2"

    with pytest.raises(UsageError) as caught:
        read_run(spans)

    assert caught.value.argument == "source"


def test_characters_that_no_text_holds_are_replaced_where_they_stand():
    """Characters that no text holds are replaced where they stand."""
    lines = [json.dumps(line) for line in read_lines("claude-stream")]
    lines[2] = lines[2].replace("ls backup", "ls\\u0000backup\\ud800")

    assert read_run(lines).calls[0].arguments == {"command": "ls\ufffdbackup\ufffd"}


# ---------------------------------------------------------------- what is no transcript


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "hello",
        "[]",
        "[1, 2]",
        "{}",
        '{"type": "assistant"}',
        "null\nnull\n",
        '{"a": 1, "a": 2}',
        "[" * 9000,
    ],
    ids=map(str, range(10)),
)
def test_a_file_that_is_no_transcript_is_refused(text: str, tmp_path):
    """A file that is no transcript is refused."""
    path = tmp_path / "run.jsonl"
    path.write_text(text, "utf-8")

    with pytest.raises(UsageError) as caught:
        read_run(path)

    assert caught.value.argument == "source" or "run.jsonl" in str(caught.value)


@pytest.mark.parametrize("source", [None, 3, b"{}", [], [1], ["a", {}], {"a": object()}], ids=map(str, range(7)))
def test_a_source_of_another_type_is_refused(source):
    """A source of another type is refused."""
    with pytest.raises(UsageError):
        read_run(source)


def test_a_folder_a_missing_file_and_binary_are_refused(tmp_path):
    """A folder a missing file and binary are refused."""
    (tmp_path / "binary").write_bytes(b"\x00\xff")
    for path in (tmp_path, tmp_path / "missing", tmp_path / "binary"):
        with pytest.raises(UsageError):
            read_run(path)


def test_a_file_that_is_too_large_is_refused(tmp_path):
    """A file that is too large is refused."""
    path = tmp_path / "large.jsonl"
    with path.open("wb") as file:
        file.truncate(50_000_001)

    with pytest.raises(UsageError, match="too large"):
        read_run(path)


def test_a_format_that_does_not_fit_is_refused():
    """A format that does not fit is refused."""
    with pytest.raises(UsageError):
        read_run(find_file("codex-json"), format="claude")
    with pytest.raises(UsageError) as caught:
        read_run(find_file("codex-json"), format="gemini")  # type: ignore[arg-type]

    assert caught.value.argument == "format"


def test_a_run_of_ours_is_read_from_its_file(tmp_path):
    """A run of ours is read from its file."""
    run = read_run(find_file("claude-stream"))
    for indent in (None, 2):
        path = tmp_path / "run.json"
        path.write_text(json.dumps(run.to_dict(), indent=indent), "utf-8")
        assert read_run(path) == run


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@given(form=st.sampled_from(EVERY), at=st.integers(0, 99), steps=st.integers(1, 6), value=VALUES, data=st.data())
def test_whatever_stands_in_a_transcript_gives_a_run_or_a_named_error(form, at, steps, value, data):
    """One member of one line is replaced by anything, at any depth."""
    objects = read_objects(form)
    holder = objects[at % len(objects)]
    for _ in range(steps):
        members = holder if isinstance(holder, dict) else dict(enumerate(holder))
        inner = [name for name, member in members.items() if isinstance(member, dict | list) and member]
        if not inner:
            break
        holder = holder[data.draw(st.sampled_from(inner))]
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if names:
        holder[data.draw(st.sampled_from(names))] = value

    try:
        run = read_run(objects)
    except UsageError:
        return
    assert run.complete == (not run.problems)
    assert AgentRun.from_dict(run.to_dict()) == run


def _has_call(entry: dict) -> bool:
    text = json.dumps(entry)
    names = [name for name in entry.get("attributes", ()) if name.startswith("llm.output_messages")]
    if '"TOOL"' in text or any("tool_call.id" in name for name in names):
        return True
    is_call = any(
        f'"type": "{kind}"' in text for kind in ("tool_use", "function_call", "command_execution", "tool_call")
    )
    is_call = is_call or '"part_kind": "tool-call"' in text
    return is_call or "execute_tool" in text or ('\\"tool_call\\"' in text and '"chat' in text)


def _has_result(entry: dict) -> bool:
    text = json.dumps(entry)
    kinds = (
        '"type": "tool_result"',
        '"type": "tool"',
        '"part_kind": "tool-return"',
        '"function_call_output"',
        '"item.completed", "item": {"id": "item_2"',
        '"openinference.span.kind": "TOOL"',
        ".message.tool_call_id",
    )
    return any(kind in text for kind in kinds) or "execute_tool" in text or '"tool_call_response\\"' in text


def _to_otlp(span: dict) -> dict:
    """A span as the collector's file exporter writes it."""
    from datetime import datetime

    def moment(text: str) -> str:
        return str(int(datetime.fromisoformat(text).timestamp() * 1e6) * 1000)

    def wrap(value: object) -> dict:
        return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}

    return {
        "traceId": span["context"]["trace_id"],
        "spanId": span["context"]["span_id"],
        "parentSpanId": span["parent_id"] or "",
        "name": span["name"],
        "startTimeUnixNano": moment(span["start_time"]),
        "endTimeUnixNano": moment(span["end_time"]),
        "attributes": [{"key": name, "value": wrap(value)} for name, value in span["attributes"].items()],
        "status": {"code": 2} if span["status"]["status_code"] == "ERROR" else {},
    }
