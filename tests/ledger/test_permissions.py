"""A ledger's file that another account made: it says so, and what to do."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adjudge import Ledger
from adjudge.errors import AdjudgeError

NOBODY = 65534


@contextmanager
def use_other_account() -> Iterator[None]:
    """Be another account until the block ends, where this one may."""
    if os.geteuid() != 0:
        pytest.skip("only the administrator can be another account")
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="an account of Windows is no number")
def test_a_ledger_of_another_account_says_that_it_is_one():
    """SQLite says no more than that it cannot open the file, which reads as if the file were damaged."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "adjudge.db")
        ledger = Ledger(place)
        asyncio.run(ledger.append({"n": 1}, kind="run"))
        Path(folder).chmod(0o755)
        for mode, told in ((0o755, "its mode is 0600"), (0o700, "Permission denied")):
            Path(folder).chmod(mode)
            with use_other_account(), pytest.raises(AdjudgeError) as caught:
                asyncio.run(Ledger(place).head())
            assert told in str(caught.value)
            assert "adjudge serve" in str(caught.value)
        asyncio.run(ledger.aclose())
