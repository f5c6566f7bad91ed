"""Text rules and JSON: what a value says counts, however it was written down and whichever way it is read."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adjudge import Gate
from adjudge.integrations.asgi import GateMiddleware
from kit.rules import check

MOST_DEPTH = 200


def escape(text: str) -> str:
    """Every character as JSON's escape."""
    return '"' + "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H")) + '"'


TOKEN = "ghp_" + "a1B2c3D4" * 5
REFUSING: dict[str, tuple[Any, str]] = {
    "not_contains": ({"not_contains": "rm -rf"}, "rm -rf /"),
    "not_contains, two lines": ({"not_contains": "drop\ntable"}, "drop\ntable users"),
    "not_contains, a quote": ({"not_contains": 'say "please"'}, 'say "please" twice'),
    "not_contains, a backslash": ({"not_contains": r"C:\Windows"}, r"del C:\Windows\x"),
    "not_contains, any case": ({"not_contains": "RM -RF", "ignore_case": True}, "Rm -rf /"),
    "absent": ({"regex": r"\bdrop\s+table\b", "absent": True}, "drop\t\n table users"),
    "absent, anchored": ({"regex": r"^drop\s", "absent": True}, "drop\ttable"),
    "absent, whole": ({"regex": r"\Adrop\stable\z", "absent": True}, "drop\ttable"),
    "secrets": ("secrets", f"use\n{TOKEN}"),
    "secrets, assigned": ("secrets", 'password = "a1b2c3d4e5f6g7h8"'),
    "personal_data": ("personal_data", "mail\tbob@example.com"),
    "urls": ({"urls": "example.org"}, 'see\n"https://evil.example/x"'),
    "unicode": ("unicode", "a\u202eb"),
    "model_markup": ("model_markup", "fine\n<|im_start|>system"),
}
HARMLESS = dict.fromkeys(REFUSING, 'the list\nof "users" in C:\\data\tis long') | {
    "urls": 'see\n"https://example.org/x"',
}

WRITTEN: dict[str, Callable[[str], Any]] = {
    "a value": lambda text: {"cmd": text},
    "a value of a text that is JSON": lambda text: json.dumps({"cmd": text}),
    "the same, not in ASCII": lambda text: json.dumps({"cmd": text}, ensure_ascii=False),
    "all escapes": lambda text: f'{{"cmd": {escape(text)}}}',
    "all escapes, capitals": lambda text: f'{{"cmd": {escape(text).upper().replace("U", "u")}}}',
    "a text alone": json.dumps,
    "a name": lambda text: {text: 1},
    "a name in escapes": lambda text: f'{{{escape(text)}: {{"a": 1}}}}',
    "an item": lambda text: [1, None, [text]],
    "a text in a text": lambda text: {"arguments": json.dumps({"cmd": text})},
    "escapes in a text in a text": lambda text: json.dumps({"arguments": f'{{"cmd": {escape(text)}}}'}),
    "three deep": lambda text: json.dumps({"a": json.dumps({"b": json.dumps([text])})}),
    "a name in a text in a name": lambda text: {json.dumps({text: 1}): 2},
    "the arguments of a tool call": lambda text: [
        {
            "role": "assistant",
            "tool_calls": [{"type": "function", "function": {"name": "sh", "arguments": json.dumps({"cmd": text})}}],
        }
    ],
    "a key that stands twice, first": lambda text: f'{{"cmd": {escape(text)}, "cmd": "ls"}}',
    "a key that stands twice, last": lambda text: f'{{"cmd": "ls", "cmd": {escape(text)}}}',
    "beside NaN": lambda text: f'{{"n": NaN, "cmd": {escape(text)}}}',
    "beside a number without end": lambda text: f"[{'9' * 5000}, {escape(text)}]",
    "after a byte order mark": lambda text: "\ufeff" + f'{{"cmd": {escape(text)}}}',
    "half a character beside it": lambda text: f'{{"a": "\\ud800", "cmd": {escape(text)}}}',
}
LOOSE: dict[str, Callable[[str], Any]] = {
    "lines of JSON": lambda text: f'{{"cmd": "ls"}}\n{{"cmd": {escape(text)}}}\n',
    "a fence": lambda text: f'Then I call:\n```json\n{{"cmd": {escape(text)}}}\n```\n',
    "a fence in a value": lambda text: {"content": f'```json\n{{"cmd": {escape(text)}}}\n```'},
    "a comma too many": lambda text: f'{{"cmd": {escape(text)},}}',
    "an event of a stream": lambda text: f'data: {{"arguments": {json.dumps(json.dumps({"cmd": text}))}}}\n\n',
    "behind a quotation mark": lambda text: f'It is 5" long: {{"cmd": {escape(text)}}}',
    "a call": lambda text: f'callback({{"cmd": {escape(text)}}});',
    "cut off after a text": lambda text: f'{{"cmd": {escape(text)}',
    "cut off in a text": lambda text: f'{{"cmd": {escape(text + " and then")[:-1]}',
    "cut off in a text in a text": lambda text: (
        '{"arguments": ' + json.dumps(f'{{"cmd": {escape(text + " then")}')[:-3]
    ),
}


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("name", REFUSING)
def test_what_a_value_says_is_refused_however_it_is_written(name: str, written: str):
    """A rule that refuses a text refuses every JSON that says it, and lets through what says something else."""
    rule, text = REFUSING[name]

    assert not check(rule, text).passed
    result = check(rule, WRITTEN[written](text))
    assert not result.passed
    assert "raised" not in result.message
    if not (name == "unicode" and "half" in written):  # half a character is a finding of its own
        assert check(rule, WRITTEN[written](HARMLESS[name])).passed


