"""A client of the guard server: connects a hook to the server, checks the server's identity, and asks one question.

A coding agent waits for its hook at every call, so this module imports only a little of the standard library. Anything
but the right answer in time raises: silence, another status, a redirect, an answer to another question.

The guarded agent could listen in the server's place. So a Unix socket counts only if it belongs to the right account,
and a TLS connection only with the pinned certificate; nothing is sent before that is checked. Environment variables do
not count, because a project can set them: no proxy, no certificate file, no options of the resolver.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

LARGEST_ANSWER = 1_000_000
"""The most bytes of an answer, with its head."""

LARGEST_FILE = 1_000_000

KEYS = ("address", "key", "owner", "certificate", "configuration")
"""The members of ``[hook.server]``."""

_HTTPS = re.compile(r"https://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")

_PIN = re.compile(r"sha256:([0-9a-f]{64})")

_WINDOWS = "on Windows nobody says who else can write a file or listen on a socket; run the hook on Linux, macOS or WSL"

_DIGEST = re.compile(r"[0-9a-f]{64}")

_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [ -~]*")

_LARGEST_HEAD = 16_384

_OWN_HEADERS = ("content-length", "content-type", "adjudge-nonce", "adjudge-digest", "adjudge-configuration")


class NotChecked(Exception):
    """The call was not checked, because there is no valid answer; the message says why, for people."""


class GuardServer(NamedTuple):
    """A server that is asked about calls."""

    address: str
    """``unix:/PATH`` or ``https://HOST:PORT``."""
    key: str
    """The absolute path of the file with a key of the scope ``hook``."""
    owner: str | int | None = None
    """The account, by name or number, that a Unix socket and its server have to belong to; ``None`` is this one."""
    certificate: str | None = None
    """``sha256:`` and the SHA-256 of the server's certificate (DER); needed with ``https``."""
    configuration: str | None = None
    """The digest that the server must name for its configuration; ``None`` accepts any."""

    @property
    def path(self) -> str | None:
        """The path of the Unix socket; ``None`` for a server that is asked by TLS."""
        return self.address.removeprefix("unix:") if self.address.startswith("unix:") else None


def read_server_table(table: object) -> GuardServer:
    """Read ``[hook.server]``. Raises ``NotChecked`` that names what is wrong."""
    if not isinstance(table, Mapping):
        raise NotChecked("server must be a table, written [hook.server]")
    for name, value in table.items():
        if name not in KEYS:
            raise NotChecked(f"unknown key {name!r} of [hook.server]; it knows {', '.join(KEYS)}")
        if not isinstance(value, str) and not (name == "owner" and type(value) is int):
            raise NotChecked(f"{name} of [hook.server] must be a text in quotes")
    for name in ("address", "key"):
        if name not in table:
            raise NotChecked(f"[hook.server] needs {name}")
    server = GuardServer(**table)
    if not server.key.startswith("/"):
        raise NotChecked("key of [hook.server] must be the absolute path of a file")
    if server.configuration is not None and _DIGEST.fullmatch(server.configuration) is None:
        raise NotChecked("configuration of [hook.server] must be 64 hexadecimal digits")
    _check_address(server)
    return server


def _check_address(server: GuardServer) -> None:
    """Raise ``NotChecked`` for an address that is neither a Unix socket nor https with a pinned certificate."""
    if server.path is not None:
        if not server.path.startswith("/") or server.certificate is not None:
            raise NotChecked("a Unix socket has an absolute path, like unix:/run/adjudge/hook.sock, and no certificate")
    elif _HTTPS.fullmatch(server.address) is None:
        # With plain http, any program that takes the port first would get the key and give the answers.
        raise NotChecked("address of [hook.server] must be like unix:/PATH or https://HOST:PORT; http is not possible")
    elif server.certificate is None or _PIN.fullmatch(server.certificate) is None:
        raise NotChecked('https needs certificate = "sha256:...", the SHA-256 of the server\'s certificate')


def name_config(path: str, digest: str) -> str:
    """Write the SHA-256 of a configuration file's path, and of its content (``digest``), for a header to the server."""
    path_digest = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    return f"{path_digest} {digest}"


