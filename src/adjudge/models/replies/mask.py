"""The token of a request in what is kept: masked when it is written, and the present one when it is read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adjudge.models.model import TokenLogprob

_MARK = re.compile(r"\{\{(=*)token(\[[0-9]{1,6}:[0-9]{1,6}\])?\}\}")


def mask(text: str, token: str | None) -> str:
    """Write a text as it is recorded: with a mark in place of the token, and imitations of the mark escaped."""
    if "{{" not in text:  # nothing to escape, and a pattern for each token is most of what masking costs
        return text.replace(token, "{{token}}") if token else text
    # One pass for both: escaping before or after masking would let one produce what the other then reads.
    pattern = re.compile(f"{re.escape(token)}|{_MARK.pattern}") if token else _MARK
    return pattern.sub(lambda match: "{{token}}" if match.group() == token else _escape_mark(match), text)


def unmask(text: str, token: str | None) -> str:
    """Restore the text that ``mask`` was given, with the present token in place of the recorded one."""

    def restore(match: re.Match[str]) -> str:
        level, part = match.group(1), match.group(2) or ""
        if level:
            return "{{" + level[1:] + "token" + part + "}}"
        if not token:
            return match.group()
        start, end = (int(number) for number in part[1:-1].split(":")) if part else (0, len(token))
        return token[start:end]

    return _MARK.sub(restore, text)


def mask_tokens(logprobs: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """Mask log-probabilities, whose tokens cut the token in pieces: each piece is marked, as ``{{token[0:3]}}``."""
    pieces = [logprob.token for logprob in logprobs]
    masked = ["".join(_mask_piece(piece, cuts)) for piece, cuts in zip(pieces, _find_cuts(pieces, token), strict=True)]
    return tuple(
        TokenLogprob(
            token=new,
            logprob=logprob.logprob,
            top=tuple((new if text == logprob.token else mask(text, token), number) for text, number in logprob.top),
        )
        for logprob, new in zip(logprobs, masked, strict=True)
    )


def unmask_tokens(logprobs: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """The log-probabilities that ``mask_tokens`` was given, with the present token."""
    return tuple(
        TokenLogprob(
            token=unmask(logprob.token, token),
            logprob=logprob.logprob,
            top=tuple((unmask(text, token), number) for text, number in logprob.top),
        )
        for logprob in logprobs
    )


Cut = tuple[int, int, int]
"""Start and end within a piece, and where in the token the start is."""


def _find_cuts(pieces: Sequence[str], token: str | None) -> list[list[Cut]]:
    """Find the parts of each piece that belong to a token, which may run through several pieces.

    Each is the begin and the end in the piece, and the place in the token where it begins.
    """
    cuts: list[list[Cut]] = [[] for _ in pieces]
    if not token:
        return cuts
    whole, begins = "".join(pieces), _add_up(pieces)
    places = [match.start() for match in re.finditer(re.escape(token), whole)]
    number = 0
    # Both are in order, so they are walked side by side: a reply may be nothing but the token, many thousand times.
    for place in places:
        while begins[number] + len(pieces[number]) <= place:
            number += 1
        reached = number
        while reached < len(pieces) and begins[reached] < place + len(token):
            begin = begins[reached]
            start, end = max(place, begin), min(place + len(token), begin + len(pieces[reached]))
            if start < end:
                cuts[reached].append((start - begin, end - begin, start - place))
            reached += 1
    return cuts


def _mask_piece(piece: str, cuts: list[Cut]) -> Iterator[str]:
    at = 0
    for start, end, offset in cuts:
        yield mask(piece[at:start], None)
        yield f"{{{{token[{offset}:{offset + end - start}]}}}}"
        at = end
    yield mask(piece[at:], None)


def _add_up(pieces: Sequence[str]) -> list[int]:
    begins, total = [], 0
    for piece in pieces:
        begins.append(total)
        total += len(piece)
    return begins


def _escape_mark(match: re.Match[str]) -> str:
    return "{{=" + match.group()[2:]
