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
    """A ledger to which a command records, and a list of what failed. With ``None`` as ledger it records nothing."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger
        self.troubles: dict[str, None] = {}
        """A sentence for each result that was not recorded, equal ones once."""

    @property
    def keeps_content(self) -> bool:
        """Return True if the ledger keeps what was judged."""
        return self.ledger is not None and self.ledger.keeps_content

    async def prepare(self) -> None:
        """Make the ledger if it does not exist; problems raise here, before a model is asked and paid."""
        if self.ledger is not None:
            await self.ledger.prepare()

    async def append(self, value: Any, /, **options: Any) -> int:
        """Append as ``Ledger.append`` does; an exception is noted in ``troubles``; the caller reports only its type."""
        if self.ledger is None:
            raise LedgerError("there is no ledger to record to")
        try:
            return await self.ledger.append(value, **options)
        except Exception as error:
            # A user's redaction function may raise anything, and its message may quote what it should have hidden.
            is_own_error = isinstance(error, AdjudgeError)
            problem = str(error) if is_own_error else f"{type(error).__name__} was raised while an entry was made"
            self.troubles[f"not recorded: {problem}"] = None
            raise

    async def keep(self, value: Any, /, **options: Any) -> int | None:
        """Record a value and return its place in the ledger; ``None`` without a ledger, or if recording failed."""
        if self.ledger is None:
            return None
        try:
            return await self.append(value, **options)
        except Exception:  # noqa: BLE001 - append has noted it in ``troubles``, shown at the end
            return None

    async def aclose(self) -> None:
        """Close the ledger."""
        if self.ledger is not None:
            await self.ledger.aclose()


def open_recorder(config: Config, url: str | None, *, off: bool) -> CommandRecorder:
    """Open the recorder of a command: with the ledger of ``--ledger``, else of ``[ledger]``, else none.

    ``off`` is ``--no-ledger``; together with ``--ledger`` it raises ``UsageError``.
    """
    if off and url is not None:
        raise UsageError("--ledger and --no-ledger contradict each other; give one of them")
    records = not off and (url is not None or bool(config.ledger))
    return CommandRecorder(open_ledger(config, url) if records else None)


def open_ledger(config: Config, url: str | None = None, *, key: str | None = None, for_writing: bool = True) -> Ledger:
    """Open the ledger of ``--ledger``, else of ``[ledger]``; the other keys of ``[ledger]`` count for both.

    ``key`` is a file with a private key, which replaces that of ``[ledger]``; its path starts from the working
    directory. ``for_writing=False`` opens the ledger without a key, which reading does not need. Raises ``UsageError``
    if no ledger is named, and for wrong keys.
    """
    from adjudge.ledger.ledger import Ledger

    address = find_address(config, url)
    if not for_writing:
        return Ledger(address)
    table = config.ledger
    key_file = config.path.parent / table["key"] if key is None and "key" in table and config.path else key
    redact = _open_redaction(table["redact"], config) if "redact" in table else None
    store_content: Any = table.get("store_content", "hash")
    try:
        return Ledger(address, store_content=store_content, key=key_file, redact=redact)
    except UsageError as error:
        raise error.within(f"{config.path}: [ledger]") if table else error from None


def find_address(config: Config, url: str | None) -> str:
    """Return the ledger's address, a URL.

    The path of ``--ledger`` (``url``) starts from the working directory, one of ``[ledger]`` from the configuration's
    folder. Raises ``UsageError`` if no ledger is named.
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
    """List the servers that ``[ledger]`` names, for lists of the hosts that may be contacted; none for a file."""
    if not config.ledger.get("url", "").startswith("postgres"):
        return []
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        address = make_url(config.ledger["url"])
    except (ArgumentError, ValueError):  # an invalid address; opening the ledger reports it
        return []
    port = f":{address.port}" if address.port else ""
    hosts = [f"{address.host}{port}"] if address.host else []
    other_hosts = address.query.get("host", ())  # of several servers: a text or a tuple
    return hosts + ([other_hosts] if isinstance(other_hosts, str) else list(other_hosts))


def _open_redaction(spec: str, config: Config) -> Callable[[str], str]:
    return open_function(spec, f"{config.path}: [ledger] redact", config.folder)
