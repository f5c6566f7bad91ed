"""The rule ``personal_data``: addresses and numbers of people, found by their form and check digits; no names.

A message shows only the shape of what was found, with a star for every letter and digit.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from adjudge.result import RuleResult
from adjudge.rules.document import Detection, Document, fold, read_choice, read_words, search

MOST_PORT = 65_535

MOST_SHOWN = 40
"""The most characters of a shape that a message shows."""


_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 "
    "EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 "
    "KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 "
    "PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 "
    "VA22 VG24 XK20 YE30 "
)

_IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBANS.split()}
"""The length of an IBAN of each country, from the registry that SWIFT keeps for ISO 13616."""


_CARD_STARTS = ("2", "30", "34", "35", "36", "37", "38", "39", "4", "5", "60", "62", "64", "65")

_CARD_COUNTS = dict.fromkeys(range(1, 13), ()) | {4: (3, 4, 5)}
"""By the size of a card number's first group, the numbers of groups it may have; for other sizes there is one."""

_ROUTED = ipaddress.ip_network("2000::/3")
"""The part of IPv6 that is assigned; a text outside it with colons is as often a name in a program."""

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR")

_QUAD = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"

# A port, a prefix length of one single address, or another address may follow an address without being a part of it.
# A port has two digits or more, and no further number after it: 1.2.3.4:5 and 12:30:45 are something else.
_AFTER_ADDRESS = re.compile(
    r"[:#]([1-9][0-9]{1,4})(?![0-9A-Za-z]|[.:][0-9])|/(32|128)(?![0-9A-Za-z])"
    rf"|[^0-9A-Za-z.](?:{_QUAD}(?![0-9]|\.[0-9])|[0-9A-Fa-f]{{1,4}}:[0-9A-Fa-f]{{0,4}}:)"
)

_QUADS = re.compile(_QUAD)

# A port after an address of IPv6 without brackets, as BSD and tcpdump write it.
_PORT = re.compile(r"[.:]([1-9][0-9]{1,4})$")


_PATTERNS = {
    # Letters of any script on both sides, as RFC 6531 and IDNA have them; xn-- is how DNS writes the latter.
    "e-mail address": (
        r"(?:[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_{|}~-]+|\"[^\"\s]{1,64}\")"
        r"@[\p{L}\p{M}\p{N}-]+(?:\.[\p{L}\p{M}\p{N}-]+)*\.(?:xn--[A-Za-z0-9-]+|[\p{L}\p{M}]{2,})"
    ),
    "phone number": (
        r"\+[1-9](?:[ ().\-/]{0,2}[0-9]){7,14}\b"
        r"|(?:\([2-9][0-9]{2}\) ?|\b(?:1[ .-])?[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}\b"
    ),
    "card number": r"\b[0-9][0-9 -]{11,}[0-9]\b",
    "IBAN": r"\b[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9])+\b",
    "social security number": (
        r"\b[0-9]{3}[ -][0-9]{2}[ -][0-9]{4}\b"
        r"|(?i:\b(?:ssn|social security)[a-z .:#=-]{0,20})[0-9]{9}\b"
    ),
    "IP address": _QUAD + r"|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*",
}


KINDS = {
    "email": "e-mail address",
    "phone": "phone number",
    "card": "card number",
    "iban": "IBAN",
    "ssn": "social security number",
    "ip": "IP address",
}


def make_personal_data(
    *,
    kinds: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
) -> Callable[[Any], RuleResult]:
    """Make a check that the content holds no personal data of these kinds, by default of all."""
    chosen_kinds = tuple(KINDS[word] for word in read_choice("personal_data", "kinds", kinds, KINDS))
    ignored = frozenset(map(fold, read_words("personal_data", "ignore", ignore)))

    def check(content: Any) -> RuleResult:
        def find(document: Document) -> Iterator[Detection]:
            return (detection for kind in chosen_kinds for detection in _find_kind(kind, document, ignored))

        return search(content, find, nothing=f"holds no {', '.join(chosen_kinds)}")

    return check


