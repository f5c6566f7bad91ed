"""The shipped rules that look for what must not get out: secrets and personal data. Neither is ever repeated."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.judges import names
from kit.rules import check


def make_key(prefix: str, count: int, alphabet: str = string.ascii_letters + string.digits, seed: int = 1) -> str:
    """A made-up key; written out, a scanner of this repository would take it for a real one."""
    return prefix + "".join(random.Random(seed).choices(alphabet, k=count))


# Secrets

KEYS = [
    ("GitHub token", make_key("ghp_", 36)),
    ("GitHub token", make_key("github_pat_", 60)),
    ("AWS access key", make_key("AKIA", 16, string.ascii_uppercase + "234567")),
    ("OpenAI key", make_key("sk-proj-", 48)),
    ("Anthropic key", make_key("sk-ant-api03-", 80)),
    ("API key", make_key("sk-", 32)),
    ("Google API key", make_key("AIza", 35)),
    ("Slack token", make_key("xoxb-", 30, string.digits)),
    ("Stripe key", make_key("sk_live_", 24)),
    ("GitLab token", make_key("glpat-", 20)),
    ("Hugging Face token", make_key("hf_", 34)),
    ("npm token", make_key("npm_", 36)),
    ("JSON web token", make_key("eyJ", 20) + make_key(".eyJ", 40) + make_key(".", 43)),
    ("private key", "-----BEGIN RSA " + "PRIVATE KEY-----"),
    ("private key", "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----"),
    ("password in an address", "postgres://app:" + "tr0ub4dor" + "@db.example/x"),
    ("authorization header", "Authorization: Bearer " + make_key("", 24)),
]


@pytest.mark.parametrize(("kind", "key"), KEYS)
def test_a_secret_is_named_by_its_form_and_not_shown(kind: str, key: str):
    """Kind and line are said; of the secret nothing, wherever it stands."""
    for content, place in (
        (f"first\nuse {key} now", "line 2"),
        ({"notes": ["a", f"use {key}"]}, "notes[1]"),
        ({key: "x"}, "*" if len(key) > 24 or any(map(str.isdigit, key)) else "the value"),
    ):
        result = check("secrets", content)
        assert not result.passed
        assert f"{kind} in {place}" in result.message
        assert key[8:] not in repr(result)


@pytest.mark.parametrize(
    "name", ["password", "API_KEY", "client-secret", "accessToken", "db_passwd", "aws_secret_access_key"]
)
def test_a_random_value_given_to_a_secret_s_name_is_found(name: str):
    """In code, configuration and JSON."""
    value = make_key("", 24, seed=4)

    for text in (f"{name} = {value}", f"{name}: '{value}'", f'"{name}" => "{value}"', f"export {name}={value}"):
        result = check("secrets", text)
        assert result.message == "holds secret value in line 1"
        assert value not in repr(result)
    assert not check("secrets", {name: value}).passed
    assert check({"secrets": True, "assignments": False}, f"{name} = {value}").passed


@pytest.mark.parametrize(
    "content",
    [
        "",
        "The token is checked, and the password: at least 8 characters.",
        "password = os.environ['DB_PASSWORD']",
        "token = get_token(request, max_tokens=4096)",
        "password: ${DB_PASSWORD_2024_MAIN}",
        "api_key: your-api-key-1234567890",
        "secret: xxxxxxxxxxxx1234xx",
        "postgres://app:${PASSWORD}@db.example/x",
        "https://example.com/path:with@sign",
        "token_url: https://auth2.example.com/v2/token",
        "sk-learn and sk-ant are names, AKIA is a prefix",
        "-----BEGIN PUBLIC KEY-----",
    ],
)
def test_what_only_speaks_of_secrets_passes(content: str):
    """Prose, references to the environment, placeholders and addresses without a password."""
    assert check("secrets", content).message == "holds no known secret"


def test_escaping_and_invisible_characters_hide_no_secret():
    """A JSON text is searched unescaped, and letters that are only wider, or nothing, are no disguise."""
    key = make_key("ghp_", 36)
    wide = "".join(chr(ord(char) + 0xFEE0) for char in key)

    for content in (
        '{"a": "\\u0067' + key[1:] + '"}',
        "\u200b".join(key),
        wide,
        f'{{"a": "x\\n{key}"}}',
        f"'x\\n{key}'",
    ):
        assert not check("secrets", content).passed


def test_a_value_that_is_no_secret_can_be_named():
    """``ignore`` takes exactly these values out, and no other."""
    key, other = make_key("ghp_", 36), make_key("ghp_", 36, seed=2)

    assert check({"secrets": True, "ignore": key}, key).passed
    assert not check({"secrets": True, "ignore": [key]}, f"{key} {other}").passed


# Personal data

PERSONAL = [
    ("email", "bob.smith+x@mail.example.com"),
    ("phone", "+49 (0)30 1234567"),
    ("phone", "(555) 234-5678"),
    ("phone", "555-234-5678"),
    ("card", "4111 1111 1111 1111"),
    ("card", "4111111111111111"),
    ("card", "3782 822463 10005"),
    ("card", "5555-5555-5555-4444"),
    ("iban", "DE89 3704 0044 0532 0130 00"),
    ("iban", "GB82WEST12345698765432"),
    ("ssn", "123-45-6789"),
    ("ssn", "123 45 6789"),
    ("ip", "8.8.8.8"),
    ("ip", "2606:4700:4700::1111"),
]


@pytest.mark.parametrize(("kind", "value"), PERSONAL)
def test_personal_data_is_found_by_kind_and_shown_as_a_shape(kind: str, value: str):
    """In a text and in a JSON value; only its own kind finds it, and no letter or digit of it is repeated."""
    others = [other for other in dict(PERSONAL) if other != kind]

    for content, place in ((f"one\nis {value}, yes", "line 2"), ({"notes": {"of-bob": value}}, "notes.of-bob")):
        result = check({"personal_data": kind}, content)
        assert not result.passed
        assert result.message.endswith(f" in {place}")
        assert "".join("*" if char.isalnum() else char for char in value) in result.message
        assert value not in repr(result)
        assert check({"personal_data": others}, content).passed


@pytest.mark.parametrize(
    "content",
    [
        "",
        "card 4111 1111 1111 1112",
        "DE88 3704 0044 0532 0130 00",
        "000-12-3456 666-12-3456 912-12-3456 123-00-3456 123-45-0000",
        "order 123456789, 20 items of 1,000,000",
        "10.0.0.1 192.168.1.1 127.0.0.1 ::1 fe80::1 a::b std::string 12:34:56 1.2.3.4.5 v8.8.8.8.8",
        "2024-11-20 and 2024/11/20 12:30:00",
        "pip install package@1.2.3, me at example dot com",
    ],
)
def test_what_only_looks_like_personal_data_passes(content: str):
    """Wrong check digits, numbers that are never given out, addresses of no one, dates and versions."""
    assert check("personal_data", content).passed


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("2024 4111 1111 1111 1111", "card number"),
        ("AB12 DE89 3704 0044 0532 0130 00 AND MORE", "IBAN"),
        ("SSN: 123456789", "social security number"),
        ({"ssn": 123456789}, "social security number"),
        ({"card": 4111111111111111}, "card number"),
        ("123\u201345\u20116789", "social security number"),
        ("1\u200b23-45-6789", "social security number"),
        ("\uff11\uff12\uff13-45-6789", "social security number"),
        ("bob\uff20example\uff0ecom", "e-mail address"),
        ('{"a": "bob\\u0040example.com"}', "e-mail address"),
        ('print("x\\n123-45-6789")', "social security number"),
    ],
)
def test_what_stands_around_or_inside_hides_nothing(content: Any, kind: str):
    """Numbers before it, other dashes and digits, invisible characters and JSON's escapes."""
    result = check("personal_data", content)
    assert not result.passed
    assert kind in result.message


