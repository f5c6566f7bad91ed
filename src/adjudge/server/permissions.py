"""Permissions: the scopes of a key or an account, the gates it is limited to, and whose name it acts under.

The scope that an address asks for is given where it is added: ``caller.py`` (``require``), and for a page
``pages/page.py`` (``add_page``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.guards.approval.approval import read_name
from adjudge.server.database import read_names, write_names

PermissionScope = Literal["judge", "approve", "label", "adjudicate", "read", "hook"]

SCOPES: tuple[PermissionScope, ...] = get_args(PermissionScope)
"""``judge`` puts content through gates, firewalls and judges; ``approve`` decides about approvals; ``label`` labels
cases; ``adjudicate`` settles labels that differ; ``read`` reads results, runs and the ledger; ``hook`` asks whether an
agent's call may be made. None contains another, and ``hook`` goes with no other."""

ACCOUNT_SCOPES: tuple[PermissionScope, ...] = tuple(scope for scope in SCOPES if scope != "hook")
"""The scopes of people: ``hook`` is for keys, which lie where an agent may read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The permissions of a key or an account.

    Args:
        scopes: The scopes that it has, such as ``judge`` and ``approve``.
        gates: The gates it is limited to; ``None`` is no limit.
        approver: Under which of the ``approvers`` names it decides; ``None``: it cannot decide.
        rater: Under which name it labels; ``None``: it cannot label.
    """

    scopes: frozenset[PermissionScope]
    """The scopes that it has, such as ``judge`` and ``approve``."""
    gates: frozenset[str] | None = None
    """The gates it is limited to; ``None`` is no limit."""
    approver: str | None = None
    """Under which of the ``approvers`` names it decides; ``None``: it cannot decide."""
    rater: str | None = None
    """Under which name it labels; ``None``: it cannot label."""

    def may(self, scope: PermissionScope, gate: str | None = None) -> bool:
        """Return whether it covers a scope and, where a gate is named, that gate.

        Args:
            scope: What is to be done.
            gate: The name of the gate that it is about.
        """
        return scope in self.scopes and (gate is None or self.gates is None or gate in self.gates)

    def covers(self, scope: PermissionScope, gate: str | None) -> bool:
        """Return whether it covers a scope for something of a gate; what is no gate's (``None``) only without a limit.

        ``may`` asks about the scope alone where no gate is named, and would open what has none to everybody.

        Args:
            scope: What is to be done.
            gate: The name of the gate that it is about.
        """
        return self.may(scope, gate) and (gate is not None or self.gates is None)


def make_permissions(
    scopes: Iterable[str],
    *,
    gates: Iterable[str] | None = None,
    approver: str | None = None,
    rater: str | None = None,
) -> Permissions:
    """Make permissions; raises ``UsageError`` for an unknown scope or a name that names nobody for certain.

    Args:
        scopes: What it may do, such as ``judge`` and ``approve``.
        gates: The gates it is limited to; ``None`` is no limit.
        approver: The name under which it decides; ``None``: it cannot decide.
        rater: The name under which it labels; ``None``: it cannot label.
    """
    names = list(scopes)
    if not names:
        raise UsageError(f"a scope is needed; give one or more of {', '.join(SCOPES)}", argument="scopes")
    for scope in names:
        check_choice("scope", scope, SCOPES)
    is_hook_alone = set(names) == {"hook"} and gates is None and approver is None and rater is None
    if "hook" in names and not is_hook_alone:
        # The agent that is guarded can often read this key: with it, it must not judge, read or approve.
        raise UsageError(
            "the scope hook goes with no other scope, gate, approver or rater; make a key for it alone",
            argument="scopes",
        )
    return Permissions(
        scopes=_keep_known(names),
        gates=None if gates is None else frozenset(gates),
        approver=None if approver is None else read_name(approver, "approver"),
        rater=None if rater is None else read_name(rater, "rater"),
    )


def write_permissions(permissions: Permissions) -> dict[str, Any]:
    """Write permissions as the columns of a row."""
    return {
        "scopes": write_names(permissions.scopes),
        "gates": write_names(permissions.gates),
        "approver": permissions.approver,
        "rater": permissions.rater,
    }


def read_permissions(row: Any) -> Permissions:
    """Read permissions from a row. A scope that this version does not know allows nothing."""
    return Permissions(
        scopes=_keep_known(read_names(row.scopes) or ()),
        gates=read_names(row.gates),
        approver=row.approver,
        rater=row.rater,
    )


def _keep_known(names: Iterable[str]) -> frozenset[PermissionScope]:
    """Return those of some names that are scopes, as the type of a scope."""
    name_set = frozenset(names)
    return frozenset(scope for scope in SCOPES if scope in name_set)
