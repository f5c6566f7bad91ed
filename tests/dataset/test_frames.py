"""Frames and tables of other libraries as data sets; none of those libraries is imported by ours."""

from __future__ import annotations

import datetime as dt
import decimal
import subprocess
import sys
from importlib.util import find_spec

import pytest

from adjudge import Dataset, UsageError
from kit.judges import names

NAN = float("nan")
FIELDS = {"content": "answer", "reference": "gold", "id": "qid"}
COLUMNS = {"qid": [1, 2], "answer": ["A", "B"], "gold": ["G", None], "label": [True, False], "topic": ["t", None]}


def need(require, library: str):
    require(library, find_spec(library), f"pip install {library}")
    return __import__(library)


class Hub:
    """Like a data set of Hugging Face: a row at a time, each a dictionary, and features by name."""

    def __init__(self, columns: dict[str, list]) -> None:
        self.features = dict.fromkeys(columns, "Value")
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __iter__(self):
        return (dict(zip(self._columns, cells, strict=True)) for cells in zip(*self._columns.values(), strict=True))


def make(library: str, columns: dict[str, list], require):
    if library == "double":
        return Hub(columns)
    if library == "pyarrow":
        return need(require, library).table(columns)
    if library == "datasets":
        if not find_spec(library):
            pytest.skip("datasets is large and optional everywhere; the double stands for it")
        return __import__(library).Dataset.from_dict(columns)
    return need(require, library).DataFrame(columns)


LIBRARIES = pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets", "double"])


@LIBRARIES
def test_a_frame_is_a_data_set(library, require):
    """Its columns are mapped, others are metadata, missing values are none, and it can be read twice."""
    dataset = Dataset.of(make(library, COLUMNS, require), fields=FIELDS)

    for _ in range(2):
        first, second = dataset
        assert (first.id, first.content, first.reference, first.label) == ("1", "A", "G", True)
        assert (second.id, second.content, second.reference, second.label) == ("2", "B", None, False)
        assert first.label is True
        assert (first.metadata, second.metadata) == ({"topic": "t"}, {})
    assert dataset.size == 2


@LIBRARIES
def test_a_missing_content_is_a_bad_row(library, require):
    """NaN is no answer."""
    dataset = Dataset.of(make(library, {"content": ["A", None]}, require), on_bad_row="skip")

    assert [case.content for case in dataset] == ["A"]
    (row,) = dataset.bad_rows
    assert row.line == 2
    assert names(row.why, "'content'", "null")


@LIBRARIES
def test_a_column_that_is_not_there_is_an_error_at_once(library, require):
    """Before anything is judged."""
    with pytest.raises(UsageError, match="there is no column 'gld'; did you mean 'gold'"):
        Dataset.of(make(library, COLUMNS, require), fields=FIELDS | {"reference": "gld"})
    with pytest.raises(UsageError, match="no column is the content"):
        Dataset.of(make(library, {"text": ["A"], "label": [True]}, require))
    with pytest.raises(UsageError, match="'answer' and 'response' may each be the content"):
        Dataset.of(make(library, COLUMNS | {"response": ["C", "D"]}, require))


@LIBRARIES
def test_a_column_with_a_name_for_the_content_is_the_content(library, require, caplog: pytest.LogCaptureFixture):
    """Where no other is: the words that make a parameter of a function the content. The log says so, once."""
    dataset = Dataset.of(make(library, COLUMNS, require), name="rated", fields={"id": "qid"})

    for _ in range(2):
        assert [(case.id, case.content) for case in dataset] == [("1", "A"), ("2", "B")]
    assert [record.getMessage() for record in caplog.records] == [
        "rated: the content is 'answer', by its name; fields['content'] takes another one"
    ]


def test_a_column_that_looks_like_the_task_is_named_where_it_is_not_used(caplog: pytest.LogCaptureFixture):
    """It would be metadata, which no judge sees."""
    rows = [{"question": "Why?", "input": "x", "answer": "A"}]
    list(Dataset.of(rows, name="rated"))
    list(Dataset.of(rows, name="rated", fields={"task": "question"}))
    first, second = [record.getMessage() for record in caplog.records]

    assert first.endswith(
        "; 'question' and 'input' become metadata and are not shown to the judge, unless fields['task']='question' "
        "takes it as the task"
    )
    assert second.endswith("takes another one")


