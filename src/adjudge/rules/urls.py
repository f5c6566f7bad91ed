"""The rule ``urls``: every address in the content leads to a host that is allowed.

Addresses are looked for where a reader, a browser or a mail program would make a link of them: anywhere in the text, in
links of Markdown, in attributes of HTML and in CSS. ``AllowedAddresses`` decides whether one is allowed.
"""

from __future__ import annotations

import html
import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag
from adjudge.formats.text import QUOTED, quote, show
from adjudge.result import RuleResult
from adjudge.rules.document import Detection, Document, read_words, search
from adjudge.rules.json_values import join_halves

LONGEST_HOST = 253
"""The most characters of a name in DNS; a longer one is refused before it is converted."""


_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}

_LABEL = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedAddresses:
    """The addresses that a content may hold: schemes and hosts."""

    schemes: frozenset[str]
    hosts: frozenset[str]
    """Names, with a port where only that port is allowed."""
    parents: tuple[str, ...]
    """The ends of names that are allowed as well, each beginning with a dot."""

    def explain(self, scheme: str, rest: str) -> str | None:
        """Explain why ``scheme:rest`` is not allowed; ``None`` if it is."""
        if scheme not in self.schemes:
            return f"the scheme {quote(scheme, 20)} is not allowed"
        if scheme not in _PORTS and not rest.startswith(("/", "\\")):
            return None  # it names no host (mailto:, tel:), and was allowed by name
        if not rest.startswith("//") or rest[2:3] in {"/", "\\", ""}:
            return "it is not written as scheme://host"
        return self.explain_host(scheme, cut_authority(rest[2:]))

    def explain_host(self, scheme: str | None, authority: str) -> str | None:
        """Explain why host and port are not allowed; ``None`` if they are.

        ``scheme`` is ``None`` for an address without one, which has the scheme of the page that it is on.
        """
        if "@" in authority:
            return "it carries a user name or password"
        try:
            host, port = read_authority(authority)
        except ValueError as error:
            return str(error)
        default_port = _PORTS.get(scheme or "https")
        is_default_port = port is None or port == default_port
        if is_default_port and (host in self.hosts or host.endswith(self.parents)):
            return None
        if f"{host}:{port or default_port}" in self.hosts:
            return None
        return f"the host {quote(host if is_default_port else f'{host}:{port}', QUOTED)} is not allowed"


def make_allowed_addresses(allow: Any, schemes: Any) -> AllowedAddresses:
    """Make the allowlist of a rule. Raises ``UsageError`` for an entry that could never match, or that always would."""
    names = [_read_entry(entry) for entry in read_words("urls", "allow", allow)]
    parents = tuple(name.removeprefix("*") for name in names if name.startswith("*."))
    allowed_schemes = frozenset(entry.lower() for entry in read_words("urls", "schemes", schemes))
    for entry in allowed_schemes:
        if not entry.isascii() or not entry[0].isalpha() or not all(char.isalnum() or char in "+-." for char in entry):
            raise UsageError(f"rule urls: a scheme is written like https, without ://; got {show(entry)}")
    return AllowedAddresses(
        schemes=allowed_schemes, hosts=frozenset(name for name in names if name[0] != "*"), parents=parents
    )


def cut_authority(text: str) -> str:
    """Return the host and port at the beginning of a text: all before the first slash, question mark or hash."""
    return text.partition("/")[0].partition("?")[0].partition("#")[0]


def read_authority(authority: str) -> tuple[str, str | None]:
    """Read host and port in normal form; the port is ``None`` if there is none.

    Raises ``ValueError`` if two programs could read them differently.
    """
    host, port = authority, None
    if authority.startswith("["):
        host, closed, after = authority.partition("]")
        port = after.removeprefix(":") or None
        ends_in_port = not after or after.startswith(":")
        if not closed or not ends_in_port:
            raise ValueError("its host cannot be read for certain")
        host = f"[{_read_ip(host[1:], ipaddress.IPv6Address)}]"
    elif ":" in authority:
        host, _, port = authority.partition(":")
        port = port or None
    if port is not None and not (port.isascii() and port.isdigit() and len(port) <= 5):
        raise ValueError("its port cannot be read for certain")
    plain_port = port and (port.lstrip("0") or "0")
    return (host if host.startswith("[") else _read_name(host)), plain_port


def _read_name(host: str) -> str:
    """Return a host's name as DNS has it, or its IPv4 address.

    Raises ``ValueError`` if two programs could read it differently.
    """
    if not 0 < len(host) <= LONGEST_HOST:
        raise ValueError("its host cannot be read for certain")
    name = (host if host.isascii() else _to_ascii(host)).lower().removesuffix(".")
    labels = name.split(".")
    if not all(0 < len(label) <= 63 and _LABEL.issuperset(label) for label in labels):
        raise ValueError("its host cannot be read for certain")
    # 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 to a browser; only the usual form is read.
    if labels[-1].isdigit() or labels[-1].startswith("0x"):
        return _read_ip(name, ipaddress.IPv4Address)
    return name


