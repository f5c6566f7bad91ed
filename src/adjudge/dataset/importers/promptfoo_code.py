"""The rule that says what a line of code in a suite says, where there is one. The code is read, and never run.

It is only suggested: what becomes of such an assertion is decided in ``promptfoo_assertions.py``.
"""

from __future__ import annotations

import json
import re
from typing import Any

_TEXT = r"""(?P<quote>['"`])(?P<text>[^'"`\\\n]{1,500})(?P=quote)"""

_OUTPUT = r"output(?P<fold>\.toLowerCase\(\)|\.lower\(\))?"

_CODE = (
    (re.compile(rf"(?P<not>!)?{_OUTPUT}\.includes\({_TEXT}\)"), "contains"),
    (re.compile(rf"{_TEXT} (?P<not>not )?in {_OUTPUT}"), "contains"),
    (re.compile(rf"(?P<not>!|not )?{_OUTPUT}\.(?:startsWith|startswith)\({_TEXT}\)"), "starts_with"),
    (re.compile(rf"{_OUTPUT}(?:\.trim\(\)|\.strip\(\))? ?={{2,3}} ?{_TEXT}"), "equals"),
    (re.compile(r"(?P<not>!)?/(?P<pattern>[^/\n]{1,500})/(?P<flag>i?)\.test\(output\)"), "regex"),
    (re.compile(r"""re\.search\(r?(?P<quote>['"])(?P<pattern>[^'"\n]{1,500})(?P=quote), output\)"""), "regex"),
    (re.compile(r"(?:output\.length|len\(output\)) ?(?P<sign><=|>=|<|>) ?(?P<number>\d{1,9})"), "length"),
)
"""Lines that people write most, each with the rule that means the same."""


def find_rule(value: object) -> str | None:
    """Find the rule that says the same as a line of JavaScript or Python, as it is written in a rubric's file."""
    if not isinstance(value, str) or len(value) > 2_000:
        return None
    line = value.strip().removeprefix("return ").removesuffix(";").strip()
    for pattern, name in _CODE:
        match = pattern.fullmatch(line)
        if match is not None and _is_plain(match.groupdict()):
            return json.dumps(_make_spec(name, match.groupdict()), ensure_ascii=False)
    return None


_ESCAPES = re.compile(r"\\[^dws.bDWS^$()\[\]{}+*?/|-]")


def _is_plain(parts: dict[str, Any]) -> bool:
    """Return whether a rule would say just the same: no letter that folding hides, nothing that RE2 reads otherwise."""
    text, pattern = parts.get("text") or "", parts.get("pattern") or ""
    return not (parts.get("fold") and text != text.lower()) and "(?" not in pattern and not _ESCAPES.search(pattern)


def _make_spec(name: str, parts: dict[str, Any]) -> dict[str, Any]:
    """Make the spec of a rule from the named groups of the pattern that a line of code matched."""
    inverse = {"absent": True} if parts.get("not") else {}
    fold = {"ignore_case": True} if parts.get("fold") or parts.get("flag") else {}
    if name == "length":
        return {"name": "length", **_make_bounds(parts["sign"], int(parts["number"]))}
    if name == "contains":
        return {"not_contains" if inverse else "contains": parts["text"], **fold}
    return {name: parts["pattern"] if name == "regex" else parts["text"], **inverse, **fold}


def _make_bounds(sign: str, number: int) -> dict[str, int]:
    """Make the bounds of a length; both of a rule are included."""
    if sign.startswith("<"):
        return {"max": number if sign == "<=" else max(number - 1, 0)}
    return {"min": number if sign == ">=" else number + 1}