@pytest.mark.parametrize("written", LOOSE)
@pytest.mark.parametrize("name", sorted(REFUSING.keys() - {"unicode", "absent, whole"}))
def test_json_inside_another_text_is_read_as_well(name: str, written: str):
    """Lines of JSON, fences, streams and what is nearly JSON: somebody behind the rule may read it."""
    rule, text = REFUSING[name]
    if name == "absent, anchored":
        rule = {"regex": r"drop\s", "absent": True}

    assert not check(rule, LOOSE[written](text)).passed
    if not (name == "urls" and written == "an event of a stream"):  # there "\/" and "\n" stand beside the host
        assert check(rule, LOOSE[written](HARMLESS[name])).passed


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        ({"contains": 'say "please"'}, {"a": 'now say "please"'}),
        ({"contains": ["C:\\x", "tab\there"]}, {"a": "C:\\x", "b": "tab\there"}),
        ({"contains": "caf\u00e9"}, '{"a": "caf\\u00e9"}'),
        ({"contains": "caf\u00e9"}, '{"caf\\u00e9": 1}'),
        ({"contains": "order 7"}, {"arguments": '{"a": "order\\u00207"}'}),
        ({"regex": r"order\s+\d"}, {"a": "order\n7"}),
        ({"regex": r"[\^$]x\^"}, '{"a": "\\u0024x^"}'),
        ({"regex": r"\Q^$\E"}, '{"a": "\\u005e$"}'),
        ({"contains": '"a": 1'}, {"a": 1}),
        ({"regex": r"^\{"}, {"a": 1}),
    ],
)
def test_what_is_demanded_may_stand_in_a_value_too(rule: Any, content: Any):
    """In the text as it is written, or in what it says: either is enough."""
    assert check(rule, content).passed


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        ({"regex": "^yes$"}, {"verdict": "no", "note": "yes"}),
        ({"regex": r"\Ayes"}, ["no", "yes\n"]),
        ({"regex": r"(?m)^yes"}, {"a": "no\nyes"}),
        ({"regex": r"no|yes\z"}, '{"a": "\\u0079es"}'),
        ({"contains": "caf\u00e9"}, '{"a": "caf\\u00e9", "a": 1}'),
        ({"contains": "caf\u00e9"}, '{"b": NaN, "a": "caf\\u00e9"}'),
        ({"contains": "caf\u00e9"}, 'Here: {"a": "caf\\u00e9"}'),
        ({"contains": "caf\u00e9"}, '{"a": "' + "[" * 200 + 'caf\\u00e9"}'),
    ],
)
def test_what_is_demanded_is_not_proved_by_any_piece(rule: Any, content: Any):
    """An anchored pattern means the whole, and what two readers could read differently proves nothing."""
    assert not check(rule, content).passed


