"""The client of a server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from adjudge.client.approvals import RemoteApprovals
from adjudge.client.connection import Connection
from adjudge.client.firewalls import RemoteInputFirewall, RemotePromptFirewall
from adjudge.client.gate import RemoteGate
from adjudge.client.judge import RemoteJudge
from adjudge.client.labels import RemoteLabelQueue
from adjudge.client.ledger import RemoteLedger
from adjudge.client.results import RemoteResults
from adjudge.client.tools import RemoteEmergentJudge
from adjudge.formats.arguments import check_choice, check_label
from adjudge.guards.firewall.prompt import OnUnsafe
from adjudge.sync import run_sync


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Client:
    """A server's gates, judges, firewalls, approvals, labels, ledger and what it recorded, as the library has them.

    A gate of this program becomes a server's by changing one line::

        gate = Client("https://adjudge.example", key=key).gate("publish")
        decision = await gate.check(text)  # a Decision, as from a Gate of this program

    A server that cannot be reached, is too busy until ``timeout``, or fails, lets nothing through: a gate blocks, a
    judge is undecided, a firewall rejects. What only reads or writes (approvals, labels, results, the ledger) raises
    ``ServerError`` then. What the server refuses (a wrong key, an unknown gate) is a ``UsageError``.

    Use it as an async context manager, or call ``aclose``; connections are closed with their loop otherwise. Raises
    ``UsageError`` for an address or a key that cannot be used.

    Args:
        url: The address, like ``https://adjudge.example``.
        key: The key that ``adjudge keys create`` printed; ``None`` for a server on this machine that needs none.
        timeout: Seconds for one call, all tries and waits included.
        allow_http: Send the key over ``http`` to another machine, where anybody on the way can read it: within one
            private network at most.
    """

    url: str = field(kw_only=False)
    """The address, like ``https://adjudge.example``."""
    key: str | None = field(default=None, repr=False)
    """The key that ``adjudge keys create`` printed; ``None`` for a server on this machine that needs none."""
    timeout: float = 60.0
    """Seconds for one call, all tries and waits included."""
    allow_http: bool = False
    """Send the key over ``http`` to another machine, where anybody on the way can read it: within one private network
    at most."""
    connection: Connection = field(init=False, repr=False)

    def __post_init__(self) -> None:
        connection = Connection(self.url, key=self.key, timeout=self.timeout, allow_http=self.allow_http)
        object.__setattr__(self, "connection", connection)

    def gate(self, name: str) -> RemoteGate:
        """Return a gate of the server, by its name; nothing is asked before the first check.

        Args:
            name: The name of the gate in the server's configuration.
        """
        check_label("name", name, where="a gate")
        return RemoteGate(name=name, connection=self.connection)

    def judge(self, name: str | None = None) -> RemoteJudge:
        """Return a judge of the server, by its name; ``None`` is the server's default.

        Args:
            name: The name of the judge in the server's configuration.
        """
        return RemoteJudge(name=name, connection=self.connection)

    def input_firewall(self, judge: str | None = None, *, tool_name: str | None = None) -> RemoteInputFirewall:
        """Return an input firewall with a judge of the server.

        Args:
            judge: The name of the judge; ``None`` is the server's default.
            tool_name: The name of the function whose arguments are checked, which the judge is shown.
        """
        return RemoteInputFirewall(connection=self.connection, judge=judge, tool_name=tool_name)

    def prompt_firewall(self, judge: str | None = None, *, on_unsafe: OnUnsafe = "drop_batch") -> RemotePromptFirewall:
        """Return a prompt firewall with a judge of the server.

        Args:
            judge: The name of the judge; ``None`` is the server's default.
            on_unsafe: What happens to the other rules where one is rejected, as for ``PromptFirewall``.
        """
        check_choice("on_unsafe", on_unsafe, ("drop_batch", "drop_flagged"))
        return RemotePromptFirewall(connection=self.connection, judge=judge, on_unsafe=on_unsafe)

    def emergent_judge(self, judge: str | None = None) -> RemoteEmergentJudge:
        """Return a reviewer of forged tools with a judge of the server.

        Args:
            judge: The name of the judge; ``None`` is the server's default.
        """
        return RemoteEmergentJudge(connection=self.connection, judge=judge)

    def approvals(self) -> RemoteApprovals:
        """Return the approvals of the server."""
        return RemoteApprovals(connection=self.connection)

    def label_queue(self, run: str) -> RemoteLabelQueue:
        """Return the queue of labelling of a run, by the name of its folder.

        Args:
            run: The name of the run's folder.
        """
        return RemoteLabelQueue(connection=self.connection, run=run)

    def results(self) -> RemoteResults:
        """Return what the server's ledger has of decisions and results, to read."""
        return RemoteResults(connection=self.connection)

    def ledger(self) -> RemoteLedger:
        """Return the ledger of the server, to read."""
        return RemoteLedger(connection=self.connection)

    async def aclose(self) -> None:
        """Close the running loop's connections; a later use opens new ones."""
        await self.connection.aclose()

    def close(self) -> None:
        """Close the connections of all calls that were made without an event loop."""
        run_sync(self.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
