"""Test cases of promptfoo and samples of Inspect as cases: what becomes what, and what is only kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adjudge import UsageError
from adjudge.dataset import import_inspect, import_promptfoo
from kit.judges import names

CONFIG = """
prompts: ["Answer: {{question}}"]
providers: [openai:gpt-5-mini]
defaultTest:
  vars: {tone: polite}
  assert: [{type: factuality, value: "{{gold}}"}]
tests:
  - description: sums
    vars: {question: What is 2+2?, gold: "4"}
    assert: [{type: llm-rubric, value: Is polite.}, {type: latency, threshold: 5}]
    metadata: {topic: maths}
  - vars: {question: [One?, Two?], gold: x}
    providerOutput: An answer.
"""


@pytest.fixture(name="folder")
def work_here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, data: object) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    Path(name).write_text(text, "utf-8")
    return name


def read_error(load, name: str, data: object, **options) -> str:
    with pytest.raises(UsageError) as caught:
        list(load(write(name, data), **options))
    return str(caught.value)


# ---------------------------------------------------------------- promptfoo


def test_a_configuration_gives_its_tests(folder):
    """With what it adds to each; lists of a variable are tests of their own."""
    dataset = import_promptfoo(write("promptfooconfig.yaml", CONFIG))
    first, second, third = dataset

    assert (first.id, second.id, third.id) == ("1", "2.1", "2.2")
    assert first.content == {"tone": "polite", "question": "What is 2+2?"}
    assert (first.task, first.reference) == (None, "4")
    assert (second.content, second.task) == ("An answer.", {"tone": "polite", "question": "One?"})
    assert first.metadata["topic"] == "maths"
    assert first.rubric is None
    assert [item.description for item in second.rubric.criteria] == [
        "States nothing that disagrees with the reference; saying more or less than it is no matter."
    ]
    assert first.metadata["promptfoo"]["description"] == "sums"
    assert [item["type"] for item in first.metadata["promptfoo"]["assert"]] == ["factuality", "llm-rubric", "latency"]
    assert set(dataset.notes.values()) == {1}
    assert len(dataset.notes) == 4
    assert names(list(dataset.notes), "'factuality' not", "'llm-rubric' not", "'latency' not", "without an answer")


def test_a_known_answer_does_not_stand_in_what_is_judged(folder):
    """A judge that reads it as part of the content would find it there."""
    assert all(
        "4" not in str(case.content) + str(case.task) for case in [*import_promptfoo(write("c.yaml", CONFIG))][1:]
    )


def test_variables_can_be_mapped(folder):
    """The one that is judged, and any other part."""
    tests = [{"vars": {"question": "Q", "answer": {"text": "A"}, "best": "B", "ok": "true"}}]
    (case,) = import_promptfoo(
        write("tests.json", tests), fields={"content": "answer.text", "reference": "best", "label": "ok"}
    )

    assert (case.content, case.task, case.reference, case.label) == ("A", "Q", "B", True)


def test_a_table_of_tests_is_read(folder):
    """Columns with two underscores are promptfoo's own."""
    write(
        "tests.csv",
        "question,__expected1,__expected2,__description,__threshold,__metadata:tags[],__providerOutput\n"
        'Why?,Because,"contains-any: a,b",d,0.8,"x,y\\,z",So.\n'
        "Http?,http://x,similar(0.7): near,,,,\n",
    )
    first, second = import_promptfoo("tests.csv")

    assert (first.content, first.task, first.reference) == ("So.", "Why?", "Because")
    assert first.metadata["tags"] == ["x", "y,z"]
    assert first.metadata["promptfoo"] == {
        "description": "d",
        "threshold": "0.8",
        "assert": [{"type": "equals", "value": "Because"}, {"type": "contains-any", "value": "a,b"}],
    }
    assert second.reference == "http://x"
    assert second.metadata["promptfoo"]["assert"][1] == {"type": "similar", "value": "near", "threshold": 0.7}