def _find_kind(kind: str, document: Document, ignored: frozenset[str]) -> Iterator[Detection]:
    """Yield personal data of one kind: the parts of each match of its pattern that its finder accepts."""
    text = document.text
    for match in _compile_kind(kind).finditer(text):
        for start, end in _FINDERS[kind](text, match.start(), match.end()):
            if text[start:end] not in ignored:
                yield Detection(kind=kind, start=start, end=end, shown=mask(text[start:end]))


def mask(text: str) -> str:
    """Write the shape of a text: every letter and digit a star, at most 40 characters of it."""
    masked = "".join("*" if char.isalnum() else char if char in " @.-+()/:" else "?" for char in text[:MOST_SHOWN])
    return masked + ("…" if len(text) > MOST_SHOWN else "")


Spans = Iterator[tuple[int, int]]
"""Start and end of each piece of personal data."""


def _accept_match(_: str, start: int, end: int) -> Spans:
    """Yield the whole match: its pattern is all there is to check."""
    yield start, end


def _find_email(text: str, start: int, end: int) -> Spans:
    """Yield the e-mail address of a match, without words around it.

    A script such as Chinese or Thai puts no blanks between words, so a match may begin or end with letters of the text.
    """
    at_sign = text.index("@", start)
    first = next((index for index in range(start, at_sign) if not _is_unspaced(text[index])), start)
    last = next((index for index in range(end, at_sign, -1) if not _is_unspaced(text[index - 1])), end)
    # The host may end in such a script itself. Then what is left has no top-level domain, and the match ends as it was.
    dot = text.rfind(".", at_sign, last)
    has_domain = dot > at_sign and last - dot > 2
    yield first, last if has_domain else end


def _is_unspaced(char: str) -> bool:
    """Return whether a character is of a script that puts no blanks between words."""
    return not char.isascii() and unicodedata.name(char, "").startswith(_UNSPACED)


def _find_ssn(text: str, start: int, end: int) -> Spans:
    """Yield the social security number at the end of a match, if it is one that can be given out."""
    digits = [char for char in text[start:end] if char.isdigit()][-9:]
    area, group, serial = "".join(digits[:3]), "".join(digits[3:5]), "".join(digits[5:])
    # Numbers that the Social Security Administration never gives out.
    if area not in {"000", "666"} and area[0] != "9" and group != "00" and serial != "0000":
        length = 9 if text[end - 9 : end].isdigit() else 11  # with two separators, 11
        yield end - length, end


def _find_cards(text: str, start: int, end: int) -> Spans:
    """Yield runs of groups that are written as card numbers are, and whose check digit is right."""
    groups = list(_split_groups(text, start, end))
    for index, (group_start, group_end) in enumerate(groups):
        group_counts = _CARD_COUNTS.get(group_end - group_start, (1,))
        for count in group_counts:
            window = groups[index : index + count]
            if len(window) == count and _is_card([text[low:high] for low, high in window]):
                _, last_end = window[-1]
                yield group_start, last_end


def _split_groups(text: str, start: int, end: int) -> Spans:
    """Yield start and end of each group of digits between two positions of a text."""
    group_start = None
    for index in range(start, end + 1):
        is_digit = index < end and text[index].isdigit()
        if is_digit and group_start is None:
            group_start = index
        elif not is_digit and group_start is not None:
            yield group_start, index
            group_start = None


def _is_card(groups: list[str]) -> bool:
    """Return whether groups of digits are written as a card's number is, and pass its check.

    Three groups are those of American Express (4-6-5) and Diners Club (4-6-4), four or five those of all others; one or
    two may have any sizes.
    """
    sizes = [len(group) for group in groups]
    if len(sizes) == 3 and not (sizes[:2] == [4, 6] and sizes[2] in {4, 5}):
        return False
    if len(sizes) > 3 and not (sizes[:-1] == [4] * (len(sizes) - 1) and sizes[-1] <= 4):
        return False
    # Checked before the digits are joined: a group may be as long as the content.
    if not 13 <= sum(sizes) <= 19:
        return False
    number = "".join(groups)
    return number.startswith(_CARD_STARTS) and _passes_luhn(number)


def _passes_luhn(number: str) -> bool:
    """Return whether digits pass the check of ISO/IEC 7812.

    Every second digit from the right is doubled, and the sum must be a multiple of ten.
    """
    total = 0
    for index, digit in enumerate(map(int, reversed(number))):
        if index % 2 == 0:
            total += digit
        else:
            total += digit * 2 - (9 if digit > 4 else 0)  # of a doubled digit above 9, the sum of its two digits
    return total % 10 == 0