def ask_server(server: GuardServer, path: str, body: bytes, *, seconds: float, config: str | None = None) -> Any:
    """Send a body to a path of the server, and return the object that the server answers within so many seconds.

    ``config`` names the hook's configuration as ``name_config`` does: a server that has read another version of that
    file answers with an error. Raises ``NotChecked`` for anything but a valid answer.
    """
    deadline = time.monotonic() + seconds
    key = read_key(server.key)
    nonce, digest = os.urandom(16).hex(), hashlib.sha256(body).hexdigest()
    fields = {
        "Host": "localhost" if server.path is not None else server.address.removeprefix("https://"),
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Accept-Encoding": "identity",
        "Adjudge-Nonce": nonce,
        "Adjudge-Digest": digest,
        "Connection": "close",
    }
    if config is not None:
        fields["Adjudge-Hook-Config"] = config
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    try:
        connection = _connect(server, deadline)
        with connection:
            connection.settimeout(_find_seconds_left(deadline))
            # A server that refuses a body may close before it has read all of it, and its answer says why.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(head.encode("ascii") + b"\r\n" + body)
            headers, answer = _receive(connection, deadline)
    except TimeoutError:
        raise NotChecked("the server did not answer in time") from None
    except OSError as error:
        raise NotChecked(f"the server cannot be asked: {error.strerror or type(error).__name__}") from None
    expected = {"adjudge-nonce": nonce, "adjudge-digest": digest}
    expected |= {} if server.configuration is None else {"adjudge-configuration": server.configuration}
    for name, value in expected.items():
        # An old answer, or an answer to another client, would have the right form too.
        if headers.get(name) != value:
            raise NotChecked(f"the answer is to another question, or of another configuration ({name})")
    return _read_object(headers, answer)


def _read_object(headers: Mapping[str, str], answer: bytes) -> dict[str, Any]:
    """Read an answer as a JSON object. Raises ``NotChecked`` for any other answer."""
    if headers.get("content-type", "").partition(";")[0] != "application/json":
        raise NotChecked("the answer is no JSON")
    try:
        body = json.loads(answer.decode("utf-8"))
    except (ValueError, RecursionError):
        raise NotChecked("the answer is no JSON") from None
    if not isinstance(body, dict):
        raise NotChecked("the answer is no object")
    return body


# ---------------------------------------------------------------- files


def read_own_file(path: str, *, private: bool = False) -> bytes:
    """Read a file that others cannot write, and if it is ``private`` cannot read either.

    Raises ``NotChecked`` for any other file, for a link, and for a file that is too large.
    """
    if sys.platform == "win32":
        raise NotChecked(_WINDOWS)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _check_own(path, os.fstat(descriptor), private=private)
            raw = b""
            while len(raw) <= LARGEST_FILE and (piece := os.read(descriptor, LARGEST_FILE + 1)):
                raw += piece
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NotChecked(f"cannot read {path}: {error.strerror}") from None
    if len(raw) > LARGEST_FILE:
        raise NotChecked(f"{path} has more than {LARGEST_FILE:,} bytes")
    return raw


def _check_own(path: str, status: os.stat_result, *, private: bool) -> None:
    """Raise ``NotChecked`` for a file that others can write, or if ``private`` read, and for one that is no file."""
    if not stat.S_ISREG(status.st_mode):
        raise NotChecked(f"{path} is no file")
    if status.st_mode & (0o077 if private else 0o002) or (private and status.st_uid not in (0, os.getuid())):
        mode = "0600" if private else "o-w"
        raise NotChecked(f"{path} can be {'read' if private else 'written'} by others (chmod {mode})")


def read_key(path: str) -> str:
    """Read the key from its file. Raises ``NotChecked``, also for a file that others can read."""
    key = read_own_file(path, private=True).decode("ascii", "replace").strip()
    if not key or len(key) > 200 or not re.fullmatch(r"[!-~]+", key):
        raise NotChecked(f"{path} holds no key")
    return key


# ---------------------------------------------------------------- connecting


def _connect(server: GuardServer, deadline: float) -> Any:
    """Connect to a server by its Unix socket or by TLS, and check that it is the right one."""
    if sys.platform == "win32":
        raise NotChecked(_WINDOWS)
    if server.path is not None:
        return _connect_unix(server.path, _find_owner(server.owner), deadline)
    return _connect_tls(server, deadline)


def _find_owner(owner: str | int | None) -> int:
    """Return the user id of an account; ``None`` is the account of this process.

    Raises ``NotChecked`` for an account that does not exist.
    """
    if owner is None:
        return os.getuid()
    if isinstance(owner, int):
        return owner
    import pwd

    try:
        return pwd.getpwnam(owner).pw_uid
    except KeyError:
        raise NotChecked(f"there is no account {owner!r}, the owner of [hook.server]") from None


