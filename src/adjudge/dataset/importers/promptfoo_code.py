"""Finding a rule that means the same as an assertion of promptfoo that is a line of code, which is read and never run.

The rule is only suggested: such an assertion is not applied (``promptfoo_assertions.py``).
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
    """Find a rule that means the same as a line of JavaScript or Python, as JSON for a rubric's file; else ``None``."""
    if not isinstance(value, str) or len(value) > 2_000:
        return None
    line = value.strip().removeprefix("return ").removesuffix(";").strip()
    for pattern, name in _CODE:
        match = pattern.fullmatch(line)
        if match is not None and _has_same_meaning(match.groupdict()):
            return json.dumps(_make_spec(name, match.groupdict()), ensure_ascii=False)
    return None


_ESCAPES = re.compile(r"\\[^dws.bDWS^$()\[\]{}+*?/|-]")
"""An escape in a regular expression that may mean something else to RE2."""


def _has_same_meaning(groups: dict[str, Any]) -> bool:
    """Return whether a rule made from these groups of a matched line means just the same as the line.

    It does not if the output is put in lower case and the text is not, or if RE2 may read a pattern otherwise.
    """
    text, pattern = groups.get("text") or "", groups.get("pattern") or ""
    never_matches = bool(groups.get("fold")) and text != text.lower()
    return not never_matches and "(?" not in pattern and not _ESCAPES.search(pattern)


def _make_spec(name: str, groups: dict[str, Any]) -> dict[str, Any]:
    """Make the spec of the rule ``name`` from the named groups of the pattern that a line of code matched."""
    inverse = {"absent": True} if groups.get("not") else {}
    fold = {"ignore_case": True} if groups.get("fold") or groups.get("flag") else {}
    if name == "length":
        return {"name": "length", **_make_bounds(groups["sign"], int(groups["number"]))}
    if name == "contains":
        return {"not_contains" if inverse else "contains": groups["text"], **fold}
    return {name: groups["pattern"] if name == "regex" else groups["text"], **inverse, **fold}


def _make_bounds(sign: str, number: int) -> dict[str, int]:
    """Make the ``min`` or ``max`` of a length rule, which the length may reach, from a comparison such as ``< 80``."""
    if sign.startswith("<"):
        return {"max": number if sign == "<=" else max(number - 1, 0)}
    return {"min": number if sign == ">=" else number + 1}
