"""Effects of a tool, as its operator declares them: what a call does that its arguments do not say. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adjudge.errors import UsageError
from adjudge.formats.text import show

EFFECTS = "effects"
"""The member of ``call``, in the metadata of a request, that holds them. An approval is bound to ``call``, and a server
lets only its own guards write it, so an agent or a client cannot declare effects."""

MOST_EFFECTS = 10

LONGEST_EFFECT = 80
"""Characters of one effect: all effects of a call are shown in one line."""


def read_effects(declared: object) -> tuple[str, ...]:
    """Return the declared effects of a tool; raise ``UsageError`` for anything but a list of different short lines."""
    texts = tuple(declared) if isinstance(declared, Sequence) and not isinstance(declared, str) else ()
    if not 0 < len(texts) <= MOST_EFFECTS or not all(map(_is_effect, texts)) or len(set(texts)) < len(texts):
        raise UsageError(
            f"effects of a tool are a list of 1 to {MOST_EFFECTS} different lines of at most {LONGEST_EFFECT} "
            f'printable characters, such as ["cannot be taken back"], got {show(declared)}',
            argument="effects",
        )
    return texts


def list_effects(metadata: Mapping[str, object]) -> tuple[str, ...]:
    """List the effects in the metadata of a request about a call; invalid ones are left out."""
    call = metadata.get("call")
    effects = call.get(EFFECTS) if isinstance(call, Mapping) else None
    return tuple(filter(_is_effect, effects)) if isinstance(effects, list | tuple) else ()


def _is_effect(text: object) -> bool:
    """Return whether a value is a short printable text without blanks at its ends."""
    return isinstance(text, str) and 0 < len(text) <= LONGEST_EFFECT and text == text.strip() and text.isprintable()
