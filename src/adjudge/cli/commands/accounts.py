"""``adjudge accounts``: the people who sign in to the server."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.keys import (
    ApproverName,
    GateNames,
    RaterName,
    list_permissions,
    read_permissions,
    use_database,
)
from adjudge.cli.commands.ledger import LedgerUrl
from adjudge.cli.commands.serve import check_installed
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import add_row, make_table, note, show_drawing, write_json
from adjudge.config.file import read_config
from adjudge.errors import UsageError
from adjudge.formats.plain_data import to_plain
from adjudge.formats.text import flatten

_ScopeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--scope", metavar="S", help="What they may do: judge, approve, label, adjudicate, read. Give several."
    ),
]

_Name = Annotated[str, typer.Argument(metavar="NAME", hidden=True)]


def add(
    name: _Name,
    scope: _ScopeNames = None,
    gate: GateNames = None,
    approver: ApproverName = None,
    rater: RaterName = None,
    config: option.ConfigFile = None,
    ledger: LedgerUrl = None,
) -> int:
    """Add an account. NAME is what the person types to sign in.

    $ adjudge accounts add mara

    The password is asked for on the terminal, or read from standard input, one line. --approver is the name that gates
    have for this person: no two accounts can have the same, so that one person counts once.
    """
    check_installed()
    from adjudge.server.accounts import add_account

    configuration = read_config(config)
    permissions = read_permissions(configuration, scope, gate, approver, rater)
    password = read_password()
    use_database(
        configuration,
        ledger,
        lambda database: add_account(database, name=name, password=password, permissions=permissions),
    )
    note(f"account {flatten(name, 80)} is added")
    return DONE


def change_password(name: _Name, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """Set another password and end all sessions of the account.

    $ adjudge accounts password mara
    """
    check_installed()
    from adjudge.server.accounts import set_password

    configuration, password = read_config(config), read_password()
    use_database(configuration, ledger, lambda database: set_password(database, name, password))
    note(f"account {flatten(name, 80)} has another password, and its sessions are ended")
    return DONE


def disable(name: _Name, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """Let an account sign in no more, and end its sessions. What it decided stays.

    $ adjudge accounts disable mara
    """
    check_installed()
    from adjudge.server.accounts import disable_account

    use_database(read_config(config), ledger, lambda database: disable_account(database, name))
    note(f"account {flatten(name, 80)} is disabled, and its sessions are ended")
    return DONE


def enable(name: _Name, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """Let a disabled account sign in again, with its old password.

    $ adjudge accounts enable mara
    """
    check_installed()
    from adjudge.server.accounts import enable_account

    use_database(read_config(config), ledger, lambda database: enable_account(database, name))
    note(f"account {flatten(name, 80)} is enabled")
    return DONE


def list_all(as_json: option.AsJson = False, config: option.ConfigFile = None, ledger: LedgerUrl = None) -> int:
    """List accounts, with what each may do.

    $ adjudge accounts list
    """
    check_installed()
    from adjudge.server.accounts import list_accounts

    accounts = use_database(read_config(config), ledger, list_accounts, for_writing=False)
    if as_json:
        write_json({"schema": "adjudge/accounts/1", "accounts": [to_plain(account) for account in accounts]})
        return DONE
    if not accounts:
        note("no accounts: adjudge accounts add NAME --scope approve --approver NAME adds one")
        return DONE
    table = make_table("", ("name", "state", "scopes", "gates", "approver", "rater", "made"), whole=1)
    for account in accounts:
        state = "enabled" if account.disabled_at is None else "disabled"
        add_row(table, account.name, state, *list_permissions(account.permissions), account.created_at)
    show_drawing(table)
    return DONE


def read_password() -> str:
    """Read a password: from the terminal, asked for twice and not shown, or else the first line of standard input.

    Raises ``UsageError`` if standard input is empty, or the two passwords differ.
    """
    if not sys.stdin.isatty():
        line = sys.stdin.readline().rstrip("\r\n")
        if not line:
            raise UsageError("no password was given; write it to standard input, one line, or run this on a terminal")
        return line
    from getpass import getpass

    password = getpass("Password: ")
    if getpass("Once more: ") != password:
        raise UsageError("the two passwords differ; nothing was changed")
    return password


accounts_app = make_group(
    "accounts",
    "Add the people who sign in to the server, and set their passwords.",
    {"add": add, "password": change_password, "disable": disable, "enable": enable, "list": list_all},
)
