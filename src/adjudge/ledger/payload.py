"""The payload that a ledger records for a value: its kind, which of its texts are kept, and its canonical bytes.

The texts of a result can quote what was judged, so by default a ledger keeps their digests and not the texts. Scores,
outcomes, reasons and names are never touched: they are what a decision is explained with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from hashlib import sha256
from json.encoder import encode_basestring as write_string
from typing import Any, Literal, get_args

from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice
from adjudge.formats.plain_data import to_plain
from adjudge.formats.record import is_record, list_members
from adjudge.formats.text import clean
from adjudge.ledger.entry import KINDS

StoreContent = Literal["hash", "redacted", "full", "held"]

STORE_CONTENT: tuple[StoreContent, ...] = get_args(StoreContent)


MOST_BYTES = 10_000_000
"""The largest payload that is recorded, in bytes of canonical JSON."""

MOST_SUBJECT = 1_000
"""The longest subject, in characters."""

_LARGEST_INTEGER = 2**53 - 1
"""The largest integer every reader of JSON reads exactly; RFC 8785 has none beyond."""


_DIGEST = re.compile("sha256:[0-9a-f]{64}")

_STORABLE_TYPES = frozenset((bool, type(None)))


_RESULT_SCHEMAS = ("adjudge/result/1", "adjudge/chain-result/1")

_QUOTING_MEMBERS = ("detail", "raw_response", "earlier_responses", "reasoning", "suggestions", "value")
"""Members of a result that are, or can quote, the content or a reply to it."""

_VERDICT_SCHEMAS = ("adjudge/creation-verdict/1", "adjudge/review-verdict/1")
"""Verdicts on forged tools: the reviewer's words can quote the tool."""

_NESTED_QUOTING_MEMBERS = {
    "criteria": ("reasoning", "evidence"),
    "parts": ("reasoning", "evidence"),
    "rule_results": ("message", "metadata"),
}

_RESERVED_KINDS = ("genesis", "erasure")
"""The kinds that only the ledger itself writes: by an erasure that somebody appended, a payload that was removed would
look as if it had been erased properly."""

_KIND_OF_NOUN = {"result": "result", "chain-result": "result", "decision": "decision", "run": "run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An entry that is not written yet; writing it adds its place, time and hash."""

    kind: str
    """The kind of entry that is recorded, such as ``decision`` or ``result``."""
    subject: str
    """The subject of the entry, usually the digest of a content."""
    members: Mapping[str, Any]
    """The members of the payload, as its bytes are read back."""
    payload: bytes
    """The canonical bytes that are recorded."""


Keep = Callable[[str], str]
"""A function that returns what a ledger keeps of a text that can quote the content: the text, its digest, or its
redacted form."""


def choose_keep(store_content: str, redact: Callable[[str], str] | None) -> Keep:
    """Return the function that ``store_content`` applies to a text that can quote the content.

    Raises ``UsageError`` for an unknown choice, and where ``redacted`` and a function ``redact`` are not given
    together.
    """
    check_choice("store_content", store_content, STORE_CONTENT)
    if (store_content == "redacted") != (redact is not None):
        raise UsageError(
            Argument("store_content", "'redacted'"),
            " and ",
            Argument("redact"),
            ", a function from text to text, need each other",
            argument="redact",
        )
    return {"full": str}.get(store_content, redact or digest)


MOST_JUDGED = 8_000_000
"""The most bytes, as JSON, that the judged texts of one entry may have; the other members of its payload need room."""


def keep_judged(texts: Mapping[str, str], keep_text: Keep) -> dict[str, str]:
    """Return the texts that were judged, as an entry keeps them.

    If they do not fit into an entry together, the longest are kept as digests: otherwise the entry could not be
    written, and a content that may pass would be blocked.
    """
    kept = {name: keep_text(text) for name, text in texts.items()}
    # An upper limit first: no character takes more than 6 bytes as JSON.
    sizes = {name: 6 * len(text) for name, text in kept.items()}
    if sum(sizes.values()) > MOST_JUDGED:
        sizes = {name: len(write_string(text).encode("utf-8", "backslashreplace")) for name, text in kept.items()}
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if sum(sizes.values()) <= MOST_JUDGED:
            break
        kept[name], sizes[name] = digest(kept[name]), 0
    return kept


def digest(text: str) -> str:
    """Compute the SHA-256 of a text, in the form that is kept in place of the text; empty for an empty text."""
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}" if text else ""


