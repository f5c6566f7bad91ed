"""Every address in the content leads to a host that is allowed.

Addresses are looked for where a reader, a browser or a mail program would make a link of them: anywhere in the text, in
links of Markdown, in attributes of HTML and in CSS. Whether one is allowed is decided in ``_hosts.py``.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules._hosts import LONGEST_HOST, Allowed, cut_authority, make_allowed
from adjudge.rules._texts import Document, Finding, search
from adjudge.rules._values import join_halves
from adjudge.rules._words import quote, show

LONGEST = 4 * LONGEST_HOST
"""Characters of an address that are looked at; a host does not take more."""

_WITH_HOST = r"(?i)[a-z][a-z0-9+.\-]+:[/\\]{2,}"
_SLOPPY = r"(?i)\b(?:https?|wss?|ftp|file):[/\\]?[\p{L}\p{N}\[%]"
_WITHOUT_HOST = r"(?i)\b(?:(?:javascript|vbscript|mailto):[^\s\"'`)\]}>,]|data:[a-z]+/[a-z]|(?:tel|sms):\+?[0-9])"
_RELATIVE = r"(?m)(?:^|[\s\"'`(=<\[,;|])/[/\\][\p{L}\p{N}\[]"
_WWW = r"(?i)\bwww\.[^\s\"'`<>/]"
_BARE = r"(?i)[\p{L}\p{N}][\p{L}\p{N}\p{M}-]*(?:\.[\p{L}\p{N}\p{M}-]+)*\.[\p{L}]{2,}"

_VALUE = r"""\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
_TARGETS = (
    r"\]\(\s*<?([^\s<>)]*)",
    r"(?m)^[ \t]*\[[^\]\n]+\]:\s*<?([^\s<>]+)>?[ \t]*(?:$|[\"'(])",
    r"(?i)\burl\(\s*[\"']?([^\s\"')]*)",
    rf"(?i)\b(?:href|src|srcset|action|formaction|poster|ping){_VALUE}",
    rf"(?i)<(?:object|body|table|td|th)\s[^<>]*?\b(?:data|background){_VALUE}",
)
"""Where a link leads, in Markdown, CSS and HTML. Names that programs also give to other values count in a tag alone."""
_CONTROLS = "".join(map(chr, range(0x21)))
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")
# No underscore and no asterisk: https://example.org_.evil.example is a link to all of that host.
_CLOSERS = {"(": ")", "[": "]", "{": "}", "'": "'"}
_GOES_ON = re.compile(r"\.[^\W\d_]{2,}(:[0-9]*)?$")
"""A name that ends as hosts do."""
_AFTER = ".,;:!?'\")]}>*_~|\u2019\u201d\u00bb\u2026"

Hits = Iterator[tuple[int, str, str]]
"""Where, the address as it may be shown, and why it is not allowed."""


def make_urls(
    *,
    allow: str | Sequence[str],
    schemes: str | Sequence[str] = ("https", "http"),
    bare: bool = False,
) -> Callable[[Any], RuleResult]:
    """Every address has one of the schemes and one of the hosts; ``bare`` takes ``example.org`` for an address too."""
    if not isinstance(bare, bool):
        raise UsageError(f"rule urls: bare must be true or false, got {show(bare)}")
    allowed = make_allowed(allow, schemes)

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Finding]:
            for start, shown, reason in _find_all(join_halves(document.text), allowed, bare=bare):
                yield Finding(kind="address", start=start, end=start, shown=f"{quote(shown, 80)} ({reason})")

        return search(content, find, nothing="holds no address that is not allowed", folded=False)

    return check


def _find_all(text: str, allowed: Allowed, *, bare: bool) -> Hits:
    seen: set[str] = set()
    for start, shown, reason in _find_in(text, allowed, bare=bare):
        if shown not in seen:
            seen.add(shown)
            yield start, shown, reason
    plain = html.unescape(text) if "&" in text else text
    if plain == text:
        return
    lines = [0, *[place + 1 for place, char in enumerate(text) if char == "\n"]]
    for start, shown, reason in _find_in(plain, allowed, bare=bare):  # in HTML &#58; is a colon
        if shown not in seen:
            seen.add(shown)
            yield lines[min(plain.count("\n", 0, start), len(lines) - 1)], shown, reason


