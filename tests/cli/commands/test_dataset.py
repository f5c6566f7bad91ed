"""``adjudge dataset``: what is counted, what is written, and what the exit status says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adjudge import Case, open_dataset
from kit import cli, house
from kit.cli import Line
from kit.judges import names

TABLE = "qid,question,answer,gold,ok\n1,Why?,Because,x,true\n2,How?,,y,FALSE\n3,Who?,A\n1,When?,B,z,\n"
FIELDS = ("--content", "answer", "--reference", "gold", "--id", "qid", "--label", "ok", "--task", "question")


@pytest.fixture(name="line")
def make_line(capsys, monkeypatch, tmp_path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    Path("answers.csv").write_text(TABLE, "utf-8")
    return Line(capsys)


def test_the_log_names_options(line: Line, caplog: pytest.LogCaptureFixture):
    """What the library says of arguments of Python, as somebody at a shell gives them; repeats are no bad rows."""
    Path("t.csv").write_text("question,answer\nWhy?,No.\nWhen?,No.\n", "utf-8")
    ran = line("dataset", "check", "t.csv")
    (message,) = [record.getMessage() for record in caplog.records]

    assert (ran.status, "2 cases" in ran.out) == (0, True)
    assert names(message, "--content takes another one", "'question' becomes metadata", "--task question")
    assert "fields" not in message


def test_check_counts_cases_parts_and_labels(line: Line):
    """And names every row that is none; the status says that there are some."""
    ran = line("dataset", "check", "answers.csv", *FIELDS)

    assert ran.status == 1
    assert names(ran.out.splitlines()[0], "answers.csv", "2 cases", "1 with empty content")
    words = [text.split() for text in ran.out.splitlines()]
    assert ["reference", "2"] in words
    assert ["label", "true", "1"] in words
    assert "bad row: answers.csv, line 4: 3 cells under 5 columns" in ran.out
    assert "bad row: answers.csv, line 5: the id '1' is already on line 2" in ran.out
    assert ran.out.splitlines()[-1] == "bad rows: 2"


def test_check_writes_one_document(line: Line):
    """With the same figures."""
    ran = line("dataset", "check", "answers.csv", *FIELDS, "--json")

    assert (ran.status, ran.err) == (1, "")
    assert ran.document == {
        "schema": "adjudge/dataset-check/1",
        "name": "answers.csv",
        "cases": 2,
        "empty_contents": 1,
        "with": {"reference": 2, "task": 2, "context": 0, "label": 2, "labels": 0, "group": 0, "metadata": 0},
        "labels": {"true": 1, "false": 1},
        "other_labels": 0,
        "number_labels": None,
        "bad_rows": 2,
        "first_bad_rows": [
            {
                "where": "answers.csv, line 4",
                "line": 4,
                "why": "3 cells under 5 columns; put quotes around a cell that holds a separator",
            },
            {
                "where": "answers.csv, line 5",
                "line": 5,
                "why": "the id '1' is already on line 2; give each row an id of its own",
            },
        ],
        "notes": {},
    }


def test_many_different_labels_are_counted_together(line: Line):
    """A scale with a thousand steps is one line, with its ends."""
    lines = [json.dumps({"content": str(number), "label": number / 10}) for number in range(50)]
    Path("scale.jsonl").write_text("\n".join(lines), "utf-8")
    ran = line("dataset", "check", "scale.jsonl")

    assert (ran.status, ran.err) == (0, "")
    assert "other labels  30" in ran.out
    assert "labels that are numbers: 50, from 0 to 4.9" in ran.out


def test_hostile_text_reaches_no_terminal_raw(line: Line):
    """Neither from a header nor from a row."""
    hostile = cli.ESCAPES.replace("\x00", "")
    Path("h.csv").write_text(f"content,{hostile}\nx\n", "utf-8")
    Path("h.jsonl").write_text(
        json.dumps({"content": "x", "label": hostile}) + "\n" + json.dumps({hostile: 1}), "utf-8"
    )
    for name in ("h.csv", "h.jsonl"):
        ran = line("dataset", "check", name, "--label", "")
        assert not cli.HIDDEN.search(ran.out + ran.err)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["gone.jsonl"], ("cannot read gone.jsonl", "No such file", "name a file")),
        (["texts.csv"], ("texts.csv, line 1", "no column is the content", "say which of", "--content")),
        (["both.csv"], ("both.csv, line 1", "'output' and 'answer' may each be the content", "--content")),
        (["answers.csv", "--content", "anser"], ("column 'anser'", "did you mean 'answer'?")),
        (["empty.jsonl"], ("empty.jsonl", "no case")),
        (["answers.csv", "--from", "xls"], ("--from", "one of jsonl, csv", "xls")),
        (["answers.csv", "--field", "content"], ("--field 'content'", "like content.a=FIELD")),
        (["answers.csv", "--content", "answer", "--field", "content=gold"], ("--field 'content=gold'", "twice")),
        (["answers.csv", "--field", "nothing=gold"], ("a case", "no 'nothing'")),
    ],
)
def test_what_cannot_be_read_is_a_sentence(line: Line, arguments, parts):
    """Status 2, for both commands."""
    Path("empty.jsonl").write_text("\n", "utf-8")
    Path("texts.csv").write_text("id,text\n1,No.\n", "utf-8")
    Path("both.csv").write_text("answer,output\nYes.,No.\n", "utf-8")
    for command, more in (("check", []), ("convert", ["out.jsonl"])):
        ran = line("dataset", command, arguments[0], *more, *arguments[1:])
        assert ran.status == 2
        assert names(ran.sentence, *parts)
        assert not Path("out.jsonl").exists()


def test_convert_writes_the_other_format(line: Line):
    """The fields are those of the options."""
    Path("pair.csv").write_text("l,r,win,ann,t\nA,B,first,tie,x\n", "utf-8")
    fields = [f"--field={text}" for text in ("content.a=l", "content.b=r", "label=win", "labels.ann=ann")]
    ran = line("dataset", "convert", "pair.csv", "pair.yaml", *fields)
    (case,) = open_dataset("pair.yaml")

    assert (ran.status, ran.out, ran.err) == (0, "", "1 case written to pair.yaml\n")
    assert case == Case(
        id=case.id, content={"a": "A", "b": "B"}, label="first", labels={"ann": "tie"}, metadata={"t": "x"}
    )


def test_convert_stops_at_a_bad_row_unless_told_to_skip(line: Line):
    """What is skipped is listed and counted."""
    ran = line("dataset", "convert", "answers.csv", "out.jsonl", *FIELDS)
    assert (ran.status, Path("out.jsonl").exists()) == (2, False)
    assert ran.sentence.startswith("answers.csv, line 4: 3 cells under 5 columns")

    ran = line("dataset", "convert", "answers.csv", "out.jsonl", *FIELDS, "--on-bad-row", "skip")
    assert (ran.status, ran.out) == (0, "")
    assert [text.split(":")[0] for text in ran.err.splitlines()] == [
        "skipped",
        "skipped",
        "2 cases written to out.jsonl",
    ]
    assert [case.label for case in open_dataset("out.jsonl")] == [True, False]
    message = line("dataset", "convert", "answers.csv", "x.jsonl", "--on-bad-row", "no").sentence
    assert names(message, "--on-bad-row", "'no'", "fail, skip")


def test_what_is_not_listed_is_counted(line: Line):
    """A file with a thousand bad rows is not a thousand lines."""
    Path("bad.jsonl").write_text("{\n" * 150 + '{"content": "x"}\n', "utf-8")
    ran = line("dataset", "convert", "bad.jsonl", "out.jsonl", "--on-bad-row", "skip")

    assert names(ran.err.splitlines()[-2], "skipped", "50 more", "150 in all")
    assert names(ran.err.splitlines()[-1], "1 case", "out.jsonl")
    assert "bad rows: 150; the first 100 are shown" in line("dataset", "check", "bad.jsonl").out


def test_convert_never_overwrites(line: Line):
    """Whatever is there stays."""
    ran = line("dataset", "convert", "answers.csv", "answers.csv", *FIELDS)

    assert ran.status == 2
    assert names(ran.sentence, "answers.csv", "exists already", "a new file")
    assert Path("answers.csv").read_text("utf-8") == TABLE


def test_convert_to_a_dash_is_lines_for_the_next_program(line: Line, monkeypatch):
    """ASCII, one case each; and from a dash is standard input."""
    cli.feed(monkeypatch, "content\né\u202e\n".encode())
    ran = line("dataset", "convert", "-", "-", "--from", "csv")

    assert ran.status == 0
    assert ran.out.isascii()
    assert json.loads(ran.out)["content"] == "é\u202e"
    assert ran.err == "1 case written\n"
    cli.feed(monkeypatch, b"")
    Path("-").write_text("mine", "utf-8")
    assert line("dataset", "convert", "-", "-").status == 2
    assert Path("-").read_text("utf-8") == "mine"


def test_other_tools_data_sets_are_imported(line: Line):
    """What could not be carried over is said."""
    Path("tests.csv").write_text("q,__expected\nWhy?,contains: x\n", "utf-8")
    Path("samples.jsonl").write_text('{"input": "Why?", "target": "x"}\n', "utf-8")
    ran = line("dataset", "convert", "tests.csv", "a.jsonl", "--from", "promptfoo")
    assert ran.status == 0
    assert "assertion 'contains' not applied: there is no answer yet: 1" in ran.err
    ran = line("dataset", "convert", "samples.jsonl", "b.jsonl", "--from", "inspect")
    assert "sample without an answer: its input is the content: 1" in ran.err
    assert [case.reference for case in open_dataset("b.jsonl")] == ["x"]
    assert line("dataset", "check", "samples.jsonl", "--from", "inspect").status == 0


@pytest.mark.parametrize("name", ["c.jsonl", "c.ndjson", "c.jsonl.gz", "c.csv.gz", "c.parquet"])
def test_data_sets_are_judged_by_their_suffix(line: Line, name, require):
    """Each case on its own."""
    from importlib.util import find_spec

    if name == "c.parquet":
        require("pyarrow", find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    Path("in.jsonl").write_text('{"id": "a", "content": "good"}\n{"id": "b", "content": "good too"}\n', "utf-8")
    assert line("dataset", "convert", "in.jsonl", name).status == 0
    ran = line("judge", name, "--criteria", "Is polite.", "--judge", cli.WORDS, "--json")

    assert ran.status == 0
    assert [item["case"] for item in ran.document["results"]] == ["a", "b"]


@pytest.mark.integration
def test_a_closed_pipe_ends_quietly(tmp_path):
    """As the next program in a pipe may do."""
    rows = "".join(json.dumps({"content": f"{number} " * 100}) + "\n" for number in range(3000))
    (tmp_path / "many.jsonl").write_text(rows, "utf-8")
    reading, writing = os.pipe()
    process = cli.start(tmp_path, "dataset", "convert", "many.jsonl", "-", cwd=tmp_path, stdout=writing)
    os.close(writing)
    os.read(reading, 100)
    os.close(reading)
    ran = cli.finish(process)

    assert "Traceback" not in ran.err
    assert ran.status == 0


def test_convert_for_a_spreadsheet(line: Line):
    """Cells that would be run begin with an apostrophe; without the option, and with -, nothing changes."""
    Path("in.jsonl").write_text('{"id": "a", "content": "=cmd()"}\n', encoding="utf-8")

    assert line("dataset", "convert", "in.jsonl", "safe.csv", "--for-spreadsheet").status == 0
    assert line("dataset", "convert", "in.jsonl", "plain.csv").status == 0
    assert "'=cmd()" in Path("safe.csv").read_text(encoding="utf-8")
    assert "a,=cmd()" in Path("plain.csv").read_text(encoding="utf-8")
    for to in ("-", "x.jsonl"):
        refused = line("dataset", "convert", "in.jsonl", to, "--for-spreadsheet")
        assert (refused.status, "spreadsheet is for" in refused.sentence) == (2, True)


LABELS = "case,rater,value\nlate,ann,yes\nrude,ann,No\nrude,bob,unsure\n"


@pytest.fixture(name="labelled")
def write_labelled(line: Line) -> Line:
    Path("d.csv").write_text("id,content,label\nlate,x,\nrude,y,\nopen,z,Yes\n", "utf-8")
    Path("labels.csv").write_text(LABELS, "utf-8")
    return line


def test_a_label_map_says_what_words_stand_for(labelled: Line):
    """Without it the row is bad, and the message names the word and the option."""
    ran = labelled("dataset", "check", "d.csv", "--label-map", "yes=true,no=false", "--json")
    without = labelled("dataset", "check", "d.csv", "--json")

    assert (ran.status, ran.document["labels"]) == (0, {"true": 1})
    assert without.status == 1
    assert "'Yes'" in without.document["first_bad_rows"][0]["why"]
    assert "--label-map, such as yes=true,no=false" in without.document["first_bad_rows"][0]["why"]


def test_labels_of_a_file_are_joined(labelled: Line):
    """By the id of the case; a label that decides nothing is there all the same."""
    arguments = ("--label-map", "yes=true,no=false,unsure=cannot_tell", "--label-file", "labels.csv")
    ran = labelled("dataset", "convert", "d.csv", "-", *arguments)
    late, rude, other = map(json.loads, ran.out.splitlines())

    assert (ran.status, late["label"], other["label"]) == (0, True, True)
    assert rude["labels"] == {"ann": False, "bob": None}
    assert "label" not in rude


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--label-map", "yes"), "'yes' … like yes=true"),
        (("--label-map", "yes=good"), "'good'"),
        (("--label-name", "polite"), "--label-name"),
        (("--label-file", "labels.csv"), "labels.csv, line 2"),
        (("--label-file", "none.csv"), "none.csv"),
    ],
)
def test_options_of_labels_say_what_is_wrong(labelled: Line, options, message):
    """Before anything is judged or written."""
    ran = labelled("dataset", "convert", "d.csv", "-", *options)

    assert (ran.status, ran.out) == (2, "")
    assert names(ran.err, *message.split(" … "))


def test_judge_reads_labels_by_a_map(labelled: Line):
    """A data set whose labels are words can be judged; what is no data set has no labels."""
    Path("d.jsonl").write_text('{"content": "x", "label": "yes"}\n', "utf-8")
    arguments = ("--rubric", "rules.yaml", "--judge", "rules")
    Path("rules.yaml").write_text("name: r\ncriteria: [{name: x, description: has x, rule: {contains: x}}]\n", "utf-8")

    assert labelled("judge", "d.jsonl", *arguments, "--label-map", "yes=true").status == 0
    assert labelled("judge", "d.jsonl", *arguments).status == 2
    assert "--label-map" in labelled("judge", "d.csv", *arguments, "--label-map", "yes=true").err


EXPORTS = house.ROOT / "tests" / "data" / "exports"

TONE = ("--label-name", "tone", "--label-map", "rude=false")


def test_annotations_of_another_tool_are_written_as_labels(line: Line):
    """And joined to its items, which were exported apart."""
    spans, annotations = (str(EXPORTS / "phoenix" / name) for name in ("spans.json", "annotations.json"))
    arguments = ("--label-name", "correctness", "--label-map", "correct=true,incorrect=false")
    wrote = line("dataset", "labels", annotations, "labels.jsonl", "--from", "phoenix", *arguments)
    ran = line("dataset", "check", spans, "--from", "phoenix", "--label-file", "labels.jsonl", "--json")

    assert (wrote.status, wrote.out) == (0, "")
    assert "4 labels written to labels.jsonl, 2 of people" in wrote.err
    assert ran.document["labels"] == {"true": 1, "false": 1}


def test_a_run_has_the_labels_of_an_export(line: Line):
    """Its report says how often the judge is right by them."""
    trace = str(EXPORTS / "langfuse" / "trace.json")
    Path("r.yaml").write_text("name: r\ncriteria: [{name: x, description: Says when., rule: {contains: Monday}}]\n")
    ran = line("run", trace, "--from", "langfuse", "--label-name", "correct", "--rubric", "r.yaml", "--out", "done")
    report = line("report", "done", "--json")

    assert ran.status == 0
    assert report.document["labels"]["accuracy"]["count"] == 1


def test_labels_can_come_after_the_run(line: Line):
    """A report joins them by the id of the case, and says how many are of none."""
    Path("d.jsonl").write_text('{"id": "a", "content": "x"}\n{"id": "b", "content": "y"}\n')
    Path("r.yaml").write_text("name: r\ncriteria: [{name: x, description: Has x., rule: {contains: x}}]\n")
    Path("labels.csv").write_text("case,rater,value,criterion\na,ann,ok,\nb,ann,ok,\nz,ann,ok,\na,ann,bad,polite\n")
    arguments = ("--label-file", "labels.csv", "--label-map", "ok=true,bad=false")
    line("run", "d.jsonl", "--rubric", "r.yaml", "--out", "done")
    ran = line("report", "done", *arguments, "--json")
    polite = line("report", "done", *arguments, "--label-name", "polite", "--json")

    assert (ran.status, ran.document["labels"]["labelled"], ran.document["labels"]["accuracy"]["count"]) == (0, 2, 1)
    assert "(z): 1" in ran.err
    assert polite.document["labels"]["confusion"]["false"]["passed"] == 1
    assert line("report", "done", "--json").document["labels"] is None
    assert line("report", "done", "--label-name", "polite").status == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("langfuse/scores-v2.json", "new.jsonl", "--from", "inspect"), "--from must be one of"),
        (("langfuse/scores-v2.json", "new.jsonl", "--from", "langfuse"), "'rude'"),
        (("langfuse/dataset-items.json", "new.jsonl", "--from", "langfuse"), "nothing was written"),
        (("langfuse/scores-v2.json", "new.jsonl", "--from", "langfuse", "--on-bad-row", "x"), "--on-bad-row"),
        (("langfuse/scores-v2.json", "new.xlsx", "--from", "langfuse", *TONE), "new.xlsx"),
    ],
)
def test_what_gives_no_labels_says_why(line: Line, words, message):
    """And leaves no file."""
    data, *others = words
    ran = line("dataset", "labels", str(EXPORTS / data), *others)

    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
    assert not list(Path().glob("new.*"))
