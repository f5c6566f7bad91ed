"""The object in a reply's text: from what a model wrote to what it answers with, or the reason there is none.

``reply.py`` begins with what the provider says of a reply; its text is read here and in the named readers. Nothing is
repaired and nothing is rescued: a reply that almost parses is undecided, because the author of the content may have
made the judge write it. Whether quotations stand in the content, and whether flags fit the scores, is decided in
``score.py``.
Every function here takes time linear in the length of its input.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from adjudge.errors import ReplyError
from adjudge.formats.folding import fold_character
from adjudge.formats.json import MOST_DEPTH, nests_too_deeply

YES_NO_FLAGS = ("safe", "passed", "allowed")
"""Members of which a yes/no reply has at least one."""


FLAGS = (*YES_NO_FLAGS, "approved")
"""Members that say yes or no. Where the form does not have them, one that says no contradicts a pass."""


OTHER_VERDICTS = (
    "pass",
    "fail",
    "failed",
    "unsafe",
    "verdict",
    "decision",
    "outcome",
    "reject",
    "rejected",
    "block",
    "blocked",
    "deny",
    "denied",
)
"""Members that give a verdict of their own. Where the form does not have them, the reply cannot be read. Every other
unknown member of a model's reply is ignored."""


ANY: Mapping[str, Any] = {}
"""The schema of a member whose value is not searched for further verdicts: it is a text, or anything may be in it."""


YES_NO: Mapping[str, Any] = dict.fromkeys((*YES_NO_FLAGS, "reasoning"), ANY)
"""The form of a yes/no reply."""


SCORES = frozenset(("score", "similarityScore"))
"""Members in which NaN and infinity are off the scale, and not merely no JSON."""


_NOT_FINITE = "the reply holds NaN or infinity, which JSON does not have"

_TOKEN_MEMBER = re.compile(r'\{\s*"token"\s*:\s*"')

_LETTER = r"\\u00[0-9a-fA-F]{2}"

_KEY = "".join(rf"(?:{letter}|{_LETTER})" for letter in "token")

_ESCAPED_TOKEN_MEMBER = re.compile(rf'(\{{\s*)?("{_KEY}")\s*:\s*("(?:[a-z2-7]|{_LETTER}){{8}}")')
"""A member that may be called ``token``, and its value, with any of their letters written as an escape; the brace
before it where it is the first of its object."""

_FENCE_OPENING = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n?[ \t\r\n]*\Z")

_DICT_ALONE = {dict}


class TextAfterError(ReplyError):
    """Text follows the object that a reply answers with, and may take it back."""

    def __init__(self) -> None:
        super().__init__("unparseable", "there is text after the reply's object")


def read_object(text: str | None, token: str | None) -> dict[str, Any]:
    """Read the one object a reply answers with.

    With a token, it is the object that begins with that token, found exactly once, with nothing after it but white
    space and the end of a code fence. Without, the object is alone or in one fence, with prose before it or none, and
    nothing after it. Raises ``ReplyError``, and ``TextAfterError`` for text after it.
    """
    reply = text or ""
    if not reply.startswith("{"):  # an object from the first character on is neither empty nor thinking aloud
        reply = _drop_thinking(reply)
        if not reply.strip():
            raise ReplyError("unparseable", "the reply is empty")
    return _read_with_token(reply, token) if token else _read_alone(reply)


def read_value(text: str | None) -> Any:
    """Read the one JSON value that a text is, as strictly as an object in a reply. Raises ``ReplyError``."""
    reply = text or ""
    value, end = _decode_value(reply, 0)
    if end != len(reply):
        raise ReplyError("unparseable", "there is text after the value that was returned")
    return value


def find_object(text: str, token: str | None) -> int:
    """Return the position at which the object begins that ``read_object`` has read from this very text."""
    if token:  # after a think block there is exactly one such object, so it is the last one
        return max(_find_token_starts(text, token), default=0)
    search_start = text.find("</think>") + len("</think>") if text.lstrip().startswith("<think>") else 0
    return max(text.find("{", search_start), 0)


