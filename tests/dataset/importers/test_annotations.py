"""Exports of Langfuse, LangSmith, MLflow and Phoenix: items as cases, what people said of them as labels."""

from __future__ import annotations

import json
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import Case, Dataset, UsageError
from adjudge.dataset import (
    ImportedLabels,
    import_labels,
    import_langfuse,
    import_langsmith,
    import_mlflow,
    import_phoenix,
    write_cases,
)
from kit import house

EXPORTS = house.ROOT / "tests" / "data" / "exports"

LOAD: dict[str, Any] = {
    "langfuse": import_langfuse,
    "langsmith": import_langsmith,
    "mlflow": import_mlflow,
    "phoenix": import_phoenix,
}

MONDAY = "It left on Monday."


@pytest.fixture(autouse=True)
def work_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def load(tool: str, name: str, **options: Any) -> tuple[list[Case], Dataset]:
    dataset = LOAD[tool](EXPORTS / tool / name, **options)
    return list(dataset), dataset


def read_labels(tool: str, name: str, **options: Any) -> ImportedLabels:
    return import_labels(EXPORTS / tool / name, format=tool, **options)  # type: ignore[arg-type]


def write(name: str, data: Any) -> Path:
    Path(name).write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return Path(name)


def people(imported: ImportedLabels) -> list[tuple[Any, ...]]:
    return [(item.case, item.rater, item.criterion, item.value) for item in imported.labels if item.kind == "person"]


# ---------------------------------------------------------------- Langfuse


def test_an_item_of_langfuse_has_no_answer():
    """Its input is the content, which is noted; the expected output is the reference."""
    cases, dataset = load("langfuse", "dataset-items.json")

    assert [(case.id, case.content, case.reference) for case in cases] == [
        ("i1", "Where is my parcel?", MONDAY),
        ("i2", [{"role": "user", "content": "Hi"}], None),
    ]
    assert cases[0].metadata["topic"] == "delivery"
    assert cases[1].metadata["langfuse"]["status"] == "ARCHIVED"
    assert dataset.notes == {"item without an answer: its input is the content": 2}


def test_an_observation_of_langfuse_is_a_case():
    """Its output is the content, without the message around it; one that ended with an error is a bad row."""
    cases, dataset = load("langfuse", "observations.json", on_bad_row="skip")

    assert [(case.id, case.content) for case in cases] == [("o1", "No.")]
    assert cases[0].task == [{"role": "user", "content": "Can I return it?"}]
    assert "429" in dataset.bad_rows[0].why


def test_the_table_of_traces_of_langfuse_is_read():
    """Cells that are JSON are opened. Nothing says who gave its scores, so none is a label; no output is a bad row."""
    cases, dataset = load("langfuse", "traces.csv", on_bad_row="skip", label_name="correct")

    assert [(case.id, case.content, case.label) for case in cases] == [("t1", MONDAY, None), ("t2", "No.", None)]
    assert cases[0].task == "Where is my parcel?"
    assert cases[0].metadata["langfuse"]["helpfulness"] == "[0.75]"
    assert [(row.line, "has no output" in row.why) for row in dataset.bad_rows] == [(4, True)]
    assert any("'correct'" in note for note in dataset.notes)


def test_a_saved_trace_of_langfuse_has_its_scores():
    """Those of people and of the trace itself are labels; an evaluator's, and one of an observation within, are not."""
    (case,), _ = load("langfuse", "trace.json", label_name="correct")

    assert (case.id, case.content, case.label, case.labels) == ("t1", MONDAY, True, {"u-ann": True})


@pytest.mark.parametrize("name", ["scores-v2.json", "scores.csv"])
def test_scores_of_langfuse_are_labels(name):
    """What a person annotated is a person's; the score of the name asked for is of the case as a whole."""
    imported = read_labels("langfuse", name, label_name="correct", label_map={"rude": False})
    ann, bob = ("Ann", "Bob") if name.endswith("csv") else ("u-ann", "u-bob")

    assert people(imported) == [("t1", ann, None, True), ("t2", ann, None, False), ("t2", bob, "tone", False)]
    assert {(item.criterion, item.value) for item in imported.labels if item.kind == "model"} >= {("helpfulness", 0.75)}