def test_tests_may_stand_in_other_files(folder):
    """Those that a configuration names, one or several or by a pattern, below its folder."""
    Path("more").mkdir()
    write("more/a.jsonl", '{"vars": {"q": "A"}}\n')
    write("more/b.yaml", "- vars: {q: B}\n")
    write("c.csv", "q\nC\n")
    for tests, contents in (("file://c.csv", "C"), (["file://more/*", "c.csv", {"vars": {"q": "D"}}], "ABCD")):
        dataset = import_promptfoo(write("p.yaml", json.dumps({"tests": tests})))
        assert [case.content for case in dataset] == list(contents)


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ("file://../out.yaml", "are outside the configuration's folder"),
        ("file:///etc/passwd.yaml", "are outside the configuration's folder"),
        ("file://link.csv", "are outside the configuration's folder"),
        ("file://make.py:create", "are made by code or elsewhere … export them to a file first"),
        ("file://make.js", "are made by code or elsewhere"),
        ("https://docs.google.com/x", "are made by code or elsewhere"),
        ("huggingface://datasets/x", "are made by code or elsewhere"),
        ("file://none/*.csv", "no file fits"),
        ("file:///etc/*.csv", "no file fits"),
        ("file://../*.csv", "'..' among its folders"),
        ("file://circle.csv", "circle.csv"),
        ("file://pipe.csv", "pipe.csv … regular file"),
        ("file://gone.csv", "No such file or directory"),
        ([{"path": "file://make.py"}], "are made by code"),
        ([7], "a test … a mapping … got 7"),
        ([{"path": "file://../out.csv"}], "are outside the configuration's folder"),
        ("file://sheet.xlsx#First", "are a spreadsheet … save it as CSV"),
        ([{"vars": 7}], "'vars' of a test … a mapping … got 7"),
        ([{"vars": "../out.yaml"}], "are outside the configuration's folder"),
        ([{"vars": ["pipe.csv"]}], "pipe.csv … regular file"),
        ([{"options": "fast"}], "'options' of a test … a mapping … got 'fast'"),
        ([{"vars": {}}], "neither variables nor an answer (providerOutput), so nothing can be judged"),
        ([{"vars": {"a": ["x"] * 99, "b": ["y"] * 99}}], "make 9,801 tests … at most 1,000"),
    ],
)
def test_nothing_is_executed_and_nothing_outside_is_read(folder, tests, message):
    """A configuration that somebody else wrote is data."""
    write(str(folder.parent / "out.yaml"), "- vars: {q: secret}\n")
    write(str(folder.parent / "out.csv"), "q\nsecret\n")
    Path("link.csv").symlink_to(folder.parent / "out.csv")
    Path("circle.csv").symlink_to("circle.csv")
    os.mkfifo("pipe.csv")

    assert names(read_error(import_promptfoo, "p.json", {"tests": tests}), *message.split(" … "))


@pytest.mark.parametrize(
    ("pattern", "contents"),
    [
        ("*.yaml", "A"),
        ("sub/*.yaml", "B"),
        ("*/*.yaml", "B"),
        ("sub/deep/?.yaml", "C"),
        ("**/*.yaml", "ABC"),
        ("**/**/*.yaml", "ABC"),
        ("**/deep/[a-c].yaml", "C"),
        ("**/deep/**/c.yaml", "C"),
        ("su*/**/*.yaml", "BC"),
        ("./**.yaml", "A"),
    ],
)
def test_a_pattern_names_the_files_that_it_fits(folder, pattern, contents):
    """In the order of their paths; ``**`` stands for any number of folders, none included."""
    Path("sub/deep").mkdir(parents=True)
    for name, content in (("a.yaml", "A"), ("sub/b.yaml", "B"), ("sub/deep/c.yaml", "C")):
        write(name, [{"vars": {"q": content}}])

    dataset = import_promptfoo(write("suite.json", {"tests": f"file://{pattern}"}))
    assert [case.content for case in dataset] == list(contents)


