"""The secret of a run by batches, from which its tokens are made; a resumed run reads it from its file."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.private_file import write_private

SECRET_FILE = "batch.secret"  # noqa: S105 - its name

_BYTES = 32


def open_secret(folder: Path, *, needed: bool) -> bytes:
    """Read the secret of a run from its file, which only the owner can read; it is made at first use.

    Whoever knows the secret could put a valid token into content. So no report and no export reads this file.
    ``needed`` says that requests were sent with tokens of this secret, so that a new one could not read their replies.
    Raises ``UsageError`` if the file is missing in that case, or damaged.
    """
    path = folder / SECRET_FILE
    try:
        text = path.read_text("ascii").strip()
    except FileNotFoundError:
        if needed:
            raise UsageError(
                f"{path} is gone, without which the replies of this run's batches cannot be read; put it back, or "
                "begin another run"
            ) from None
        return _make_secret(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}; put it back, or begin another run") from None
    if not re.fullmatch(rf"[0-9a-f]{{{2 * _BYTES}}}", text):
        raise UsageError(f"{path} is damaged, so that replies cannot be read by it; begin another run")
    return bytes.fromhex(text)


def _make_secret(path: Path) -> bytes:
    """Make a secret and write it to its file. Raises ``AdjudgeError`` if that cannot be written."""
    secret = secrets.token_bytes(_BYTES)
    try:
        write_private(path, f"{secret.hex()}\n".encode("ascii"))
    except OSError as error:
        raise AdjudgeError(f"{path} cannot be written: {error.strerror}") from None
    return secret
