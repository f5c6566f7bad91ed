"""``[server]`` of ``adjudge.toml``: the addresses of ``adjudge serve``, who may reach it, and its limits.

Its limits are applied in ``server/work_queue.py`` and ``server/protection.py``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from adjudge.config.file import Config, check_keys
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_seconds, check_whole_number
from adjudge.formats.loopback import is_this_machine, normalise_loopback
from adjudge.formats.text import show
from adjudge.guards.approval.request_terms import LONGEST_UNDO

PORT = 8318
"""The default port."""

MOST_LISTED = 1_000
"""The most rules and criteria that the settings can allow in a request."""

_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of ``[server]``. Times are in seconds, sizes in bytes.

    Args:
        host: The address of this machine on which it listens.
        port: The port on which it listens.
        uds: The path of a Unix socket on which it listens too, for hooks of this machine.
        uds_mode: The accounts that may connect to it: ``0600`` its account alone, ``0660`` its group too.
        public_url: The address that people and programs use, where it is not ``http://HOST:PORT``: behind a proxy, for
            instance. A server that listens elsewhere than on this machine needs it. It is ``https``, except for this
            machine's own addresses: a session's cookie and a key must not travel in the clear. ``localhost`` is no such
            address, because it is two.
        hosts: Further names under which it may be asked, without a port. A request for any other name is refused, and
            forms are taken at ``public_url`` alone.
        proxies: The addresses of proxies that are believed when they say whom they ask for (``X-Forwarded-For``).
        judge: The judge of ``/v1/evaluate`` and of the firewalls; that of ``[defaults]`` where this is not given.
        runs: The folder whose run folders are listed and labelled, from the folder of ``adjudge.toml``.
        largest_body: The largest body of a request; a larger one is answered with 413.
        deadline: Seconds that one request may take, its time in the queue included.
        concurrency: The number of contents that are judged at the same time.
        queue: Further requests that may wait. One beyond that is answered with 503, which lets nothing through.
        queue_per_caller: The number of one key or account that may wait; half of ``queue`` where nothing is said.
        most_rules: Rules in one request, those inside ``some_of`` and the criteria of a rubric included.
        most_criteria: Criteria in one request.
        largest_content: Characters of each content, task, context and reference in a request.
        retry_after: Seconds that a client that was answered with 503 is told to wait.
        shutdown: Seconds that requests under way may go on once the server is told to stop.
        session_idle: After how long without a request a session ends.
        session_lifetime: After how long a session ends in any case.
        idempotency: The time for which an answer is kept for its ``Idempotency-Key``.
        labels_per_case: The number of people who are to label each case.
        labels_by_criterion: True if people are asked for each criterion of the rubric, and not for the case as a whole.
        undo_seconds: Seconds in which a vote given on the page can be taken back; the gate waits for that. 0 is not at
            all.
        hide_judge: True if the page *Approvals* hides the judge until a reviewer has decided, unless they choose
            otherwise.
    """

    host: str = "127.0.0.1"
    """The address of this machine on which it listens."""
    port: int = PORT
    """The port on which it listens."""
    uds: str | None = None
    """The path of a Unix socket on which it listens too, for hooks of this machine."""
    uds_mode: str = "0600"
    """The accounts that may connect to it: ``0600`` its account alone, ``0660`` its group too."""
    public_url: str | None = None
    """The address that people and programs use, where it is not ``http://HOST:PORT``: behind a proxy, for instance.

    A server that listens elsewhere than on this machine needs it. It is ``https``, except for this machine's own
    addresses: a session's cookie and a key must not travel in the clear. ``localhost`` is no such address, because it
    is two.
    """
    hosts: tuple[str, ...] = ()
    """Further names under which it may be asked, without a port. A request for any other name is refused, and forms are
    taken at ``public_url`` alone."""
    proxies: tuple[str, ...] = ()
    """The addresses of proxies that are believed when they say whom they ask for (``X-Forwarded-For``)."""
    judge: str | None = None
    """The judge of ``/v1/evaluate`` and of the firewalls; that of ``[defaults]`` where this is not given."""
    runs: str | None = None
    """The folder whose run folders are listed and labelled, from the folder of ``adjudge.toml``."""
    largest_body: int = 1_000_000
    """The largest body of a request; a larger one is answered with 413."""
    deadline: float = 60.0
    """Seconds that one request may take, its time in the queue included."""
    concurrency: int = 64
    """The number of contents that are judged at the same time."""
    queue: int = 256
    """Further requests that may wait. One beyond that is answered with 503, which lets nothing through."""
    queue_per_caller: int | None = None
    """The number of one key or account that may wait; half of ``queue`` where nothing is said."""
    most_rules: int = 32
    """Rules in one request, those inside ``some_of`` and the criteria of a rubric included."""
    most_criteria: int = 100
    """Criteria in one request."""
    largest_content: int = 500_000
    """Characters of each content, task, context and reference in a request."""
    retry_after: int = 1
    """Seconds that a client that was answered with 503 is told to wait."""
    shutdown: float = 30.0
    """Seconds that requests under way may go on once the server is told to stop."""
    session_idle: float = 3_600.0
    """After how long without a request a session ends."""
    session_lifetime: float = 43_200.0
    """After how long a session ends in any case."""
    idempotency: float = 86_400.0
    """The time for which an answer is kept for its ``Idempotency-Key``."""
    labels_per_case: int = 1
    """The number of people who are to label each case."""
    labels_by_criterion: bool = False
    """True if people are asked for each criterion of the rubric, and not for the case as a whole."""
    undo_seconds: float = 10.0
    """Seconds in which a vote given on the page can be taken back; the gate waits for that. 0 is not at all."""
    hide_judge: bool = False
    """True if the page *Approvals* hides the judge until a reviewer has decided, unless they choose otherwise."""

    @property
    def base_url(self) -> str:
        """The address of the server as its users write it, without a slash at the end."""
        if self.public_url is not None:
            return self.public_url
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def queue_of_one(self) -> int:
        """The number of requests of one key or account that may wait."""
        return (self.queue + 1) // 2 if self.queue_per_caller is None else self.queue_per_caller

    @property
    def is_secure(self) -> bool:
        """Return whether its users reach it by ``https``."""
        return self.base_url.startswith("https:")

    @property
    def needs_browser_key(self) -> bool:
        """Return whether a form needs more than a session's cookie, because programs of this machine can have that.

        A browser sends a cookie to every port of a host: one of plain http to all of them, and a ``Secure`` one, where
        the host is this machine, to those of plain http too.
        """
        return not self.is_secure or is_this_machine(urlsplit(self.base_url).hostname or "")

    @property
    def is_local(self) -> bool:
        """Return whether it listens on this machine's own addresses alone."""
        return is_this_machine(self.host)

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """The names that a request may be for, in lower case and without a port."""
        return self.page_hosts | set(_LOOPBACK_NAMES) if self.is_local else self.page_hosts

    @property
    def page_hosts(self) -> frozenset[str]:
        """The names of ``allowed_hosts`` under which pages are shown; forms are taken from ``base_url`` alone."""
        return frozenset({(urlsplit(self.base_url).hostname or "").lower(), *map(str.lower, self.hosts)})