def test_a_category_of_langfuse_is_its_word():
    """Beside it the older API has a number, 0 where no category has one; taken for a label it would be a guess."""
    with pytest.raises(UsageError, match=r"'rude'.*label_map"):
        read_labels("langfuse", "scores-v2.json", label_name="tone")
    with pytest.raises(UsageError, match=r"row 2: .*'rude'"):
        read_labels("langfuse", "scores-v3.json")


def test_scores_of_the_newer_api_are_labels():
    """They say what they are of: a trace or an observation."""
    imported = read_labels("langfuse", "scores-v3.json", label_map={"rude": False})

    assert people(imported) == [("t1", "u-ann", "correct", True), ("o1", "u-bob", "tone", False)]


# ---------------------------------------------------------------- LangSmith


def test_an_example_of_langsmith_has_no_answer():
    """Its inputs are the content, its outputs the reference."""
    cases, dataset = load("langsmith", "examples.jsonl")

    assert [(case.content, case.reference) for case in cases] == [
        ("Where is my parcel?", MONDAY),
        ([{"role": "user", "content": "Hi"}], None),
    ]
    assert dataset.notes == {"example without an answer: its input is the content": 2}


def test_a_run_of_langsmith_is_a_case():
    """What has one member is that member, the only choice of a model its text; an error is a bad row."""
    cases, dataset = load("langsmith", "runs.jsonl", on_bad_row="skip")

    assert [(case.content, case.task) for case in cases] == [
        (MONDAY, "Where is my parcel?"),
        ("No.", [{"role": "user", "content": "Can I return it?"}]),
    ]
    assert cases[0].metadata["topic"] == "delivery"
    assert "RateLimitError" in dataset.bad_rows[0].why


def test_the_table_of_an_experiment_of_langsmith_is_read():
    """Inputs, outputs and references are columns; what evaluators said is kept, and no label."""
    (case,), _ = load("langsmith", "experiment.csv")

    assert (case.content, case.task, case.reference, case.label) == (MONDAY, "Where is my parcel?", MONDAY, None)
    assert case.metadata["langsmith"]["feedback.exact"] == "True"


def test_feedback_of_langsmith_is_labels():
    """What was given in the app is a person's; what came by the API may be anybody's, and is not."""
    options: Any = {"label_name": "correctness", "label_map": {"1": True, "0": False}}
    imported = read_labels("langsmith", "feedback.jsonl", **options)
    run, other, ann = (f"00000000-0000-0000-0000-0000000000{end}" for end in ("0b", "0c", "1f"))

    assert people(imported) == [(run, ann, None, True), (other, ann, None, False)]
    assert [item.criterion for item in imported.labels if item.kind == "model"] == ["thumbs"]
    assert sum(imported.notes.values()) == 2  # a model's 0.5, and the tone, which the map does not name


def test_a_word_goes_before_its_number_with_a_map():
    """Without a map the number is the label: a word is never guessed."""
    feedback = {"run_id": "r", "key": "tone", "score": 0, "value": "Fine", "feedback_source": {"type": "app"}}
    path = write("f.json", [feedback])

    assert [item.value for item in import_labels(path, format="langsmith").labels] == [0]
    assert [item.value for item in import_labels(path, format="langsmith", label_map={"fine": True}).labels] == [True]


# ---------------------------------------------------------------- MLflow


@pytest.mark.parametrize("name", ["traces.jsonl", "frame.csv", "frame.jsonl"])
def test_traces_of_mlflow_are_cases(name):
    """What the root span gave is the content; feedback of people is labels; one that two answer apart is unresolved."""
    (chat, answer), dataset = load("mlflow", name, on_bad_row="skip", label_name="correct")

    assert (chat.content, chat.task) == ("Hello.", [{"role": "user", "content": "Hi"}])
    assert (answer.task, answer.reference) == ("Where is my parcel?", "Monday.")
    assert (answer.label, answer.labels) == (None, {"ann": True, "bob": False})
    assert [row.why.partition(" ended with ")[2] for row in dataset.bad_rows] == ["'ERROR'; run it again"]