def _find_in(text: str, allowed: Allowed, *, bare: bool) -> Hits:
    yield from _find_absolute(text, allowed)
    yield from _find_hosts(text, allowed, bare=bare)
    yield from _find_targets(text, allowed)


def _find_absolute(text: str, allowed: Allowed) -> Hits:
    for pattern in (_WITH_HOST, _SLOPPY, _WITHOUT_HOST):
        for match in _compile(pattern).finditer(text):
            start = match.start()
            address = _take_address(text, start)
            scheme, _, rest = address.partition(":")
            yield from _refuse(start, address, allowed.explain(scheme.lower(), _trim(rest)))


def _find_hosts(text: str, allowed: Allowed, *, bare: bool) -> Hits:
    """Hosts without a scheme: after two slashes, after www, and with ``bare`` wherever something looks like one."""
    for pattern in (_RELATIVE, _WWW, *([_BARE] if bare else [])):
        for match in _compile(pattern).finditer(text):
            start = match.start()
            if pattern == _RELATIVE:
                start += match.group()[0] not in "/\\"
            address = _take_address(text, start)
            authority = _trim(cut_authority(address.lstrip("/\\")))
            if "." in authority or "[" in authority:
                odd = "\\" in address[:2]
                reason = "it is written with backslashes" if odd else allowed.explain_host(None, authority)
                yield from _refuse(start, address, reason)


def _find_targets(text: str, allowed: Allowed) -> Hits:
    """What stands where a link leads is read whole, as a browser would, whatever it looks like in the text."""
    for pattern in _TARGETS:
        for match in _compile(pattern).finditer(text):
            value = next((group for group in match.groups() if group is not None), "")
            # Browsers take controls out before they read an address. Only then is it cut: padding must not push an
            # address out of what is looked at.
            plain = html.unescape(value).strip(_CONTROLS).translate({9: None, 10: None, 13: None})[:LONGEST]
            for target in dict.fromkeys((plain, _ESCAPED.sub(r"\1", plain))):
                yield from _refuse(match.start(), target, _explain_target(target, allowed))


def _explain_target(target: str, allowed: Allowed) -> str | None:
    if target[:2] and not target[:2].strip("/\\") and len(target) > 1:
        return (
            allowed.explain_host(None, cut_authority(target[2:]))
            if target[:2] == "//"
            else "it is written with backslashes"
        )
    scheme = _SCHEME.match(target)
    return None if scheme is None else allowed.explain(scheme.group().lower(), target[scheme.end() + 1 :])


def _take_address(text: str, start: int) -> str:
    """An address in running text: to the next space or quotation mark, or what closes the bracket before it."""
    found = (text[start : start + LONGEST].split(None, 1) or [""])[0]
    for end in '"<>`':
        found = found.partition(end)[0]
    closer = _CLOSERS.get(text[start - 1 : start]) if start else None
    inside, _, after = found.partition(closer) if closer else (found, "", "")
    # A program that takes everything up to a space for the address would go on to evil.example in
    # (https://example.org)@evil.example and 'https://example.org'.evil.example.
    more = cut_authority(after).rstrip(_AFTER)
    return found if "@" in more or _GOES_ON.search(more) else inside


def _trim(rest: str) -> str:
    """Without the punctuation of the sentence around it, where no path keeps it apart."""
    slashes = len(rest) - len(rest.lstrip("/\\"))
    authority = cut_authority(rest[slashes:])
    # What is longer than a host was cut, or is a user name as long as its author liked; it is refused as it stands.
    if len(authority) + slashes < len(rest) or len(authority) > LONGEST_HOST:
        return rest
    return rest[:slashes] + (
        authority if authority.startswith("[") and authority.endswith("]") else authority.rstrip(_AFTER)
    )


def _refuse(start: int, address: str, reason: str | None) -> Hits:
    if reason is not None:
        # A password in an address is a secret, and stands before the last @ of its host.
        scheme, slashes, rest = address.partition("//")
        authority = cut_authority(rest)
        shown = address if "@" not in authority else f"{scheme}{slashes}…@{authority.rpartition('@')[2]}"
        yield start, shown, reason


@lru_cache(maxsize=16)
def _compile(pattern: str) -> Any:
    import re2

    return re2.compile(pattern)