_TEXT_KEYS = ("host", "uds", "uds_mode", "public_url", "judge", "runs")

_LEAST_COUNTS = {
    "largest_body": 1_000,
    "concurrency": 1,
    "queue": 0,
    "queue_per_caller": 0,
    "most_rules": 0,
    "most_criteria": 1,
    "largest_content": 1,
    "retry_after": 1,
    "labels_per_case": 1,
}

_TIME_KEYS = ("deadline", "shutdown", "session_idle", "session_lifetime", "idempotency")

_LONGEST_TIME = 31_536_000.0
"""One year, in seconds."""


def read_server(
    config: Config,
    *,
    host: str | None = None,
    port: int | None = None,
    uds: str | None = None,
    uds_mode: str | None = None,
) -> ServerSettings:
    """Read the settings of the server; arguments (of the command line) replace those of the file.

    Raises ``UsageError`` that names the file and the key, or the option.
    """
    where = f"{config.path}: [server]"
    table: dict[str, Any] = dict(config.server)
    check_keys(table, tuple(setting.name for setting in fields(ServerSettings)), where)
    _check_values(table, where)
    table |= {name: tuple(table[name]) for name in ("hosts", "proxies") if name in table}
    arguments = {"host": host, "port": port, "uds": uds, "uds_mode": uds_mode}
    overrides: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    # Values of the file are checked even if the command line replaces them, so that mistakes are always reported.
    for values, table_name in ((table, where), (overrides, None)):
        check_whole_number("port", values.get("port", PORT), least=0, most=65_535, where=table_name)
        check_choice("uds_mode", values.get("uds_mode", "0600"), ("0600", "0660"), where=table_name)
        socket_path = values.get("uds")
        if socket_path is not None and not Path(socket_path).is_absolute():
            raise UsageError(f"uds must be an absolute path, got {show(socket_path)}", argument="uds", where=table_name)
    settings = ServerSettings(**{**table, **overrides})
    _check_address(settings, where)
    judge = settings.judge
    if judge is not None and judge not in config.judges:
        names = ", ".join(config.judges) or "none"
        raise UsageError(
            f"judge = {show(judge)} is no judge of this file; its judges are {names}", argument="judge", where=where
        )
    return settings