@pytest.mark.parametrize(
    ("rule", "content", "message"),
    [
        ({"not_contains": "rm -rf"}, {"a": {"cmd": ["ls", "rm\\u0020-rf"]}}, None),
        ({"not_contains": "a\nb"}, {"a": {"cmd": ["ls", "a\nb"]}}, 'contains "a\\nb" in a.cmd[1]'),
        (
            {"not_contains": "a\nb"},
            {"calls": [{"arguments": json.dumps({"cmd": "a\nb"})}]},
            'contains "a\\nb" in calls[0].arguments.cmd',
        ),
        ({"not_contains": "a\nb"}, {"a\nb": 1}, 'contains "a\\nb" in *'),
        ({"regex": r"a\sb", "absent": True}, {"x": "1 a\nb"}, '"a\\nb" in x matches "a\\sb"'),
        ({"regex": "a b", "absent": True}, {"x": "1 a b"}, '"a b" at character 12 matches "a b"'),
        ("secrets", {"calls": [{"arguments": json.dumps({"k": TOKEN})}]}, "holds GitHub token in calls[0].arguments.k"),
        ({"not_contains": "a\nb"}, 'x = {"k": "a\\nb"}', 'contains "a\\nb" in what it says unescaped'),
    ],
)
def test_a_message_says_where_it_stands(rule: Any, content: Any, message: str | None):
    """A path through everything that holds it; a key that does not read like a name is a star."""
    result = check(rule, content)

    assert result.passed if message is None else message in result.message


@pytest.mark.parametrize(
    "content",
    [
        "C:\\new\\table and \\u0072m -rf",
        'print("a\\nb")',
        {"a": "rm", "b": "-rf"},
        '{"a": "rm", "b": " -rf"}',
        '{"a": "rm%20-rf"}',
        '{"a": "rm&#32;-rf"}',
        '{"a": "\\\\u0072m -rf"}',
        "[1] says so",
        '"',
        "{",
        "",
    ],
)
def test_what_no_json_says_passes(content: Any):
    """Escapes outside JSON, percent signs and entities are what they are; values are not put together."""
    assert check({"not_contains": ["rm -rf", "drop table"]}, content).passed
    assert check({"regex": r"rm\s-rf", "absent": True}, content).passed


REFUSERS = sorted(set(REFUSING) - {"absent, anchored", "absent, whole"})


@pytest.mark.parametrize("name", REFUSERS)
@pytest.mark.parametrize(
    "content",
    [
        "[" * 201 + '"x"' + "]" * 201,
        json.dumps({"a": "[" * 200 + '"\\n"' + "]" * 200}),
        "[" * 100 + json.dumps("[" * 100 + json.dumps("\n") + "]" * 100) + "]" * 100,
    ],
)
def test_where_the_depth_is_used_up_a_refusing_rule_fails(name: str, content: str):
    """Texts in texts share one allowance, and what was not read to its end is not said to be harmless."""
    result = check(REFUSING[name][0], content)

    assert not result.passed
    assert "200 levels deep" in result.message


@pytest.mark.parametrize("name", REFUSERS)
def test_all_of_the_depth_may_be_used(name: str):
    """Two hundred levels are read, across the border of a text too."""
    rule, text = REFUSING[name]

    for value, passed in ((text, False), (HARMLESS[name], True)):
        inner = "[" * 98 + json.dumps(value) + "]" * 98
        assert check(rule, "[" * 100 + json.dumps(inner) + "]" * 100).passed is passed


def write_spelling(draw: st.DrawFn, text: str) -> str:
    """A JSON string that says the text, each character as itself or as an escape."""
    escapes = draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text)))
    return (
        '"'
        + "".join(escape(char)[1:-1] if by else json.dumps(char)[1:-1] for char, by in zip(text, escapes, strict=True))
        + '"'
    )


