"""Whatever is changed in a ledger is found, and the finding names the first bad entry."""

from __future__ import annotations

import json
from hashlib import sha256
from random import Random
from typing import Any

import pytest

from adjudge.ledger import Head, Row, create_signing_key
from adjudge.ledger.entry import COLUMNS, NO_PREV, signed_bytes
from adjudge.ledger.signature import find_check, open_check, open_signer
from adjudge.ledger.verification import Chain
from kit.ledgers import make_rows, rehash


def verify(rows: list[Row], **options: Any) -> Any:
    """The verdict on some rows."""
    return Chain(**options).verify(rows)


COUNT = 1_000
CHANGES = 5_000
ROWS = make_rows(COUNT)
PIN = Head(seq=COUNT, hash=ROWS[-1][8])


def replace(rows: list[Row], place: int, **values: Any) -> list[Row]:
    """The rows with some columns of one of them changed."""
    row = dict(zip(COLUMNS, rows[place], strict=True)) | values
    changed: Any = tuple(row.values())
    return [*rows[:place], changed, *rows[place + 1 :]]


def change_byte(value: Any, random: Random) -> Any:
    """A stored value with one byte replaced, removed or added."""
    if value is None:
        return random.choice(["0", b"0"])
    if isinstance(value, int):
        return value ^ 1 << random.randrange(12)
    raw = value if isinstance(value, bytes) else value.encode()
    place = random.randrange(len(raw) + 1)
    other = bytes([random.randrange(256)])
    ways = [raw[:place] + other + raw[place:]]
    if place < len(raw):
        ways += [raw[:place] + bytes([raw[place] ^ 1 << random.randrange(8)]) + raw[place + 1 :]]
        ways += [raw[:place] + raw[place + 1 :]]
    changed = random.choice(ways)
    # A text that is no UTF-8 any more is what a driver would hand over with surrogates, if at all.
    return changed if isinstance(value, bytes) else changed.decode("utf-8", "surrogateescape")


def test_a_clean_ledger_verifies():
    """Nothing was changed, so nothing is found, with a pinned head and without."""
    assert verify(ROWS)
    assert verify(ROWS, head=PIN)
    assert verify(ROWS, head=PIN).entries == COUNT
    assert verify(ROWS, head=PIN).head == PIN


