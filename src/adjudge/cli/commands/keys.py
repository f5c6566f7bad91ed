"""``adjudge keys``: the API keys of programs that ask the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.ledger import LedgerUrl, find_user
from adjudge.cli.commands.serve import check_installed
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import add_row, make_table, note, print_line, show_drawing, write_json
from adjudge.config.file import Config, read_config
from adjudge.config.ledger import open_ledger
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import flatten, show

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger
    from adjudge.server.keys import ApiKey
    from adjudge.server.permissions import Permissions

T = TypeVar("T")

ScopeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="S",
        help="What it may do: judge, approve, label, adjudicate, read; give several. Or hook, alone.",
    ),
]

GateNames = Annotated[
    list[str] | None, typer.Option("--gate", metavar="NAME", help="A gate it is limited to. Give several.")
]

ApproverName = Annotated[
    str | None, typer.Option("--approver", metavar="NAME", help="Under which approver's name it decides.")
]

RaterName = Annotated[str | None, typer.Option("--rater", metavar="NAME", help="Under which rater's name it labels.")]

_Prefix = Annotated[str, typer.Argument(metavar="PREFIX", hidden=True)]


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", hidden=True)],
    scope: ScopeNames = None,
    gate: GateNames = None,
    approver: ApproverName = None,
    rater: RaterName = None,
    expires_in: Annotated[
        float | None, typer.Option("--expires-in", metavar="DAYS", help="Days after which it ends.  [default: never]")
    ] = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
    ledger: LedgerUrl = None,
) -> int:
    """Make a key. It is printed once, and cannot be shown again.

    $ adjudge keys create shop

    NAME says what the key is for. Only a digest of the key is stored, in the ledger's database.
    """
    check_installed()
    from adjudge.formats.times import get_now
    from adjudge.server.keys import create_key

    configuration = read_config(config)
    permissions = read_permissions(configuration, scope, gate, approver, rater)
    until = None if expires_in is None else get_now() + timedelta(days=check_above_zero("expires_in", expires_in))
    key_and_secret = use_database(
        configuration,
        ledger,
        lambda database: create_key(
            database, name=name, permissions=permissions, expires_at=until, by=_find_operator()
        ),
    )
    _print_new(*key_and_secret, as_json=as_json)
    return DONE


def rotate(
    prefix: _Prefix,
    keep: Annotated[
        float, typer.Option("--keep", metavar="HOURS", help="Hours for which the old key stays valid.")
    ] = 0.0,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
    ledger: LedgerUrl = None,
) -> int:
    """Make a key in place of another, with the same name, scopes and limits.

    $ adjudge keys rotate 54343b4accb3

    PREFIX is the 12 characters after adj_ of the old key, which ends at once, or after --keep.
    """
    check_installed()
    from adjudge.formats.times import get_now
    from adjudge.server.keys import rotate_key

    if not 0 <= keep <= 8_760:
        raise UsageError(f"--keep must be hours from 0 to 8,760, got {keep:g}")
    until = get_now() + timedelta(hours=keep) if keep else None
    key_and_secret = use_database(
        read_config(config), ledger, lambda database: rotate_key(database, prefix, old_until=until, by=_find_operator())
    )
    _print_new(*key_and_secret, as_json=as_json)
    return DONE


def revoke(prefix: _Prefix, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """Revoke a key, on all servers within a second. PREFIX is the 12 characters after adj_.

    $ adjudge keys revoke 54343b4accb3
    """
    check_installed()
    from adjudge.server.keys import revoke_key

    key = use_database(read_config(config), ledger, lambda database: revoke_key(database, prefix, by=_find_operator()))
    note(f"key {key.prefix} ({flatten(key.name, 80)}) is revoked")
    return DONE


def list_all(as_json: option.AsJson = False, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """List keys, by prefix; nobody can list their secrets.

    $ adjudge keys list
    """
    check_installed()
    from adjudge.formats.times import get_now
    from adjudge.server.keys import list_keys

    keys = use_database(read_config(config), ledger, list_keys, for_writing=False)
    if as_json:
        write_json({"schema": "adjudge/keys/1", "keys": [to_plain(key) for key in keys]})
        return DONE
    if not keys:
        note("no keys: adjudge keys create NAME --scope judge makes one")
        return DONE
    now = get_now()
    table = make_table("", ("prefix", "name", "state", *_PERMISSIONS, "made", "ends"), whole=1)
    for key in keys:
        state = "valid" if key.is_valid(now) else "ended"
        ends = key.revoked_at or key.expires_at or "never"
        add_row(table, key.prefix, key.name, state, *list_permissions(key.permissions), key.created_at, ends)
    show_drawing(table)
    return DONE


_PERMISSIONS = ("scopes", "gates", "approver", "rater")
"""The headings of the cells that ``list_permissions`` makes."""


def list_permissions(permissions: Permissions) -> tuple[str, str, str, str]:
    """List permissions as cells of a table: scopes, gates, approver and rater."""
    gates = "all" if permissions.gates is None else ", ".join(sorted(permissions.gates))
    return ", ".join(sorted(permissions.scopes)), gates, permissions.approver or "-", permissions.rater or "-"


def read_permissions(
    config: Config, scope: list[str] | None, gate: list[str] | None, approver: str | None, rater: str | None
) -> Permissions:
    """Make the permissions that the options give.

    Raises ``UsageError`` for an unknown scope or gate, and for a scope that needs the name of an approver or a rater.
    """
    from adjudge.server.permissions import make_permissions

    for name in gate or ():
        if name not in config.gates:
            known = flatten(", ".join(config.gates), 400) or "none"
            raise UsageError(f"there is no gate {show(name)} in {config.path}; it has {known}")
    permissions = make_permissions(scope or (), gates=gate or None, approver=approver, rater=rater)
    for scope_name, option_name, person_name in (("approve", "--approver", approver), ("label", "--rater", rater)):
        if scope_name in permissions.scopes and person_name is None:
            raise UsageError(f"the scope {scope_name} needs {option_name}, the name under which that counts")
    return permissions


def use_database(
    config: Config, ledger_url: str | None, work: Callable[[Ledger], Awaitable[T]], *, for_writing: bool = True
) -> T:
    """Open the ledger, whose database holds keys and accounts too, and return the result of ``work`` with it.

    The ledger is that of the configuration where ``ledger_url`` is ``None``. Raises ``UsageError`` if there is none.
    """

    async def open_and_work() -> T:
        async with open_ledger(config, ledger_url, for_writing=for_writing) as database:
            return await work(database)

    return asyncio.run(open_and_work())


def _find_operator() -> str:
    """Return the name of the operating system's user, as the ledger writes it: ``system:NAME``."""
    return f"system:{find_user()}"


def _print_new(key: ApiKey, secret: str, *, as_json: bool) -> None:
    """Print a new key: its text, which holds the secret, and with ``as_json`` also its name, scopes and limits."""
    if as_json:
        document: dict[str, Any] = {"schema": "adjudge/key/1", "text": secret, "key": to_plain(key)}
        write_json(document)
        return
    print_line(secret)
    note("keep it now: it cannot be shown again")


keys_app = make_group(
    "keys",
    "Make and revoke the keys of programs that ask the server.",
    {"create": create, "rotate": rotate, "revoke": revoke, "list": list_all},
)
