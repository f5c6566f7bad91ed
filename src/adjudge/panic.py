"""Panics of extensions written in Rust.

PyO3 raises a panic as a ``BaseException``, as if the program were to end. But content can cause one: a text or a value
that a tokenizer or a validator did not expect. So it is raised again as an ordinary exception, where the extension, or
a function that may use one, is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def convert_panics() -> Iterator[None]:
    """Raise a panic inside this block as a ``RuntimeError``; every other exception passes unchanged."""
    try:
        yield
    except BaseException as error:
        # By its name: each extension has a type of its own, and none of them can be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(f"an extension written in Rust panicked: {error}") from error
