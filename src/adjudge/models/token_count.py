"""The number of tokens of a prompt, as far as that can be said without asking a provider."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from adjudge.models.model import Model, Request
from adjudge.models.providers.base import HttpModel
from adjudge.models.wrapper import find_innermost

ASCII_CHARACTERS = 4.0
"""Characters of ASCII in a token. Providers say 4 for English; code and numbers have fewer."""

OTHER_CHARACTERS = 1.6
"""Other characters in a token: about 1 in Chinese and Japanese, 2 to 3 in Cyrillic and Greek."""

CHARACTER_UNCERTAINTY = 0.3

TOKENIZER_UNCERTAINTY = 0.05
"""A tokenizer does not count what the provider adds: its chat format, and the form in the provider's own words."""


class TokenCounter(Protocol):
    """Counts tokens of texts."""

    @property
    def basis(self) -> str:
        """The basis of the counts, in words."""
        ...

    @property
    def uncertainty(self) -> float:
        """The share by which a count may be off."""
        ...

    def count(self, text: str) -> float:
        """The tokens of a text."""
        ...


@dataclass(frozen=True, slots=True)
class CharacterCounter:
    """Counts characters, and takes so many for a token."""

    basis: str = f"{ASCII_CHARACTERS:g} characters for a token, {OTHER_CHARACTERS:g} where they are not ASCII"
    uncertainty: float = CHARACTER_UNCERTAINTY

    def count(self, text: str) -> float:
        """The tokens of a text."""
        plain = len(text) if text.isascii() else sum(map(str.isascii, text))
        return plain / ASCII_CHARACTERS + (len(text) - plain) / OTHER_CHARACTERS


@dataclass(frozen=True, slots=True)
class EncodingCounter:
    """Counts with an encoding of the package tiktoken."""

    encoding: Any
    basis: str = "the tokenizer o200k_base"
    uncertainty: float = TOKENIZER_UNCERTAINTY

    def count(self, text: str) -> float:
        """The tokens of a text; what looks like a special token in it is text."""
        return len(self.encoding.encode_ordinary(text))


def choose_counter(model: Model) -> TokenCounter:
    """The tokenizer of a model, if it is on this machine; else a counter of characters. Nothing is downloaded."""
    inner = find_innermost(model)
    encoding = None
    if isinstance(inner, HttpModel) and inner.place.provider.prefix == "openai":
        encoding = open_encoding()
    return CharacterCounter() if encoding is None else EncodingCounter(encoding)


def count_request(counter: TokenCounter, request: Request) -> tuple[float, float]:
    """The tokens of a request's constant part (its instructions and its form), and of all of it."""
    import msgspec

    constant = counter.count(request.system)
    if request.form is not None:
        constant += counter.count(msgspec.json.encode(request.form.schema).decode())
    return constant, constant + counter.count(request.user)


_ENCODING_FILE = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"

_ENCODING_DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@cache
def open_encoding() -> Any:
    """The encoding, if the package and the file it once downloaded are both here.

    The package downloads a file that is missing or damaged. So its digest is checked before the package is asked.
    """
    try:
        import tiktoken
    except ImportError:
        return None
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # which turns the package's cache off
        return None
    place = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    path = place / hashlib.sha1(_ENCODING_FILE.encode(), usedforsecurity=False).hexdigest()
    try:
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != _ENCODING_DIGEST:
            return None
    except OSError:
        return None
    return tiktoken.get_encoding("o200k_base")
