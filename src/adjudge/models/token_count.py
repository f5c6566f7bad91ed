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
        """Count the tokens of a text."""
        ...


@dataclass(frozen=True, slots=True)
class CharacterCounter:
    """Estimates tokens by the number of characters."""

    basis: str = f"{ASCII_CHARACTERS:g} characters for a token, {OTHER_CHARACTERS:g} where they are not ASCII"
    uncertainty: float = CHARACTER_UNCERTAINTY

    def count(self, text: str) -> float:
        """Estimate the tokens of a text."""
        ascii_count = len(text) if text.isascii() else sum(map(str.isascii, text))
        return ascii_count / ASCII_CHARACTERS + (len(text) - ascii_count) / OTHER_CHARACTERS


@dataclass(frozen=True, slots=True)
class EncodingCounter:
    """Counts with an encoding of the package tiktoken."""

    encoding: Any
    basis: str = "the tokenizer o200k_base"
    uncertainty: float = TOKENIZER_UNCERTAINTY

    def count(self, text: str) -> float:
        """Count the tokens of a text; the text of a special token in it is counted like any other text."""
        return len(self.encoding.encode_ordinary(text))


def choose_counter(model: Model) -> TokenCounter:
    """Return the tokenizer of a model if it is on this machine, else a counter of characters; download nothing."""
    innermost = find_innermost(model)
    encoding = None
    if isinstance(innermost, HttpModel) and innermost.endpoint.provider.prefix == "openai":
        encoding = open_encoding()
    return CharacterCounter() if encoding is None else EncodingCounter(encoding)


def count_request(counter: TokenCounter, request: Request) -> tuple[float, float]:
    """Count the tokens of a request.

    Returns those of its constant part (the instructions and the form, equal for all contents), and those of all of it.
    """
    import msgspec

    constant = counter.count(request.system)
    if request.form is not None:
        constant += counter.count(msgspec.json.encode(request.form.schema).decode())
    return constant, constant + counter.count(request.user)


_ENCODING_FILE = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"

_ENCODING_DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"


@cache
def open_encoding() -> Any:
    """Return the encoding, if the package tiktoken and the file that it once downloaded are both on this machine.

    The package downloads a file that is missing or damaged. So the file's digest is checked before the package is
    asked. Returns ``None`` without them.
    """
    try:
        import tiktoken
    except ImportError:
        return None
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # the package's cache is turned off
        return None
    cache_folder = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    path = cache_folder / hashlib.sha1(_ENCODING_FILE.encode(), usedforsecurity=False).hexdigest()
    try:
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != _ENCODING_DIGEST:
            return None
    except OSError:
        return None
    return tiktoken.get_encoding("o200k_base")
