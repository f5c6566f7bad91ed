"""The rule ``urls``: every address leads to a host that is allowed, however it is written."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import RuleResult, UsageError
from adjudge.rules import as_rule
from kit.judges import names

ALLOW = ["ok.example", "*.ok.example", "198.51.100.7", "[2001:db8::7]", "bücher.example", "port.example:8443"]


def check(content: Any, **options: Any) -> RuleResult:
    return asyncio.run(as_rule({"urls": ALLOW, **options}).check(content))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no address, example.com is a name",
        "see https://ok.example.",
        "see https://ok.example, or http://ok.example/a?b#c!",
        "HTTPS://OK.EXAMPLE/Path",
        "https://ok.example./",
        "https://ok.example:443/ http://ok.example:80 https://ok.example:/",
        "https://a.b.ok.example/x",
        "(https://ok.example) [https://ok.example] {https://ok.example} 'https://ok.example', \"https://ok.example\"",
        "fetch('https://ok.example').then(x) and (https://ok.example), or so",
        "**https://ok.example** `https://ok.example` <https://ok.example>",
        "[text](https://ok.example/a_(b)) and [text](<https://ok.example>)",
        "[id]: https://ok.example 'Title'",
        '<a href="https://ok.example/?a=1&amp;b=2">x</a> <img src=https://ok.example/i.png>',
        "a { background: url(https://ok.example/i.png) }",
        "//ok.example/lib.js",
        "https://198.51.100.7/ https://[2001:db8::7]/ https://[2001:DB8:0:0:0:0:0:7]:443/",
        "https://bücher.example/ https://BÜCHER.example/ https://xn--bcher-kva.example/",
        "https://port.example:8443/",
        "https://ok.example/@user https://ok.example#@evil.example https://ok.example?@evil.example",
        "[relative](docs/page.md) [here](#part) [query](?a=b) <a href='/path'>",
        "C:\\temp, std::string, 12:30, note: this, // comment.",
        "[Bob]: Note: remember the milk",
        'data = "key: value"; background = "color: red"',
        {"url": "https://ok.example/", "n": 3},
        '{"url": "https:\\/\\/ok.example\\/"}',
    ],
)
def test_addresses_of_allowed_hosts_pass(content: Any):
    """In text, Markdown, HTML, CSS and JSON, with the punctuation that stands around them; and so does having none."""
    assert check(content).passed


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("https://evil.example/", 'the host "evil.example"'),
        ("https://xok.example/", 'the host "xok.example"'),
        ("https://ok.example.evil.example/", 'the host "ok.example.evil.example"'),
        ("https://sub.bücher.example/", "is not allowed"),
        ("https://evil.example/https://ok.example", 'the host "evil.example"'),
        ("https://ok.example/?next=https://evil.example", 'the host "evil.example"'),
        ("ftp://ok.example/", 'the scheme "ftp"'),
        ("javascript:alert(1)", 'the scheme "javascript"'),
        ("data:text/html,hi", 'the scheme "data"'),
        ("mailto:bob@ok.example", 'the scheme "mailto"'),
        ("[x](ms-settings:home)", 'the scheme "ms-settings"'),
        ("https://ok.example:444/", 'the host "ok.example:444"'),
        ("https://port.example/", 'the host "port.example"'),
        ("https://port.example:8444/", 'the host "port.example:8444"'),
        ("https://ok.example:99999999/", "its port cannot be read for certain"),
        ("https://ok.example@evil.example/", "it carries a user name or password"),
        ("https://ok.example:443@evil.example/", "it carries a user name or password"),
        ("https://me:hunter2@ok.example/", "it carries a user name or password"),
        ("//evil.example/x", 'the host "evil.example"'),
        ("see www.evil.example", 'the host "www.evil.example"'),
        # numbers
        ("http://3325256711/", "a number that can be read in several ways"),
        ("http://0xc6.0x33.0x64.7/", "a number that can be read in several ways"),
        ("http://0306.063.0144.07/", "a number that can be read in several ways"),
        ("http://198.51.25607/", "a number that can be read in several ways"),
        ("http://198.51.100.8/", 'the host "198.51.100.8"'),
        ("http://[::ffff:198.51.100.7]/", "is not allowed"),
        ("http://[2001:db8::7%25eth0]/", "zone"),
        ("http://[2001:db8::7]x/", "host cannot be read"),
        # what browsers take for slashes, or take out
        ("https:evil.example", "scheme://host"),
        ("https:/evil.example", "scheme://host"),
        ("https:\\\\evil.example", "scheme://host"),
        ("https:///evil.example", "scheme://host"),
        ("https://ok.example\\.evil.example", "host cannot be read"),
        ("https://ok.example\\@evil.example", "it carries a user name or password"),
        ('<a href="ht\ntps://evil.example">', 'the host "evil.example"'),
        ('<a href="https://ok.example\n.evil.example">', "is not allowed"),
        ("<a href='\x01 //evil.example'>", 'the host "evil.example"'),
        ("<a href='/\\evil.example'>", "it is written with backslashes"),
        ("<object data='jav\tascript:x'>", 'the scheme "javascript"'),
        # quotation marks and brackets that only seem to end a host
        ("<a href='https://ok.example\".evil.example'>", "host cannot be read"),
        ("https://ok.example'.evil.example", "host cannot be read"),
        ("_https://ok.example_.evil.example_", 'the host "ok.example_.evil.example"'),
        ("https://ok.example).evil.example", "host cannot be read"),
        ("(https://ok.example)@evil.example/", "it carries a user name or password"),
        ("'https://ok.example'.evil.example", "host cannot be read"),
        ("https://ok.example" + "!" * 2000 + "@evil.example/", "host cannot be read"),
        ("<a href='" + " " * 2000 + "jav\tascript:x'>", 'the scheme "javascript"'),
        ("<a href='j" + "\t" * 2000 + "avascript:x'>", 'the scheme "javascript"'),
        # letters
        ("https://ok.example\N{IDEOGRAPHIC FULL STOP}evil.example", "is not allowed"),
        ("https://evil.example\N{FULLWIDTH SOLIDUS}.ok.example", "host cannot be read"),
        ("https://\N{CYRILLIC SMALL LETTER O}k.example", "is not allowed"),
        ("https://xn--k-4tb.example", "is not allowed"),
        ("https://ok\u200b.evil.example", "is not allowed"),
        ("https://%6fk.example", "host cannot be read"),
        ("https://" + "a" * 2000 + ".ok.example", "host cannot be read"),
        # escapes of the form around it
        ("[x](https\\://evil.example)", 'the host "evil.example"'),
        ("[x](\\/\\/evil.example)", "is not allowed"),
        ("[x]: //evil.example", 'the host "evil.example"'),
        ('<a href="&#104;ttps&#58;//evil.example">', 'the host "evil.example"'),
        ("&#104;ttps&colon;//evil.example", 'the host "evil.example"'),
        ('<a href="&#x6a;avascript:x">', 'the scheme "javascript"'),
        ("a { background: url( '//evil.example' ) }", 'the host "evil.example"'),
        ('{"url": "https:\\u002f\\u002fevil.example"}', 'the host "evil.example"'),
        ({"a": [{"b": "//evil.example/x"}]}, 'the host "evil.example"'),
        ({"https://evil.example/": 1}, 'the host "evil.example"'),
    ],
)
def test_every_other_address_fails(content: Any, reason: str):
    """Other hosts, other schemes, and all that two programs could read differently."""
    result = check(content)

    assert not result.passed
    assert reason in result.message


def test_a_message_says_where_and_shows_no_password():
    """The line, or the path in a JSON value; of a user name and a password nothing."""
    message = check("a\nb https://evil.example/x c").message
    assert names(message, '"https://evil.example/x"', 'the host "evil.example"', "not allowed", "in line 2")
    assert check("x &amp;\n&#104;ttps://evil.example").message.endswith("in line 2")
    assert check({"a": {"b": ["https://evil.example"]}}).message.endswith("in a.b[0]")
    result = check("https://me:hunter2@evil.example")
    assert "hunter2" not in repr(result)
    assert "https://…@evil.example" in result.message


def test_names_without_a_scheme_count_when_asked_for():
    """``bare`` finds example.com, and takes main.py for a name too: it is not for text about programs."""
    assert check("see evil.example or main.py").passed
    assert check("see ok.example and a.ok.example/x", bare=True).passed
    assert not check("see evil.example", bare=True).passed
    assert not check("see main.py", bare=True).passed
    assert not check("see \N{CYRILLIC SMALL LETTER O}k.example", bare=True).passed


def test_schemes_are_those_named():
    """One that names no host is allowed by being named."""
    assert not check("http://ok.example", schemes="https").passed
    assert check("mailto:bob@evil.example tel:+1555", schemes=["mailto", "tel"]).passed
    assert check("ftp://ok.example", schemes=["FTP"]).passed
    assert not check("ftp://evil.example", schemes=["ftp"]).passed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"urls": "https://ok.example"}, "allow … hosts … *.example.org"),
        ({"urls": "me@ok.example"}, "allow lists hosts"),
        ({"urls": "*"}, "'*' is not a host"),
        ({"urls": "*.example"}, "'*.example' is not a host"),
        ({"urls": "*.ok.example:80"}, "is not a host"),
        ({"urls": "a*.ok.example"}, "is not a host"),
        ({"urls": "2130706433"}, "IP address … usual form"),
        ({"urls": [""]}, "allow … a text or a list of texts, none empty"),
        ({"urls": [3]}, "allow … a text or a list of texts, none empty"),
        ({"urls": "ok.example", "schemes": "https://"}, "a scheme is written like https"),
        ({"urls": "ok.example", "bare": 1}, "bare … true or false"),
        ("urls", "rule urls needs allow"),
    ],
)
def test_an_allowlist_that_makes_no_sense_is_refused(options: Any, message: str):
    """An entry that could never match, or would match far too much, is an error at once."""
    with pytest.raises(UsageError) as caught:
        as_rule(options)
    assert names(str(caught.value), *message.split(" … "))


@given(st.text(st.characters(exclude_characters="\x00/?#", exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_nothing_before_the_path_adds_a_host(text: str):
    """Whatever stands after an allowed host and before the path, another host is not reached through it."""
    content = f"https://ok.example{text}.evil.example/"
    ends = any(char.isspace() or char in '"<>`' for char in text)

    assert ends or not check(content).passed


def test_an_allowlist_may_be_empty():
    """Then every address fails."""
    rule = as_rule({"urls": []})

    assert asyncio.run(rule.check("nothing")).passed
    assert not asyncio.run(rule.check("https://ok.example")).passed


@pytest.mark.parametrize(
    "part",
    ["a://", "https://ok.example ", "](", 'href="', "href='x' ", "<object a ", "//a.b ", "www.", "&#58;", "x://a:b"],
)
def test_a_long_text_is_read_in_time_that_grows_with_its_length(part: str):
    """Some hundred thousand characters of what almost is an address is read to its end."""
    assert check(part * (300_000 // len(part)), bare=True).message