def _find_ibans(text: str, start: int, end: int) -> Spans:
    """Yield each IBAN of a match: it begins at the start of a word and has the length that its country's IBANs have."""
    position = start
    while position < end:
        length = _IBAN_LENGTHS.get(text[position : position + 2].upper(), 0)
        last = None
        if length and text[position + 2 : position + 4].isdigit():
            last = _find_end_of_alphanumerics(text, position, end, length)
        if last is not None and _passes_mod_97(text[position:last]):
            yield position, last
            position = last
        while position < end and text[position].isalnum():
            position += 1
        while position < end and not text[position].isalnum():
            position += 1


def _find_end_of_alphanumerics(text: str, start: int, end: int, count: int) -> int | None:
    """Find the end of ``count`` letters and digits from ``start``; ``None`` if there are fewer, or more follow."""
    position = start
    while count and position < end:
        count -= text[position].isalnum()
        position += 1
    has_more = position < end and text[position].isalnum()
    return None if count or has_more else position


def _passes_mod_97(text: str) -> bool:
    """Return whether a text passes the check of ISO 13616.

    Country and check digits go last, letters count as two digits, and the remainder must be 1.
    """
    plain = "".join(char for char in text.upper() if char.isalnum())
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def _find_addresses(text: str, start: int, end: int) -> Spans:
    """Yield the public IP address that a match is, or the addresses of IPv4 in it if it is none."""
    matched = text[start:end]
    candidate = matched if matched.endswith("::") else matched.rstrip(".:")
    if len(candidate) > 45 or _is_part_of_longer_token(text, start, start + len(candidate)):
        # A text that begins like an address of IPv6, such as a time or a prefix, may have one of IPv4 after that.
        yield from _find_quads(text, start, end)
        return
    address = _read_address(candidate)
    if address is None and ":" in candidate:
        candidate = _drop_port(candidate)
        address = _read_address(candidate)
    if address is None:
        yield from _find_quads(text, start, end)
    # Addresses of one machine, of private networks and of documentation belong to nobody, so they are no personal data.
    elif address.is_global and (address.version == 4 or address in _ROUTED):
        yield start, start + len(candidate)


def _drop_port(candidate: str) -> str:
    """Return an address of IPv6 without the port after it, if it has one."""
    port = _PORT.search(candidate)
    return candidate[: port.start()] if port and int(port[1]) <= MOST_PORT else candidate


def _find_quads(text: str, start: int, end: int) -> Spans:
    """Yield public addresses of IPv4 inside a text with colons that is no address of IPv6."""
    if ":" not in text[start:end]:
        return
    for match in _QUADS.finditer(text, start, end):
        address = _read_address(match.group())
        if address is not None and address.is_global and not _is_part_of_longer_token(text, match.start(), match.end()):
            yield match.start(), match.end()


def _read_address(address_text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an IP address, one of IPv4 also where it is written inside IPv6; ``None`` for any other text."""
    try:
        address = ipaddress.ip_address(address_text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_part_of_longer_token(text: str, start: int, end: int) -> bool:
    """Return whether letters, digits or further numbered parts are beside it, as in a version or a longer name."""
    before, after = text[max(0, start - 1) : start], text[end : end + 2]
    if before.isalnum() or before == "." or after[:1].isalnum():
        return True
    if not after[1:].isdigit():
        return False
    following = _AFTER_ADDRESS.match(text, end)
    if following is None:
        return True
    port, prefix_length = following.groups()
    if port:
        return int(port) > MOST_PORT
    single_address = "128" if ":" in text[start:end] else "32"
    return prefix_length is not None and prefix_length != single_address


_FINDERS: dict[str, Callable[[str, int, int], Spans]] = {
    "e-mail address": _find_email,
    "phone number": _accept_match,
    "card number": _find_cards,
    "IBAN": _find_ibans,
    "social security number": _find_ssn,
    "IP address": _find_addresses,
}


@lru_cache(maxsize=len(_PATTERNS))
def _compile_kind(kind: str) -> Any:
    import re2

    return re2.compile(_PATTERNS[kind])
