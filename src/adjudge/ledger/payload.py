"""The record of a value: its kind, the texts of it that are kept, and the canonical bytes.

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
from adjudge.formats.plain import to_plain
from adjudge.formats.record import is_record, list_members
from adjudge.formats.text import clean
from adjudge.ledger.entry import KINDS

StoreContent = Literal["hash", "redacted", "full", "held"]

STORE_CONTENT: tuple[StoreContent, ...] = get_args(StoreContent)


MOST_BYTES = 10_000_000
"""The largest payload that is recorded, in bytes of canonical JSON."""

MOST_SUBJECT = 1_000
"""The longest subject, in characters."""

_LARGEST = 2**53 - 1
"""The largest integer every reader of JSON reads exactly; RFC 8785 has none beyond."""


_DIGEST = re.compile("sha256:[0-9a-f]{64}")

_STORABLE = frozenset((bool, type(None)))


_RESULTS = ("adjudge/result/1", "adjudge/chain-result/1")

_QUOTING = ("detail", "raw_response", "earlier_responses", "reasoning", "suggestions", "value")
"""Members of a result that are, or can quote, the content or a reply to it."""

_VERDICTS = ("adjudge/creation-verdict/1", "adjudge/review-verdict/1")
"""Verdicts on forged tools: the reviewer's words can quote the tool."""

_QUOTING_INSIDE = {
    "criteria": ("reasoning", "evidence"),
    "parts": ("reasoning", "evidence"),
    "rule_results": ("message", "metadata"),
}

_OWN_KINDS = ("genesis", "erasure")
"""The kinds that only the ledger itself writes: an erasure somebody appended by hand would excuse a payload that was
removed."""

_KIND_OF = {"result": "result", "chain-result": "result", "decision": "decision", "run": "run"}


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
"""Returns what is kept of a text that can quote the content."""


def choose_keep(store_content: str, redact: Callable[[str], str] | None) -> Keep:
    """Choose what ``store_content`` does with a text; raises ``UsageError`` for what cannot be done."""
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
"""Bytes, as JSON, of what was judged in one entry; the rest of a payload is for what was said of it."""


def keep_judged(texts: Mapping[str, str], keep: Keep) -> dict[str, str]:
    """Return what was judged as an entry keeps it.

    Of texts that do not fit into an entry together, the longest are kept as digests: an entry that could not be written
    would block a content that may pass.
    """
    kept = {name: keep(text) for name, text in texts.items()}
    sizes = {name: 6 * len(text) for name, text in kept.items()}  # no character takes more as JSON
    if sum(sizes.values()) > MOST_JUDGED:
        sizes = {name: len(write_string(text).encode("utf-8", "backslashreplace")) for name, text in kept.items()}
    for name in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if sum(sizes.values()) <= MOST_JUDGED:
            break
        kept[name], sizes[name] = digest(kept[name]), 0
    return kept


def digest(text: str) -> str:
    """A text's SHA-256 as it stands in place of the text; nothing stays nothing."""
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}" if text else ""


def is_digest(text: str) -> bool:
    """Return whether a text is a digest in place of one."""
    return _DIGEST.fullmatch(text) is not None


