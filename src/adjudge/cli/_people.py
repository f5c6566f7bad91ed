"""Who is asked: ``[approvals]`` of ``adjudge.toml``, and what a gate of it says otherwise."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adjudge.cli._config import Config
from adjudge.cli._seats import Opener
from adjudge.errors import UsageError
from adjudge.rules._words import show

if TYPE_CHECKING:
    from adjudge import Approvals
    from adjudge.ledger import Ledger


def read_terms(config: Config, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Whom a gate asks, and how: its own ``ask`` over ``[approvals]``.

    ``show_content`` is among them, and ``first`` is opened: a judge of the file, or a model.
    """
    terms = {**{key: said for key, said in config.approvals.items() if key != "webhook"}, **ask}
    if not terms.get("approvers"):
        raise UsageError(
            'it asks people, and nobody is named; write approvers under [approvals], or ask = {approvers = ["ana"]}'
        )
    if "first" in terms:
        terms["first"] = Opener(config=config).open(terms["first"], timeout=config.defaults.get("timeout"))
    return terms


def open_approvals(config: Config, ledger: Ledger, *, quiet: bool = True) -> Approvals:
    """The approvals beside a ledger, with the webhook of ``[approvals]``.

    ``quiet`` leaves out one whose secret is not here, for somebody who only decides; else that is a ``UsageError``.
    """
    from adjudge import Approvals

    table = config.approvals.get("webhook")
    if table is None or (quiet and is_secret_missing(config)):
        return Approvals(ledger)
    from adjudge.approval import Webhook

    where = f"{config.path}: [approvals] webhook"
    name = table["secret_env"]
    if is_secret_missing(config):
        raise UsageError(f"{where}: the environment variable {show(name)} is not set; it holds the webhook's secret")
    try:
        return Approvals(ledger, webhook=Webhook(table["url"], secret=os.environ[name]))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def is_secret_missing(config: Config) -> bool:
    """Whether there is a webhook whose secret this process was not given."""
    table = config.approvals.get("webhook")
    return table is not None and not os.environ.get(table["secret_env"])


def list_bells(config: Config) -> list[str]:
    """The host that the webhook of ``[approvals]`` goes to, for whoever lists what can be contacted."""
    table = config.approvals.get("webhook")
    if table is None:
        return []
    try:
        parts = urlsplit(table["url"])
        return [parts.netloc.rpartition("@")[2]] if parts.hostname else []
    except ValueError:  # said by whoever opens it
        return []
