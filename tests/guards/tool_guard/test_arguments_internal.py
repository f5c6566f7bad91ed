"""Arguments are read strictly: what two programs could understand differently is refused."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import UsageError
from adjudge.guards.tool_guard.arguments import read_arguments

DOUBTFUL: dict[str, Any] = {
    "case": {"path": "/tmp/x", "Path": "/etc/shadow"},
    "case below": {"file": {"path": "/tmp/x", "PATH": "/etc/shadow"}},
    "case in a list": {"files": [{"path": "/tmp/x", "pAth": "/etc/shadow"}]},
    "full width": {"path": "/tmp/x", "ｐａｔｈ": "/etc/shadow"},
    "ligature": {"file": 1, "ﬁle": 2},
    "twice in the text": '{"path": "/tmp/x", "path": "/etc/shadow"}',
    "twice, escaped": '{"path": "/tmp/x", "\\u0070ath": "/etc/shadow"}',
    "large number": {"id": 9007199254740993},
    "large negative number": {"id": -(2**53)},
    "large number in a text": '{"id": 9007199254740993}',
    "more digits than a float has": '{"amount": 1.0000000000000000001}',
    "more digits in a list": '{"amounts": [0.1, 123456789012345678.5]}',
    "too small for a float": '{"amount": 1e-400}',
    "too small for any number": '{"amount": 1e-99999999999999999999}',
    "infinity": {"amount": float("inf")},
    "no number": {"amount": float("nan")},
    "infinity in a text": '{"amount": 1e999}',
    "prototype": {"options": {"__proto__": {"force": True}}},
    "prototype in a text": '{"__proto__": {"force": true}}',
    "NUL": {"path": "/tmp/x\0.txt"},
    "NUL in a name": {"pa\0th": 1},
    "NUL in a text": '{"path": "/tmp/x\\u0000"}',
    "half of a pair": {"path": "\ud800"},
    "half of a pair in a text": '{"path": "\\ud83d"}',
    "long": {"content": "x" * 1_000_000},
    "long as a text": '{"content": "' + "x" * 1_000_000 + '"}',
    "many values": {"values": [0] * 200_000},
    "one text many times": {"values": ["x" * 1_000] * 1_000},
    "a list": [1],
    "a list in a text": "[1]",
    "no JSON": "{path: 1}",
    "two values": "{} {}",
    "text": "rm -rf /",
    "bytes": {"data": b"x"},
    "nested without end": "[" * 100_000,
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_doubtful_arguments_are_refused(name: str):
    """The tool might read something else than the judge did."""
    with pytest.raises(UsageError):
        read_arguments(DOUBTFUL[name])


PLAIN: dict[str, tuple[Any, dict[str, Any]]] = {
    "empty": ({}, {}),
    "empty text": ("{}", {}),
    "values": (
        '{"a": [1, 2.5, true, null, "ä"], "b": {"A": 1}}',
        {"a": [1, 2.5, True, None, "ä"], "b": {"A": 1}},
    ),
    "one name in two objects": ({"a": {"path": 1}, "b": {"Path": 2}}, {"a": {"path": 1}, "b": {"Path": 2}}),
    "as long as it may be": ({"content": "x" * 999_900}, {"content": "x" * 999_900}),
    "largest number": ({"id": 2**53 - 1}, {"id": 2**53 - 1}),
    "decimals": (
        '{"a": 0.1, "b": 0.30000000000000004, "c": 1.5e300, "d": 1.100000000000000000, "e": "1.0000000000000000001"}',
        {"a": 0.1, "b": 0.30000000000000004, "c": 1.5e300, "d": 1.1, "e": "1.0000000000000000001"},
    ),
    "emoji": ('{"text": "\\ud83d\\ude00"}', {"text": "😀"}),
    "control characters": ({"text": "a\tb\r\n\x1b"}, {"text": "a\tb\r\n\x1b"}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_arguments_are_read_as_they_are(name: str):
    """Nothing is changed on the way to the judge."""
    arguments, expected = PLAIN[name]

    assert read_arguments(arguments) == expected