def is_digest(text: str) -> bool:
    """Return whether a text is a digest that is kept in place of another text."""
    return _DIGEST.fullmatch(text) is not None


def drop_digests(data: Mapping[str, Any]) -> dict[str, Any]:
    """Copy the payload of an entry, with an empty text in place of each digest that is kept in place of a text.

    A caller that records the payload again would otherwise record the digest of a digest, or show it as a judge's
    words.
    """
    without_digests: dict[str, Any] = _keep_texts(dict(data), lambda text: "" if is_digest(text) else text)
    return without_digests


def make_draft(value: Any, keep_text: Keep, *, kind: str | None, subject: str | None, more: Mapping[str, Any]) -> Draft:
    """Make the entry of a value, with ``keep_text`` applied to texts that can quote the content.

    ``more`` are members to add; those that are ``None`` are left out. Raises ``UsageError`` for a value that cannot be
    recorded.
    """
    if is_record(value):
        return _draft_record(value, keep_text, kind=kind, subject=subject, more=more)
    data = to_plain(value)
    if isinstance(value, Mapping) and not isinstance(data, dict):
        raise UsageError(f"a ledger cannot record this {type(value).__name__}: {data}; hand in less")
    if not isinstance(data, dict):
        raise UsageError(f"a ledger records results and mappings, got {type(value).__name__}; wrap it in a mapping")
    entry_kind = kind if kind is not None else _find_kind(data)
    check_kind(entry_kind)
    if kind is None and not hasattr(value, "to_dict"):
        # The value is a mapping of the caller's, whose member names the kind of the entry and is not recorded itself.
        data.pop("kind", None)
    entry_subject = subject if subject is not None else _find_subject(data)
    check_text("subject", entry_subject)
    kept_members = _keep_texts(data, keep_text) | {name: item for name, item in more.items() if item is not None}
    return write_draft(entry_kind, entry_subject, kept_members)


def _draft_record(
    record: Any, keep_text: Keep, *, kind: str | None, subject: str | None, more: Mapping[str, Any]
) -> Draft:
    """Make the entry of a record, as ``make_draft`` does for any value; ``more`` are members that replace its own.

    Raises ``UsageError`` for a kind or a subject that cannot be recorded, and for a payload that is too long.
    """
    special_values: list[Any] = []
    members = _make_record_storable(record, keep_text, special_values)
    entry_kind = kind if kind is not None else _find_kind(members)
    check_kind(entry_kind)
    entry_subject = subject if subject is not None else _find_subject(members)
    check_text("subject", entry_subject)
    members |= {name: _make_storable(text, special_values) for name, text in more.items() if text is not None}
    return Draft(kind=entry_kind, subject=entry_subject, members=members, payload=_encode(members, special_values))


def write_draft(kind: str, subject: str, data: Mapping[str, Any]) -> Draft:
    """Make the entry of plain data. Raises ``UsageError`` for more than ``MOST_BYTES``."""
    special_values: list[Any] = []
    storable = _make_storable(data, special_values)
    return Draft(kind=kind, subject=subject, members=storable, payload=_encode(storable, special_values))


def encode_payload(data: Mapping[str, Any]) -> bytes:
    """Write plain data as canonical JSON (RFC 8785). Raises ``UsageError`` for more than ``MOST_BYTES``."""
    special_values: list[Any] = []
    return _encode(_make_storable(data, special_values), special_values)


def _encode(storable: Any, special_values: list[Any]) -> bytes:
    """Write storable data as canonical JSON (RFC 8785).

    ``special_values`` are the values in it that only an encoder for that standard writes correctly. Raises
    ``UsageError`` for more than ``MOST_BYTES``.
    """
    if special_values:
        import rfc8785

        encoded = rfc8785.dumps(storable)
    else:
        # The same bytes, many times faster: the two encoders write only special values differently.
        import msgspec

        encoded = msgspec.json.encode(storable, order="sorted")
    if len(encoded) > MOST_BYTES:
        raise UsageError(f"a payload has at most {MOST_BYTES:,} bytes, this one {len(encoded):,}; record its digest")
    return encoded


