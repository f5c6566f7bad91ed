"""Labels: what one rater said of one case, the file of them, and how cases get them."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
import stat
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Case, Dataset, UsageError, open_dataset, run
from adjudge.dataset import (
    Label,
    LabelDesign,
    import_inspect,
    import_promptfoo,
    load_labels,
    parse_label_map,
    write_labels,
)
from adjudge.report import make_report
from kit.judges import complaint, names

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=12)
numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
values = st.booleans() | numbers | st.sampled_from(["first", "second", "tie", "cannot_tell"])
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
designs = st.builds(LabelDesign, plan=texts, stratum=texts, p=st.floats(0, 1, exclude_min=True))


@st.composite
def draw_label(draw) -> Label:
    optional: dict[str, Any] = {"criterion": texts, "run": texts, "comment": texts, "at": moments, "design": designs}
    optional |= {"order": st.sampled_from(["ab", "ba"])}
    more = {name: draw(st.none() | value) for name, value in optional.items()}
    kind = draw(st.sampled_from(["person", "model", "override"]))
    return Label(case=draw(texts), rater=draw(texts), value=draw(values), kind=kind, blind=draw(st.booleans()), **more)


def write(name: str, text: str) -> Path:
    Path(name).write_text(text, "utf-8")
    return Path(name)


@pytest.fixture(autouse=True)
def work_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------- the row


def test_a_row_has_the_pinned_members():
    """What is not known is left out, but for ``at``, which is null."""
    whole = Label(
        case="late",
        rater="ann",
        value=True,
        criterion="polite",
        run="runs/1",
        order="ba",
        at=AT,
        blind=True,
        design=LabelDesign(plan="november", stratum="failed", p=0.25),
        comment="Dear.",
    )

    assert whole.to_dict() == {
        "schema": "adjudge/label/1",
        "case": "late",
        "run": "runs/1",
        "rater": "ann",
        "kind": "person",
        "value": True,
        "criterion": "polite",
        "order": "ba",
        "at": "2026-11-20T12:00:00+00:00",
        "blind": True,
        "design": {"plan": "november", "stratum": "failed", "p": 0.25},
        "comment": "Dear.",
    }
    assert Label(case="late", rater="ann", value="tie").to_dict() == {
        "schema": "adjudge/label/1",
        "case": "late",
        "rater": "ann",
        "kind": "person",
        "value": "tie",
        "at": None,
        "blind": False,
    }


@given(draw_label())
def test_a_label_is_read_as_it_was_written(label):
    """Also through JSON."""
    assert Label.from_dict(json.loads(json.dumps(label.to_dict()))) == label


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": "yes"}, "'yes'"),
        ({"value": float("nan")}, "nan"),
        ({"value": []}, "[]"),
        ({"value": None}, "value"),
        ({"case": ""}, "case"),
        ({"rater": 3}, "rater"),
        ({"kind": "robot"}, "'robot'"),
        ({"order": "ac"}, "'ac'"),
        ({"blind": "no"}, "'no'"),
        ({"at": "yesterday"}, "yesterday"),
        ({"at": "2026-11-20T12:00:00"}, "zone"),
        ({"at": 3}, "at"),
        ({"design": {"plan": "x"}}, "stratum"),
        ({"design": {"plan": "x", "stratum": "y", "p": 0}}, "probability"),
        ({"design": {"plan": "x", "stratum": "y", "p": 1.5}}, "1.5"),
        ({"comment": 3}, "comment"),
        ({"critrion": "x"}, "did you mean 'criterion'"),
        ({"schema": "adjudge/label/2"}, "adjudge/label/2"),
    ],
)
def test_what_is_no_label_is_refused(wrong, message):
    """The error names the member, and what would do."""
    with pytest.raises(UsageError) as caught:
        Label.from_dict({"case": "late", "rater": "ann", "value": True} | wrong)

    assert message in str(caught.value)


def test_a_time_is_compared_in_its_zone():
    """Written in UTC, whatever zone it was given in."""
    there = AT.astimezone(timezone(timedelta(hours=5)))

    assert Label(case="a", rater="b", value=1, at=there).to_dict()["at"] == "2026-11-20T12:00:00+00:00"


# ---------------------------------------------------------------- the file


@pytest.mark.slow_table
@pytest.mark.parametrize("name", ["l.jsonl", "l.json", "l.csv", "l.tsv", "l.jsonl.gz", "l.csv.gz"])
def test_a_file_is_read_as_it_was_written(name):
    """Every label is equal, in the same order, and only the owner may read the file: it names people."""

    @given(st.lists(draw_label(), max_size=3, unique_by=lambda label: (label.case, label.rater)))
    def check(labels):
        Path(name).unlink(missing_ok=True)

        assert write_labels(name, labels) == len(labels)
        assert stat.S_IMODE(Path(name).stat().st_mode) & 0o077 == 0
        assert load_labels(name) == tuple(labels)

    check()


def test_a_file_is_never_overwritten():
    """Nor is a part of one left."""
    write("l.jsonl", "mine")
    with pytest.raises(UsageError, match="exists already"):
        write_labels("l.jsonl", [])
    with pytest.raises(UsageError, match="half of a surrogate"):
        write_labels("new.jsonl", [Label(case="a", rater="b", value=1, comment="\ud800")])
    with pytest.raises(UsageError, match="NUL"):
        write_labels("new.csv", [Label(case="a", rater="b", value=1, comment="\x00")])
    with pytest.raises(UsageError, match="yaml"):
        write_labels("new.yaml", [])

    assert Path("l.jsonl").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["l.jsonl"]


def test_a_table_written_by_hand_is_read():
    """Case, rater and value are enough; an empty cell says nothing."""
    table = "case,rater,value,blind,comment\nlate,ann,TRUE,true,=1+1\nrude,bob,0.5,,\n"
    one, other = load_labels(write("l.csv", table))

    assert (one.value, one.kind, one.blind, one.comment) == (True, "person", True, "=1+1")
    assert (other.value, other.blind, other.comment, other.at) == (0.5, False, None, None)


def test_a_row_that_is_no_label_names_its_line():
    """With the value and what to do about it."""
    table = "case,rater,value\nlate,ann,true\nrude,ann,yes\n"
    with pytest.raises(UsageError, match=r"l\.csv, line 3: .*'yes'.*label_map"):
        load_labels(write("l.csv", table))
    with pytest.raises(UsageError, match=r"l\.jsonl, line 1: .*rater"):
        load_labels(write("l.jsonl", '{"case": "a", "value": true}\n'))
    with pytest.raises(UsageError, match=r"line 2: a label needs 'case', 'rater' and 'value'.*--label COLUMN"):
        load_labels(write("e.csv", "case,rater,value\nlate,ann,\n"))


def test_a_label_map_says_what_words_stand_for():
    """A word that stands for null is no label; one that is not in the map is an error with its line."""
    table = "case,rater,value\na,ann,Yes\nb,ann,no\nc,ann,n/a\nd,ann,unsure\ne,ann,true\n"
    label_map = {"yes": True, "NO": False, "n/a": None, "unsure": "cannot_tell"}

    assert [(item.case, item.value) for item in load_labels(write("l.csv", table), label_map=label_map)] == [
        ("a", True), ("b", False), ("d", "cannot_tell"), ("e", True),
    ]  # fmt: skip
    with pytest.raises(UsageError, match=r"line 4: .*'n/a'.*label map"):
        load_labels("l.csv", label_map={"yes": True, "no": False})


def test_a_spreadsheet_runs_no_comment():
    """A cell that begins like a formula gets an apostrophe, where the table is for a spreadsheet."""
    labels = [Label(case="a", rater="b", value=-1, comment='=HYPERLINK("http://127.0.0.1")')]
    write_labels("l.csv", labels, for_spreadsheet=True)
    (row,) = csv.DictReader(Path("l.csv").read_text().splitlines())

    assert (row["comment"][:2], row["value"]) == ("'=", "-1")


# ---------------------------------------------------------------- the map


def test_a_map_is_parsed_as_the_command_line_writes_it():
    """Each word and what it stands for, separated by commas; the last equals sign counts."""
    assert parse_label_map("yes=true, no=FALSE,a=first,5=1.0,n/a=null,?=cannot_tell,x=y=tie") == {
        "yes": True, "no": False, "a": "first", "5": 1.0, "n/a": None, "?": "cannot_tell", "x=y": "tie",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "yes", "yes=", "=true", "yes=good", "yes=true,yes=false", "a=true,,b=false"])
def test_a_map_that_says_nothing_clear_is_refused(text):
    """The message names the option and the part."""
    with pytest.raises(UsageError, match="label_map"):
        parse_label_map(text)


@pytest.mark.parametrize("wrong", [{"yes": "good"}, {1: True}, {"Yes": True, "yes": False}, {"yes": []}, "yes=true"])
def test_a_mapping_that_says_nothing_clear_is_refused(wrong):
    """Before any row is read."""
    with pytest.raises(UsageError, match="label_map"):
        Dataset.of([], label_map=wrong)


def test_a_data_set_takes_a_map():
    """In tables and in JSON, for the label and for those of raters."""
    table = write("d.csv", "content,label,labels.ann\nx,Good, bad \ny,bad,\n")
    lines = write("d.jsonl", '{"content": "x", "label": "good", "labels": {"ann": "bad"}}\n')
    label_map = {"good": True, "bad": False}

    assert [case.label for case in open_dataset(table, label_map=label_map)] == [True, False]
    for path in (table, lines):
        first = next(iter(open_dataset(path, label_map=label_map)))
        assert (first.label, first.labels) == (True, {"ann": False})


def test_a_map_turns_numbers_and_truths_into_labels():
    """By value: 1.0 is 1. A number beside a map of numbers is a bad row, since it would be a label of another sort."""
    rows = [{"content": str(at), "label": label} for at, label in enumerate([1, "1.0", 0, True, None, 0.5])]
    dataset = Dataset.of(rows, label_map={"1": True, "0": False, "true": False}, on_bad_row="skip")

    assert [case.label for case in dataset] == [True, True, False, False, None]
    assert "0.5" in dataset.bad_rows[0].why


def test_importers_take_a_map():
    """Those of suites too, where a field of theirs is the label."""
    sample = {"input": "x", "output": "y", "rated": "good"}
    path = write("s.jsonl", json.dumps(sample) + "\n")
    options: Any = {"fields": {"label": "rated"}, "label_map": {"good": True}}
    test = {"vars": {"answer": "y", "rated": "good"}}
    tests = write("t.json", json.dumps([test]))

    assert [case.label for case in import_inspect(path, **options)] == [True]
    assert [case.label for case in import_promptfoo(tests, **options)] == [True]


def test_an_unmapped_word_is_a_bad_row():
    """It is named with the option, with a map and without."""
    rows = [{"content": "x", "label": "meh"}]
    for options in ({}, {"label_map": {"good": True}}):
        with pytest.raises(UsageError, match=r"'meh'.*label_map"):
            list(Dataset.of(rows, **options))


# ---------------------------------------------------------------- cases


CASES = [Case(id=name, content=name) for name in ("a", "b", "c", "d")]


def say(case: str, rater: str, value: Any, **more: Any) -> Label:
    return Label(case=case, rater=rater, value=value, **more)


def test_cases_get_the_labels_of_people():
    """The label is what more than half of them said; who cannot tell has looked too."""
    labels = [say("a", "ann", True), say("a", "bob", True), say("a", "cid", False)]
    labels += [say("b", "ann", True), say("b", "bob", False)]
    labels += [say("c", "ann", True), say("c", "bob", "cannot_tell")]
    cases = list(Dataset.of(CASES).with_labels(labels))

    assert [case.label for case in cases] == [True, None, None, None]
    assert cases[0].labels == {"ann": True, "bob": True, "cid": False}
    assert cases[2].labels == {"ann": True, "bob": None}
    assert cases[3] == CASES[3]


def test_a_model_is_no_person():
    """Its labels are no truth to measure a judge by; an override is a person's."""
    labels = [say("a", "gpt", True, kind="model"), say("b", "ann", False, kind="override")]

    assert [case.label for case in Dataset.of(CASES[:2]).with_labels(labels)] == [None, False]