def test_assessments_of_mlflow_are_labels():
    """Also of a trace that is no case. What was said anew counts once, and an expectation is none."""
    imported = read_labels("mlflow", "traces.jsonl", label_name="correct2", label_map={"yes": True, "no": False})
    names = [item.criterion for item in imported.labels]

    assert [value for _, _, criterion, value in people(imported) if criterion is None] == [True]
    assert "expected_response" not in names
    assert {item.rater for item in imported.labels if item.kind == "model"} == {"len", "openai:/gpt"}
    assert next(item for item in imported.labels if item.rater == "ann" and item.comment).comment == "It did."
    assert all(item.at is not None for item in imported.labels)


@pytest.mark.parametrize("name", ["records.jsonl", "dataset.json"])
def test_records_of_mlflow_are_cases(name):
    """With outputs these are the content, without them the inputs, which is noted."""
    (question, answer), dataset = load("mlflow", name)

    assert (question.content, question.reference, question.task) == ("Where is my parcel?", MONDAY, None)
    assert (answer.content, answer.reference) == ("No.", {"expected_facts": ["30 days"]})
    assert question.metadata["topic"] == "delivery"
    assert dataset.notes == {"record without an answer: its input is the content": 1}


def test_a_table_with_objects_of_python_is_refused():
    """Pandas writes them into CSV as Python does, which is no JSON; the remedy is named."""
    for tool, name in (("mlflow", "records.csv"),):
        with pytest.raises(UsageError, match=r"'inputs'.*lines=True"):
            load(tool, name)


def test_a_trace_without_its_spans_is_refused():
    """The preview in its head is cut off, and half an answer is none."""
    path = write("t.json", {"info": {"trace_id": "t", "state": "OK", "response_preview": "It le"}, "data": {}})
    with pytest.raises(UsageError, match="spans"):
        list(import_mlflow(path))


# ---------------------------------------------------------------- Phoenix


@pytest.mark.parametrize("name", ["spans.json", "spans.jsonl", "spans.csv", "spans-page.json"])
def test_spans_of_phoenix_are_cases(name):
    """A span whose parent is in the file is part of that one's case, wherever it stands."""
    cases, dataset = load("phoenix", name)

    assert {case.id: (case.task, case.content) for case in cases} == {
        "0000000000000003": ("Can I return it?", "No."),
        "0000000000000001": ("Where is my parcel?", MONDAY),
    }
    assert list(dataset.notes.values()) == [1]


def test_spans_alone_are_cases_of_their_own():
    """Where the parent was not exported, as with a query for the calls of a model."""
    spans = json.loads((EXPORTS / "phoenix" / "spans.json").read_text())
    (case,) = import_phoenix(write("s.json", [span for span in spans if span["name"] == "llm"]))

    assert (case.content, case.task) == (MONDAY, [{"role": "user", "content": "Where is my parcel?"}])


@pytest.mark.parametrize("parents", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "b", "b": "c", "c": "a"}])
def test_spans_that_hold_each_other_are_not_lost(parents):
    """None of them is part of a case, and what is below them is part of one's."""
    attributes = {"input.value": "Why?", "output.value": "Because."}
    spans = [
        {"context": {"span_id": span}, "parent_id": parent, "attributes": attributes}
        for span, parent in (*parents.items(), ("below", "a"), ("further", "below"))
    ]
    dataset = import_phoenix(write("s.json", spans))

    assert [case.id for case in dataset] == list(parents)
    assert list(dataset.notes.values()) == [2]