def test_variables_in_files_may_be_named_by_a_pattern(folder):
    """Of two files with one variable, the one that is named last counts, however often it was named before."""
    for name, members in (("a.yaml", {"q": "A", "r": "A"}), ("b.yaml", {"q": "B"})):
        write(name, members)
    tests = [{"vars": "*.yaml"}, {"vars": ["b.yaml", "a.yaml"]}, {"vars": ["a.yaml", "b.yaml", "./a.yaml"]}]

    dataset = import_promptfoo(write("suite.json", {"tests": tests}))
    assert [case.content for case in dataset] == [{"q": "B", "r": "A"}, {"q": "A", "r": "A"}, {"q": "A", "r": "A"}]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("*/../" * 10 + "x*", "'..' among its folders … without it"),
        ("**/" * 30 + "x*", "no file fits … name the files"),
        ("*" * 5_000, "longer than 4,096 characters … name the files"),
    ],
)
@pytest.mark.parametrize("tests", ["file://PATTERN", [{"vars": "PATTERN"}]])
def test_a_pattern_that_fits_nothing_has_an_end(folder, pattern, message, tests):
    """Each part of it would be multiplied by the folders."""
    for number in range(8):
        Path("sub", *map(str, range(number)), "wide").mkdir(parents=True)
    suite = json.dumps({"tests": tests}).replace("PATTERN", pattern)

    assert names(read_error(import_promptfoo, "p.json", suite), *message.split(" … "))


def test_a_test_that_is_none_can_be_skipped(folder):
    """Named by its number."""
    dataset = import_promptfoo(write("t.json", [{"vars": {"q": "A"}}, 7, {"vars": {"q": "B"}}]), on_bad_row="skip")

    assert [(case.id, case.content) for case in dataset] == [("1", "A"), ("3", "B")]
    assert [row.where for row in dataset.bad_rows] == ["t.json, test 2"]


def test_what_a_variable_names_is_not_read(folder):
    """It is counted."""
    dataset = import_promptfoo(write("t.json", [{"vars": {"q": "file://image.jpg"}}]))

    assert [case.content for case in dataset] == ["file://image.jpg"]
    assert [number for note, number in dataset.notes.items() if "file" in note and "not read" in note] == [1]


def test_what_is_noted_has_an_end(folder):
    """A file may name a new kind of assertion in every test."""
    lines = [{"vars": {"q": number}, "assert": [{"type": f"kind-{number}"}]} for number in range(300)]
    dataset = import_promptfoo(write("t.jsonl", "\n".join(map(json.dumps, lines))))

    assert len(list(dataset)) == 300
    assert (len(dataset.notes), sum(dataset.notes.values())) == (101, 600)


@pytest.mark.parametrize("data", ["{", "prompts: [x]", "7", "tests: x\ntests: y", "- !!python/name:os.system x"])
def test_what_is_no_configuration_is_an_error(folder, data):
    """With the file."""
    assert read_error(import_promptfoo, "p.yaml", data).startswith("p.yaml")


# ---------------------------------------------------------------- Inspect

SAMPLE = {"input": "Capital of France?", "target": "B", "choices": ["Rome", "Paris"], "id": 7, "metadata": {"level": 1}}


def test_a_sample_is_a_case(folder):
    """Without an answer its input is the content, and that is counted."""
    dataset = import_inspect(write("d.jsonl", SAMPLE | {"setup": "s"}))
    (case,) = dataset

    assert case.content == {"input": "Capital of France?", "choices": {"A": "Rome", "B": "Paris"}}
    assert (case.id, case.reference, case.task) == ("7", "B", None)
    assert case.metadata == {"level": 1, "inspect": {"setup": "s"}}
    [(note, number)] = dataset.notes.items()
    assert number == 1
    assert names(note, "without an answer", "input")