def _to_ascii(host: str) -> str:
    """Write a name as DNS has it (UTS #46, as browsers do). Raises ``ValueError``."""
    import idna

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode("ascii")
    except UnicodeError:  # idna's own errors are among these
        raise ValueError("its host cannot be read for certain") from None


def _read_ip(text: str, kind: Callable[[str], Any]) -> str:
    """Return an IP address in its usual form; ``kind`` is its class in ``ipaddress``.

    Raises ``ValueError`` for a number in another form, and for an address with a zone.
    """
    try:
        address = kind(text)
    except ValueError:
        raise ValueError("its host is a number that can be read in several ways") from None
    if "%" in text:
        raise ValueError("its host is an address with a zone")
    return str(address)


def _read_entry(entry: str) -> str:
    """Return an entry of ``allow`` in normal form. Raises ``UsageError`` for one that is no host."""
    if "/" in entry or "@" in entry:
        raise UsageError(f"rule urls: allow lists hosts, like example.org or *.example.org; got {show(entry)}")
    star = "*." if entry.startswith("*.") else ""
    try:
        host, port = read_authority(entry.strip().removeprefix(star))
    except ValueError:
        host, port = "", None
    # A star before a top-level domain, a port or a number would allow more than its author meant.
    is_too_wide = star and ("." not in host or port is not None or host[-1:].isdigit())
    if not host or is_too_wide:
        raise UsageError(
            f"rule urls: {show(entry)} is not a host; write example.org, example.org:8443, *.example.org for all names "
            "below it, or an IP address in its usual form"
        )
    return f"{star}{host}" + (f":{port}" if port else "")


LONGEST = 4 * LONGEST_HOST
"""The most characters of an address that are read; a host is never as long."""


_SCHEME_AND_SLASHES = r"(?i)[a-z][a-z0-9+.\-]+:[/\\]{2,}"

_KNOWN_SCHEME = r"(?i)\b(?:https?|wss?|ftp|file):[/\\]?[\p{L}\p{N}\[%]"

_SCHEME_WITHOUT_HOST = (
    r"(?i)\b(?:(?:javascript|vbscript|mailto):[^\s\"'`)\]}>,]|data:[a-z]+/[a-z]|(?:tel|sms):\+?[0-9])"
)

_SLASHES_ALONE = r"(?m)(?:^|[\s\"'`(=<\[,;|])/[/\\][\p{L}\p{N}\[]"

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
"""Targets of links in Markdown, CSS and HTML. Names that programs also give to other values count in a tag alone."""

_CONTROLS = "".join(map(chr, range(0x21)))

_MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(?=:)")

# No underscore and no asterisk: https://example.org_.evil.example is a link to all of that host.
_CLOSING_MARKS = {"(": ")", "[": "]", "{": "}", "'": "'"}

_ENDS_LIKE_HOST = re.compile(r"\.[^\W\d_]{2,}(:[0-9]*)?$")
"""A name that ends as hosts do."""

_SENTENCE_ENDS = ".,;:!?'\")]}>*_~|\u2019\u201d\u00bb\u2026"


Hits = Iterator[tuple[int, str, str]]
"""The start of each refused address, the address as a message may show it, and why it is not allowed."""


def make_urls(
    *,
    allow: str | Sequence[str],
    schemes: str | Sequence[str] = ("https", "http"),
    bare: bool = False,
) -> Callable[[Any], RuleResult]:
    """Make a check of every address's scheme and host; ``bare`` takes ``example.org`` for an address too."""
    check_flag("bare", bare, where="rule urls")
    allowed = make_allowed_addresses(allow, schemes)

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Detection]:
            for start, shown, reason in _find_refused_addresses(join_halves(document.text), allowed, bare=bare):
                yield Detection(kind="address", start=start, end=start, shown=f"{quote(shown, 80)} ({reason})")

        return search(content, find, nothing="holds no address that is not allowed", folded=False)

    return check


def _find_refused_addresses(text: str, allowed: AllowedAddresses, *, bare: bool) -> Hits:
    """Yield each refused address once, also one that is only found after character references of HTML are undone.

    An address of the second sort has the start of its line, because its own position is one in another text.
    """
    seen: set[str] = set()
    for start, shown, reason in _list_refused(text, allowed, bare=bare):
        if shown not in seen:
            seen.add(shown)
            yield start, shown, reason
    plain = html.unescape(text) if "&" in text else text
    if plain == text:
        return
    line_starts = [0, *[index + 1 for index, char in enumerate(text) if char == "\n"]]
    for start, shown, reason in _list_refused(plain, allowed, bare=bare):  # in HTML &#58; is a colon
        if shown not in seen:
            seen.add(shown)
            line = min(plain.count("\n", 0, start), len(line_starts) - 1)  # undoing a reference may add a line end
            yield line_starts[line], shown, reason


