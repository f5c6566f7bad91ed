"""Atomic writing of files that their owner alone can read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_private(path: Path, content: bytes, *, put: Callable[[Path, Path], object] = Path.replace) -> None:
    """Write a file in one step, readable by its owner alone: afterwards there is the old one or the new one, whole.

    ``put`` is called with the finished file and with ``path``, to give the file that name. By default the file replaces
    what is there; a link at ``path`` is replaced too, and not followed. Raises ``OSError``, and what ``put`` raises.
    """
    # The name cannot be guessed. With a fixed name two writers would write into one file, and an attacker could put a
    # link to another file under that name beforehand.
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        put(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