ADDRESSES = [
    "8.8.8.8:53", "8.8.8.8:65535", "[8.8.8.8]:53", "(8.8.8.8:53)", "8.8.8.8:53.", "8.8.8.8:53, and", "<8.8.8.8>:443",
    '"8.8.8.8:53"', "8.8.8.8:53/udp", "8.8.8.8#53", "tcp://8.8.8.8:53/x", "8.8.8.8,10.0.0.1", "8.8.8.8:53->10.0.0.1:99",
    "8.8.8.8/32", "12:30:45:8.8.8.8", "::ffff:8.8.8.8", "src::8.8.8.8", "2606:4700:4700::1111",
    "[2606:4700:4700::1111]:53", "(2606:4700:4700::1111)", "2606:4700:4700::1111.53", "2606:4700:4700::1111#53",
    "2606:4700:4700:0:0:0:0:1111:53", "https://[2606:4700:4700::1111]:443/x", "2606:4700:4700::1111%eth0",
    "2606:4700:4700::1111/128", "2606:4700:4700::1111,10.0.0.1",
]  # fmt: skip
MAILS = [
    "bob@müller.de", "jörg@example.de", "renè@x.fr", "jörg.groß@müller.co.at", "иван@почта.рф", "用户@例子.广告",
    "δοκιμή@παράδειγμα.δοκιμή", "अजय@डाटा.भारत", "bob@xn--mller-kva.de", "bob@example.xn--p1ai", "bob@例え.テスト",
    "müller@müller.de", '"bob"@example.org', "bob＠müller．de",
]  # fmt: skip


