"""Reading of certificates from their files.

Whether a certificate is enough for a result is decided in ``qualification.py`` (``qualify``).
"""

from __future__ import annotations

import os
from pathlib import Path

from adjudge.errors import UsageError
from adjudge.formats.files import open_regular
from adjudge.guards.certificate.certificate import LARGEST, Certificate, parse_certificate


def read_bytes(path: Path) -> bytes:
    """Read the bytes of a file; raises ``OSError`` if it cannot be read, and ``UsageError`` if it is too large.

    The message of the ``UsageError`` continues a sentence that begins with the file's name.
    """
    with open_regular(path) as file:
        raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        raise UsageError(f"is too large: it has more than {LARGEST:,} bytes")
    return raw


def read_certificate_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read the bytes of a certificate's file; raises ``UsageError`` if it cannot be read or is too large."""
    file = Path(path)
    try:
        return read_bytes(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}; write one with adjudge certify") from None
    except UsageError as error:
        raise UsageError(f"{file} {error}; write one with adjudge certify") from None


def read_certificate(path: str | os.PathLike[str]) -> Certificate:
    """Read a certificate from its file, every bit of which is as it was written; who signed it is not checked.

    Raises ``UsageError`` for a file that is no certificate, or was changed.

    Args:
        path: The file to read.
    """
    raw = read_certificate_bytes(path)
    try:
        return parse_certificate(raw)
    except UsageError as error:
        raise UsageError(f"{Path(path)}: {error}") from None
