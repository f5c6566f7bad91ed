"""One entry of a ledger: its bytes and its hashes. Pure: no store, no clock.

An entry's hash covers everything it says but the payload's own bytes, which it covers by their hash, so a payload can
be erased without breaking the chain. Each entry names the hash of the one before; the first is the genesis entry.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring as write_string
from typing import Any, Final, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.text import clean

SCHEMA = "adjudge/ledger-entry/1"

LEDGER_SCHEMA = "adjudge/ledger/1"

HEAD_SCHEMA = "adjudge/ledger-head/1"


Kind = Literal[
    "genesis",
    "result",
    "decision",
    "approval.requested",
    "approval.voted",
    "approval.vote_pending",
    "approval.vote_withdrawn",
    "approval.commented",
    "approval.closed",
    "override",
    "tool.reviewed",
    "tool.promoted",
    "tool.demoted",
    "run.reopened",
    "key.created",
    "key.rotated",
    "key.revoked",
    "run",
    "calibration",
    "certificate",
    "erasure",
    "anchor",
    "call.passed",
    "call.ran",
    "call.unchecked",
    "audit.requested",
    "audit.closed",
    "audit.failed",
    "audit.planted",
    "model.changed",
    "monitor.reset",
    "gate.enforced",
]

KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of entry."""


COLUMNS = ("seq", "id", "at", "kind", "subject", "payload", "payload_hash", "prev", "hash", "signature")

Row = tuple[int, str, str, str, str, bytes | None, str, str, str, str | None]
"""A stored entry, in the order of ``COLUMNS``: verification reads millions, and a tuple is what a driver hands over."""

SEQ: Final = 0
"""The place of the column ``seq`` in a ``Row``; below are those of other columns that are read alone."""
AT: Final = 2
KIND: Final = 3
SUBJECT: Final = 4
PAYLOAD: Final = 5
PAYLOAD_HASH: Final = 6
HASH: Final = 8


NO_PREV = "0" * 64
"""The value that the genesis entry has in place of the hash before it."""


def format_time(moment: datetime) -> str:
    """Write a moment as entries hold it: in UTC, always with six decimals, so that texts sort as moments do.

    Raises ``UsageError`` for a time without a zone.
    """
    if moment.tzinfo is None:
        raise UsageError(f"a time needs a zone, got {moment.isoformat()}; use datetime.now(timezone.utc)")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def hash_entry(seq: int, ident: str, at: str, kind: str, subject: str, payload_hash: str, prev: str) -> str:  # noqa: PLR0917 - in the order of the columns; verifying calls it for every entry
    """Compute the SHA-256 of the canonical JSON (RFC 8785) of everything that an entry says."""
    # Written by hand because it takes most of the time of verifying; tests compare it with an RFC 8785 encoder.
    canonical_json = (
        f'{{"at":{write_string(at)},"id":{write_string(ident)},"kind":{write_string(kind)},'
        f'"payload_hash":{write_string(payload_hash)},"prev":{write_string(prev)},"schema":"{SCHEMA}",'
        f'"seq":{seq},"subject":{write_string(subject)}}}'
    )
    return sha256(canonical_json.encode()).hexdigest()


def signed_bytes(entry_hash: str) -> bytes:
    """Return the bytes that are signed for an entry: its hash, behind the schema so that it signs nothing else."""
    return f"{SCHEMA}\n{entry_hash}".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Place and hash of a ledger's last entry; kept elsewhere, it shows whether entries were dropped or rewritten.

    Args:
        seq: The entry's place, from 1.
        hash: The entry's hash.
    """

    seq: int
    """The entry's place, from 1."""
    hash: str
    """The entry's hash."""

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        # Not by ``write_record``: other programs read heads and entries in the fixed format of docs/ledger.md.
        return {"schema": HEAD_SCHEMA, "seq": self.seq, "hash": self.hash}

    @classmethod
    def parse(cls, text: str) -> Head:
        """A head from ``SEQ:HASH`` or from the JSON of ``to_dict``; raises ``UsageError`` for anything else.

        Args:
            text: The head, as it was written.
        """
        stripped = text.strip()
        try:
            data = json.loads(stripped) if stripped.startswith("{") else _split_head(stripped)
            seq, digest = data["seq"], data["hash"]
            if type(seq) is int and seq > 0 and len(digest) == 64 and int(digest, 16) >= 0:
                return cls(seq=seq, hash=digest)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            pass
        shown_text = clean(repr(stripped[:80]), keep_lines=False)
        raise UsageError(f"a head is SEQ:HASH, or the JSON that `adjudge ledger head --json` writes; got {shown_text}")


def _split_head(text: str) -> dict[str, Any]:
    """Split ``SEQ:HASH`` into its members. Raises ``ValueError`` for anything else."""
    seq, _, digest = text.partition(":")
    return {"seq": int(seq), "hash": digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry as it was recorded."""

    seq: int
    """From 1, without gaps."""
    id: str
    """The id of the entry."""
    at: datetime
    """The time at which it was recorded, by the clock of the machine that did."""
    kind: str
    """The kind of entry that was recorded, such as ``decision`` or ``result``."""
    subject: str
    """The subject of the entry, usually the digest of a content; may be empty."""
    payload: dict[str, Any] | None
    """The payload as it was recorded; ``None`` once it was erased."""
    payload_hash: str
    """SHA-256 of the payload; it stays when the payload is erased."""
    prev: str
    """The hash of the entry before it."""
    hash: str
    """SHA-256 of the entry; the next one names it as ``prev``."""
    signature: str | None = None
    """The Ed25519 signature of the hash; ``None`` where entries are not signed."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        # Not by ``write_record``: the payload is returned as it is stored, and not converted again.
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        return {"schema": SCHEMA} | data | {"at": format_time(self.at)}


def read_entry(row: Row) -> Entry:
    """Read an entry from its row.

    Raises ``UsageError`` for a stored value that no ledger writes; ``Ledger.verify`` says which.
    """
    values: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    try:
        values["at"] = datetime.fromisoformat(values["at"])
        values["payload"] = None if values["payload"] is None else dict(json.loads(values["payload"]))
    except (RecursionError, TypeError, ValueError):
        raise UsageError(f"entry {row[SEQ]} of the ledger cannot be read; `adjudge ledger verify` says why") from None
    return Entry(**values)
