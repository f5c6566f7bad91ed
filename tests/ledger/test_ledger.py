"""What a ledger records, finds again, and refuses."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger, UsageError
from adjudge.judges import read_result
from adjudge.ledger import KINDS, LedgerError
from kit.ledgers import SECRET, find, make_chain_result, make_result, record, run


@pytest.mark.parametrize("name", ["foo.db", "./foo.db", "in/foo.db", "a?b #%41.db", "a@b.db", "foo", "postgres.db"])
def test_a_path_is_a_file_as_for_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    """As text and as ``Path``, from the working directory or from the root; it is the ledger that its url names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    for place in (name, Path(name), str(tmp_path / name), tmp_path / name):
        assert len(record(place, make_result())) == 1

    assert (tmp_path / name).is_file()
    assert len(find(tmp_path / name, kind="result")) == 4
    if "?" not in name and "@" not in name:
        assert len(find(f"sqlite:///{name}", kind="result")) == 4


@pytest.mark.parametrize("place", ["", " ", ":memory:", "sqlite://", "mysql://x/y", "sqlite:foo.db", "file:foo.db"])
def test_what_is_neither_an_address_nor_a_path_is_refused(place: str):
    """What begins like an address is none that is read as a file."""
    with pytest.raises(UsageError, match="a ledger"):
        Ledger(place)


@pytest.mark.parametrize("place", [None, 3, b"foo.db", ["foo.db"]])
def test_what_is_no_text_is_no_ledger(place: Any):
    """Named by its type."""
    with pytest.raises(UsageError, match="is a text or the path of a file"):
        Ledger(place)


# ---------------------------------------------------------------- what is recorded


def test_a_ledger_begins_with_a_genesis_entry(url: str):
    """The first thing recorded is entry 2; entry 1 says which schema this is and which key signs."""
    assert record(url, make_result()) == [2]
    first = find(url, kind="genesis")[0]

    assert (first.seq, first.prev, first.subject) == (1, "0" * 64, "")
    assert first.payload == {"schema": "adjudge/ledger/1", "public_key": None, "store_content": "hash"}


def test_a_result_is_read_back(url: str):
    """The payload is the value's own form, so with ``full`` the same result comes out."""
    seat = make_result(judge="seat")
    result, chain = make_result(), make_chain_result(seat)
    record(url, result, chain, store_content="full")
    one, two = find(url, kind="result")

    assert one.payload is not None
    assert two.payload is not None
    assert read_result(one.payload) == result
    assert read_result(two.payload) == chain
    assert (one.subject, two.subject) == (result.subject, "")


def test_redacted_keeps_what_the_function_makes_of_a_text(url: str):
    """``redacted`` hands every such text to the caller's function."""
    redact = lambda text: text.replace(SECRET, "[someone]")  # noqa: E731
    record(url, make_result(), store_content="redacted", redact=redact)
    kept = find(url)[1].payload

    assert kept is not None
    assert SECRET not in json.dumps(kept)
    assert (kept["detail"], kept["rule_results"][0]["metadata"]) == ("it says [someone]", {"match": "[someone]"})


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53 + 1, str(2**53 + 1)),
        (-(2**70), str(-(2**70))),
        (10**5000, hex(10**5000)),
        (float("nan"), "nan"),
        (1e300, 1e300),
        (True, True),
        ("a\0\x1b\u202e", "a\0\x1b\u202e"),
        ("\ud800", "\\ud800"),
        (datetime(2026, 11, 20, tzinfo=UTC), "2026-11-20T00:00:00+00:00"),
    ],
    ids=range(10),
)
def test_values_without_a_canonical_form_are_written_as_text(url: str, value: Any, stored: Any):
    """What was paid for is recorded, whatever it holds: large integers, NaN, half a surrogate pair."""
    record(url, {"x": value, str(value) if isinstance(value, str) else "y": 1})

    assert find(url)[1].payload["x"] == stored  # type: ignore[index]


class Text(str):
    __slots__ = ()


class Number(float):
    pass


def test_values_of_derived_types_are_recorded_as_what_they_are(url: str):
    """An enumeration's member, or a text or number of the caller's own type, is its text or number."""
    record(url, {"a": Text("é"), "b": Number(1.0), "c": Number(0.5), "d": HTTPStatus.OK})

    assert find(url)[1].payload == {"a": "é", "b": 1, "c": 0.5, "d": 200}


def test_the_value_is_recorded_as_it_was_when_append_was_called(url: str):
    """What the caller changes before the writer's turn comes does not reach the ledger."""

    async def work(ledger: Ledger) -> None:
        value = {"n": 1}
        waiting = asyncio.ensure_future(ledger.append(value, kind="run"))
        await asyncio.sleep(0)
        value["n"] = 2
        await waiting

    run(url, work)

    assert find(url)[1].payload == {"n": 1}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("genesis", "erasure")])
def test_every_kind_is_recorded(url: str, kind: str):
    """A mapping may name its kind itself, and then does not hold it."""
    run(url, lambda ledger: ledger.append({"kind": kind, "n": 1}))
    entry = find(url, kind=kind)[0]

    assert (entry.kind, entry.payload) == (kind, {"n": 1})


