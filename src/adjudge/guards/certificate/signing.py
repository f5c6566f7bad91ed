"""Signatures of certificates, with the key of a ledger: Ed25519 over schema and digest.

Which key a gate demands is decided in ``demand.py`` (``CertificateDemand``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adjudge.errors import UsageError
from adjudge.guards.certificate.certificate import Certificate
from adjudge.ledger.signature import mark_document, open_check, render_public_key

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger
    from adjudge.ledger.signature import PublicKey


def sign_certificate(certificate: Certificate, ledger: Ledger) -> Certificate:
    """Return a certificate with the signature of a ledger's key; one that is not signed if the ledger has none.

    Args:
        certificate: The certificate.
        ledger: The ledger whose key signs.
    """
    if ledger.public_key is None:
        return replace(certificate, public_key=None, signature=None)
    signature = ledger.sign(certificate.schema, certificate.digest)
    return replace(certificate, public_key=ledger.public_key, signature=signature)


def find_signature_problem(certificate: Certificate, key: PublicKey | None = None) -> str | None:
    """Say why a certificate is not known to be signed by ``key``; ``None`` where it is.

    Needs the extra ``sign``; raises ``UsageError`` for a ``key`` that is no public key.

    Args:
        certificate: The certificate.
        key: The public key to trust. ``None`` uses the key that the certificate names: then the signature shows that
            nothing was changed, and not who made it.
    """
    if certificate.public_key is None or certificate.signature is None:
        return "it is not signed"
    expected = certificate.public_key if key is None else render_public_key(key)
    if certificate.public_key != expected:
        return f"it is signed by another key ({certificate.public_key[:16]}...) than {expected[:16]}..."
    try:
        check = open_check(expected)
    except UsageError as error:
        if key is not None:
            raise
        return str(error)
    if not check(certificate.signature, mark_document(certificate.schema, certificate.digest)):
        return "its signature is not one of what it says"
    return None