@pytest.mark.no_cover
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.slow_table
def test_every_changed_byte_is_found(column: str):
    """One byte replaced, removed or added in a stored value, anywhere: found, at that entry or the next."""
    random = Random(f"{column}-1")
    at = COLUMNS.index(column)
    missed = []
    for number in range(CHANGES // len(COLUMNS)):
        place = random.randrange(COUNT)
        value = change_byte(ROWS[place][at], random)
        verification = verify(replace(ROWS, place, **{column: value}))
        missed += [] if not verification and verification.seq == place + 1 else [(number, place, value, verification)]

    assert missed == []


def test_every_dropped_entry_is_found():
    """An entry that is gone is named, wherever it stood; the last is found with a pinned head."""
    for place in range(0, COUNT - 1, 7):
        verification = verify(ROWS[:place] + ROWS[place + 1 :])
        assert (verification.valid, verification.seq) == (False, place + 1)
    tail = verify(ROWS[:-1], head=PIN)

    assert (tail.valid, tail.code, tail.seq) == (False, "head_missing", COUNT)


def test_without_a_pinned_head_a_dropped_tail_is_not_seen_and_that_is_said():
    """The verdict holds for what is there, and names what it could not see."""
    verification = verify(ROWS[:-1])

    assert verification.valid
    assert any("dropped from the end" in item for item in verification.unseen)
    assert not any("dropped from the end" in item for item in verify(ROWS, head=PIN).unseen)


@pytest.mark.slow
@pytest.mark.no_cover
def test_swapped_duplicated_and_inserted_entries_are_found():
    """Neighbours and others exchanged, an entry twice, one from elsewhere: each at its first place."""
    random = Random(2)
    for _ in range(150):
        first, second = sorted(random.sample(range(COUNT), 2))
        swapped = list(ROWS)
        swapped[first], swapped[second] = swapped[second], swapped[first]
        assert verify(swapped).seq == first + 1
        twice = [*ROWS[:first], ROWS[first], *ROWS[first:]]
        assert verify(twice).seq == first + 2
        foreign = [*ROWS[:second], make_rows(second + 2)[second], *ROWS[second:]]
        assert not verify(foreign)


def test_places_renumbered_after_a_change_are_found():
    """Dropping an entry and closing the gap, or exchanging everything but the places, breaks the hashes."""
    for place in (1, 500, 998):
        closed = ROWS[:place] + [(row[0] - 1, *row[1:]) for row in ROWS[place + 1 :]]
        assert verify(closed).seq == place + 1  # type: ignore[arg-type]


def test_a_rewrite_with_recomputed_hashes_is_found_by_the_pinned_head():
    """Whoever computes every hash anew has a chain that is right by itself, and another head."""
    for place in (1, 500, COUNT - 1):
        rewritten = rehash(replace(ROWS, place, payload=b'{"n":0,"forged":true}'))
        assert verify(rewritten).valid
        assert verify(rewritten).unseen
        assert verify(rewritten, head=PIN).code == "head_changed"
        early = Head(seq=place + 1, hash=ROWS[place][8])
        assert verify(rewritten, head=early).seq == place + 1


def test_an_empty_ledger_is_none():
    """A ledger begins with a genesis entry, so nothing at all means that it was lost."""
    verification = verify([])

    assert (verification.valid, verification.code, verification.seq) == (False, "empty", 1)


def test_a_beginning_that_was_dropped_is_found():
    """The rest, rewritten as a chain of its own, does not begin with a genesis entry."""
    assert verify(rehash(ROWS[1:])).code == "not_a_genesis"
    assert verify(ROWS[1:]).code == "sequence_broken"


@pytest.mark.parametrize("value", [None, "1", 1.0, True, b"1", [], {}, 2**70, "\ud800", float("nan")], ids=repr)
@pytest.mark.parametrize("column", COLUMNS)
def test_values_of_other_types_are_findings_and_no_crash(column: str, value: Any):
    """A table rebuilt without types can hold anything; a number that hashes like the right one is found too."""
    rows = ROWS[:10]
    if rows[1][COLUMNS.index(column)] is None and value is None:
        value = ""
    if column == "payload" and value is None:
        assert verify(replace(rows, 1, payload=None)).code == "payload_missing"
    assert not verify(replace(rows, 1, **{column: value})), value


# ---------------------------------------------------------------- signatures


@pytest.fixture(name="signed")
def make_signed(tmp_path, require) -> tuple[list[Row], str]:
    """Thirty signed entries, and the key's public half."""
    from importlib.util import find_spec

    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    public = create_signing_key(tmp_path / "key.pem")
    rows = replace(make_rows(30), 0, payload=f'{{"public_key":"{public}","schema":"adjudge/ledger/1"}}'.encode())
    return sign(rehash(rows), str(tmp_path / "key.pem")), public


def sign(rows: list[Row], key: str) -> list[Row]:
    signer = open_signer(key)
    return [(*row[:9], signer.sign(signed_bytes(row[8]))) for row in rows]


def test_signed_entries_verify_with_the_key_and_say_which(signed):
    """``pinned`` with a key that was given, ``own`` with the one the ledger names, which proves less."""
    rows, public = signed
    pinned, own = verify(rows, check=open_check(public)), verify(rows, find_check=find_check)

    assert pinned
    assert own
    assert (pinned.signatures, own.signatures) == ("pinned", "own")
    assert not any("rewrite" in item for item in pinned.unseen)
    assert any("rewrite" in item for item in own.unseen)
    assert verify(rows).signatures == "unchecked"


@pytest.mark.slow
@pytest.mark.no_cover
def test_every_change_of_a_signed_ledger_is_found(signed):
    """Bytes of every column, signatures included, with the pinned key and with the ledger's own."""
    rows, public = signed
    random = Random(3)
    check = open_check(public)
    for _ in range(1_000):
        place, at = random.randrange(30), random.randrange(len(COLUMNS))
        changed = replace(rows, place, **{COLUMNS[at]: change_byte(rows[place][at], random)})
        assert verify(changed, check=check).seq == place + 1
        assert not verify(changed, find_check=find_check)


def test_a_rewrite_is_found_by_the_signatures(signed, tmp_path):
    """Hashes can be recomputed and signatures cannot, nor left out, nor made with another key."""
    rows, public = signed
    check = open_check(public)
    rewritten = rehash(replace(rows, 4, payload=b"{}"))
    unsigned: list[Row] = [(*row[:9], None) for row in rewritten]
    other = create_signing_key(tmp_path / "other.pem")
    own_key = replace(unsigned, 0, payload=f'{{"public_key":"{other}","schema":"adjudge/ledger/1"}}'.encode())
    resigned = sign(rehash(own_key), str(tmp_path / "other.pem"))

    assert (verify(rewritten, check=check).code, verify(rewritten, check=check).seq) == ("signature_invalid", 5)
    assert verify(unsigned, check=check).code == "signature_missing"
    assert verify(resigned, check=check).code == "signature_invalid"
    assert verify(resigned, find_check=find_check).valid  # which is why the key has to be pinned


def test_a_ledger_that_names_no_key_has_no_signatures():
    """A signature nobody asked for is a change like any other."""
    verification = verify(replace(ROWS[:5], 3, signature="00"))

    assert (verification.code, verification.seq) == ("signature_unexpected", 4)


# ---------------------------------------------------------------- erasure


def erased(rows: list[Row], place: int, **members: Any) -> list[Row]:
    """A payload gone, and an entry at the end that records it."""
    gone = replace(rows, place, payload=None)
    about = {"payload_hash": rows[place][6], "seq": place + 1} | members
    payload = json.dumps(about, sort_keys=True, separators=(",", ":")).encode()
    last: Row = (0, "id-e", rows[-1][2], "erasure", rows[place][1], payload, sha256(payload).hexdigest(), "", "", None)
    return rehash([*gone, last])


def test_an_erasure_is_told_from_a_loss():
    """A payload that is gone is ``erased`` where an entry records it, and ``payload_missing`` where none does."""
    rows = ROWS[:20]
    verification, lost = verify(erased(rows, 4)), verify(replace(rows, 4, payload=None))

    assert verification
    assert verification.erased == {5: 21}
    assert (lost.code, lost.seq) == ("payload_missing", 5)
    assert (verify(erased(rows, 4)[:-1]).code, verify(erased(rows, 4)[:-1]).seq) == ("payload_missing", 5)


def test_an_erasure_excuses_the_payload_it_names_and_no_other():
    """A record with another place or another hash is found, whether or not that payload is gone."""
    rows = ROWS[:20]

    for members in ({"payload_hash": "0" * 64}, {"seq": 7}, {"seq": 21}, {"seq": 99}, {"seq": 0}, {"seq": -1}):
        verification = verify(erased(rows, 4, **members))
        assert (verification.code, verification.seq) == ("erasure_unfounded", 21), members
    for members in ({"seq": [5]}, {"seq": True}, {"seq": 5.0}, {"payload_hash": None}, {"payload_hash": "no"}):
        assert not verify(erased(rows, 4, **members)), members


def test_a_record_kept_ready_for_another_payload_is_found():
    """One that names an entry that is still there has to name the hash that this entry has."""
    rows = ROWS[:20]
    kept = replace(erased(rows, 4), 4, payload=rows[4][5])
    other = replace(erased(rows, 4, payload_hash=rows[6][6]), 4, payload=rows[4][5])

    assert verify(rehash(kept))
    assert verify(rehash(other)).code == "erasure_unfounded"


def test_a_sum_of_erasures_names_those_before_it():
    """An entry that says of more erasures than there are, or of others, is found; it excuses nothing by itself."""
    rows = erased(ROWS[:20], 4)
    for bodies, records, found in ((1, [21, 21], True), (2, [21, 21], False), (1, [3, 4], False), (0, None, True)):
        about = {"schema": "adjudge/erasure/2", "bodies": bodies, "records": records, "seq": 7}
        payload = json.dumps(about, sort_keys=True, separators=(",", ":")).encode()
        last: Row = (0, "id-f", rows[-1][2], "erasure", "", payload, sha256(payload).hexdigest(), "", "", None)
        verification = verify(rehash([*rows, last]))
        assert bool(verification) is found, (bodies, records)
        assert found or (verification.code, verification.seq) == ("erasure_unfounded", 22)
        lost = verify(rehash([*replace(rows, 6, payload=None), last]))
        assert not lost


def test_the_chain_begins_with_zeros():
    """The genesis entry names no hash before it."""
    assert ROWS[0][7] == NO_PREV == "0" * 64
