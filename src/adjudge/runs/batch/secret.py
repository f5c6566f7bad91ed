"""The run's own secret, from which its tokens are made: its replies may be fetched by another process."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.private_file import write_private

SECRET_FILE = "batch.secret"  # noqa: S105 - its name

_BYTES = 32


def open_secret(folder: Path, *, needed: bool) -> bytes:
    """The secret of a run, made at first use in a file for its owner alone.

    Content that was written by somebody who knows it could hold a token. No report and no export reads this file.
    ``needed``: requests were sent under it, so that another one cannot read their replies. Raises ``UsageError`` where
    it is gone then, or damaged.
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
    secret = secrets.token_bytes(_BYTES)
    try:
        write_private(path, f"{secret.hex()}\n".encode("ascii"))
    except OSError as error:
        raise AdjudgeError(f"{path} cannot be written: {error.strerror}") from None
    return secret