@st.composite
def documents(draw: st.DrawFn, text: str) -> str:
    """A JSON text that holds the text as a value or a name, at some depth, written into texts again and again."""
    document = write_spelling(draw, text)
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["list", "object", "name", "text", "twice"]))
        if kind == "list":
            document = f"[1, {document}, null]"
        elif kind == "object":
            document = f'{{"a": [], "b": {document}}}'
        elif kind == "twice":
            document = f'{{"b": {document}, "b": 0}}'
        elif kind == "name":
            document = f"{{{document if document.startswith(chr(34)) else json.dumps(document)}: 0}}"
        else:
            document = write_spelling(draw, document) if len(document) < 300 else json.dumps(document)
    return document


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=5),
)
def test_whatever_is_refused_as_a_text_is_refused_in_every_json_that_says_it(data: st.DataObject, bad: str, more: str):
    """Any text, at any depth, as a value or a name, in any spelling, written into texts again."""
    text = more + bad + more
    document = data.draw(documents(text))

    assert not check({"not_contains": bad}, text).passed
    assert not check({"not_contains": bad}, document).passed
    assert check({"contains": bad}, json.dumps({"a": text})).passed


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(set(REFUSING) - {"absent, anchored", "absent, whole"})))
def test_what_a_refusing_rule_finds_it_finds_in_every_spelling(data: st.DataObject, name: str):
    """The same for every rule that refuses, with a text of its own."""
    rule, text = REFUSING[name]

    assert not check(rule, data.draw(documents(text))).passed


@pytest.mark.timed
@pytest.mark.parametrize(
    "content",
    [
        '["\\n"' + ',"a"' * 75_000 + "]",
        '"' + "\\u005c" + "u005c" * 60_000 + '",',
        "[" * 300_000,
        '{"a":"\\n"}\n' * 27_000 + "x",
        ',"\\' * 100_000,
        '"[\\"' * 75_000,
        "\\" * 300_000 + '"',
        '["' + " " * 300_000 + "\\",
    ],
)
@pytest.mark.parametrize("rule", [{"not_contains": "rm -rf"}, {"regex": "^x$", "absent": True}, {"contains": "zz"}])
def test_hostile_json_is_read_in_time_that_grows_with_its_length(rule: Any, content: str):
    """A third of a megabyte of what is hardest to take apart takes a moment."""
    started = time.process_time()
    check(rule, content)

    assert time.process_time() - started < 5


def test_the_escapes_of_escapes_have_an_end():
    """A text that is unescaped again and again is refused, not believed."""
    content = 'x = {"a": "' + "\\u005c" + "u005c" * 50 + 'n"}'

    assert not check({"not_contains": "rm -rf"}, content).passed


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"sql": "drop table users"}, 403),
        ({"sql": "drop\ntable users"}, 403),
        ({"sql": "drop\ttable users"}, 403),
        ({"tool": {"arguments": '{"sql": "drop\\u0020table users"}'}}, 403),
        ({"drop\ntable users": 1}, 403),
        ({"sql": "select 'drop' from table_list"}, 200),
    ],
)
def test_the_middleware_blocks_what_a_body_says(body: Any, status: int):
    """A newline between two words, a tool call in a text: the application would have read them."""
    answered = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: Any) -> None:
        answered.append(message.get("status"))

    gate = Gate("sql", rules=[{"regex": r"\bdrop\s+table\b", "absent": True}])
    scope = {
        "type": "http", "method": "POST", "path": "/", "headers": [(b"content-type", b"application/json")],
    }  # fmt: skip
    asyncio.run(GateMiddleware(app, gate)(scope, receive, send))

    assert answered[0] == status


def test_a_gate_blocks_a_text_that_is_json():
    """A guarded argument is a text; what it says to a tool is what is judged."""
    gate = Gate("shell", rules=[{"not_contains": "rm -rf"}])

    assert not gate.check_sync('{"cmd":"\\u0072m -rf /"}').allowed
    assert gate.check_sync('{"cmd":"\\u006cs -l /"}').allowed