def _list_refused(text: str, allowed: AllowedAddresses, *, bare: bool) -> Hits:
    """Yield refused addresses of each form in a text, an address of two forms more than once."""
    yield from _find_full_addresses(text, allowed)
    yield from _find_hosts(text, allowed, bare=bare)
    yield from _find_link_targets(text, allowed)


def _find_full_addresses(text: str, allowed: AllowedAddresses) -> Hits:
    """Yield refused addresses that begin with a scheme."""
    for pattern in (_SCHEME_AND_SLASHES, _KNOWN_SCHEME, _SCHEME_WITHOUT_HOST):
        for match in _compile_pattern(pattern).finditer(text):
            start = match.start()
            address = _read_address_at(text, start)
            scheme, _, rest = address.partition(":")
            yield from _yield_refused(start, address, allowed.explain(scheme.lower(), _trim_punctuation(rest)))


def _find_hosts(text: str, allowed: AllowedAddresses, *, bare: bool) -> Hits:
    """Yield hosts without a scheme: after two slashes, after www, and with ``bare`` whatever looks like one."""
    for pattern in (_SLASHES_ALONE, _WWW, *([_BARE] if bare else [])):
        for match in _compile_pattern(pattern).finditer(text):
            start = match.start()
            if pattern == _SLASHES_ALONE and match.group()[0] not in "/\\":
                start += 1  # the match begins with the character before the slashes
            address = _read_address_at(text, start)
            authority = _trim_punctuation(cut_authority(address.lstrip("/\\")))
            if "." in authority or "[" in authority:
                has_backslash = "\\" in address[:2]
                reason = "it is written with backslashes" if has_backslash else allowed.explain_host(None, authority)
                yield from _yield_refused(start, address, reason)


def _find_link_targets(text: str, allowed: AllowedAddresses) -> Hits:
    """Yield the refused targets of links, read as a browser reads them and not as they look in the text."""
    for pattern in _TARGETS:
        for match in _compile_pattern(pattern).finditer(text):
            value = next((group for group in match.groups() if group is not None), "")
            # Browsers remove control characters before they read an address. The value is cut only after that, so that
            # padding cannot push the address behind the cut.
            plain = html.unescape(value).strip(_CONTROLS).translate({9: None, 10: None, 13: None})[:LONGEST]
            for target in dict.fromkeys((plain, _MARKDOWN_ESCAPE.sub(r"\1", plain))):
                yield from _yield_refused(match.start(), target, _explain_target(target, allowed))


def _explain_target(target: str, allowed: AllowedAddresses) -> str | None:
    """Explain why a link's target is not allowed; ``None`` if it is, or is relative to the page."""
    begins_with_slashes = len(target) > 1 and not target[:2].strip("/\\")
    if begins_with_slashes and target[:2] != "//":
        return "it is written with backslashes"
    if begins_with_slashes:
        return allowed.explain_host(None, cut_authority(target[2:]))
    scheme = _SCHEME.match(target)
    return None if scheme is None else allowed.explain(scheme.group().lower(), target[scheme.end() + 1 :])


def _read_address_at(text: str, start: int) -> str:
    """Read the address at a position of running text.

    It ends at the next space or quotation mark, or where the bracket right before it is closed.
    """
    candidate = (text[start : start + LONGEST].split(None, 1) or [""])[0]
    for end in '"<>`':
        candidate = candidate.partition(end)[0]
    closer = _CLOSING_MARKS.get(text[start - 1 : start]) if start else None
    inside, _, after = candidate.partition(closer) if closer else (candidate, "", "")
    # A program that reads an address up to the next space would open evil.example in
    # (https://example.org)@evil.example and 'https://example.org'.evil.example. So the longer address is checked there.
    continuation = cut_authority(after).rstrip(_SENTENCE_ENDS)
    return candidate if "@" in continuation or _ENDS_LIKE_HOST.search(continuation) else inside


def _trim_punctuation(rest: str) -> str:
    """Drop a sentence's punctuation from the end of an address without a path; ``rest`` is all after the scheme."""
    slashes = len(rest) - len(rest.lstrip("/\\"))
    authority = cut_authority(rest[slashes:])
    # A longer text than a host was cut, or has a long user name; it is returned as it is, and refused.
    if len(authority) + slashes < len(rest) or len(authority) > LONGEST_HOST:
        return rest
    is_ipv6 = authority.startswith("[") and authority.endswith("]")  # its last bracket is no punctuation
    return rest[:slashes] + (authority if is_ipv6 else authority.rstrip(_SENTENCE_ENDS))


def _yield_refused(start: int, address: str, reason: str | None) -> Hits:
    """Yield an address with its reason, a password in it left out; nothing if ``reason`` is ``None``."""
    if reason is not None:
        # A password is a secret. In an address it is before the last @ of the host.
        scheme, slashes, rest = address.partition("//")
        authority = cut_authority(rest)
        shown = address if "@" not in authority else f"{scheme}{slashes}…@{authority.rpartition('@')[2]}"
        yield start, shown, reason


@lru_cache(maxsize=16)
def _compile_pattern(pattern: str) -> Any:
    import re2

    return re2.compile(pattern)