def check_kind(kind: object) -> None:
    """Raise ``UsageError`` for an unknown kind of entry, and for one that only the ledger itself writes."""
    if kind in KINDS and kind not in _RESERVED_KINDS:
        return
    similar_kinds = get_close_matches(str(kind), KINDS, 1)
    hint = f"did you mean {similar_kinds[0]!r}?" if similar_kinds else f"it is one of {', '.join(KINDS)}"
    if kind in _RESERVED_KINDS:
        hint = "the ledger writes that one itself"
    raise UsageError(f"a ledger has no entries of kind {clean(repr(kind)[:80])} to append; {hint}", argument="kind")


def check_text(name: str, text: object) -> None:
    """Raise ``UsageError`` for a text that not every store can hold exactly."""
    if not isinstance(text, str):
        raise UsageError(f"{name} must be a text, got {type(text).__name__}", argument=name)
    if len(text) > MOST_SUBJECT:
        raise UsageError(
            f"{name} has at most {MOST_SUBJECT:,} characters, got {len(text):,}; give its digest", argument=name
        )
    if not can_store(text):
        raise UsageError(
            f"{name} holds a NUL or half a surrogate pair, which cannot be stored: {clean(text)[:80]!r}", argument=name
        )


def can_store(text: str) -> bool:
    """Return whether SQLite and PostgreSQL can both hold a text exactly, and so can search for it."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        return False
    return "\0" not in text  # PostgreSQL stores no NUL


def _find_kind(data: Mapping[str, Any]) -> str:
    """Find the kind of the entry for a value: its member ``kind``, else the kind for the noun in its schema.

    Raises ``UsageError`` where neither names one.
    """
    schema_parts = str(data.get("schema", "")).split("/")  # such as "adjudge", "result" and "1"
    noun = schema_parts[1] if len(schema_parts) > 1 else ""
    kind = data.get("kind") or _KIND_OF_NOUN.get(noun)
    if not isinstance(kind, str):
        raise UsageError(
            "what is recorded needs ", Argument("kind"), ", such as run, or a member of this name", argument="kind"
        )
    return kind


def _find_subject(data: Mapping[str, Any]) -> str:
    """Find the subject of the entry for a value: its own, or that of the ``result`` in it; empty without one."""
    result = data.get("result")
    subject = data.get("subject") or (result.get("subject") if isinstance(result, Mapping) else None)
    return subject if isinstance(subject, str) else ""


def _make_record_storable(
    record: Any, keep_text: Keep, special_values: list[Any], quoting: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Write a record in storable form, with ``keep_text`` applied to its members of the names in ``quoting``.

    The outcome is that of ``to_dict``, ``_keep_texts`` and ``_make_storable`` one after the other. It is done in one
    pass, because every decision of a gate is recorded, and the three took four times as long.
    """
    members = list_members(record)
    is_result = members.get("schema") in _RESULT_SCHEMAS
    if keep_text is not str:  # which keeps texts as they are
        for name in _QUOTING_MEMBERS if is_result else quoting:
            text = members[name]
            if text or type(text) is str:  # an empty list or dictionary quotes nothing
                members[name] = keep_text(text) if type(text) is str else _keep_value(to_plain(text), keep_text)
    for name, value in members.items():
        value_type = type(value)
        if (
            value_type in _STORABLE_TYPES
            or (value_type is str and value.isascii())
            or (value_type is float and 1e-4 <= value < 1)
        ):
            continue
        if not value and value_type in (tuple, dict):
            members[name] = [] if value_type is tuple else {}
        elif value_type is datetime:
            members[name] = value.isoformat()
        elif is_record(value):
            members[name] = _make_record_storable(value, keep_text, special_values)
        elif value_type is tuple and is_record(value[0]):
            nested_quoting = _NESTED_QUOTING_MEMBERS.get(name, ()) if is_result else ()
            members[name] = [_make_record_storable(item, keep_text, special_values, nested_quoting) for item in value]
        else:
            plain_value = to_plain(value)
            members[name] = _make_storable(
                plain_value if is_result else _keep_texts(plain_value, keep_text), special_values
            )
    return members