def read_flag(members: Mapping[str, Any], *, names: tuple[str, ...] = YES_NO_FLAGS, need: bool = True) -> bool | None:
    """Read the yes or no that the flags of an object agree on.

    Each flag that is there must be a real boolean, and several must agree (else ``contradiction``). ``names`` are the
    flags that can answer: with ``need``, a reply without one of them is ``unparseable``, and any other flag can only
    contradict. Without ``need`` any flag answers, and it is ``None`` without one. Raises ``ReplyError``.
    """
    present = {name: value for name, value in members.items() if _fold_name(name) in FLAGS}
    for name, value in present.items():
        if not isinstance(value, bool):
            raise ReplyError("unparseable", f"{_show_hostile(name)} must be true or false, got {_show_hostile(value)}")
    if len(set(present.values())) > 1:
        raise ReplyError(
            "contradiction",
            f"the reply says {', '.join(f'{_show_hostile(k)} is {_show_hostile(v)}' for k, v in present.items())}",
        )
    # A flag in another case of letters can contradict, but not answer: the form names it exactly.
    if need and not any(name in present for name in names):
        raise ReplyError("unparseable", f"the reply has none of {', '.join(names)}")
    return next(iter(present.values()), None)


def has_false_flag(members: Mapping[str, Any]) -> bool:
    """Return whether an object has a flag that is false; case and look-alike letters in its name do not matter."""
    return any(value is False and _fold_name(name) in FLAGS for name, value in members.items())


def read_other_flags(reply: Mapping[str, Any], form: Mapping[str, Any]) -> bool | None:
    """Read the flags that the form does not have, at any depth: false if one of them is false, ``None`` without any.

    ``form`` has the JSON Schema of each member, as a ``Wording`` has them. Raises ``ReplyError`` for flags of one
    object that disagree or are no booleans, and for a member of ``OTHER_VERDICTS`` that the form does not have.
    """
    answer: bool | None = None
    to_read: list[tuple[Any, Mapping[str, Any] | None]] = [(reply, {"properties": {**form, "token": ANY}})]
    while to_read:  # a loop and no recursion, because a model decides how deep its reply nests
        value, schema = to_read.pop()
        if isinstance(value, list):
            to_read += [(part, _find_item_schema(schema)) for part in value if isinstance(part, dict | list)]
        else:
            schemas = _find_member_schemas(schema, value)
            unknown = {name: value[name] for name, member_schema in schemas.items() if member_schema is None}
            flag = _read_unknown_flags(unknown)
            answer = flag if answer is not False and flag is not None else answer  # false stays false
            to_read += [(part, schemas[name]) for name, part in value.items() if isinstance(part, dict | list)]
    return answer


def _read_unknown_flags(unknown: Mapping[str, Any]) -> bool | None:
    """Read the flags among members that the form does not have; ``None`` without any.

    Raises ``ReplyError`` for flags that disagree, and for a second verdict.
    """
    if not unknown:
        return None
    for name in unknown:
        if _fold_name(name) in _FOLDED_OTHER_VERDICTS:
            raise ReplyError(
                "unparseable",
                f"the reply gives a second verdict in {_show_hostile(name)}, a member that the form does not have",
            )
    return read_flag(unknown, need=False)


def _find_member_schemas(
    schema: Mapping[str, Any] | None, value: Mapping[str, Any]
) -> dict[str, Mapping[str, Any] | None]:
    """Find the schema of each member of an object; ``None`` for a member that the form does not have."""
    if schema is None:
        return dict.fromkeys(value)
    options = _list_schema_options(schema)
    properties: dict[str, Any] = {}
    for option in options:
        properties |= option.get("properties", ANY)
    others: Mapping[str, Any] | None = None
    if not properties:  # a mapping, whose keys are data: each value has the schema of additional members
        additional = [option.get("additionalProperties") for option in options]
        others = next((schema for schema in additional if schema and isinstance(schema, Mapping)), ANY)
    return {name: properties.get(name, others) for name in value}


