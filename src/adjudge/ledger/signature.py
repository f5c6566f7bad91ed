"""Ed25519 signatures of entries, with the extra ``sign`` (the package cryptography)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.files import open_regular
from adjudge.ledger.entry import SCHEMA
from adjudge.ledger.verification import SignatureCheck

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    PrivateKey = Ed25519PrivateKey | bytes | str | os.PathLike[str]
    PublicKey = Ed25519PublicKey | bytes | str | os.PathLike[str]


_MISSING_PACKAGE = "signatures need the package cryptography; to have it, pip install 'adjudge[sign]'"

_REMEDY = "`adjudge ledger create-key FILE` makes one"

_MOST_BYTES = 100_000
"""A key file is smaller than this, in bytes. A larger file is not read to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """The signer of entries, and the public key that checks them."""

    sign: Callable[[bytes], str] = field(repr=False)
    """Bytes to a signature in hexadecimal."""
    public_key: str
    """32 bytes in hexadecimal."""


def create_signing_key(path: str | os.PathLike[str]) -> str:
    """Write a new private key to a file that only its owner can read, and return its public key in hexadecimal.

    Raises ``UsageError`` when the file exists: a key that is written over can sign nothing any more.

    Args:
        path: The file that the private key is written to; it must not exist.
    """
    ed25519, serialization = _load_cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    format_and_encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, *format_and_encryption)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(f"the key cannot be written to {os.fspath(path)}: {error.strerror}; name a new file") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
    return _render_public(key.public_key())


def open_signer(key: PrivateKey) -> Signer:
    """Make the signer of a private key: the path of a PEM file, its bytes, 32 raw bytes, or cryptography's own object.

    Raises ``UsageError`` for anything else.
    """
    ed25519, serialization = _load_cryptography()
    loaded_key: Any = _read_file(key, _REMEDY) if isinstance(key, str | os.PathLike) else key
    if isinstance(loaded_key, bytes):
        try:
            make_key = ed25519.Ed25519PrivateKey.from_private_bytes
            loaded_key = (
                make_key(loaded_key) if len(loaded_key) == 32 else serialization.load_pem_private_key(loaded_key, None)
            )
        except (TypeError, ValueError):
            loaded_key = None  # the message of the error is dropped, because it may quote the key
    if not isinstance(loaded_key, ed25519.Ed25519PrivateKey):
        raise UsageError(
            f"key is no Ed25519 private key in PEM without a password; {_REMEDY}",
            argument="key",
        )
    return Signer(sign=lambda data: loaded_key.sign(data).hex(), public_key=_render_public(loaded_key.public_key()))


def open_check(key: PublicKey) -> SignatureCheck:
    """Make a check of signatures with a public key: 64 hexadecimal digits, a PEM file, its bytes, or a key object.

    The check is given a signature in hexadecimal and the bytes that were signed.
    """
    from cryptography.exceptions import InvalidSignature

    public_key = _read_public(key)

    def check(signature: str, data: bytes) -> bool:
        try:
            raw = bytes.fromhex(signature)
            public_key.verify(raw, data)
        except (InvalidSignature, ValueError, TypeError):
            return False
        # Only lower-case digits without blanks are accepted: otherwise a changed letter would go unseen.
        return raw.hex() == signature

    return check


def render_public_key(key: PublicKey) -> str:
    """Write a public key in hexadecimal, in lower case; raises ``UsageError`` for what is none."""
    return _render_public(_read_public(key))


def mark_document(schema: str, digest: str) -> bytes:
    """Return the bytes that are signed for a document: its digest, behind its schema so that it signs nothing else.

    Raises ``UsageError`` for the schema of a ledger's entries.
    """
    if schema == SCHEMA:
        raise UsageError("an entry of a ledger is signed when it is recorded, and by nothing else")
    return f"{schema}\n{digest}".encode()


def find_check(public_key: str) -> SignatureCheck | None:
    """Make a check of signatures with the key that a ledger itself names; ``None`` without the package cryptography.

    If the ledger names something that is no key, every signature is invalid.
    """
    try:
        _load_cryptography()
    except UsageError:
        return None
    try:
        return open_check(public_key)
    except UsageError:
        return lambda *_: False


def is_public_key(key: str) -> bool:
    """Return whether a text is a public key in hexadecimal, and no path."""
    return len(key) == 64 and not key.strip("0123456789abcdefABCDEF")


def _read_public(key: PublicKey) -> Ed25519PublicKey:
    """Read a public key from its digits, a PEM file, bytes, or a key object.

    Raises ``UsageError`` for anything else.
    """
    ed25519, serialization = _load_cryptography()
    loaded_key: Any = key
    if isinstance(key, str) and is_public_key(key):
        loaded_key = bytes.fromhex(key)
    elif isinstance(key, str | os.PathLike):
        loaded_key = _read_file(key, "name a PEM file")
        digits = loaded_key.decode("ascii", "replace").strip()  # as `adjudge ledger create-key` prints them
        loaded_key = bytes.fromhex(digits) if is_public_key(digits) else loaded_key
    if isinstance(loaded_key, bytes):
        try:
            make_key = ed25519.Ed25519PublicKey.from_public_bytes
            loaded_key = (
                make_key(loaded_key) if len(loaded_key) == 32 else serialization.load_pem_public_key(loaded_key)
            )
        except (TypeError, ValueError):
            loaded_key = None
    if not isinstance(loaded_key, ed25519.Ed25519PublicKey):
        raise UsageError(
            "public_key is no Ed25519 public key: give 64 hexadecimal digits, or a file of it", argument="public_key"
        )
    return loaded_key


def _read_file(path: str | os.PathLike[str], remedy: str) -> bytes:
    """Read the bytes of a key file. Raises ``UsageError``, with a ``remedy``, for a file that cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or "it is no path"
        raise UsageError(f"the key {os.fspath(path)[:200]!r} cannot be read: {cause}; {remedy}") from None


def _render_public(key: Ed25519PublicKey) -> str:
    """Write a public key in hexadecimal."""
    return key.public_bytes_raw().hex()


def _load_cryptography() -> tuple[Any, Any]:
    """Load the modules ``ed25519`` and ``serialization``. Raises ``UsageError`` without the package."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise UsageError(_MISSING_PACKAGE) from None
    return ed25519, serialization
