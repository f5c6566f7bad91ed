"""Data sets: what a row may hold, which field is what, and that nothing is skipped in silence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256

import pytest

from adjudge import Case, Dataset, UsageError, open_dataset
from kit.environment import find_data
from kit.judges import names


def write(tmp_path, *lines: object):
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def read_error(tmp_path, *lines: object, **options) -> str:
    with pytest.raises(UsageError) as caught:
        list(open_dataset(write(tmp_path, *lines), **options))
    return str(caught.value).removeprefix(str(tmp_path / "cases.jsonl"))


def read_one(data, **options) -> Case:
    (case,) = Dataset.of([data], **options)
    return case


# ---------------------------------------------------------------- one case


def test_a_row_has_what_belongs_to_one_item(tmp_path):
    """Everything the format names."""
    data = {
        "schema": "adjudge/case/1",
        "id": 7,
        "content": {"a": "x", "b": "y"},
        "reference": "gold",
        "task": "t",
        "context": ["c"],
        "label": "first",
        "labels": {"ann": "tie", "bob": None},
        "group": "g",
        "metadata": {"k": 1},
    }
    (case,) = open_dataset(write(tmp_path, data))

    assert case == Case(**{name: data[name] for name in data if name not in ("schema", "id")}, id="7")
    assert case.to_dict() == data | {"id": "7"}


@pytest.mark.parametrize("label", [True, False, 0, 0.5, -3, "first", "second", "tie", None])
def test_labels_are_verdicts_numbers_or_preferences(label):
    """Or unknown."""
    assert read_one({"content": "x", "label": label}).label == label


def test_without_an_id_the_content_is_the_id():
    """Its SHA-256, so the same content twice is found."""
    assert read_one({"content": "x"}).id == sha256(b"x").hexdigest()
    assert read_one({"content": {"b": 1}}).id == sha256(b'{\n  "b": 1\n}').hexdigest()


def test_a_conversation_is_a_content(tmp_path):
    """A list of chat messages, in a file and on its own."""
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    (kept,) = open_dataset(write(tmp_path, {"messages": messages}), fields={"content": "messages"})

    assert kept.content == messages
    assert read_one(messages) == kept
    assert read_one({"content": messages}) == kept


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "an object … list"),
        ("{}", "no 'content' … it has nothing"),
        ('{"text": 1}', "no 'content' … it has 'text'"),
        ('{"content": null}', "'content' … null"),
        (
            '{"content": 1, "labl": 1}',
            "key 'labl' … id, content, reference, task, context, label … put more into metadata",
        ),
        (
            '{"content": 1, "role": "user"}',
            "one message … put the list into content",
        ),
        (
            '{"content": 1, "label": "yes"}',
            "label … true, false, a number … 'yes' … label_map",
        ),
        (
            '{"content": 1, "labels": {"ann": [1]}}',
            "label … true, false, a number … [1]",
        ),
        ('{"content": 1, "labels": [1]}', "'labels' … an object … [1]"),
        ('{"content": 1, "metadata": "x"}', "'metadata' … an object … 'x'"),
        ('{"content": 1, "id": true}', "'id' … a text or a number … True"),
        ('{"content": 1, "id": ""}', "'id' is empty … leave it out"),
        ('{"content": 1, "group": [1]}', "'group' … a text or a number … [1]"),
        (
            '{"content": 1, "schema": "adjudge/case/2"}',
            "'adjudge/case/2' … 'adjudge/case/1' … update adjudge",
        ),
        ('{"content": "caf\\ud800"}', "half of a surrogate pair"),
        ('{"content": 1, "label": NaN}', "NaN is not JSON … one object per line"),
        (
            '{"content": 1, "content": 2}',
            '"content" … twice … one object per line',
        ),
        ("{", None),
        ('{"content": "a\x00b"}', None),
    ],
)
def test_a_wrong_row_is_an_error_with_its_place(tmp_path, line, message):
    """File, line, what is wrong and the remedy."""
    refusal = read_error(tmp_path, {"content": "fine"}, line)

    assert refusal.startswith(", line 2: ")
    assert message is None or names(refusal, *message.split(" … "))


def test_an_id_twice_is_an_error(tmp_path):
    """Also where one is a number, and whatever its length."""
    repeated = "give each row an id of its own; on_bad_row='skip' leaves it out"

    assert names(
        read_error(tmp_path, {"id": "a", "content": 1}, {"id": "a", "content": 2}), "line 2", "'a'", "line 1", repeated
    )
    long_id = "x" * 100
    assert read_error(tmp_path, {"id": long_id, "content": 1}, {"id": long_id, "content": 1}).endswith(repeated)
    assert read_error(tmp_path, {"id": 1, "content": 1}, "", {"id": "1", "content": 2}).startswith(
        ", line 3: the id '1'"
    )


def test_finding_repeated_ids_can_be_left_to_the_caller(tmp_path):
    """A run has them on disk."""
    path = write(tmp_path, {"id": "a", "content": 1}, {"id": "a", "content": 2})

    assert [case.content for case in open_dataset(path, check_ids=False)] == [1, 2]


# ---------------------------------------------------------------- reading


def test_cases_come_in_order_and_empty_lines_are_none(tmp_path):
    """One at a time, so a large file needs no memory."""
    cases = iter(open_dataset(write(tmp_path, {"content": "a"}, "", {"content": "b"}, "  ")))

    assert next(cases).content == "a"
    assert [case.content for case in cases] == ["b"]


def test_a_file_can_be_read_again(tmp_path):
    """Every iteration begins anew, also while another is half-way."""
    dataset = open_dataset(write(tmp_path, {"content": "a"}, {"content": "b"}))
    half = iter(dataset)
    next(half)

    assert [case.content for case in dataset] == ["a", "b"]
    assert [case.content for case in half] == ["b"]


def test_what_can_be_read_once_says_so_the_second_time():
    """A second reading would find nothing, which looks like an empty data set."""
    dataset = Dataset.of({"content": text} for text in "ab")

    assert [case.content for case in dataset] == ["a", "b"]
    with pytest.raises(UsageError, match="once only; name a file"):
        list(dataset)


def test_a_file_that_cannot_be_read_is_an_error_before_anything_is_judged(tmp_path):
    """Absent, a folder, of no known format, or a name that no file can have."""
    (tmp_path / "folder.jsonl").mkdir()
    for name in ("cases.txt", "cases.json.gz"):
        (tmp_path / name).touch()
    messages = {
        "absent.jsonl": "cannot read {} … No such file … name a file",
        "absent": "cannot read {} … No such file … name a file",
        "folder.jsonl": "{} is a directory … name one data set",
        "cases.txt": "the format of '{}' … one of jsonl, csv, ",
        "cases.json.gz": "{} … compressed … jsonl, csv, tsv … unpack it",
        "a\x00.jsonl": "cannot read {}: ",
    }
    for name, message in messages.items():
        with pytest.raises(UsageError) as caught:
            open_dataset(tmp_path / name)
        assert names(caught.value, *message.format(tmp_path / name).split(" … "))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "there is no format 'xml' of data sets"),
        ({"on_bad_row": "ignore"}, "on_bad_row … one of fail, skip … 'ignore'"),
        ({"fields": {"contnt": "x"}}, "a case has no 'contnt'; did you mean 'content'?"),
        ({"fields": {"content.c": "x"}}, "a case has no 'content.c'"),
        ({"fields": {"label.x": "x"}}, "a case has no 'label.x'"),
        ({"fields": {"content": ""}}, "'content' … the name of a field … ''"),
        ({"fields": {"content": 3}}, "'content' … the name of a field … 3"),
        ({"fields": {"content": "x", "content.a": "y"}}, "'content' and 'content.a' cannot both be given"),
    ],
)
def test_what_is_asked_for_wrongly_is_an_error_at_once(tmp_path, options, message):
    """Before the file is read."""
    with pytest.raises(UsageError) as caught:
        open_dataset(write(tmp_path, {"content": 1}), **options)

    assert names(caught.value, *message.split(" … "))


# ---------------------------------------------------------------- bad rows


def test_bad_rows_are_skipped_where_that_is_asked_for(tmp_path):
    """They are counted and listed with their lines; the cases between them are there."""
    path = write(tmp_path, "[", {"id": "a", "content": 1}, {"id": "a", "content": 2}, {"content": 3})
    dataset = open_dataset(path, on_bad_row="skip")

    assert [case.content for case in dataset] == [1, 3]
    assert dataset.skipped == 2
    assert [(row.line, row.where) for row in dataset.bad_rows] == [(1, f"{path}, line 1"), (3, f"{path}, line 3")]
    assert names(dataset.bad_rows[1].why, "'a'", "line 2", "an id of its own")


def test_a_reading_that_is_half_way_does_not_count_into_the_next(tmp_path):
    """What a data set tells is of the latest reading."""
    dataset = open_dataset(write(tmp_path, {"content": "a"}, "{", {"content": "b"}), on_bad_row="skip")
    half = iter(dataset)
    next(half)
    assert [case.content for case in dataset] == ["a", "b"]
    list(half)

    assert dataset.skipped == 1


def test_a_bad_row_ends_the_reading_otherwise(tmp_path):
    """What stood before it was handed out."""
    cases = iter(open_dataset(write(tmp_path, {"content": "a"}, "{")))

    assert next(cases).content == "a"
    with pytest.raises(UsageError, match="line 2: not a line of JSON"):
        next(cases)


# ---------------------------------------------------------------- fields


ROW = {"qid": 3, "answer": {"text": "A"}, "gold": "G", "messages": [{"content": "m0"}, {"content": "m1"}], "n": None}


def test_fields_say_which_is_which():
    """By name, by a path with dots, by a place in a list."""
    case = read_one(
        ROW, fields={"content": "answer.text", "reference": "gold", "id": "qid", "task": "messages.-1.content"}
    )

    assert (case.content, case.reference, case.id, case.task) == ("A", "G", "3", "m1")


def test_other_fields_go_into_the_metadata():
    """Beside what the row has there itself; what is null says nothing."""
    case = read_one(ROW | {"metadata": {"own": 1}}, fields={"content": "gold"})

    assert case.metadata == {"own": 1, "qid": 3, "answer": {"text": "A"}, "messages": ROW["messages"]}


def test_a_name_with_a_dot_goes_before_a_path():
    """A column may be called so."""
    assert read_one({"a.b": 1, "a": {"b": 2}}, fields={"content": "a.b"}).content == 1


def test_parts_of_a_case_can_come_from_fields_of_their_own():
    """The two sides of a pair, the raters, and metadata under another name."""
    fields = {
        "content.a": "left",
        "content.b": "right",
        "labels.ann": "x",
        "labels.bob": "y",
        "metadata.source": "from",
    }
    case = read_one({"left": "L", "right": "R", "x": "tie", "y": None, "from": "web", "more": 1}, fields=fields)

    assert case.content == {"a": "L", "b": "R"}
    assert case.labels == {"ann": "tie", "bob": None}
    assert case.metadata == {"source": "web", "more": 1}


def test_fields_of_the_usual_names_are_read_unless_told_otherwise():
    """``None`` leaves one in the metadata, and so does a mapping from another field."""
    row = {"answer": "A", "content": "C", "task": "T", "label": "entailment"}
    case = read_one(row, fields={"content": "answer", "label": None})

    assert (case.content, case.task, case.label) == ("A", "T", None)
    assert case.metadata == {"content": "C", "label": "entailment"}


@pytest.mark.parametrize(
    "path", ["nothing", "answer.nothing", "messages.2.content", "messages.x", "gold.0", "messages.-3"]
)
def test_a_field_that_is_not_there_is_an_error(path):
    """A mapping with a slip in it must not leave every case without a reference."""
    with pytest.raises(UsageError, match=f"the row has no '{path}'"):
        read_one(ROW, fields={"content": "gold", "reference": path})


@pytest.mark.parametrize("name", ["output", "answer", "response", "completion"])
def test_the_one_field_with_a_name_for_the_content_is_the_content(name):
    """All else is read as if it had been mapped: fields of the usual names count, others are metadata."""
    case = read_one({name: "A", "task": "T", "question": "Q"})

    assert (case.content, case.task, case.metadata) == ("A", "T", {"question": "Q"})


def test_a_field_called_content_is_the_content_whatever_else_there_is():
    """And the others are then no fields of a case, in a file that was written for adjudge."""
    with pytest.raises(UsageError, match="'answer'"):
        read_one({"content": "C", "answer": "A"})
    assert read_one({"content": "C", "answer": "A"}, fields={"task": "answer"}).content == "C"


def test_two_fields_with_a_name_for_the_content_are_an_error(tmp_path):
    """Also where bad rows are skipped: it is about the whole file."""
    dataset = open_dataset(write(tmp_path, {"answer": "A", "output": "B"}), on_bad_row="skip")

    with pytest.raises(UsageError, match="line 1: 'output' and 'answer' may each be the content") as caught:
        list(dataset)
    assert caught.value.argument == "fields"
    assert read_one({"answer": "A", "output": "B"}, fields={"content": "output"}).content == "B"


def test_the_first_row_says_which_field_is_the_content(tmp_path):
    """So no later row chooses another field for itself."""
    dataset = open_dataset(write(tmp_path, {"answer": "A"}, {"output": "B"}), on_bad_row="skip")

    assert [case.content for case in dataset] == ["A"]
    assert "the row has no 'answer'" in dataset.bad_rows[0].why


def test_a_field_cannot_be_lost_in_the_metadata():
    """Where the row's metadata have a member of the same name."""
    with pytest.raises(UsageError, match=r"'qid' .* rename one"):
        read_one({"answer": "x", "qid": 1, "metadata": {"qid": 2}}, fields={"content": "answer"})