def check_anonymous(settings: ServerSettings, config: Config) -> None:
    """Raise ``UsageError`` if a server that asks for no key could be reached from other machines."""
    if not settings.is_local:
        raise UsageError(
            f"{config.path}: [server] host is {settings.host}, which others can reach, so requests need a key; "
            "leave out ",
            Argument("allow_anonymous"),
            ", or listen on 127.0.0.1",
            argument="allow_anonymous",
        )


def _check_values(table: Mapping[str, Any], where: str) -> None:
    """Raise ``UsageError`` for a value of ``[server]`` of a wrong type, or out of range."""
    for name in _TEXT_KEYS:
        value = table.get(name, "-")  # any text, so that a missing key passes
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{name} must be a text in quotes, got {show(value)}", argument=name, where=where)
    for name, least in _LEAST_COUNTS.items():
        if name in table:
            most = MOST_LISTED if name in ("most_rules", "most_criteria") else None
            check_whole_number(name, table[name], least=least, most=most, where=where)
    for name in _TIME_KEYS:
        if name in table:
            check_seconds(name, table[name], most=_LONGEST_TIME, where=where)
    proxies = table.get("proxies", [])
    if not isinstance(proxies, list) or not all(
        isinstance(address, str) and _is_network(address) for address in proxies
    ):
        raise UsageError(
            f'proxies must be a list of addresses, like ["10.0.0.2"], got {show(proxies)}',
            argument="proxies",
            where=where,
        )
    _check_reviewing(table, where)
    hosts = table.get("hosts", [])
    if not isinstance(hosts, list) or not all(isinstance(host, str) and _is_host(host) for host in hosts):
        raise UsageError(
            f'hosts must be a list of names without a port, like ["adjudge"], got {show(hosts)}',
            argument="hosts",
            where=where,
        )


def _check_reviewing(table: Mapping[str, Any], where: str) -> None:
    """Raise ``UsageError`` for invalid settings of the pages on which people review."""
    if table.get("undo_seconds", 0) != 0:
        check_seconds("undo_seconds", table["undo_seconds"], most=LONGEST_UNDO, where=where)
    for name in ("hide_judge", "labels_by_criterion"):
        check_flag(name, table.get(name, False), where=where)


def _is_host(name: str) -> bool:
    """Return whether a text may be the name of a host, without a port or a path."""
    return bool(name) and not any(char in name for char in "/:@*? \t\r\n")


def _is_network(text: str) -> bool:
    """Return whether a text is an IP address or a network of addresses."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _check_address(settings: ServerSettings, where: str) -> None:
    """Raise ``UsageError`` if ``public_url`` is missing and needed, or cannot be the address that browsers use."""
    if settings.public_url is None:
        if not settings.is_local:
            raise UsageError(
                f"{where} public_url is needed where host is {show(settings.host)}, which others can reach; write the "
                'address that they use, like "https://adjudge.example"'
            )
        _refuse_localhost(settings.host, f"{where} host")
        return
    key = f"{where} public_url"
    try:
        parts = urlsplit(settings.public_url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        parts, host = None, None
    if parts is None or host is None or parts.scheme not in ("http", "https") or parts.username is not None:
        raise UsageError(f'{key} must be like "https://adjudge.example", got {show(settings.public_url)}')
    if parts.path or parts.query or parts.fragment:
        raise UsageError(f"{key} must end with the host or its port, got {show(settings.public_url)}")
    if parts.scheme == "http" and not is_this_machine(host):
        raise UsageError(
            f"{key} must begin with https, since passwords and keys would be sent in the clear; got "
            f"{show(settings.public_url)}"
        )
    if parts.scheme == "http":
        _refuse_localhost(host, key)


def _refuse_localhost(host: str, key: str) -> None:
    """Raise ``UsageError`` for ``localhost``, which is two addresses, 127.0.0.1 and ::1.

    The server listens at one of them. A browser tries both, so to it a program that takes the same port of the other
    one is the same site: that program would get what the browser stored for the server, and the password.
    """
    if normalise_loopback(host) == "localhost":
        raise UsageError(
            f"{key} is {show(host)}, which is both 127.0.0.1 and ::1, so that another program can answer at the one "
            "that is free; write 127.0.0.1"
        )
