"""An entry's columns, header and payload."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as some

from adjudge import Decision, UsageError
from adjudge.formats.plain import to_plain
from adjudge.judges import read_result
from adjudge.ledger.entry import COLUMNS, SCHEMA, hash_entry
from adjudge.ledger.payload import MOST_BYTES, digest, encode_payload
from ledger_support import SECRET, connect, find, make_chain_result, make_result, record, run


@pytest.fixture(name="url")
def make_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'adjudge.db'}"


def test_stored_columns_and_hashes_are_those_of_the_standard(url: str):
    """Each hash is SHA-256 of RFC 8785 of what the entry says; the payload's is of its very bytes."""
    record(url, make_result(), {"n": 2**60, "x": 0.1, "é": "\u2028"})
    with connect(url) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(adjudge_ledger)")]
        rows = [dict(zip(names, row, strict=True)) for row in connection.execute("SELECT * FROM adjudge_ledger")]

    assert tuple(names) == COLUMNS
    for row in rows:
        said = {name: row[name] for name in ("at", "id", "kind", "payload_hash", "prev", "seq", "subject")}
        assert row["hash"] == sha256(rfc8785.dumps(said | {"schema": SCHEMA})).hexdigest()
        assert row["payload_hash"] == sha256(row["payload"]).hexdigest()
        assert rfc8785.dumps(json.loads(row["payload"])) == row["payload"]


@given(
    some.lists(some.text(some.characters(exclude_categories=["Cs"])), min_size=6, max_size=6),
    some.integers(1, 2**53 - 1),
)
def test_headers_of_any_text_are_canonical(texts: list[str], seq: int):
    """The bytes hashed are those of an RFC 8785 encoder, whatever stands in the texts."""
    ident, at, kind, subject, payload_hash, prev = texts
    said = {"at": at, "id": ident, "kind": kind, "payload_hash": payload_hash, "prev": prev, "schema": SCHEMA}
    wanted = rfc8785.dumps(said | {"seq": seq, "subject": subject})

    assert hash_entry(seq, ident, at, kind, subject, payload_hash, prev) == sha256(wanted).hexdigest()


def test_by_default_no_text_that_can_quote_the_content_is_stored(url: str, tmp_path: Path):
    """``hash`` keeps the digest of each such text, in a chain's seats as well, and still reads as a result."""
    result = make_result()
    record(url, result, make_chain_result(result), {"result": result, "allowed": False})
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    kept = find(url)[1].payload

    assert kept is not None
    assert SECRET.encode() not in stored
    assert kept["reasoning"] == digest(SECRET) == f"sha256:{sha256(SECRET.encode()).hexdigest()}"
    assert kept["criteria"][0]["evidence"] == [digest(SECRET)]
    assert (kept["outcome"], kept["score"], kept["metadata"]) == ("failed", 0.25, {"case": 7})
    assert read_result(kept).criteria[0].score == 0.25


@pytest.mark.parametrize(("mode", "kept"), [("hash", digest(SECRET)), ("full", SECRET)])
def test_content_is_kept_as_store_content_says(url: str, mode: Any, kept: str):
    """``content=`` is stored, or its digest; its digest is the subject where nothing else is."""
    run(url, lambda ledger: ledger.append({"n": 1}, kind="run", content=SECRET), store_content=mode)
    entry = find(url)[1]

    assert entry.payload == {"n": 1, "content": kept}
    assert entry.subject == sha256(SECRET.encode()).hexdigest()


LEAVES = some.none() | some.booleans() | some.integers() | some.floats() | some.floats(-1e6, 1e6) | some.text()


@given(some.recursive(LEAVES, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner)))
def test_any_payload_is_canonical_json(value: Any):
    """Whatever stands in a payload, its bytes are those that another RFC 8785 encoder makes of them."""
    from adjudge.formats.plain import to_plain

    written = encode_payload(to_plain({"value": value}))

    # Read as the standard has numbers: all of them are doubles.
    assert rfc8785.dumps(json.loads(written, parse_int=float)) == written


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        ({"n": 1}, {}, "needs a kind"),
        ({"n": 1}, {"kind": "runn"}, "did you mean 'run'"),
        ({"n": 1}, {"kind": "genesis"}, "writes that one itself"),
        ({"kind": "erasure", "seq": 2}, {}, "writes that one itself"),
        ("text", {"kind": "run"}, "results and mappings, got str"),
        ({}, {"kind": "run", "subject": "a\0b"}, "NUL"),
        ({}, {"kind": "run", "subject": "\ud800"}, "surrogate"),
        ({}, {"kind": "run", "subject": "x" * 1001}, "1,000 characters"),
        ({}, {"kind": "run", "gate": 5}, "gate must be a text"),
        ({"x": "y" * MOST_BYTES}, {"kind": "run"}, "at most 10,000,000 bytes"),
    ],
    ids=range(10),
)
def test_what_cannot_be_recorded_is_refused(url: str, value: Any, options: Any, said: str):
    """A sentence says what and why, and nothing was opened."""
    with pytest.raises(UsageError, match=said):
        run(url, lambda ledger: ledger.append(value, **options))

    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_a_value_of_ours_is_recorded_as_its_own_dictionary(url: str):
    """Results and decisions are written once and not looked through again, whatever stands in their metadata."""
    odd = {"nan": float("nan"), "big": 2**60, "object": object(), "set": {1}, "é": "\ud800", "float": 3.0}
    decision = Decision(gate="g", allowed=True, decided_by="policy", result=make_result(metadata=odd), metadata=odd)
    record(url, decision, decision.result, store_content="full")
    first, second = [entry.payload for entry in find(url)[1:]]
    plain = json.loads(encode_payload(decision.to_dict()))

    assert (first, second) == (plain, plain["result"])
    assert first["metadata"]["nan"] == "nan"
    assert isinstance(first["metadata"]["object"], str)
    assert first == json.loads(encode_payload(to_plain(decision)))
