"""The ledger of a project: ``[ledger]`` of ``adjudge.toml``, or ``--ledger``; and recording to it.

The keys of ``[ledger]`` are in ``file.py`` (``_LEDGER``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adjudge.config.file import Config
from adjudge.config.modules import open_function
from adjudge.errors import AdjudgeError, LedgerError, UsageError

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger


SQLITE = "sqlite:///"
"""The beginning of the address of a ledger in a file."""


class CommandRecorder:
    """A ledger that a command records to, and what went wrong with it. ``None`` as ledger records nothing."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger
        self.troubles: dict[str, None] = {}
        """A sentence for each result that was not recorded, equal ones once."""

    @property
    def keeps_content(self) -> bool:
        """Return True if the ledger keeps what was judged."""
        return self.ledger is not None and self.ledger.keeps_content

    async def prepare(self) -> None:
        """Make the ledger if there is none; raises what is wrong with it before anybody is asked, and paid."""
        if self.ledger is not None:
            await self.ledger.prepare()

    async def append(self, value: Any, /, **options: Any) -> int:
        """Do what ``Ledger.append`` does; what it raises is remembered, since the caller reports its type alone."""
        if self.ledger is None:
            raise LedgerError("there is no ledger to record to")
        try:
            return await self.ledger.append(value, **options)
        except Exception as error:
            # A redaction of the user's own may raise anything, and quote what it should have hidden.
            ours = isinstance(error, AdjudgeError)
            problem = str(error) if ours else f"{type(error).__name__} was raised while an entry was made"
            self.troubles[f"not recorded: {problem}"] = None
            raise

    async def keep(self, value: Any, /, **options: Any) -> int | None:
        """Record a value and return its place; ``None`` without a ledger and where that failed, which is remembered."""
        if self.ledger is None:
            return None
        try:
            return await self.append(value, **options)
        except Exception:  # noqa: BLE001 - remembered by append, and told at the end
            return None

    async def aclose(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            await self.ledger.aclose()


def open_recorder(config: Config, url: str | None, *, off: bool) -> CommandRecorder:
    """Open what a command records to: ``--ledger``, else ``[ledger]``, else nothing; nothing with ``--no-ledger``.

    Raises ``UsageError`` for both options.
    """
    if off and url is not None:
        raise UsageError("--ledger and --no-ledger contradict each other; give one of them")
    records = not off and (url is not None or bool(config.ledger))
    return CommandRecorder(open_ledger(config, url) if records else None)


def open_ledger(config: Config, url: str | None = None, *, key: str | None = None, for_writing: bool = True) -> Ledger:
    """Open the ledger of ``--ledger``, else of ``[ledger]``; what else ``[ledger]`` says counts for either.

    ``key`` is a file with a private key, from here, in place of the one of ``[ledger]``. ``for_writing=False`` opens
    it without any, which nobody needs who only reads. Raises ``UsageError`` where none is named, and for what is
    written wrong.
    """
    from adjudge.ledger.ledger import Ledger

    place = find_place(config, url)
    if not for_writing:
        return Ledger(place)
    table = config.ledger
    signer = config.path.parent / table["key"] if key is None and "key" in table and config.path else key
    redact = _open_redaction(table["redact"], config) if "redact" in table else None
    store_content: Any = table.get("store_content", "hash")
    try:
        return Ledger(place, store_content=store_content, key=signer, redact=redact)
    except UsageError as error:
        raise error.within(f"{config.path}: [ledger]") if table else error from None


def find_place(config: Config, url: str | None) -> str:
    """Find the ledger's address: a file of ``--ledger`` is seen from here, one of ``[ledger]`` from its folder.

    Raises ``UsageError`` where none is named.
    """
    if url is not None:
        return url if "://" in url else f"{SQLITE}{url}"
    configured = config.ledger.get("url")
    if configured is None:
        where = f" of {config.path}" if config.path else " of adjudge.toml"
        raise UsageError(f"no ledger is named: give --ledger adjudge.db, or write url under [ledger]{where}")
    if "://" in configured and not configured.startswith(SQLITE):
        return configured
    file = Path(configured.removeprefix(SQLITE))
    return f"{SQLITE}{config.path.parent / file if config.path else file}"


def list_hosts(config: Config) -> list[str]:
    """List the servers that ``[ledger]`` names, for lists of what can be contacted; none for a file."""
    if not config.ledger.get("url", "").startswith("postgres"):
        return []
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        address = make_url(config.ledger["url"])
    except (ArgumentError, ValueError):  # said when it is opened
        return []
    port = f":{address.port}" if address.port else ""
    other_hosts = address.query.get("host", ())
    return [f"{address.host}{port}"] * bool(address.host) + (
        [other_hosts] if isinstance(other_hosts, str) else list(other_hosts)
    )


def _open_redaction(spec: str, config: Config) -> Callable[[str], str]:
    return open_function(spec, f"{config.path}: [ledger] redact", config.folder)
