"""The server that a hook asks: where it is, how it is known, and one question to it.

A harness waits for its hook at every call, so this imports the standard library alone, and little of it. Everything
that is not the one right answer in time raises: silence, another status, a redirect, an answer to another question.

The agent that is guarded could listen in the server's place. So a Unix socket counts only if its owner's, and a TLS
connection only with the certificate that was pinned. Nothing is sent before that, and nothing of the environment
counts, which a project can set: no proxy, no certificate file, no resolver's options.
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
"""Bytes of an answer, its head included."""

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
    """There is no answer that counts; the message says why, in words for people."""


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
        # Whoever gets a port first would get the key, and give the answers.
        raise NotChecked("address of [hook.server] must be like unix:/PATH or https://HOST:PORT; http is not possible")
    elif server.certificate is None or _PIN.fullmatch(server.certificate) is None:
        raise NotChecked('https needs certificate = "sha256:...", the SHA-256 of the server\'s certificate')


def name_config(path: str, digest: str) -> str:
    """Name a configuration file and the SHA-256 of what it holds, as a hook does to a server, in letters of ASCII."""
    place = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    return f"{place} {digest}"


def ask_server(server: GuardServer, path: str, body: bytes, *, seconds: float, config: str | None = None) -> Any:
    """Send a body to an address of the server, and return the object that it answers, within so many seconds.

    ``config`` is the configuration of the hook, by ``name_config``: a server that has read another version of that very
    file answers with an error. Raises ``NotChecked`` for anything but an answer.
    """
    end = time.monotonic() + seconds
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
        connection = _connect(server, end)
        with connection:
            connection.settimeout(_find_seconds_left(end))
            # A server that refuses a body may close before it has read all of it, and its answer says why.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(head.encode("ascii") + b"\r\n" + body)
            headers, answer = _receive(connection, end)
    except TimeoutError:
        raise NotChecked("the server did not answer in time") from None
    except OSError as error:
        raise NotChecked(f"the server cannot be asked: {error.strerror or type(error).__name__}") from None
    expected = {"adjudge-nonce": nonce, "adjudge-digest": digest}
    expected |= {} if server.configuration is None else {"adjudge-configuration": server.configuration}
    for name, value in expected.items():
        # An old answer, or one to somebody else, would be well formed too.
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
    """Read a file that is no link and that others cannot write; a ``private`` one they cannot read either.

    Raises ``NotChecked`` for any other, and for one that is too large.
    """
    if sys.platform == "win32":
        raise NotChecked(_WINDOWS)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _check_own(path, os.fstat(descriptor), private=private)
            raw = b""
            while len(raw) <= LARGEST_FILE and (part := os.read(descriptor, LARGEST_FILE + 1)):
                raw += part
        finally:
            os.close(descriptor)
    except OSError as error:
        raise NotChecked(f"cannot read {path}: {error.strerror}") from None
    if len(raw) > LARGEST_FILE:
        raise NotChecked(f"{path} has more than {LARGEST_FILE:,} bytes")
    return raw


def _check_own(path: str, status: os.stat_result, *, private: bool) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotChecked(f"{path} is no file")
    if status.st_mode & (0o077 if private else 0o002) or (private and status.st_uid not in (0, os.getuid())):
        right = "0600" if private else "o-w"
        raise NotChecked(f"{path} can be {'read' if private else 'written'} by others (chmod {right})")


def read_key(path: str) -> str:
    """Read the key from its file. Raises ``NotChecked``, also for a file that others can read."""
    key = read_own_file(path, private=True).decode("ascii", "replace").strip()
    if not key or len(key) > 200 or not re.fullmatch(r"[!-~]+", key):
        raise NotChecked(f"{path} holds no key")
    return key


# ---------------------------------------------------------------- connecting


def _connect(server: GuardServer, end: float) -> Any:
    if sys.platform == "win32":
        raise NotChecked(_WINDOWS)
    if server.path is not None:
        return _connect_unix(server.path, _find_owner(server.owner), end)
    return _connect_tls(server, end)


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


def _connect_unix(path: str, owner: int, end: float) -> socket.socket:
    """Connect to a socket that belongs to an account, in a folder in which no other can put one.

    Raises ``NotChecked`` where that is not so, or nobody listens.
    """
    try:
        folder, place = os.lstat(path.rpartition("/")[0] or "/"), os.lstat(path)
    except OSError as error:
        raise NotChecked(f"there is no socket {path}: {error.strerror}; is the server running?") from None
    if not stat.S_ISDIR(folder.st_mode) or folder.st_uid not in (0, owner) or folder.st_mode & 0o022:
        raise NotChecked(f"the folder of {path} can be changed by another account than the server's")
    if not stat.S_ISSOCK(place.st_mode) or place.st_uid != owner:
        raise NotChecked(f"{path} is no socket of the server's account")
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(_find_seconds_left(end))
        connection.connect(path)
        _check_peer(connection, path, owner)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_peer(connection: socket.socket, path: str, owner: int) -> None:
    """Raise ``NotChecked`` for a socket on which a process of another account listens, and where no system says it."""
    credentials = connection.getsockopt(*_find_peer_option())
    if int.from_bytes(credentials[4:8], sys.byteorder) != owner:
        raise NotChecked(f"another account than the server's answers at {path}")


def _find_peer_option() -> tuple[int, int, int]:
    """Find the level, the name and the size of the socket option that tells the account of the other end.

    That account is the option's second 32-bit number. Sources: unix(7) of Linux, with ``struct ucred``; unix(4) of
    macOS, with ``struct xucred``.

    Raises ``NotChecked`` on a system that has none that is known here.
    """
    if sys.platform == "linux":
        return socket.SOL_SOCKET, socket.SO_PEERCRED, 12
    if sys.platform == "darwin":
        return 0, 1, 76  # SOL_LOCAL, LOCAL_PEERCRED
    raise NotChecked("this system is not known to say which account listens on a socket; ask the server by https")


def _connect_tls(server: GuardServer, end: float) -> Any:
    """Connect to a server by TLS, and close the connection unless its certificate is the pinned one."""
    import ssl

    address = _HTTPS.fullmatch(server.address)
    pin = _PIN.fullmatch(server.certificate or "")
    if address is None or pin is None:
        raise NotChecked("https needs a host and a pinned certificate")
    host_written, port = address.groups()
    host = host_written.strip("[]")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # One certificate counts, whoever signed it and whatever name it has.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection((host, int(port or 443)), timeout=_find_seconds_left(end))
    try:
        plain.settimeout(_find_seconds_left(end))
        connection = context.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
    shown = connection.getpeercert(binary_form=True) or b""
    if hashlib.sha256(shown).hexdigest() != pin[1]:
        connection.close()
        raise NotChecked(f"{server.address} shows another certificate than the pinned one")
    return connection


# ---------------------------------------------------------------- receiving


def _receive(connection: Any, end: float) -> tuple[dict[str, str], bytes]:
    """Receive one whole answer, of at most ``LARGEST_ANSWER`` bytes, and return its headers and its body.

    Raises ``NotChecked`` for an answer without a length, of another one, or of too many bytes.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > _LARGEST_HEAD:
            raise NotChecked("the answer has no end of its head")
        data += _receive_part(connection, end)
    head, _, body = data.partition(b"\r\n\r\n")
    headers = _read_head(head)
    length = headers.get("content-length", "")
    if not re.fullmatch(r"[0-9]{1,9}", length):
        raise NotChecked("the answer does not say how long it is")
    if int(length) > LARGEST_ANSWER:
        raise NotChecked(f"the answer has more than {LARGEST_ANSWER:,} bytes")
    parts, count = [body], len(body)
    while count < int(length):
        parts.append(_receive_part(connection, end))
        count += len(parts[-1])
    if count != int(length):
        raise NotChecked("the answer is longer than it says")
    return headers, b"".join(parts)


def _receive_part(connection: Any, end: float) -> bytes:
    # Of all that is left, and not for each byte: an answer that drips would else go on for ever.
    connection.settimeout(_find_seconds_left(end))
    part: bytes = connection.recv(65_536)
    if not part:
        raise NotChecked("the answer is cut")
    return part


def _read_head(head: bytes) -> dict[str, str]:
    """Read the headers of an answer with the status 200; raise ``NotChecked`` if they can be read in two ways."""
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


def _find_seconds_left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