def _keep_texts(node: Any, keep_text: Keep) -> Any:
    """Copy data, with ``keep_text`` applied to the texts of results and verdicts in it that can quote the content."""
    if keep_text is str:  # which keeps texts as they are
        return node
    if isinstance(node, list):
        return [_keep_texts(item, keep_text) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("schema") not in _RESULT_SCHEMAS:
        kept = {name: _keep_texts(item, keep_text) for name, item in node.items()}
        if node.get("schema") in _VERDICT_SCHEMAS:
            _keep_named_members(kept, ("reasoning",), keep_text)
        return kept
    kept = dict(node)
    _keep_named_members(kept, _QUOTING_MEMBERS, keep_text)
    for name, members in _NESTED_QUOTING_MEMBERS.items():
        if name == "parts" and name not in kept:
            continue  # a result without parts has no such member
        kept[name] = [dict(item) if isinstance(item, dict) else item for item in kept.get(name) or ()]
        for item in kept[name]:
            _keep_named_members(item, members, keep_text)
    if "results" in kept:
        kept["results"] = _keep_texts(kept["results"], keep_text)
    return kept


def _keep_named_members(data: dict[str, Any], names: tuple[str, ...], keep_text: Keep) -> None:
    """Apply ``keep_text`` to the texts in some members of ``data``, in place."""
    for name in names:
        if name in data:
            data[name] = _keep_value(data[name], keep_text)


def _keep_value(value: Any, keep_text: Keep) -> Any:
    """Copy a value, with ``keep_text`` applied to every text in it, also to the names of members."""
    if isinstance(value, str):
        return keep_text(value)
    if isinstance(value, list):
        return [_keep_value(item, keep_text) for item in value]
    if isinstance(value, dict):  # the author of the reply chose its names, so they can quote the content as well
        return {_keep_value(name, keep_text): _keep_value(item, keep_text) for name, item in value.items()}
    return value


def _make_storable(value: Any, special_values: list[Any]) -> Any:
    """Copy plain data; integers beyond 2^53 and half surrogate pairs, which RFC 8785 has no form for, become text.

    ``special_values`` collects the values that only an encoder for that standard writes correctly.
    """
    value_type = type(value)
    if value_type is str:
        # A half surrogate pair becomes the text of its escape: no text is dropped, and no result fails to be recorded.
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if value_type is dict:
        if not all(map(str.isascii, value)):  # RFC 8785 sorts names by UTF-16 units, the fast encoder by bytes
            special_values.append(value)
            return {
                _make_storable(name, special_values): _make_storable(item, special_values)
                for name, item in value.items()
            }
        # The first three conditions hold for most members, which are stored as they are: a call for each of these would
        # take longer than all the rest.
        return {
            name: item
            if (item_type := type(item)) in _STORABLE_TYPES
            or (item_type is str and item.isascii())
            or (item_type is float and 1e-4 <= item < 1)
            else _make_storable(item, special_values)
            for name, item in value.items()
        }
    if value_type is list:
        return [_make_storable(item, special_values) for item in value]
    if value_type is float:
        return _make_float_storable(value, special_values)
    return value if value_type is bool or value is None else _make_scalar_storable(value, special_values)


def _make_scalar_storable(value: Any, special_values: list[Any]) -> Any:
    """Make an integer storable, or a text or number of a type that is derived from Python's own."""
    if isinstance(value, int):
        return int(value) if abs(value) <= _LARGEST_INTEGER else _encode_integer(int(value))
    # A value of the caller's own type is recorded as the text or number that it is derived from.
    return (
        _make_storable(str.__str__(value), special_values)
        if isinstance(value, str)
        else _make_float_storable(float(value), special_values)
    )


def _make_float_storable(value: float, special_values: list[Any]) -> float | int:
    """Return a float as RFC 8785 writes it: without a point where it is whole. Note it if it may need an exponent."""
    if abs(value) <= _LARGEST_INTEGER and value.is_integer():
        return int(value)  # the standard writes no point here, and no minus before zero
    if not 1e-4 <= abs(value) < 1e15:  # outside this range, some encoders write exponents
        special_values.append(value)
    return value


def _encode_integer(value: int) -> str:
    """Write an integer beyond 2^53 as text: in decimal, or in hexadecimal if it has too many digits for Python."""
    try:
        return str(value)
    except ValueError:  # more digits than Python agrees to write in decimal
        return hex(value)