def _connect_unix(path: str, owner: int, deadline: float) -> socket.socket:
    """Connect to a socket of this account, in a folder in which no other account can make one.

    Raises ``NotChecked`` for any other socket, and if nobody listens.
    """
    try:
        folder_status, socket_status = os.lstat(path.rpartition("/")[0] or "/"), os.lstat(path)
    except OSError as error:
        raise NotChecked(f"there is no socket {path}: {error.strerror}; is the server running?") from None
    mode = folder_status.st_mode
    if not stat.S_ISDIR(mode) or folder_status.st_uid not in (0, owner) or mode & 0o022:
        raise NotChecked(f"the folder of {path} can be changed by another account than the server's")
    if not stat.S_ISSOCK(socket_status.st_mode) or socket_status.st_uid != owner:
        raise NotChecked(f"{path} is no socket of the server's account")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_find_seconds_left(deadline))
        connection.connect(path)
        _check_peer(connection, path, owner)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_peer(connection: socket.socket, path: str, owner: int) -> None:
    """Raise ``NotChecked`` if a process of another account listens on a socket, or the system does not tell which."""
    credentials = connection.getsockopt(*_find_peer_option())
    if int.from_bytes(credentials[4:8], sys.byteorder) != owner:
        raise NotChecked(f"another account than the server's answers at {path}")


def _find_peer_option() -> tuple[int, int, int]:
    """Return the level, the name and the size of the socket option that tells the account at the other end.

    The account is the option's second 32-bit number. Sources: unix(7) of Linux, with ``struct ucred``; unix(4) of
    macOS, with ``struct xucred``.

    Raises ``NotChecked`` on a system for which no such option is known.
    """
    if sys.platform == "linux":
        return socket.SOL_SOCKET, socket.SO_PEERCRED, 12
    if sys.platform == "darwin":
        return 0, 1, 76  # SOL_LOCAL, LOCAL_PEERCRED
    raise NotChecked("this system is not known to say which account listens on a socket; ask the server by https")


def _connect_tls(server: GuardServer, deadline: float) -> Any:
    """Connect to a server by TLS, and close the connection unless its certificate is the pinned one."""
    import ssl

    address = _HTTPS.fullmatch(server.address)
    pin = _PIN.fullmatch(server.certificate or "")
    if address is None or pin is None:
        raise NotChecked("https needs a host and a pinned certificate")
    host_written, port = address.groups()
    host = host_written.strip("[]")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only the pinned certificate counts (see below), whoever signed it and whatever name it has.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((host, int(port or 443)), timeout=_find_seconds_left(deadline))
    try:
        plain.settimeout(_find_seconds_left(deadline))
        connection = context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
    certificate = connection.getpeercert(binary_form=True) or b""
    if hashlib.sha256(certificate).hexdigest() != pin[1]:
        connection.close()
        raise NotChecked(f"{server.address} shows another certificate than the pinned one")
    return connection


# ---------------------------------------------------------------- receiving


def _receive(connection: Any, deadline: float) -> tuple[dict[str, str], bytes]:
    """Receive one whole answer, of at most ``LARGEST_ANSWER`` bytes, and return its headers and its body.

    Raises ``NotChecked`` for an answer without a length, with a wrong length, or of too many bytes.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > _LARGEST_HEAD:
            raise NotChecked("the answer has no end of its head")
        data += _receive_part(connection, deadline)
    head, _, body = data.partition(b"\r\n\r\n")
    headers = _read_head(head)
    length = headers.get("content-length", "")
    if not re.fullmatch(r"[0-9]{1,9}", length):
        raise NotChecked("the answer does not say how long it is")
    if int(length) > LARGEST_ANSWER:
        raise NotChecked(f"the answer has more than {LARGEST_ANSWER:,} bytes")
    parts, count = [body], len(body)
    while count < int(length):
        parts.append(_receive_part(connection, deadline))
        count += len(parts[-1])
    if count != int(length):
        raise NotChecked("the answer is longer than it says")
    return headers, b"".join(parts)


def _receive_part(connection: Any, deadline: float) -> bytes:
    """Receive the next bytes of an answer. Raises ``NotChecked`` at the end of the connection."""
    # The timeout is the time left until the deadline. A fixed one for each piece would let a slow answer go on for
    # ever.
    connection.settimeout(_find_seconds_left(deadline))
    part: bytes = connection.recv(65_536)
    if not part:
        raise NotChecked("the answer is cut")
    return part


def _read_head(head: bytes) -> dict[str, str]:
    """Read the headers of an answer with the status 200, by names in lower case.

    Raises ``NotChecked`` for another status, and for headers that can be read in two ways.
    """
    first_line, *lines = head.split(b"\r\n")
    status_line = _STATUS.fullmatch(first_line)
    if status_line is None:
        raise NotChecked("the answer is no HTTP")
    status = status_line[1]
    if status == b"412":
        raise NotChecked("the server has not read the configuration since it changed; send it SIGHUP or start it again")
    if status != b"200":
        raise NotChecked(f"the server answered {status.decode()}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        name = name.lower()
        is_repeated = name in _OWN_HEADERS and name in headers
        if not colon or name == "transfer-encoding" or is_repeated:
            raise NotChecked("the answer has a head that can be read in two ways")
        headers[name] = value.strip()
    return headers


def _find_seconds_left(deadline: float) -> float:
    """Return the seconds until a deadline. Raises ``TimeoutError`` if it is over."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