def test_true_is_not_one():
    """But 1 is 1.0."""
    labels = [say("a", "ann", True), say("a", "bob", 1), say("b", "ann", 1), say("b", "bob", 1.0)]

    assert [case.label for case in Dataset.of(CASES[:2]).with_labels(labels)] == [None, 1]


def test_a_person_counts_once():
    """The later label counts: by its time, else by its place."""
    labels = [say("a", "ann", False, at=AT), say("a", "ann", True, at=AT - timedelta(days=1))]
    labels += [say("b", "ann", False), say("b", "ann", True)]

    assert [case.label for case in Dataset.of(CASES[:2]).with_labels(labels)] == [False, True]


def test_labels_of_a_criterion_are_no_label_of_the_whole():
    """Unless they are asked for by its name."""
    labels = [say("a", "ann", True, criterion="polite"), say("b", "ann", False)]
    dataset = Dataset.of(CASES[:2])

    assert [case.label for case in dataset.with_labels(labels)] == [None, False]
    assert [case.label for case in dataset.with_labels(labels, name="polite")] == [True, None]
    assert [case.label for case in dataset] == [None, None]


def test_a_case_keeps_its_own_label():
    """Somebody decided it; what others said stands beside it."""
    case = Case(id="a", content="x", label=True, labels={"bob": True})
    (labelled,) = Dataset.of([case]).with_labels([say("a", "ann", False)])

    assert (labelled.label, labelled.labels) == (True, {"bob": True, "ann": False})