@LIBRARIES
def test_lists_and_conversations_are_contents(library, require):
    """Columns of lists and of structures."""
    messages = [{"role": "user", "content": "Why?"}]
    (case,) = Dataset.of(make(library, {"content": [messages]}, require))

    assert case.content == messages


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_times_become_text(library, require):
    """As ISO 8601 has them."""
    at = dt.datetime(2026, 11, 20, 12, 30)  # noqa: DTZ001 - frames seldom have a zone
    (case,) = Dataset.of(make(library, {"content": ["x"], "at": [at]}, require))

    assert case.metadata == {"at": "2026-11-20T12:30:00"}


def test_pandas_has_more_kinds_of_nothing_and_of_numbers(require):
    """NA, NaT, NaN, nullable columns, categories, and numpy's own numbers."""
    pandas = need(require, "pandas")
    frame = pandas.DataFrame(
        {
            "content": ["x", "y"],
            "label": pandas.array([1, None], dtype="Int64"),
            "when": pandas.to_datetime(["2026-01-01", None]),
            "kind": pandas.Categorical(["c", None]),
            "number": [NAN, 1.5],
            7: [pandas.Timedelta(seconds=1), None],
        }
    )
    first, second = Dataset.of(frame)

    assert (first.label, type(first.label)) == (1, int)
    assert second.label is None
    assert first.metadata == {"when": "2026-01-01T00:00:00", "kind": "c", "7": "P0DT0H0M1S"}
    assert second.metadata == {"number": 1.5}


def test_numpy_values_become_plain(require):
    """Scalars and arrays, wherever they stand."""
    numpy = need(require, "numpy")
    row = {
        "content": "x",
        "label": numpy.float32(0.5),
        "n": numpy.int64(3),
        "b": numpy.bool_(True),
        "a": numpy.arange(2),
    }
    columns = {name: [value] for name, value in row.items()}
    (case,) = Dataset.of(Hub(columns))

    assert case.label == 0.5
    assert [type(value) for value in case.metadata.values()] == [int, bool, list]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"x", r"column 'extra': it holds binary data \(1 bytes\)"),
        (object(), "column 'extra': it holds a object, which is no text and no JSON value; leave the column out"),
        (float("inf"), "column 'extra': inf is not a number that JSON has"),
        ({1: "a", "1": "b"}, "column 'extra': it has two keys that are written alike"),
    ],
)
def test_a_value_without_a_form_in_json_is_a_bad_row(value, message):
    """With the column, so that it can be left out."""
    with pytest.raises(UsageError, match=message):
        list(Dataset.of(Hub({"content": ["x"], "extra": [value]})))


def test_values_that_have_a_text_are_kept_as_it():
    """Decimals, times of day and spans."""
    values = {"d": decimal.Decimal("1.50"), "t": dt.time(1, 2), "s": dt.timedelta(1), "n": (1, NAN)}
    (case,) = Dataset.of(Hub({"content": ["x"]} | {name: [value] for name, value in values.items()}))

    assert case.metadata == {"d": "1.50", "t": "01:02:00", "s": "1 day, 0:00:00", "n": [1, None]}


def test_columns_that_are_named_alike_are_an_error(require):
    """One of them would be lost."""
    frame = need(require, "pandas").DataFrame([["x", 1, 2]], columns=["content", 1, "1"])

    with pytest.raises(UsageError, match="the column '1' appears twice"):
        Dataset.of(frame)


def test_what_is_no_frame_yet_is_an_error(require):
    """A lazy frame has no rows, and several splits are no data set."""
    polars = need(require, "polars")
    with pytest.raises(UsageError, match=r"hand in what its collect returns"):
        Dataset.of(polars.LazyFrame({"content": ["x"]}))

    class Later:
        async def __aiter__(self):
            yield {"content": "x"}

    with pytest.raises(UsageError, match="collect them into a list first"):
        Dataset.of(Later())


@pytest.mark.integration
def test_no_library_of_frames_is_imported():
    """A list is read without any of them."""
    code = (
        "import sys; from adjudge import Dataset; assert len(list(Dataset.of(['x']))) == 1; "
        "assert not {'pandas', 'polars', 'pyarrow', 'numpy', 'datasets'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
