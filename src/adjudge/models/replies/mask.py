"""The token of a request in what is kept: masked when it is written, and the present one when it is read again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from adjudge.models.model import TokenLogprob

_TOKEN_MARK = re.compile(r"\{\{(=*)token(\[[0-9]{1,6}:[0-9]{1,6}\])?\}\}")


def mask(text: str, token: str | None) -> str:
    """Write a text as it is recorded: with a mark in place of the token, and imitations of the mark escaped."""
    if "{{" not in text:  # nothing to escape, and a pattern for each token is most of what masking costs
        return text.replace(token, "{{token}}") if token else text
    # Both in one pass: one after the other, the second would change what the first has written.
    pattern = re.compile(f"{re.escape(token)}|{_TOKEN_MARK.pattern}") if token else _TOKEN_MARK
    return pattern.sub(lambda match: "{{token}}" if match.group() == token else _escape_mark(match), text)


def unmask(text: str, token: str | None) -> str:
    """Restore the text that ``mask`` was given, with the present token in place of the recorded one."""

    def restore(match: re.Match[str]) -> str:
        """Return the token, or the piece of it, for a mark; an imitation of a mark with one escape less."""
        escapes, piece = match.group(1), match.group(2) or ""  # a piece of the token is written as [start:end]
        if escapes:
            return "{{" + escapes[1:] + "token" + piece + "}}"
        if not token:
            return match.group()
        start, end = (int(number) for number in piece[1:-1].split(":")) if piece else (0, len(token))
        return token[start:end]

    return _TOKEN_MARK.sub(restore, text)


def mask_tokens(logprobs: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """Mask the token in log-probabilities, whose own tokens cut it in pieces: each is marked, as ``{{token[0:3]}}``."""
    pieces = [logprob.token for logprob in logprobs]
    masked = ["".join(_mask_piece(piece, cuts)) for piece, cuts in zip(pieces, _find_cuts(pieces, token), strict=True)]
    return tuple(
        TokenLogprob(
            token=masked_piece,
            logprob=logprob.logprob,
            top=tuple(
                (masked_piece if text == logprob.token else mask(text, token), number) for text, number in logprob.top
            ),
        )
        for logprob, masked_piece in zip(logprobs, masked, strict=True)
    )


def unmask_tokens(logprobs: Sequence[TokenLogprob], token: str | None) -> tuple[TokenLogprob, ...]:
    """Restore the log-probabilities that ``mask_tokens`` was given, with the present token."""
    return tuple(
        TokenLogprob(
            token=unmask(logprob.token, token),
            logprob=logprob.logprob,
            top=tuple((unmask(text, token), number) for text, number in logprob.top),
        )
        for logprob in logprobs
    )


Cut = tuple[int, int, int]
"""A part of a piece that belongs to the token: its start and end in the piece, and the position of its start in the
token."""


def _find_cuts(pieces: Sequence[str], token: str | None) -> list[list[Cut]]:
    """Find the parts of each piece that belong to a token, which may run through several pieces.

    Returns for each piece a list of parts: start and end in the piece, and the position in the token of the start.
    """
    cuts: list[list[Cut]] = [[] for _ in pieces]
    if not token:
        return cuts
    text, piece_starts = "".join(pieces), _list_starts(pieces)
    first = 0  # the number of the piece in which the current token begins
    # Tokens and pieces are both in order, so one pass is enough: a reply may be the token alone, many thousand times.
    for match in re.finditer(re.escape(token), text):
        token_start, token_end = match.span()
        while piece_starts[first] + len(pieces[first]) <= token_start:
            first += 1
        number = first
        while number < len(pieces) and piece_starts[number] < token_end:
            piece_start = piece_starts[number]
            start, end = max(token_start, piece_start), min(token_end, piece_start + len(pieces[number]))
            if start < end:
                cuts[number].append((start - piece_start, end - piece_start, start - token_start))
            number += 1
    return cuts


def _mask_piece(piece: str, cuts: list[Cut]) -> Iterator[str]:
    """Yield the parts of a piece: a mark for each part of the token, and the other text with imitated marks escaped."""
    masked_end = 0
    for start, end, offset in cuts:
        yield mask(piece[masked_end:start], None)
        yield f"{{{{token[{offset}:{offset + end - start}]}}}}"
        masked_end = end
    yield mask(piece[masked_end:], None)


def _list_starts(pieces: Sequence[str]) -> list[int]:
    """List the positions at which pieces start in the text that they make together."""
    starts, position = [], 0
    for piece in pieces:
        starts.append(position)
        position += len(piece)
    return starts


def _escape_mark(match: re.Match[str]) -> str:
    """Escape the imitation of a mark by one more ``=``, which ``unmask`` takes away."""
    return "{{=" + match.group()[2:]