def test_spans_of_a_parquet_file_are_read(require):
    """As a frame writes them."""
    require("pyarrow", find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    from pyarrow import Table, parquet

    columns = {"context.span_id": ["a"], "parent_id": [None], "attributes.input.value": ["Why?"]}
    parquet.write_table(Table.from_pydict(columns | {"attributes.output.value": ["So."]}), "s.parquet")
    (case,) = import_phoenix("s.parquet")

    assert (case.id, case.content, case.task) == ("a", "So.", "Why?")


@pytest.mark.parametrize("name", ["annotations.json", "annotations.jsonl", "annotations.csv", "annotations-page.json"])
def test_annotations_of_phoenix_are_labels(name):
    """Joined to the spans by their ids. With a map the label counts, without one the score."""
    label_map = {"correct": True, "incorrect": False}
    imported = read_labels("phoenix", name, label_name="correctness", label_map=label_map)
    plain = read_labels("phoenix", name, label_name="correctness")
    dataset = import_phoenix(EXPORTS / "phoenix" / "spans.json").with_labels(imported.labels)

    assert {case.id: case.label for case in dataset} == {"0000000000000003": False, "0000000000000001": True}
    assert sorted(value for *_, name, value in people(plain) if name is None) == [0.0, 1.0]
    assert list(imported.notes.values()) == [1]  # the tone, which the map does not name


@pytest.mark.parametrize("name", ["dataset.json", "examples.json", "dataset.csv"])
def test_examples_of_phoenix_are_cases(name):
    """Their input is the content, their output the reference."""
    (case,), dataset = load("phoenix", name)

    assert (case.content, case.reference, case.metadata["topic"]) == ("Where is my parcel?", MONDAY, "delivery")
    assert dataset.notes == {"example without an answer: its input is the content": 1}


# ---------------------------------------------------------------- all of them


def test_annotations_alone_are_no_cases():
    """The message says what to do with them."""
    for tool, name in (("langfuse", "scores.csv"), ("langsmith", "feedback.jsonl"), ("phoenix", "annotations.csv")):
        with pytest.raises(UsageError, match=rf"adjudge dataset labels FILE OUT --from {tool}"):
            load(tool, name)


def test_a_field_is_taken_from_where_it_is_said_to_be():
    """As with other data sets; what is mapped goes before what the importer finds."""
    path = write(
        "r.jsonl",
        '{"id": "r", "run_type": "chain", "inputs": {"q": "Why?", "lang": "en"}, "outputs": {"a": "x", "b": "y"}}',
    )
    (whole,) = import_langsmith(path)
    (part,) = import_langsmith(path, fields={"content": "outputs.b", "task": "inputs.q"})

    assert (whole.content, whole.task) == ({"a": "x", "b": "y"}, {"q": "Why?", "lang": "en"})
    assert (part.content, part.task) == ("y", "Why?")


def test_an_annotation_that_was_not_asked_for_is_noted():
    """So that nobody takes a data set for one without labels."""
    _, dataset = load("langfuse", "trace.json")

    assert [(name, "--label-name" in name) for name in dataset.notes] == [(next(iter(dataset.notes)), True)]


def test_people_without_a_name_are_told_apart():
    """As one, the later would hide the earlier."""
    annotation = {"annotator_kind": "HUMAN", "name": "ok", "span_id": "s"}
    rows = [annotation | {"result": {"score": score}} for score in (1, 0)]
    imported = import_labels(write("a.json", rows), format="phoenix", label_name="ok")

    assert [(item.rater, item.value) for item in imported.labels] == [("annotator", 1), ("annotator#2", 0)]


def test_what_a_person_said_anew_counts():
    """By its time: tools export the latest first."""
    score = {"traceId": "t", "name": "ok", "source": "ANNOTATION", "dataType": "BOOLEAN", "authorUserId": "ann"}
    scores = [
        score | {"value": 1, "timestamp": "2026-11-20T13:00:00Z"},
        score | {"value": 0, "timestamp": "2026-11-20T12:00:00Z"},
    ]
    path = write("t.json", {"id": "t", "input": "x", "output": "y", "scores": scores})
    (case,) = import_langfuse(path, label_name="ok")
    (joined,) = Dataset.of([Case(id="t", content="y")]).with_labels(
        import_labels(path, format="langfuse", label_name="ok").labels
    )

    assert case.label is joined.label is True


def test_a_truth_keeps_its_name():
    """A text is unwrapped, but true says nothing without what it is about."""
    rows = [
        {"id": str(at), "input": "x", "output": output} for at, output in enumerate([{"approved": True}, {"a": "y"}])
    ]

    assert [case.content for case in import_langfuse(write("t.json", rows))] == [{"approved": True}, "y"]


def test_an_annotation_of_a_passage_is_not_of_the_span():
    """Phoenix lets people annotate each document that was retrieved."""
    annotation = {"annotator_kind": "HUMAN", "name": "relevant", "span_id": "s", "result": {"score": 1}}
    path = write("a.json", [annotation | {"document_position": 0}])

    assert [item.case for item in import_labels(path, format="phoenix").labels] == ["s, document 0"]


def test_ids_that_stand_twice_are_bad_rows():
    """As in every data set."""
    row = {"id": "t", "input": "x", "output": "y"}
    dataset = import_langfuse(write("t.json", [row, row]), on_bad_row="skip")

    assert [case.id for case in dataset] == ["t"]
    assert "is already on row 1" in dataset.bad_rows[0].why


@pytest.mark.parametrize("tool", LOAD)
@pytest.mark.parametrize("data", ["[", "3", '"x"', "[3]", "[null]", "{}", '[{"a": 1}]', '{"data": {}}', "[" * 300])
def test_what_is_no_export_is_refused(tool, data):
    """With what it has in place of what is needed."""
    path = write("x.json", data)
    with pytest.raises(UsageError, match=r"x\.json"):
        list(LOAD[tool](path))


def test_half_a_character_within_a_text_is_a_bad_row():
    """An answer that is JSON in a text is looked at as the rest of the file is."""
    attributes = {"output.value": '{"answer": "\\ud800"}', "output.mime_type": "application/json", "input.value": "x"}
    path = write("s.json", [{"context": {"span_id": "a"}, "attributes": attributes}])
    with pytest.raises(UsageError, match="surrogate"):
        list(import_phoenix(path))


def test_what_nests_deeper_than_the_file_seemed_to_is_a_bad_row():
    """An answer that is JSON in a text is read to the same depth as a file, and then stands in a case."""
    attributes = {"output.value": "[" * 200 + "]" * 200, "output.mime_type": "application/json", "input.value": "x"}
    path = write("s.json", [{"context": {"span_id": "a"}, "attributes": attributes}])
    dataset = import_phoenix(path, on_bad_row="skip")

    assert list(dataset) == []
    assert "levels deep" in dataset.bad_rows[0].why


def test_hostile_words_are_shown_and_never_run():
    """Control characters of an annotation do not reach a message, and nothing in one is opened."""
    annotation = {
        "annotator_kind": "HUMAN",
        "name": "\x1b[31mok",
        "span_id": "s",
        "result": {"label": "\x1b]8;;http://127.0.0.1"},
    }
    path = write("a.json", [annotation])
    with pytest.raises(UsageError) as caught:
        import_labels(path, format="phoenix")
    imported = import_labels(path, format="phoenix", label_name="other")

    assert "\x1b" not in str(caught.value)
    assert not any("\x1b" in note for note in imported.notes)


ODD = st.sampled_from(
    [None, True, 0, -1.5, 10**30, "", "x", "\x00", "{", "2026-99-99", [], {}, [None], [[]], {"a": {}}, {"id": 3}]
)


def list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, item in inner for place in list_places(item, (*path, key))]


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("langfuse", "trace.json"),
        ("langfuse", "scores-v3.json"),
        ("langfuse", "dataset-items.json"),
        ("langsmith", "runs.jsonl"),
        ("langsmith", "feedback.jsonl"),
        ("mlflow", "traces.jsonl"),
        ("mlflow", "dataset.json"),
        ("phoenix", "spans.json"),
        ("phoenix", "annotations.json"),
        ("phoenix", "examples.json"),
    ],
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
@pytest.mark.slow_table
def test_a_damaged_export_gives_cases_or_bad_rows(tool, name, data):
    """Whatever stands in place of what should be there: what is read can be written, and nothing else is raised."""
    text = (EXPORTS / tool / name).read_text("utf-8")
    whole = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)
    damaged = deepcopy(whole)
    for place in data.draw(st.lists(st.sampled_from(list_places(whole)), min_size=1, max_size=3)):
        held = damaged
        try:
            for step in place[:-1]:
                held = held[step]
            held[place[-1]] = deepcopy(data.draw(ODD))
        except (TypeError, KeyError, IndexError):  # what stood there was replaced before
            continue
    path = write("damaged.json", damaged)
    Path("out.jsonl").unlink(missing_ok=True)
    dataset = LOAD[tool](path, on_bad_row="skip", label_name="correct", label_map={"a": True})
    write_cases("out.jsonl", dataset)
    import_labels(path, format=tool, on_bad_row="skip")