def test_labels_of_no_case_are_counted():
    """A file of other cases must not look like one whose cases nobody labelled."""
    dataset = Dataset.of(CASES[:1]).with_labels([say("x", "ann", True), say("a", "ann", True)])
    list(dataset)

    ((note, count),) = dataset.notes.items()
    assert names(note, "labelled case", "not in the data set", "(x)")
    assert count == 1


def test_what_can_be_read_once_is_read_by_one_of_them():
    """The data set that the labels were joined to says so, and does not look empty."""
    dataset = Dataset.of(iter(CASES))
    joined = dataset.with_labels([say("a", "ann", True)])

    assert next(iter(joined)).label is True
    with pytest.raises(UsageError, match="once"):
        list(dataset)


def test_a_report_takes_labels_that_came_after_the_run():
    """The run stays as it was; the report says how often the judge is right by what people said since."""
    rubric = {"name": "r", "criteria": [{"name": "x", "description": "Has an a.", "rule": {"contains": "a"}}]}
    Path("r.json").write_text(json.dumps(rubric))

    async def go() -> None:
        await run(CASES[:2], "rules", "r.json", out="done")

    asyncio.run(go())
    report = make_report("done", labels=[say("a", "ann", True), say("b", "ann", True)])

    assert report.labels is not None
    assert (report.labels.accuracy.count, report.labels.accuracy.of) == (1, 2)
    assert make_report("done").labels is None