# ---------------------------------------------------------------- finding again


def test_query_finds_by_everything_it_names(url: str):
    """Outcome, judge (a seat's too), gate, subject, execution, kind and time; all given must match."""
    good, bad = make_result(outcome="passed", judge="a", subject="1" * 64), make_result(judge="b")

    async def work(ledger: Ledger) -> None:
        await ledger.append(good, gate="publish", execution="e1")
        await ledger.append(bad, gate="publish")
        await ledger.append(make_chain_result(bad))
        await ledger.append({"result": bad, "allowed": False, "gate": "merge"}, kind="decision")

    run(url, work)
    expected: dict[tuple[int, ...], Any] = {
        (2, 4): {"outcome": "passed"},
        (3, 4, 5): {"judge": "b"},
        (2, 3): {"gate": "publish"},
        (3,): {"gate": "publish", "outcome": "failed"},
        (5,): {"gate": "merge", "outcome": "failed", "subject": "5" * 64},
        (2,): {"execution": "e1"},
        (3, 5): {"subject": "5" * 64},
        (2, 3, 4): {"kind": "result"},
        (): {"judge": "nobody"},
    }

    assert {tuple(entry.seq for entry in find(url, **filters)): filters for filters in expected.values()} == expected


@pytest.mark.parametrize("odd", [[], {}, 5, None, [1], "x"], ids=repr)
def test_query_passes_over_payloads_of_other_shapes(url: str, odd: Any):
    """What a mapping holds under the names of a result need not be what a result holds there."""
    record(url, dict.fromkeys(("outcome", "judge", "gate", "execution", "results", "result"), odd), make_result())

    assert [entry.seq for entry in find(url, outcome="failed", judge="careful")] == [3]


def test_query_finds_by_time(url: str):
    """``since`` is included, ``until`` is not, and a time without a zone is refused."""
    record(url, *[{"n": number} for number in range(5)])
    entries = find(url)
    third = entries[2].at

    assert [entry.seq for entry in find(url, since=third)] == [3, 4, 5, 6]
    assert [entry.seq for entry in find(url, until=third)] == [1, 2]
    assert find(url, since=datetime.now(UTC) + timedelta(hours=1)) == []
    with pytest.raises(UsageError, match="needs a zone"):
        find(url, since=third.replace(tzinfo=None))


def test_query_goes_on_over_many_pages(url: str):
    """More entries than are fetched at once come in order, each once."""

    async def work(ledger: Ledger) -> list[int]:
        async with asyncio.TaskGroup() as group:
            for number in range(2500):
                group.create_task(ledger.append({"n": number}, kind="run"))
        return [entry.seq async for entry in ledger.query(kind="run")]

    assert run(url, work) == list(range(2, 2502))


@pytest.mark.parametrize(
    "work",
    [Ledger.verify, Ledger.head, lambda ledger: ledger.read(1), lambda ledger: anext(ledger.query())],
    ids=range(4),
)
def test_reading_makes_no_ledger(url: str, work: Any):
    """A mistyped address is an error and not an empty ledger."""
    with pytest.raises(UsageError, match="there is no ledger"):
        run(url, work)

    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_one_entry_is_read_by_its_place(url: str):
    """``read`` returns it, or says that there is none."""
    record(url, {"n": 1})

    assert run(url, lambda ledger: ledger.read(2)).payload == {"n": 1}
    with pytest.raises(UsageError, match="no entry 3"):
        run(url, lambda ledger: ledger.read(3))


# ---------------------------------------------------------------- before and together


def test_preparing_makes_the_ledger_and_records_nothing(url: str):
    """As often as one likes; what is there stays."""
    run(url, Ledger.prepare)
    record(url, {"n": 1})
    run(url, Ledger.prepare)

    assert [entry.kind for entry in find(url)] == ["genesis", "run"]


def test_preparing_finds_what_appending_would(url: str, tmp_path: Path):
    """A folder that is not there, and a file that is no ledger, before there is anything to lose."""
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        run(f"sqlite:///{tmp_path / 'missing' / 'adjudge.db'}", Ledger.prepare)
    Path(url.removeprefix("sqlite:///")).write_bytes(b"no database " * 100)
    with pytest.raises(LedgerError, match="cannot be written: file is not a database"):
        run(url, Ledger.prepare)


def test_those_who_append_at_the_same_time_share_commits(url: str):
    """What is committed together has one time; a caller alone has a commit for each."""

    async def work(ledger: Ledger, callers: int) -> None:
        async def append() -> None:
            for number in range(8):
                await ledger.append({"callers": callers, "n": number}, kind="run")

        async with asyncio.TaskGroup() as group:
            for _ in range(callers):
                group.create_task(append())

    for callers in (1, 64):
        run(url, lambda ledger, callers=callers: work(ledger, callers))
    runs = find(url, kind="run")
    alone, together = [
        [entry.at for entry in runs if entry.payload and entry.payload["callers"] == callers] for callers in (1, 64)
    ]

    assert len(set(alone)) == len(alone) == 8
    assert len(set(together)) < len(together) // 4