def test_an_answer_beside_the_sample_can_be_named(folder):
    """Then the input is the task."""
    dataset = import_inspect(write("d.json", [SAMPLE | {"answer": "Paris"}]), fields={"content": "answer"})
    (case,) = dataset

    assert (case.content, case.reference) == ("Paris", "B")
    assert case.task == {"input": "Capital of France?", "choices": {"A": "Rome", "B": "Paris"}}
    assert (case.metadata, dataset.notes) == ({"level": 1}, {})


def test_samples_in_a_table_are_read(folder):
    """Choices between commas, metadata as JSON, empty cells as nothing."""
    write("d.csv", 'input,target,choices,metadata,id\nWhy?,A,"x, y","{""k"": 1}",\nHow?,,,,h\n')
    first, second = import_inspect("d.csv")

    assert first.content == {"input": "Why?", "choices": {"A": "x", "B": "y"}}
    assert first.metadata == {"k": 1}
    assert (second.content, second.id, second.reference, second.metadata) == ("How?", "h", None, {})


def test_messages_stay_messages(folder):
    """As the input may be."""
    messages = [{"role": "user", "content": "Why?"}]
    (case,) = import_inspect(write("d.jsonl", {"input": messages, "target": ["a", "b"]}))

    assert (case.content, case.reference) == (messages, ["a", "b"])


def log(*samples: dict) -> dict:
    return {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}


def output(content: object) -> dict:
    return {"model": "m", "choices": [{"message": {"role": "assistant", "content": content}, "stop_reason": "stop"}]}


def test_a_log_has_the_answers(folder):
    """The answer is the content and the input the task; scores are kept and are no labels."""
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Paris"}]
    scores = {"match": {"value": "C", "answer": "Paris"}}
    samples = [
        {"id": 1, "epoch": 1, "input": "Q", "target": "T", "output": output("plain"), "scores": scores},
        {"id": 1, "epoch": 2, "input": "Q", "target": "T", "output": output(parts)},
        {"id": 2, "epoch": 1, "input": "Q", "target": "", "output": {"completion": ""}},
    ]
    first, second, third = import_inspect(write("log.json", log(*samples)))

    assert [case.id for case in (first, second, third)] == ["1, epoch 1", "1, epoch 2", "2, epoch 1"]
    assert [case.content for case in (first, second, third)] == ["plain", "Paris", ""]
    assert (first.task, first.reference, third.reference) == ("Q", "T", None)
    assert first.metadata["inspect"]["scores"] == scores
    assert first.label is None
    assert first.labels == {}


def test_a_sample_of_a_log_without_an_answer_is_a_bad_row(folder):
    """Its input is not judged in the place of an answer that never came."""
    samples = [{"id": 1, "input": "Q", "target": "T", "output": {"choices": []}}, {"id": 2, "input": "Q", "error": "e"}]
    dataset = import_inspect(write("log.json", log(*samples)), on_bad_row="skip")

    assert list(dataset) == []
    first, second = (row.why for row in dataset.bad_rows)
    assert names(first, "sample 1", "no answer", "cut off")
    assert names(second, "sample 2", "an error (e)", "run it again")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("d.json", {"eval": {}}, "d.json … no samples … a data set of Inspect"),
        ("d.json", "{", "d.json is not JSON"),
        ("d.json", [7], "d.json, sample 1 … an object … 7"),
        ("d.jsonl", '{"target": "x"}', "d.jsonl, sample 1 … no 'input' … it has 'target'"),
        ("d.jsonl", '{"input": "x"}\n{', "d.jsonl, sample 2 … line 2 … not a line of JSON"),
        ("d.jsonl", '{"input": "x", "metadata": 7}', "metadata … an object … 7"),
        ("d.csv", "input,metadata\nx,{\n", "the metadata are not JSON"),
        ("d.eval", "PK", "d.eval is no packed log (File is not a zip file)"),
    ],
)
def test_what_is_no_sample_is_an_error(folder, name, data, message):
    """With its number and the remedy."""
    assert names(read_error(import_inspect, name, data), *message.split(" … "))
