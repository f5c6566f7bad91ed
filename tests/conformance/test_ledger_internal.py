"""Conformance cases about hash chains, replayed.

Those about audit reports (``audit.*``), derived from a ledger, are replayed in ledger/audit/test_report_file.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from adjudge.ledger import Head, Row
from adjudge.ledger.entry import hash_entry
from adjudge.ledger.payload import encode_payload
from adjudge.ledger.verification import Chain
from kit.environment import read_vectors
from kit.ledgers import make_rows, rehash


def check(rows: list[Row], **options: Any) -> Any:
    """The verdict on some rows."""
    return Chain(**options).verify(rows)


ROWS = make_rows(4)
HEAD = Head(seq=4, hash=ROWS[-1][8])


def test_conformance_cases():
    """Each case comes out as recommended."""
    chain = read_vectors(features=("hash_chain.",))

    assert chain
    for case in chain:
        check_case(case)


def check_case(case: Mapping[str, Any]) -> None:
    original, expected = case["expect"]["original"], case["expect"]["recommended"]
    expected = original if expected == "same" else expected
    if expected.get("skip"):
        return
    actual = REPLAYS[case["feature"]](case["given"], expected)
    assert actual
    for name, value in actual.items():
        assert name not in expected or value == expected[name], f"{case['id']}: {name}"
    assert set(expected) - {"why", "with", "codes"} <= set(actual), case["id"]


def replay_payload(inputs: Mapping[str, Any], _: Any) -> dict[str, Any]:
    return {"sha256": sha256(encode_payload(inputs["payload"])).hexdigest()}


def replay_collision(inputs: Mapping[str, Any], _: Any) -> dict[str, Any]:
    hashes = {hash_entry(1, "id", "at", "run", item["agentId"], "0" * 64, item["prevHash"]) for item in inputs.values()}
    return {"same_hash": len(hashes) == 1}


def replay_verify(inputs: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, Any]:
    place = ROWS[1]
    changed: dict[str, Any] = {
        "none": ROWS,
        "last event dropped": ROWS[:-1],
        "first event dropped": ROWS[1:],
        "empty list": [],
        "id of 2nd changed": [ROWS[0], (place[0], "other", *place[2:]), *ROWS[2:]],
        "payload of 2nd changed": [ROWS[0], (*place[:5], b"{}", *place[6:]), *ROWS[2:]],
        "full rewrite": rehash([ROWS[0], (*place[:5], b"{}", *place[6:]), *ROWS[2:]]),
    }
    pinned = HEAD if expected.get("with") == "a pinned head" else None
    verification = check(changed[inputs["change"]], head=pinned)
    return {"valid": verification.valid}


REPLAYS = {
    "hash_chain.payload": replay_payload,
    "hash_chain.collision": replay_collision,
    "hash_chain.verify": replay_verify,
}
