"""An append-only record of results and decisions, in which any change shows; docs/ledger.md says what to rely on."""

from adjudge.ledger._chain import Verification
from adjudge.ledger._entry import KINDS, Entry, Head
from adjudge.ledger._export import verify_export
from adjudge.ledger._ledger import Ledger
from adjudge.ledger._sign import create_key
from adjudge.ledger._store import Transaction

__all__ = ["KINDS", "Entry", "Head", "Ledger", "Transaction", "Verification", "create_key", "verify_export"]
