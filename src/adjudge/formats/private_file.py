"""Files that their owner alone can read, written in one step."""

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
    # A new file under a name that cannot be known before. Two writers would write into one file else, and a link that
    # waits under a known name would lead to somebody's file.
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        put(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
