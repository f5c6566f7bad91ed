"""The result of this server's last check of the whole ledger, which every page shows in its navigation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from adjudge.ledger.verification import Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The last check of the whole ledger by this server; a verification by itself does not say when it was made."""

    verification: Verification
    at: datetime
    seconds: float