def drop_digests(data: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of an entry without the texts of which it holds only the digest, to go on with what it says.

    Kept, they would be read as what a judge wrote, and recorded as the digest of a digest.
    """
    kept: dict[str, Any] = _keep_texts(dict(data), lambda text: "" if is_digest(text) else text)
    return kept


def make_draft(value: Any, keep: Keep, *, kind: str | None, subject: str | None, more: Mapping[str, Any]) -> Draft:
    """Make the entry of a value; raises ``UsageError`` when it cannot be."""
    if is_record(value):
        return _draft_record(value, keep, kind=kind, subject=subject, more=more)
    data = to_plain(value)
    if isinstance(value, Mapping) and not isinstance(data, dict):
        raise UsageError(f"a ledger cannot record this {type(value).__name__}: {data}; hand in less")
    if not isinstance(data, dict):
        raise UsageError(f"a ledger records results and mappings, got {type(value).__name__}; wrap it in a mapping")
    known = kind if kind is not None else _find_kind(data)
    check_kind(known)
    if kind is None and not hasattr(value, "to_dict"):  # a mapping of the caller's, which names its kind itself
        data.pop("kind", None)
    about = subject if subject is not None else _find_subject(data)
    check_text("subject", about)
    kept = _keep_texts(data, keep) | {name: item for name, item in more.items() if item is not None}
    return write_draft(known, about, kept)


def _draft_record(record: Any, keep: Keep, *, kind: str | None, subject: str | None, more: Mapping[str, Any]) -> Draft:
    """Make the entry of a record; ``more`` are members that replace its own.

    Raises ``UsageError`` for a kind or a subject that cannot be recorded, and for a payload that is too long.
    """
    odd: list[Any] = []
    members = _store_record(record, keep, odd)
    known = kind if kind is not None else _find_kind(members)
    check_kind(known)
    about = subject if subject is not None else _find_subject(members)
    check_text("subject", about)
    members |= {name: _make_storable(text, odd) for name, text in more.items() if text is not None}
    return Draft(kind=known, subject=about, members=members, payload=_encode(members, odd))


def write_draft(kind: str, subject: str, data: Mapping[str, Any]) -> Draft:
    """Make the entry of plain data; raises ``UsageError`` when it is too long."""
    odd: list[Any] = []
    storable = _make_storable(data, odd)
    return Draft(kind=kind, subject=subject, members=storable, payload=_encode(storable, odd))


def encode_payload(data: Mapping[str, Any]) -> bytes:
    """The canonical bytes (RFC 8785) of plain data; raises ``UsageError`` when there are too many."""
    odd: list[Any] = []
    return _encode(_make_storable(data, odd), odd)


def _encode(storable: Any, odd: list[Any]) -> bytes:
    """Write the canonical bytes of storable data; ``odd`` holds what only an encoder for RFC 8785 writes rightly.

    Raises ``UsageError`` for more than ``MOST_BYTES``.
    """
    if odd:
        import rfc8785

        written = rfc8785.dumps(storable)
    else:
        # The same bytes, many times faster: what the two encoders write differently is what is odd.
        import msgspec

        written = msgspec.json.encode(storable, order="sorted")
    if len(written) > MOST_BYTES:
        raise UsageError(f"a payload has at most {MOST_BYTES:,} bytes, this one {len(written):,}; record its digest")
    return written


def check_kind(kind: object) -> None:
    """Raise ``UsageError`` for a kind nobody may append."""
    if kind in KINDS and kind not in _OWN_KINDS:
        return
    near = get_close_matches(str(kind), KINDS, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(KINDS)}"
    if kind in _OWN_KINDS:
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
    """Return whether every store can hold a text exactly, and so be asked for it."""
    if text.isascii():
        return "\0" not in text
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        return False
    return "\0" not in text  # which no text of PostgreSQL holds


def _find_kind(data: Mapping[str, Any]) -> str:
    """Find the kind by the member ``kind``, else by the noun in the schema.

    Raises ``UsageError`` where neither names one.
    """
    noun = str(data.get("schema", "")).split("/")[1:2]
    kind = data.get("kind") or _KIND_OF.get(noun[0] if noun else "")
    if not isinstance(kind, str):
        raise UsageError(
            "what is recorded needs ", Argument("kind"), ", such as run, or a member of this name", argument="kind"
        )
    return kind


def _find_subject(data: Mapping[str, Any]) -> str:
    inner = data.get("result")
    subject = data.get("subject") or (inner.get("subject") if isinstance(inner, Mapping) else None)
    return subject if isinstance(subject, str) else ""


def _store_record(record: Any, keep: Keep, odd: list[Any], quoting: tuple[str, ...] = ()) -> dict[str, Any]:
    """Write a record in storable form: what its ``to_dict`` returns, with its ``quoting`` texts kept.

    In one pass, because every decision of a gate is recorded: one after the other, the three took four times as long.
    """
    members = list_members(record)
    is_result = members.get("schema") in _RESULTS
    if keep is not str:
        for name in _QUOTING if is_result else quoting:
            text = members[name]
            if text or type(text) is str:  # what else is empty quotes nothing
                members[name] = keep(text) if type(text) is str else _replace(to_plain(text), keep)
    for name, value in members.items():
        kind = type(value)
        if kind in _STORABLE or (kind is str and value.isascii()) or (kind is float and 1e-4 <= value < 1):
            continue
        if not value and kind in (tuple, dict):
            members[name] = [] if kind is tuple else {}
        elif kind is datetime:
            members[name] = value.isoformat()
        elif is_record(value):
            members[name] = _store_record(value, keep, odd)
        elif kind is tuple and is_record(value[0]):
            inside = _QUOTING_INSIDE.get(name, ()) if is_result else ()
            members[name] = [_store_record(item, keep, odd, inside) for item in value]
        else:
            plain = to_plain(value)
            members[name] = _make_storable(plain if is_result else _keep_texts(plain, keep), odd)
    return members


def _keep_texts(node: Any, keep: Keep) -> Any:
    """Copy data, with the texts of every result and verdict in it handed to ``keep``."""
    if keep is str:
        return node
    if isinstance(node, list):
        return [_keep_texts(item, keep) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("schema") not in _RESULTS:
        kept = {name: _keep_texts(item, keep) for name, item in node.items()}
        if node.get("schema") in _VERDICTS:
            _replace_texts(kept, ("reasoning",), keep)
        return kept
    kept = dict(node)
    _replace_texts(kept, _QUOTING, keep)
    for name, members in _QUOTING_INSIDE.items():
        if name == "parts" and name not in kept:
            continue  # a result without parts has no such member
        kept[name] = [dict(item) if isinstance(item, dict) else item for item in kept.get(name) or ()]
        for item in kept[name]:
            _replace_texts(item, members, keep)
    if "results" in kept:
        kept["results"] = _keep_texts(kept["results"], keep)
    return kept


def _replace_texts(data: dict[str, Any], names: tuple[str, ...], keep: Keep) -> None:
    for name in names:
        if name in data:
            data[name] = _replace(data[name], keep)


def _replace(value: Any, keep: Keep) -> Any:
    """Copy a value with each of its texts handed to ``keep``, also the names of members."""
    if isinstance(value, str):
        return keep(value)
    if isinstance(value, list):
        return [_replace(item, keep) for item in value]
    if isinstance(value, dict):  # its names were chosen by whoever wrote the reply, so they can quote as well
        return {_replace(name, keep): _replace(item, keep) for name, item in value.items()}
    return value


def _make_storable(value: Any, odd: list[Any]) -> Any:
    """Give a form to what RFC 8785 has none for: integers beyond 2^53 and half surrogate pairs become text.

    ``odd`` collects what only an encoder made for that standard writes as it says.
    """
    kind = type(value)
    if kind is str:
        # The escape stands there as text. Nothing is dropped, and nothing that was paid for stays unrecorded.
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if kind is dict:
        if not all(map(str.isascii, value)):  # sorted by UTF-16 units there, and by bytes here
            odd.append(value)
            return {_make_storable(name, odd): _make_storable(item, odd) for name, item in value.items()}
        # What most members are is looked for here: a call for each would take longer than all the rest.
        return {
            name: item
            if (held := type(item)) in _STORABLE
            or (held is str and item.isascii())
            or (held is float and 1e-4 <= item < 1)
            else _make_storable(item, odd)
            for name, item in value.items()
        }
    if kind is list:
        return [_make_storable(item, odd) for item in value]
    if kind is float:
        return _make_float(value, odd)
    return value if kind is bool or value is None else _make_leaf(value, odd)


def _make_leaf(value: Any, odd: list[Any]) -> Any:
    if isinstance(value, int):
        return int(value) if abs(value) <= _LARGEST else _encode_integer(int(value))
    # A text or number of the caller's own type, which is recorded as what it is derived from.
    return _make_storable(str.__str__(value), odd) if isinstance(value, str) else _make_float(float(value), odd)


def _make_float(value: float, odd: list[Any]) -> float | int:
    if abs(value) <= _LARGEST and value.is_integer():
        return int(value)  # the standard writes no point, and no minus before zero
    if not 1e-4 <= abs(value) < 1e15:  # from where on some encoders write exponents
        odd.append(value)
    return value


def _encode_integer(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # more digits than Python writes in linear time
        return hex(value)