@pytest.mark.parametrize(
    "around", ["{}", "an {}.", "({})", "<{}>", '"{}"', "„{}“", "{},", "{};x", "{}!", "mail:{}", "[{}]"]
)
@pytest.mark.parametrize("mail", MAILS)
def test_an_address_in_any_script_is_found(mail: str, around: str):
    """In the name and in the host, as letters and as DNS writes them, whatever stands around."""
    content = around.format(mail)

    for value in (content, {"a": content}, f'{{"a": {json.dumps(content)}}}'):
        result = check("personal_data", value)
        assert not result.passed
        assert "e-mail address" in result.message


@pytest.mark.parametrize("content", ADDRESSES)
def test_an_ip_address_is_found_with_what_stands_around_it(content: str):
    """Ports, brackets, punctuation, lists: none of it is part of the number."""
    for value in (content, f"from {content} on", {"peer": content}, {content: 1}):
        result = check("personal_data", value)
        assert not result.passed
        assert "IP address" in result.message


@pytest.mark.parametrize(
    "content",
    [
        "1.2.3.4:5", "1.2.3.4.5:53", "v1.2.3.4:10", "1.2.3.4:10:20", "1.2.3.4-5", "1.2.3.4,5",
        "10.0.0.1:53", "127.0.0.1:8080", "[::1]:80", "::ffff:10.0.0.1", "::ffff:127.0.0.1:80", "fe80::1%eth0",
        "8.8.8.8:70000", "8.8.8.8:053", "8.8.8.8:5abc", "8.8.8.0/24", "2606:4700::/32", "x8.8.8.8:53",
        "12:30:45", "16:9", "3:2:1", "2024-11-20T12:30:45.123:00", "00:1b:44:11:3a:b7", "1:2:3:4:5:6:7:8:9",
        "2.1.3:10", "20.11.2024:12:30", "std::vector::at", "10:20:30:40:50:60:70:80:90", "Genesis 1:1-2:3",
    ],
)  # fmt: skip
def test_versions_times_and_ratios_are_no_ip_addresses(content: str):
    """A number after a colon is a port only where it can be one and ends there."""
    for value in (content, f"{content}.", f"({content})", {"a": content}):
        assert check("personal_data", value).passed


@pytest.mark.parametrize(
    "content",
    ["@müller hat recht", "foo@1.2.3", "é @ x.de", "感谢@张三。谢谢", "user@höst", "@import url(x.css)", "größe@2x",
     "a@b..c", "HEAD@{1}", "pkg@1.2.3-bêta", "ñ@ñ", "@ü.de"],
)  # fmt: skip
def test_what_only_has_an_at_sign_is_no_address(content: str):
    """Mentions, versions, sizes and hosts without a dot."""
    assert check("personal_data", content).passed


def test_an_address_that_is_nobody_s_is_known_in_every_script():
    """``ignore`` is compared without the words around it, and takes out nothing that only ends alike."""
    rule = {"personal_data": "email", "ignore": ["help@example.com", "hilfe@müller.de"]}

    for content in ("联系help@example.com谢谢", "메일은 help@example.com으로", "(hilfe@müller.de)."):
        assert check(rule, content).passed
    for content in ("ühelp@example.com", "hilfe@müller.dé", "用户@例子.广告"):
        assert not check(rule, content).passed
    assert check({"personal_data": "ip", "ignore": "8.8.8.8"}, "8.8.8.8:53 [8.8.8.8]:53").passed


def test_the_example_of_the_protocol():
    """A social security number in a sentence fails."""
    assert names(check("personal_data", "ssn 123-45-6789").message, "social security", "***-**-****", "line 1")


def test_data_that_is_nobody_s_can_be_named():
    """``ignore`` takes exactly these values out."""
    rule = {"personal_data": "email", "ignore": "help@example.com"}

    assert check(rule, "write to help@example.com").passed
    assert not check(rule, "write to bob-help@example.com").passed


@given(st.text("0123456789", min_size=12, max_size=18))
def test_a_card_has_one_right_check_digit(start: str):
    """Of ten last digits one passes the check, where the first digits are a card's."""
    digits = [last for last in range(10) if not check({"personal_data": "card"}, f"4{start[1:]}{last}").passed]

    assert len(digits) == 1


WORDS = st.text(string.ascii_lowercase, min_size=4, max_size=12)


@given(WORDS, WORDS, st.text(string.digits, min_size=9, max_size=9), st.integers(1, 50), st.text(max_size=30))
def test_no_message_repeats_what_it_found(name: str, host: str, number: str, line: int, around: str):
    """Whatever stands around it: no part of an address, a number or a key reaches message or metadata."""
    key = make_key("ghp_", 36, seed=int(number))
    mail, phone = f"{name}xq@{host}xq.example", f"+1{number}"
    around = around.replace("\x00", "").encode(errors="ignore").decode()
    content = "\n" * line + f"{around} {mail} {phone} {key} {around}"
    results = repr(check("personal_data", content)) + repr(check("secrets", content))

    assert "e-mail address" in results
    assert "GitHub token" in results
    assert not any(part in results for part in (f"{name}xq", f"{host}xq", number, key[4:12]))