@pytest.fixture(name="judged")
def judge_cases() -> str:
    """The folder of a finished run of the cases a and b."""
    rubric = {"name": "r", "criteria": [{"name": "x", "description": "Has an a.", "rule": {"contains": "a"}}]}
    run(CASES[:2], "rules", rubric, out="judged").finish_sync()
    return "judged"


def test_labels_of_other_cases_are_no_report_without_labels(judged: str):
    """A file of another data set is refused, and told with the ids that are not there."""
    labels = [say("y", "ann", True), say("x", "ann", True)]

    assert names(complaint(make_report, judged, labels=labels), "not in the run", "(x, y): 2", "every one", "id")


def test_some_labels_of_other_cases_are_told(judged: str, caplog: pytest.LogCaptureFixture):
    """The others count; it says which do not."""
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        report = make_report(judged, labels=[say("a", "ann", True), say("x", "ann", True)])

    assert report.labels is not None
    (message,) = caplog.messages
    assert names(message, "labelled case", "not in the run", "(x): 1", "count nowhere")


def test_labels_of_a_run_that_goes_on_may_come_first(judged: str, caplog: pytest.LogCaptureFixture):
    """Where it is not finished, the labelled cases may be those that are still to be judged."""
    path = Path(judged) / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        report = make_report(judged, labels=[say("x", "ann", True)])

    assert report.labels is None
    assert names(caplog.messages, "not in the run", "(x): 1")


def test_labels_about_something_else_are_refused(judged: str):
    """A name that no label has, and labels that no person gave; it says which names there are."""
    polite = [replace(say(case, "ann", True), criterion="polite") for case in "ab"]

    assert names(complaint(make_report, judged, labels=polite), "2 labels", "whole cases", "label_name", "'polite'")
    assert names(complaint(make_report, judged, labels=polite, label_name="tidy"), "'tidy'", "label_name", "'polite'")
    assert make_report(judged, labels=polite, label_name="polite").labels is not None
    machine = [replace(item, kind="model") for item in polite]
    assert names(complaint(make_report, judged, labels=machine), "2 labels", "a person's", "labels of people")


@given(
    st.text(alphabet="'=+-@\t1a ", min_size=1, max_size=5),
    st.text(alphabet="'=+-@\t1a ", min_size=1, max_size=5),
    st.booleans(),
)
def test_a_table_gives_back_the_labels_that_were_written(case: str, comment: str, for_spreadsheet: bool):
    """Apostrophes that keep a spreadsheet from running a cell are taken away again, and those of one's own are not."""
    labels = (Label(case=case, rater="=ann", value=True, comment=comment),)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "labels.csv")
        write_labels(path, labels, for_spreadsheet=for_spreadsheet)

        assert load_labels(path) == labels
        if for_spreadsheet:
            assert "\n\"'=ann" in path.read_text("utf-8").replace(",", "\n")
