"""A record is written by its layout, and what is read is a consistent record or is refused with the member's name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from adjudge import UsageError
from adjudge.formats.record import MOST_NESTED, Layout, read_any_record, read_record, write_record


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    by: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    schema: ClassVar[str] = "adjudge/ballot/1"
    _layout: ClassVar[Layout] = Layout(
        last=("votes", "count"),
        computed={"count": lambda ballot: len(ballot.votes)},
        omitted=("note",),
        required=("id",),
    )
    writes_plain: ClassVar[bool] = True

    id: str = "made up"
    votes: tuple[Vote, ...] = ()
    inner: Ballot | None = None
    note: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.note == "lie":
            raise UsageError("a ballot does not lie")

    def to_dict(self) -> dict[str, Any]:
        return write_record(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    schema: ClassVar[str] = "adjudge/strict/1"
    _layout: ClassVar[Layout] = Layout(
        members=("upper", "name"), computed={"upper": lambda it: it.name.upper()}, strict=True
    )

    name: str


def read(**members: Any) -> Ballot:
    return read_record(Ballot, {"schema": "adjudge/ballot/1", "id": "x"} | members)


def test_a_layout_says_what_is_written_and_where():
    """Schema, fields in order, then what stands last; what has its default may be left out."""
    ballot = Ballot(id="a", votes=(Vote(by="ann"),), inner=Ballot(id="b"))
    inner = {"schema": "adjudge/ballot/1", "id": "b", "inner": None, "metadata": {}, "votes": [], "count": 0}

    assert list(write_record(ballot)) == ["schema", "id", "inner", "metadata", "votes", "count"]
    assert write_record(ballot)["inner"] == inner
    assert write_record(ballot)["votes"] == [{"by": "ann", "weight": 1.0}]
    assert write_record(Ballot(id="a", note="kept"))["note"] == "kept"
    assert write_record(Strict(name="a")) == {"schema": "adjudge/strict/1", "upper": "A", "name": "a"}


def test_what_was_written_is_read():
    """At every depth; what is computed is not taken from the data."""
    ballot = Ballot(id="a", votes=(Vote(by="ann", weight=2.0),), inner=Ballot(id="b"), metadata={"x": [1, None]})

    assert read_record(Ballot, write_record(ballot) | {"count": "many", "later": 1}) == ballot
    assert read_record(Strict, write_record(Strict(name="a"))) == Strict(name="a")


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"schema": "adjudge/other/1"}, r"its schema is 'adjudge/other/1' and not adjudge/ballot/1$"),
        ({"schema": "adjudge/ballot/2"}, r"its schema is 'adjudge/ballot/2' .*so update adjudge$"),
        ({"schema": None}, r"its schema is None and not adjudge/ballot/1$"),
        ({"schema": []}, r"its schema is list and not adjudge/ballot/1$"),
        ({"votes": {}}, r"Expected `array`, got `dict` - at `\$.votes`$"),
        ({"votes": [{"by": "ann"}, 1]}, r"Expected `object`, got `int` - at `\$.votes\[1\]`$"),
        ({"votes": [{"weight": 1.0}]}, r"Object missing required field `by` - at `\$.votes\[0\]`$"),
        ({"votes": [{"by": "ann", "weight": "1"}]}, r"Expected `float`, got `str` - at `\$.votes\[0\].weight`$"),
        ({"votes": [{"by": "ann", "weight": math.nan}]}, r"Expected a finite number, .* at `\$.votes\[0\].weight`$"),
        ({"inner": {}}, r"its schema is None .* at `\$.inner`$"),
        ({"metadata": [1]}, r"Expected `object`, got `array` - at `\$.metadata`$"),
        ({"note": None}, r"Expected `str`, got `null` - at `\$.note`$"),
    ],
)
def test_what_is_wrong_is_named(members: dict[str, Any], problem: str):
    """The sentence names the record that was to be read, the member and what is wrong with it."""
    with pytest.raises(UsageError, match=r"^this is not a dictionary that Ballot.to_dict wrote: .*" + problem):
        read(**members)


def test_an_identity_is_not_made_up():
    """A field with a default may have to be there."""
    with pytest.raises(UsageError, match=r"Object missing required field `id`$"):
        read_record(Ballot, {"schema": "adjudge/ballot/1"})


def test_a_record_checks_itself_where_it_is_read():
    """What contradicts itself does not become a record, at any depth."""
    with pytest.raises(UsageError, match=r"^a ballot does not lie$"):
        read(inner={"schema": "adjudge/ballot/1", "id": "b", "note": "lie"})


def test_a_strict_record_knows_all_its_members():
    """Where people write a record by hand, a member too many is a slip."""
    with pytest.raises(UsageError, match=r"Object contains unknown field `nam`$"):
        read_record(Strict, {"schema": "adjudge/strict/1", "name": "a", "nam": "b"})


def test_a_schema_tells_records_apart():
    """Where a member may be one of several records."""
    assert read_any_record((Ballot, Strict), {"schema": "adjudge/strict/1", "name": "a"}) == Strict(name="a")
    with pytest.raises(UsageError, match=r"^this is not a dictionary that Ballot or Strict.to_dict wrote: its schema"):
        read_any_record((Ballot, Strict), {"schema": "adjudge/elsewhere/1"})


@pytest.mark.parametrize("data", [None, "x", [1], 3])
def test_what_is_no_dictionary_is_refused(data: object):
    """Whatever a peer sends."""
    with pytest.raises(UsageError, match=r"Expected `object`, got `\w+`$"):
        read_record(Ballot, data)


def test_records_nest_only_so_deep():
    """Data that nests without end costs one sentence and no stack."""
    data: dict[str, Any] = {"schema": "adjudge/ballot/1", "id": "x"}
    for _ in range(MOST_NESTED + 1):
        data = data | {"inner": data}
    with pytest.raises(UsageError, match=r"records stand more than 50 levels deep in each other$"):
        read_record(Ballot, data)
