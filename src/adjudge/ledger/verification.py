"""The check of a chain of entries: what is in order, the first that is not, and what could not be seen. Pure.

What an entry's hash covers is decided in ``entry.py`` (``hash_entry``).
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any, Literal, Self

from adjudge.errors import UsageError
from adjudge.formats.text import clean
from adjudge.ledger.entry import (
    HASH,
    LEDGER_SCHEMA,
    NO_PREV,
    PAYLOAD_HASH,
    SEQ,
    Head,
    Row,
    hash_entry,
    signed_bytes,
)

Code = Literal[
    "empty",
    "not_a_genesis",
    "sequence_broken",
    "chain_broken",
    "payload_changed",
    "payload_missing",
    "entry_changed",
    "erasure_unfounded",
    "signature_missing",
    "signature_invalid",
    "signature_unexpected",
    "head_changed",
    "head_missing",
    "unreadable",
    "columns_changed",
]
"""The reasons for which a ledger does not verify."""


Signatures = Literal["pinned", "own", "unchecked", "none"]

ERASURES_SCHEMA = "adjudge/erasure/2"
"""The schema of the entry that sums up the erasures of everything about one subject or customer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The result of verifying a ledger: whether it is unchanged, and what the check could not see."""

    valid: bool
    """True if every entry is as it was recorded."""
    entries: int
    """The number of entries that were found to be in order, from the first."""
    code: Code | None = None
    """The reason for which it is not valid; ``None`` when it is."""
    seq: int | None = None
    """The first bad entry, by its place counted from 1."""
    detail: str = ""
    """One sentence on the first bad entry."""
    head: Head | None = None
    """The last entry that was found in order."""
    pinned_head: bool = False
    """True if a head kept elsewhere was compared."""
    signatures: Signatures = "none"
    """``pinned``: checked with the key that you gave; ``own``: checked with the key that the ledger itself names, which
    an attacker who rewrites the ledger can replace; ``unchecked``: there are signatures, and no key to check them with;
    ``none``: there are none.
    """
    erased: dict[int, int] = field(default_factory=dict)
    """Entries whose payload was erased, each with the entry that records the erasure."""

    def __bool__(self) -> bool:
        # Without this every verification is true, and `if await ledger.verify()` accepts a forged one.
        return self.valid

    @property
    def unseen(self) -> tuple[str, ...]:
        """The changes that this check could not have seen, one sentence each."""
        changes = () if self.pinned_head else ("entries dropped from the end, because no head was pinned",)
        if self.signatures != "pinned" and not self.pinned_head:
            changes += ("a rewrite with recomputed hashes, because neither a head nor a public key was given",)
        elif self.signatures != "pinned":
            changes += ("a rewrite of what follows the pinned head, because no public key was given",)
        return changes

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        # Not by ``write_record``: JSON has no numbers as keys, as those of ``erased`` are, and a head has a form of its
        # own.
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["head"] = self.head.to_dict() if self.head else None
        data["erased"] = {str(seq): by for seq, by in self.erased.items()}
        return {"schema": "adjudge/ledger-verification/1"} | data | {"unseen": list(self.unseen)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The verification whose ``data`` ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        # By hand because of ``erased`` and ``head``, as in ``to_dict``.
        members = {name: item for name, item in data.items() if name != "unseen"} if isinstance(data, Mapping) else {}
        if members.pop("schema", None) != "adjudge/ledger-verification/1":
            raise UsageError("a verification is read from a dictionary of schema adjudge/ledger-verification/1")
        try:
            members["head"] = None if members["head"] is None else Head.parse(json.dumps(members["head"]))
            members["erased"] = {int(seq): int(by) for seq, by in members["erased"].items()}
            verification = cls(**members)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"this is not a dictionary that to_dict wrote: {type(error).__name__}") from None
        # ``valid`` has to be a boolean, or a text such as "false" would count as true. There is a code if it is false.
        has_code_if_invalid = (verification.valid, verification.code is None) in ((True, True), (False, False))
        if not has_code_if_invalid or not _has_exact_types(verification):
            raise UsageError("this is not a dictionary that to_dict wrote: its members contradict one another")
        return verification


def _has_exact_types(verification: Verification) -> bool:
    """Return whether the members that programs decide by have exactly their types."""
    return (
        type(verification.valid) is bool
        and type(verification.pinned_head) is bool
        and type(verification.entries) is int
    )


SignatureCheck = Callable[[str, bytes], bool]
"""Checks that a signature, in hexadecimal, is one of some bytes."""

Problem = tuple[Code, str]


class Chain:
    """A check of a chain of entries that is in progress, and what it has seen so far."""

    def __init__(
        self,
        *,
        head: Head | None = None,
        check: SignatureCheck | None = None,
        find_check: Callable[[str], SignatureCheck | None] = lambda _: None,
    ) -> None:
        """``check`` checks signatures with a key that the caller trusts.

        Without it, ``find_check`` makes a check with the key that the genesis entry names.
        """
        self.pinned = head
        self.signatures: Signatures = "none" if check is None else "pinned"
        self.seq = 0
        self.hash: str = NO_PREV
        self._check, self._find_check = check, find_check
        self._missing_payloads: dict[int, str] = {}
        """The payload hashes of the entries without a payload for which no erasure has been found yet, by place."""
        self._erased: dict[int, int] = {}
        self._payload_hash_starts = array("Q")
        """The beginning of the hash of each payload, as a number: eight bytes an entry, of which there are millions."""
        self._erasure_seqs: list[int] = []
        """The places of the records of single erasures."""

    def verify(self, rows: Iterable[Row]) -> Verification:
        """Check rows from the first on, up to the first that is not in order, and return the verification."""
        problem: Problem | None = None
        for row in rows:
            try:
                problem = self._check_row(row)
                self._payload_hash_starts.append(_read_hash_start(row[PAYLOAD_HASH]))
            except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
                problem = "unreadable", "holds what no ledger of ours has written"
            if problem is not None:
                return self._make_verification(problem, self.seq + 1)
            self.seq, self.hash = row[SEQ], row[HASH]
        return self.finish()

    def break_off(self, cause: str) -> Verification:
        """Return the verification for a ledger whose next entry cannot be read because of ``cause``."""
        return self._make_verification(("unreadable", f"cannot be read: {cause}"), self.seq + 1)

    def finish(self) -> Verification:
        """Return the verification after the last row, if every row was in order by itself."""
        if self.seq == 0:
            return self._make_verification(("empty", "is missing: a ledger begins with a genesis entry"), 1)
        if self._missing_payloads:
            return self._make_verification(
                ("payload_missing", "has lost its payload, and no erasure is recorded"), min(self._missing_payloads)
            )
        if self.pinned is not None and self.seq < self.pinned.seq:
            detail = f"is missing: the pinned head is entry {self.pinned.seq}, and the ledger ends before it"
            return self._make_verification(("head_missing", detail), self.seq + 1)
        return self._make_verification(None, None)

    def _make_verification(self, problem: Problem | None, seq: int | None) -> Verification:
        """Make the verification for a problem at the entry ``seq``; both are ``None`` for a chain in order."""
        return Verification(
            valid=problem is None,
            entries=self.seq if seq is None else seq - 1,
            code=problem[0] if problem else None,
            seq=seq,
            detail=f"entry {seq} {problem[1]}" if problem else "",
            head=Head(seq=self.seq, hash=self.hash) if self.seq else None,
            pinned_head=self.pinned is not None,
            signatures=self.signatures,
            erased=dict(self._erased),
        )

    def _check_row(self, row: Row) -> Problem | None:
        """Check an entry, also against the one before it.

        Return the code and the description of what is wrong, or ``None``.
        """
        seq, ident, at, kind, subject, payload, payload_hash, prev, entry_hash, signature = row
        if seq != self.seq + 1 or type(seq) is not int:
            return "sequence_broken", f"is missing or out of place: {clean(repr(seq)[:40])} is there"
        if prev != self.hash:
            return "chain_broken", "does not follow the entry before it: the hash it names is another"
        if payload is not None and sha256(payload).hexdigest() != payload_hash:
            return "payload_changed", "has another payload than was recorded"
        if hash_entry(seq, ident, at, kind, subject, payload_hash, prev) != entry_hash:
            return "entry_changed", "is not what its hash says"
        problem = None
        if seq == 1:
            problem = self._check_genesis(kind, payload)
        if problem is None and payload is None:
            self._missing_payloads[seq] = payload_hash
        if problem is None and kind == "erasure":
            problem = self._check_erasure(seq, payload)
        if problem is None and (signature is not None or self._check is not None):
            problem = self._check_signature(entry_hash, signature)
        pinned = self.pinned
        if problem is None and pinned is not None and seq == pinned.seq and entry_hash != pinned.hash:
            return "head_changed", "is not the entry that was pinned as head"
        return problem

    def _check_genesis(self, kind: str, payload: bytes | None) -> Problem | None:
        """Check the first entry, and return what is wrong, or ``None``.

        If the caller gave no key, signatures are checked with the key that this entry names.
        """
        if kind != "genesis" or payload is None:
            return "not_a_genesis", "is not a genesis entry, so the beginning of the ledger is missing"
        data = json.loads(payload)
        if data["schema"] != LEDGER_SCHEMA:
            return "not_a_genesis", f"begins a ledger of schema {clean(repr(data['schema'])[:60])}, not {LEDGER_SCHEMA}"
        public_key = data["public_key"]
        if public_key is not None and self._check is None:
            self._check = self._find_check(public_key)
            self.signatures = "unchecked" if self._check is None else "own"
        return None

    def _check_erasure(self, seq: int, payload: bytes | None) -> Problem | None:
        """Check an entry that records an erasure, and return what is wrong, or ``None``.

        It has to name an earlier entry and the hash of its payload. That payload then counts as erased.
        """
        data = json.loads(payload or b"{}")
        if data.get("schema") == ERASURES_SCHEMA:
            return self._check_erasures(data)
        erased_seq, erased_hash = data["seq"], data["payload_hash"]
        # The payload may still be there, if the erasure was cut short or the payload was restored from a copy. The
        # entry and the hash must be right all the same: else somebody could append a record for a later entry, and then
        # remove that entry's payload.
        is_before = type(erased_seq) is int and 0 < erased_seq < seq
        if (
            not is_before
            or self._payload_hash_starts[erased_seq - 1] != _read_hash_start(erased_hash)
            or self._missing_payloads.get(erased_seq, erased_hash) != erased_hash
        ):
            return "erasure_unfounded", "records the erasure of another payload than the entry that it names had"
        self._erasure_seqs.append(seq)
        if self._missing_payloads.pop(erased_seq, None) is not None:
            self._erased[erased_seq] = seq
        return None

    def _check_erasures(self, data: Mapping[str, Any]) -> Problem | None:
        """Check an entry that sums up several erasures, and return what is wrong, or ``None``.

        Its ``records`` are the first and the last place of the entries that record them, its ``bodies`` is their
        number.
        """
        first, last = data["records"] or (0, -1)
        if sum(first <= place <= last for place in self._erasure_seqs) != data["bodies"]:
            return "erasure_unfounded", "sums up erasures that are not recorded before it"
        return None

    def _check_signature(self, entry_hash: str, signature: str | None) -> Problem | None:
        """Check the signature of an entry and return what is wrong, or ``None``.

        Without a key to check with, an entry may be signed only where the genesis entry names a key.
        """
        if self._check is None:
            names_key = self.signatures == "unchecked"
            return None if names_key else ("signature_unexpected", "is signed, and this ledger was begun without a key")
        if signature is None:
            return "signature_missing", "is not signed"
        if not self._check(signature, signed_bytes(entry_hash)):
            return "signature_invalid", "has a signature that is not of the key"
        return None


def _read_hash_start(payload_hash: str) -> int:
    """Read the first 8 bytes of a hash, 16 hexadecimal digits, as a number."""
    return int(payload_hash[:16], 16)


def find_columns_changed(verification: Verification, differences: Sequence[tuple[int, str]]) -> Verification:
    """Return a verification that fails for the first difference between the entries and the columns beside them.

    If the entries themselves are not in order, or there is no difference, it is returned as it is.
    """
    if not verification.valid or not differences:
        return verification
    seq, difference = differences[0]
    remedy = "find out who changed it, and only then have `adjudge ledger upgrade` derive what is listed anew"
    detail = f"entry {seq} {difference}; {remedy}"
    return replace(verification, valid=False, code="columns_changed", seq=seq, detail=detail)


def call_for_each(rows: Iterable[Row], each: Callable[[Row], object]) -> Generator[Row]:
    """Yield the same rows, and call ``each`` with a row when the next one is asked for.

    By then whoever checks the rows has found that one in order.
    """
    for row in rows:
        yield row
        each(row)
