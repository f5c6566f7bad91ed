"""The tables as the first version makes them.

There is nothing to do: whatever first uses a table makes it, in the form of its own version. A later revision changes
only tables that are there, so each of its steps first asks whether that is so.
"""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing; no database is older than this."""