def _find_item_schema(schema: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Find the schema of a list's items; ``None`` for a list that the form does not have."""
    if schema is None:
        return None
    for option in _list_schema_options(schema):
        if isinstance(option.get("items"), Mapping):
            return option["items"]  # type: ignore[no-any-return]
        if isinstance(option.get("prefixItems"), list):
            return {"anyOf": option["prefixItems"]}
    return ANY


def _list_schema_options(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List a schema and all schemas that it combines by ``anyOf``, ``oneOf`` or ``allOf``, at any depth."""
    options: list[Mapping[str, Any]] = [schema]
    for keyword in ("anyOf", "oneOf", "allOf"):
        for combined in schema.get(keyword, ()):
            options += _list_schema_options(combined)
    return options


def _fold_name(name: str) -> str:
    """Fold a member's name: lower case, without accents, invisible characters and blanks; look-alikes become Latin."""
    return name.lower() if name.isascii() and name.isalpha() else "".join(map(fold_character, name)).strip()


_FOLDED_OTHER_VERDICTS = frozenset(OTHER_VERDICTS)


def read_text(members: Mapping[str, Any], name: str) -> str:
    """Read an optional text member: empty if it is absent or null. Raises ``ReplyError`` for any other type."""
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReplyError("unparseable", f"{name!r} must be a text, got {_show_hostile(value)}")
    return value


def read_texts(members: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Read an optional list of texts: empty if it is absent or null. Raises ``ReplyError`` for anything else."""
    value = members.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ReplyError("unparseable", f"{name!r} must be a list of texts, got {_show_hostile(value)}")
    return tuple(value)


def read_number(value: object, *, of: str, low: float, high: float) -> float:
    """Read the score of the criterion ``of``, on a scale from ``low`` to ``high``.

    Raises ``ReplyError``: ``off_scale`` for a boolean, NaN, infinity or a number off the scale, else ``unparseable``.
    """
    kind = type(value)
    if kind is not float and kind is not int:
        if kind is bool:
            raise ReplyError("off_scale", f"the score of {of!r} must be a number from {low:g} to {high:g}, got {value}")
        raise ReplyError("unparseable", f"the score of {of!r} must be a number, got {_show_hostile(value)}")
    if not low <= value <= high:  # type: ignore[operator]  # also false for NaN; safe for integers of any size
        raise ReplyError(
            "off_scale", f"the score of {of!r} must be from {low:g} to {high:g}, got {_show_hostile(value)}"
        )
    return float(value)  # type: ignore[arg-type]


def read_choice(members: Mapping[str, Any], name: str, *, offered: tuple[str, ...], also: tuple[str, ...]) -> str:
    """Read the text that a member names, which must be one of those offered; another text is ``off_scale``.

    The members ``also`` are not asked for and not needed. One of them that names another offered text is a second
    verdict, and a ``contradiction``. Raises ``ReplyError``.
    """
    value = members.get(name)
    if not isinstance(value, str):
        raise ReplyError("unparseable", f"{name!r} must be one of {', '.join(offered)}, got {_show_hostile(value)}")
    if value not in offered:
        raise ReplyError("off_scale", f"{name!r} must be one of {', '.join(offered)}, got {_show_hostile(value)}")
    for other_name in also:
        other_choice = members.get(other_name)
        if isinstance(other_choice, str) and other_choice in offered and other_choice != value:
            raise ReplyError("contradiction", f"the reply says {name}={value} and {other_name}={other_choice}")
    return value


def read_criteria(members: Mapping[str, Any], names: list[str]) -> dict[str, Mapping[str, Any]]:
    """Read the entry of each criterion, from a list of objects with ``name`` or an object keyed by name.

    A criterion that is left out, repeated or invented is ``missing_criterion``: a score that nobody gave is never
    assumed. Raises ``ReplyError``.
    """
    value = members.get("criteria")
    pairs: list[tuple[Any, Any]]
    if type(value) is dict and [*value] == names and set(map(type, value.values())) == _DICT_ALONE:
        return value  # a shortcut: keyed by name, complete and in order, as a provider that enforces the form sends it
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(entry.get("name") if isinstance(entry, dict) else None, entry) for entry in value]
    else:
        raise ReplyError("missing_criterion", f"the reply has no list of criteria, got {_show_hostile(value)}")
    if not all(isinstance(name, str) and isinstance(entry, dict) for name, entry in pairs):
        raise ReplyError("unparseable", "every entry of 'criteria' must be an object with a name")
    entry_names = [name for name, _ in pairs]
    for name in names:
        if entry_names.count(name) != 1:
            invented = next((other for other in entry_names if other not in names), None)
            instead = ""
            if invented is not None:
                instead = f", which scores {_show_hostile(invented)}, and the rubric has no such criterion"
            raise ReplyError(
                "missing_criterion",
                f"criterion {name!r} appears {entry_names.count(name)} times in the reply{instead}",
            )
    for name in entry_names:
        if name not in names:
            raise ReplyError(
                "missing_criterion", f"the reply scores {_show_hostile(name)}, which the rubric does not have"
            )
    return dict(pairs)


def _drop_thinking(reply: str) -> str:
    """Remove one leading think block. Raises ``ReplyError`` for one that is not closed, or closed several times."""
    stripped = reply.lstrip()
    if not stripped.startswith("<think>"):
        return reply
    closed = stripped.count("</think>")
    if closed == 0:
        raise ReplyError("truncated", "the reply opens <think> and never closes it")
    if closed > 1:
        raise ReplyError("unparseable", f"the reply closes <think> {closed} times")
    return stripped.partition("</think>")[2]


def _read_with_token(text: str, token: str) -> dict[str, Any]:
    """Read the object that begins with the token.

    Raises ``ReplyError`` unless there is exactly one, and ``TextAfterError`` for text after it.
    """
    starts = _find_token_starts(text, token)
    if not starts:
        raise ReplyError("unparseable", "no object in the reply begins with the token")
    others = _find_others(text, token, starts)
    if len(starts) + len(others) > 1:
        raise _make_repeat_error(text, starts, others)
    reply_object, end = _decode_at(text, starts[0])
    if end != len(text) and not _ends_fence(text, end):
        raise TextAfterError
    return reply_object


def _ends_fence(text: str, end: int) -> bool:
    """Return whether only white space follows, and perhaps three or more backticks or tildes that end a fence."""
    rest = text[end:].strip()
    return not rest or (len(rest) > 2 and rest[0] in "`~" and not rest.strip(rest[0]))


def _find_token_starts(text: str, token: str) -> list[int]:
    """Return the positions of the objects whose first member is the token."""
    token_value = token + '"'
    if text.count(token) == 1 and text.startswith((f'{{"token": "{token_value}', f'{{"token":"{token_value}')):
        return [0]  # a shortcut for nearly every reply
    # One pattern for all tokens, because compiling one for each took longer than the rest of a judgement.
    return [match.start() for match in _TOKEN_MEMBER.finditer(text) if text.startswith(token_value, match.end())]


def _find_others(text: str, token: str, starts: list[int]) -> list[re.Match[str]]:
    """Find further members with the token: those that begin an object, written with escapes, and any before the answer.

    ``starts`` are the objects that begin with the token, as ``_find_token_starts`` returns them.
    """
    if text.count(token) == 1 and "\\u" not in text:
        return []
    known_starts = set(starts)
    return [
        match
        for match in _ESCAPED_TOKEN_MEMBER.finditer(text)
        if (match[1] or match.start() < starts[0])
        and match.start() not in known_starts
        and json.loads(match[2]) == "token"
        and json.loads(match[3]) == token
    ]


def _make_repeat_error(text: str, starts: list[int], others: list[re.Match[str]]) -> ReplyError:
    """Make the error for a token that is found several times: whether the objects with it differ.

    Only the first few objects are compared, so that the time stays linear.
    """
    objects: list[dict[str, Any]] = []
    behind = [match.start() if match[1] else max(text.rfind("{", 0, match.start()), 0) for match in others[:3]]
    for start in [*starts[:3], *behind]:
        # An object that cannot be read is skipped: it must not hide that two others differ.
        with suppress(ReplyError):
            objects.append(_decode_at(text, start)[0])
    times = len(starts) + len(others)
    if len(objects) > 1 and any(match != objects[0] for match in objects[1:]):
        return ReplyError("contradiction", f"the reply answers {times} times, differently")
    return ReplyError("unparseable", f"the token appears {times} times in the reply")


def _read_alone(text: str) -> dict[str, Any]:
    """Read the one object of a reply without a token: bare, or in one fence, with prose before it or none.

    Raises ``ReplyError``.
    """
    start = text.find("{")
    if start < 0:
        raise ReplyError("unparseable", "the reply holds no object")
    before, fenced = text[:start], False
    if "`" in before:
        opening = _FENCE_OPENING.search(before[-200:]) if before.count("```") == 1 else None
        if opening is None:
            raise ReplyError("unparseable", "the reply's object is in more than one fence, or in none that is json")
        fenced, before = True, before[: before.rindex("```")]
    if "}" in before:
        raise ReplyError("unparseable", "there is a brace before the reply's object")
    reply_object, end = _decode_at(text, start)
    rest = text[end:]
    if rest.strip() and not (fenced and rest.strip() == "```"):
        raise TextAfterError
    if fenced and not rest.strip():
        raise ReplyError("unparseable", "the fence around the reply's object is not closed")
    return reply_object


def _decode_at(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Decode the object at ``start``; return it and the position after its end. Raises ``ReplyError``."""
    value, end = _decode_value(text, start)
    if not isinstance(value, dict):
        raise ReplyError("unparseable", "the reply is not an object")
    return value, end


def _decode_value(text: str, start: int) -> tuple[Any, int]:
    """Decode the JSON value at ``start`` strictly, and return it and the position after its end.

    Raises ``ReplyError`` for a duplicate key, for NaN or infinity except as a score, and for a value that nests too
    deeply.
    """
    if nests_too_deeply(text, start):
        raise ReplyError("unparseable", f"the reply nests deeper than {MOST_DEPTH} brackets")
    try:
        value, end = _DECODER.raw_decode(text, start)
    except _DuplicateKeyError as error:
        raise ReplyError("unparseable", f"the reply has the key {_show_hostile(error.args[0])} twice") from None
    except _NotFiniteError:
        raise ReplyError("unparseable", _NOT_FINITE) from None
    except json.JSONDecodeError as error:
        is_cut_off = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
        reason = "is cut off" if is_cut_off else f"is not valid JSON at character {error.pos}: {error.msg}"
        raise ReplyError("unparseable", f"the reply's object {reason}") from None
    except (ValueError, RecursionError) as error:
        raise ReplyError("unparseable", f"the reply's object cannot be read: {_show_hostile(str(error))}") from None
    if "\\u" in text:
        _check_unicode(value)
    return value, end


class _DuplicateKeyError(ValueError):
    """A key is given twice in one object, so the reply says two things."""


class _NotFiniteError(ValueError):
    """NaN or infinity in a place that is no score's."""


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its members; refuse a duplicate key, and NaN or infinity except as a score.

    As a score they are let through here, so that the reason is "off the scale": every score that is used is read by
    ``read_number``, which refuses them.
    """
    members = dict(pairs)
    for key, value in pairs:
        kind = type(value)
        if (kind is float and key not in SCORES) or kind is list:
            _refuse_infinite(value)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _DuplicateKeyError(key)
            seen.add(key)
    return members


def _refuse_infinite(value: object) -> None:
    """Raise ``_NotFiniteError`` for NaN, infinity, or a list that holds one at any depth of lists."""
    if type(value) is list:
        for entry in value:
            _refuse_infinite(entry)
    elif type(value) is float and not math.isfinite(value):
        raise _NotFiniteError


_DECODER = json.JSONDecoder(object_pairs_hook=_make_object, parse_constant=float)


def _check_unicode(value: object) -> None:
    """Raise ``ReplyError`` for a lone surrogate, which Python decodes.

    It would break the program that later stores or prints the text.
    """
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise ReplyError("unparseable", "the reply holds a lone surrogate, which is not valid Unicode") from None


def check_finite(value: object) -> None:
    """Raise ``ReplyError`` for NaN or infinity, which decoding lets through in members that are called like a score."""
    if not _is_finite(value):
        raise ReplyError("unparseable", _NOT_FINITE)


def _is_finite(value: object) -> bool:
    """Return whether a JSON value holds, at any depth, neither NaN nor infinity."""
    to_check: list[Any] = [value]  # a loop and no recursion, because a model decides how deep its reply nests
    while to_check:
        part = to_check.pop()
        if isinstance(part, str):
            continue
        if isinstance(part, float) and not math.isfinite(part):
            return False
        if isinstance(part, dict):
            to_check += part.values()
        elif isinstance(part, list):
            to_check += part
    return True


def _show_hostile(value: object) -> str:
    """Write a value from a reply for a message: short, on one line, without control characters."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."