# ---------------------------------------------------------------- what programs hold


def test_lists_of_cases_mappings_and_contents_are_data_sets():
    """Also a function that makes one, which can be read again."""

    def make() -> Iterator[object]:
        yield Case(id="a", content="A")
        yield {"id": "b", "content": "B"}
        yield "C"

    dataset = Dataset.of(make)
    for _ in range(2):
        assert [(case.id, case.content) for case in dataset] == [
            ("a", "A"),
            ("b", "B"),
            (sha256(b"C").hexdigest(), "C"),
        ]
    assert dataset.size is None
    assert Dataset.of(["x", "y"]).size == 2
    assert [case.content for case in Dataset.of(Dataset.of(["x"]))] == ["x"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("cases.jsonl", "to read a file, use open_dataset"),
        ({"train": [], "test": []}, r"hand in one of its parts \(train, test\)"),
        (7, "7 holds no cases"),
    ],
)
def test_what_holds_no_cases_is_an_error(source, message):
    """A path would be read letter by letter, and a mapping key by key."""
    with pytest.raises(UsageError, match=message):
        Dataset.of(source)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (None, "data, row 1: there is None where a case should be"),
        ({1: "x"}, "the key 1 is int; make all of them text"),
        ({"content": "\ud800"}, "half of a surrogate pair"),
        (b"x", "binary"),
    ],
)
def test_an_item_that_is_no_case_is_a_bad_row(item, message):
    """Named by its place in the list."""
    with pytest.raises(UsageError, match=message):
        read_one(item)


def test_metadata_that_hold_themselves_are_a_bad_row():
    """They would never be written."""
    row: dict = {"content": "x"}
    row["metadata"] = row

    with pytest.raises(UsageError, match="nothing that holds itself"):
        read_one(row)


def test_a_real_data_set_is_read(cases):
    """Pairs that people compared, compressed, in somebody else's fields."""
    path = find_data(cases, "llmbar_items.jsonl.gz")
    rows = gzip.decompress(path.read_bytes()).split(b"\n")
    first = json.loads(rows[0])
    sides = [name for name in first if name.startswith("output")]
    fields = {"id": "item_id", "task": "input", "content.a": sides[0], "content.b": sides[1], "label": None}
    loaded = list(open_dataset(path, fields=fields))

    assert len(loaded) == sum(bool(row.strip()) for row in rows) > 0
    assert loaded[0].id == first["item_id"]
    assert loaded[0].content == {"a": first[sides[0]], "b": first[sides[1]]}
    assert not {"item_id", "input", *sides} & set(loaded[0].metadata)
