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

from adjudge import Decision, RuleResult, Usage, UsageError
from adjudge.formats.plain_data import to_plain
from adjudge.judges import read_result
from adjudge.ledger.columns import derive, derive_draft
from adjudge.ledger.entry import COLUMNS, SCHEMA, hash_entry
from adjudge.ledger.payload import MOST_BYTES, choose_keep, digest, encode_payload, make_draft
from kit.house import TESTS
from kit.ledgers import SECRET, connect, find, make_chain_result, make_result, record, run


def test_stored_columns_and_hashes_are_those_of_the_standard(url: str):
    """Each hash is SHA-256 of RFC 8785 of what the entry says; the payload's is of its very bytes."""
    record(url, make_result(), {"n": 2**60, "x": 0.1, "é": "\u2028"})
    with connect(url) as connection:
        names = [row[1] for row in connection.execute("PRAGMA table_info(adjudge_ledger)")]
        rows = [dict(zip(names, row, strict=True)) for row in connection.execute("SELECT * FROM adjudge_ledger")]

    assert tuple(names) == COLUMNS
    for row in rows:
        members = {name: row[name] for name in ("at", "id", "kind", "payload_hash", "prev", "seq", "subject")}
        assert row["hash"] == sha256(rfc8785.dumps(members | {"schema": SCHEMA})).hexdigest()
        assert row["payload_hash"] == sha256(row["payload"]).hexdigest()
        assert rfc8785.dumps(json.loads(row["payload"])) == row["payload"]


@given(
    some.lists(some.text(some.characters(exclude_categories=["Cs"])), min_size=6, max_size=6),
    some.integers(1, 2**53 - 1),
)
def test_headers_of_any_text_are_canonical(texts: list[str], seq: int):
    """The bytes hashed are those of an RFC 8785 encoder, whatever stands in the texts."""
    ident, at, kind, subject, payload_hash, prev = texts
    members = {"at": at, "id": ident, "kind": kind, "payload_hash": payload_hash, "prev": prev, "schema": SCHEMA}
    canonical = rfc8785.dumps(members | {"seq": seq, "subject": subject})

    assert hash_entry(seq, ident, at, kind, subject, payload_hash, prev) == sha256(canonical).hexdigest()


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
    from adjudge.formats.plain_data import to_plain

    written = encode_payload(to_plain({"value": value}))

    # Read as the standard has numbers: all of them are doubles.
    assert rfc8785.dumps(json.loads(written, parse_int=float)) == written


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ({"n": 1}, {}, "needs kind"),
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
def test_what_cannot_be_recorded_is_refused(url: str, value: Any, options: Any, message: str):
    """A sentence says what and why, and nothing was opened."""
    with pytest.raises(UsageError, match=message):
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


GOLDEN = TESTS / "data" / "golden" / "records"

ODD = {
    "nan": float("nan"),
    "big": 2**60,
    "é": "half \ud800",
    "small": 1e-7,
    "whole": 3.0,
    "zero": -0.0,
    "set": {SECRET},
    "seat": make_result(reasoning=SECRET).to_dict(),
}


def list_values() -> list[Any]:
    """Results and decisions of every form: those of the golden files, and some whose open members hold anything."""
    kinds = {"JudgeResult": read_result, "JudgeChainResult": read_result, "Decision": Decision.from_dict}
    golden = [read(data) for name, read in kinds.items() for data in json.loads((GOLDEN / f"{name}.json").read_text())]
    seat = make_result(value=ODD, metadata=ODD, usage=Usage(input_tokens=7, cost_usd=0.0), score=1.0, duration_ms=1e-6)
    rule = RuleResult(name="é", passed=False, message=SECRET, score=0.0, metadata=ODD)
    chain = make_chain_result(seat, make_chain_result(make_result(rule_results=(rule,))))
    decision = Decision(gate="g", allowed=False, decided_by="judge", result=chain, answer=seat, metadata=ODD, basis=ODD)
    return [*golden, seat, chain, decision]


@pytest.mark.parametrize(
    ("mode", "redact"), [("hash", None), ("full", None), ("redacted", lambda text: f"<{len(text)}>")], ids=range(3)
)
def test_a_value_of_ours_is_recorded_as_its_dictionary_would_be(mode: Any, redact: Any):
    """The quick way from a value's fields and the general one from its dictionary come to the same bytes."""
    keep = choose_keep(mode, redact)
    values = list_values()

    assert len(values) > 6
    for value in values:
        kind = "decision" if isinstance(value, Decision) else "result"
        draft = make_draft(value, keep, kind=None, subject=None, more={"gate": "door", "content": "\ud800"})
        general = make_draft(value.to_dict(), keep, kind=kind, subject=None, more={"gate": "door", "content": "\ud800"})
        assert draft == general
        assert json.loads(draft.payload) == draft.members
        assert derive_draft(draft) == derive(
            (2, "id", "at", draft.kind, draft.subject, draft.payload, "", "", "", None)
        )


@pytest.mark.slow
@given(some.recursive(LEAVES, lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner)))
def test_columns_of_a_draft_are_those_of_its_bytes(value: Any):
    """What is listed is derived before anything is written, and verified from what was written."""
    members = {"gate": value, "outcome": "passed", "result": value, "approval": value, "score": value, "id": value}

    for kind in ("run", "decision", "result"):
        draft = make_draft(members, str, kind=kind, subject="x", more={})
        assert derive_draft(draft) == derive((2, "id", "at", kind, "x", draft.payload, "", "", "", None))
