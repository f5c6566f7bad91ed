"""A closed approval in its table, however it is written there."""

from __future__ import annotations

import pytest

from adjudge import Approvals
from adjudge.guards.approval import store as tables
from adjudge.ledger import LedgerError
from kit.approvals import WHO, ask, make_result
from kit.judges import names


def test_a_closed_request_is_never_written_as_if_it_were_open(url: str):
    """Were the counting wrong one day, the table would refuse it, and the same person twice as well."""

    async def work(approvals: Approvals, ident: str) -> list[str]:
        closed = await approvals.decide(ident, "ana", True)
        other = await approvals.get(await approvals.request(make_result(), "?", **WHO, required=2))
        open_still = await approvals.decide(other.id, "ana", True)
        messages = []
        for item, vote in ((closed, None), (open_still, open_still.votes[0])):
            with pytest.raises(LedgerError) as caught:
                await approvals.ledger.transact(
                    lambda transaction, item=item, vote=vote: tables.update_open(transaction.connection, item, vote),
                    tables=tables.make_tables(),
                )
            messages.append(str(caught.value))
        return messages

    first, second = ask(url, work)

    assert names(first, "closed by something that is not adjudge", "nothing was changed")
    assert "UNIQUE constraint failed" in second
