"""The hook's question to a server: what counts as an answer, and who may give it."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adjudge.harness.guard_server import (
    GuardServer,
    NotChecked,
    _check_peer,
    ask_server,
    read_key,
    read_server_table,
)
from adjudge.harness.hook_client import answer_event
from kit.patience import HANG

pytestmark = [pytest.mark.timed, pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="Unix sockets are absent")]

BODY = b'{"tool": "Bash"}'

DIGEST = "0" * 64
"""Of a configuration that the server does not read."""

Reply = Callable[[dict[str, str]], Iterator[bytes] | bytes]
"""What a server says to a request, by its headers."""


def write_reply(
    headers: dict[str, str], body: bytes = b"{}", *, status: str = "200 OK", **changed: str | None
) -> bytes:
    """A whole answer as the server gives it, with some of its headers changed or left out."""
    fields: dict[str, str | None] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "adjudge-nonce": headers.get("adjudge-nonce"),
        "adjudge-digest": headers.get("adjudge-digest"),
    }
    fields |= {name.replace("_", "-"): value for name, value in changed.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


class Listener:
    """Somebody who listens on a socket, and answers each request in one way."""

    def __init__(self, listener: socket.socket, reply: Reply) -> None:
        self.requests: list[bytes] = []
        self._listener, self._reply = listener, reply
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                self._answer(connection)

    def _answer(self, connection: Any) -> None:
        data = b""
        connection.settimeout(HANG)
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < len(BODY):
            part = connection.recv(65_536)
            if not part:
                return
            data += part
        self.requests.append(data)
        lines = data.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        reply = self._reply(headers)
        for part in [reply] if isinstance(reply, bytes) else reply:
            connection.sendall(part)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that this account alone can change, with a key."""
    made = tmp_path_factory.mktemp("g")
    made.chmod(0o700)
    (made / "key").write_text("adj_key\n", encoding="utf-8")
    (made / "key").chmod(0o600)
    return made


@pytest.fixture
def start(folder: Path) -> Iterator[Callable[[Reply], Listener]]:
    """Start a listener on ``hook.sock`` in the folder."""
    opened: list[socket.socket] = []

    def listen(reply: Reply) -> Listener:
        listener = socket.socket(socket.AF_UNIX)
        opened.append(listener)
        listener.bind(str(folder / "hook.sock"))
        listener.listen(8)
        return Listener(listener, reply)

    yield listen
    for listener in opened:
        listener.close()


def make_server(folder: Path, **changed: Any) -> GuardServer:
    table = {"address": f"unix:{folder / 'hook.sock'}", "key": str(folder / "key")}
    return read_server_table(table | changed)


def ask(folder: Path, *, seconds: float = HANG, **changed: Any) -> Any:
    return ask_server(make_server(folder, **changed), "/v1/hooks/claude", BODY, seconds=seconds)


def test_an_answer_to_this_question_counts(folder: Path, start: Callable[[Reply], Listener]):
    """And the request carried the key, a nonce, and the digest of its body."""
    listener = start(lambda headers: write_reply(headers, b'{"a": 1}'))

    assert ask(folder) == {"a": 1}
    [request] = listener.requests
    assert b"Authorization: Bearer adj_key\r\n" in request
    assert f"Adjudge-Digest: {hashlib.sha256(BODY).hexdigest()}\r\n".encode() in request
    assert request.endswith(BODY)


def test_no_two_questions_have_one_nonce(folder: Path, start: Callable[[Reply], Listener]):
    """Else the answer to one could be given to the other."""
    seen: list[str] = []

    def answer(headers: dict[str, str]) -> bytes:
        seen.append(headers["adjudge-nonce"])
        return write_reply(headers)

    start(answer)
    for _ in range(3):
        ask(folder)

    assert len(set(seen)) == 3


WRONG: dict[str, Reply] = {
    "another nonce": lambda headers: write_reply(headers, adjudge_nonce="0" * 32),
    "no nonce": lambda headers: write_reply(headers, adjudge_nonce=None),
    "another digest": lambda headers: write_reply(headers, adjudge_digest="0" * 64),
    "no digest": lambda headers: write_reply(headers, adjudge_digest=None),
    "two nonces": lambda headers: write_reply(headers, x=f"y\r\nadjudge-nonce: {headers['adjudge-nonce']}"),
    "cut json": lambda headers: write_reply(headers, b'{"a": '),
    "a cut body": lambda headers: write_reply(headers, b'{"a": 1}', content_length="20"),
    "more than it says": lambda headers: write_reply(headers, b"{} {}", content_length="2"),
    "no length": lambda headers: write_reply(headers, content_length=None),
    "a list": lambda headers: write_reply(headers, b"[]"),
    "no utf-8": lambda headers: write_reply(headers, b'{"a": "\xff"}'),
    "deep json": lambda headers: write_reply(headers, b"[" * 100_000),
    "html": lambda headers: write_reply(headers, b"<html></html>", content_type="text/html"),
    "html that says it is json": lambda headers: write_reply(headers, b"<html></html>"),
    "json that says it is html": lambda headers: write_reply(headers, content_type="text/html"),
    "chunks": lambda headers: write_reply(headers, transfer_encoding="chunked"),
    "a redirect": lambda headers: write_reply(headers, status="307 Temporary Redirect", location="/elsewhere"),
    "a refusal": lambda headers: write_reply(headers, status="403 Forbidden"),
    "no content": lambda headers: write_reply(headers, b"", status="204 No Content"),
    "an older protocol": lambda headers: write_reply(headers).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "no protocol": lambda _headers: b"{}",
    "a huge body": lambda headers: write_reply(headers, b" " * 2_000_000 + b"{}"),
    "a huge head": lambda headers: write_reply(headers, x="y" * 100_000),
    "nothing": lambda _headers: b"",
    "half a head": lambda _headers: b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_the_one_right_answer_is_none(folder: Path, start: Callable[[Reply], Listener], name: str):
    """Whoever gives it, and however near it comes."""
    start(WRONG[name])

    with pytest.raises(NotChecked):
        ask(folder)


def test_an_answer_that_drips_is_late(folder: Path, start: Callable[[Reply], Listener]):
    """The time is for all of it: no single byte keeps the harness waiting."""

    def drip(headers: dict[str, str]) -> Iterator[bytes]:
        for byte in write_reply(headers, b" " * 500_000 + b"{}"):
            yield bytes([byte])
            time.sleep(0.05)

    start(drip)

    with pytest.raises(NotChecked, match="in time"):
        ask(folder, seconds=0.5)


def test_silence_is_late(folder: Path, start: Callable[[Reply], Listener]):
    """A server that takes the connection and says nothing."""
    silent = threading.Event()

    def wait(_headers: dict[str, str]) -> Iterator[bytes]:
        silent.wait(HANG)
        yield b""

    start(wait)
    with pytest.raises(NotChecked, match="in time"):
        ask(folder, seconds=0.5)
    silent.set()


def test_another_configuration_does_not_answer(folder: Path, start: Callable[[Reply], Listener]):
    """Where the digest of the server's is pinned."""
    start(lambda headers: write_reply(headers, adjudge_configuration="a" * 64))

    assert ask(folder, configuration="a" * 64) == {}
    with pytest.raises(NotChecked):
        ask(folder, configuration="b" * 64)


# ---------------------------------------------------------------- who answers


def test_a_socket_of_another_account_is_not_asked(folder: Path, start: Callable[[Reply], Listener]):
    """Nothing is sent to it: the key would be theirs."""
    listener = start(write_reply)

    with pytest.raises(NotChecked):
        ask(folder, owner=os.getuid() + 1)
    assert ask(folder, owner=os.getuid()) == {}
    assert len(listener.requests) == 1


def test_a_system_that_names_no_account_is_not_trusted(
    folder: Path, start: Callable[[Reply], Listener], monkeypatch: pytest.MonkeyPatch
):
    """Nobody would know who listens."""
    listener = start(write_reply)
    monkeypatch.setattr("adjudge.harness.guard_server.sys", SimpleNamespace(platform="plan9", byteorder=sys.byteorder))

    with pytest.raises(NotChecked, match="https"):
        ask(folder)
    assert listener.requests == []


@pytest.mark.parametrize(("account", "is_right"), [(501, True), (0, False), (502, False)])
def test_macos_names_the_account_in_another_way(monkeypatch: pytest.MonkeyPatch, account: int, is_right: bool):
    """By ``struct xucred``: a version, the account, and its groups."""
    monkeypatch.setattr("adjudge.harness.guard_server.sys", SimpleNamespace(platform="darwin", byteorder=sys.byteorder))
    asked = []

    def say(*option: int) -> bytes:
        asked.append(option)
        return struct.pack("=IIh2x16I", 0, account, 1, *range(16))

    connection: Any = SimpleNamespace(getsockopt=say)
    with nullcontext() if is_right else pytest.raises(NotChecked, match="another account"):
        _check_peer(connection, "/run/hook.sock", 501)
    assert asked == [(0, 1, struct.calcsize("=IIh2x16I"))]


def test_an_owner_without_an_account_is_nobody(folder: Path, start: Callable[[Reply], Listener]):
    """Not the account that happens to run the hook."""
    start(write_reply)

    with pytest.raises(NotChecked):
        ask(folder, owner="no-such-account-here")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_change_is_refused(folder: Path, start: Callable[[Reply], Listener], mode: int):
    """They could put their own socket in the place of the server's."""
    listener = start(write_reply)
    folder.chmod(mode)

    with pytest.raises(NotChecked):
        ask(folder)
    assert listener.requests == []


def test_a_link_or_a_file_is_no_socket(folder: Path, start: Callable[[Reply], Listener]):
    """What a link leads to can be changed where the link is not looked at."""
    start(write_reply)
    (folder / "link").symlink_to(folder / "hook.sock")
    (folder / "file").write_text("", encoding="utf-8")

    for name in ("link", "file", "absent"):
        with pytest.raises(NotChecked):
            ask(folder, address=f"unix:{folder / name}")


def test_nobody_who_listens_is_a_refusal(folder: Path):
    """The socket of a server that was killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "hook.sock"))

    with pytest.raises(NotChecked):
        ask(folder)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_not_used(folder: Path, mode: int):
    """It would be theirs as well."""
    assert read_key(str(folder / "key")) == "adj_key"
    (folder / "key").chmod(mode)

    with pytest.raises(NotChecked):
        read_key(str(folder / "key"))


@pytest.mark.parametrize("content", [b"", b"\n", b"one two", b"x" * 300, b"\xff\xfe", b"a\r\nHost: b"])
def test_what_is_no_key_is_not_sent(folder: Path, content: bytes):
    """A line end in it would begin another header."""
    (folder / "key").write_bytes(content)

    with pytest.raises(NotChecked):
        read_key(str(folder / "key"))


def test_a_link_is_no_key(folder: Path):
    """Nor is a folder, nor a pipe, which would be waited for."""
    (folder / "link").symlink_to(folder / "key")
    os.mkfifo(folder / "pipe", 0o600)

    for name in ("link", "pipe", ".", "absent"):
        with pytest.raises(NotChecked):
            read_key(str(folder / name))


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """A certificate that nobody has signed, its key, and its digest as it is pinned."""
    x509 = pytest.importorskip("cryptography.x509")
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "guard")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    made = builder.sign(key, hashes.SHA256())
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    pin = hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).hexdigest()
    return folder / "cert.pem", folder / "key.pem", f"sha256:{pin}"


def test_only_the_pinned_certificate_is_asked(folder: Path, certificate: tuple[Path, Path, str]):
    """Another one gets nothing, also not the key; no name and no signature makes it right."""
    import ssl

    file, key, pin = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    with socket.create_server(("127.0.0.1", 0)) as plain:
        address = f"https://127.0.0.1:{plain.getsockname()[1]}"
        with context.wrap_socket(plain, server_side=True) as secure:
            listener = Listener(secure, write_reply)
            with pytest.raises(NotChecked, match="another certificate"):
                ask(folder, address=address, certificate="sha256:" + "0" * 64)
            assert listener.requests == []
            assert ask(folder, address=address, certificate=pin) == {}


def test_what_speaks_no_tls_is_not_asked(folder: Path):
    """Plain text at the port: the key stays here."""
    with socket.create_server(("127.0.0.1", 0)) as plain:
        listener = Listener(plain, write_reply)
        address = f"https://127.0.0.1:{plain.getsockname()[1]}"
        with pytest.raises(NotChecked):
            ask(folder, address=address, certificate="sha256:" + "0" * 64, seconds=2)

    assert all(b"adj_key" not in request for request in listener.requests)


# ---------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    "changed",
    [
        {"address": "http://127.0.0.1:8318"},
        {"address": "https://guard.example"},
        {"address": "https://guard.example/path", "certificate": "sha256:" + "0" * 64},
        {"address": "https://user@guard.example", "certificate": "sha256:" + "0" * 64},
        {"address": "https://guard.example", "certificate": "sha1:00"},
        {"address": "unix:hook.sock"},
        {"address": "unix:/run/hook.sock", "certificate": "sha256:" + "0" * 64},
        {"key": "key"},
        {"configuration": "abc"},
        {"owner": True},
        {"proxy": "http://127.0.0.1:3128"},
        {"address": 3},
    ],
)
def test_a_server_that_cannot_be_known_is_refused(folder: Path, changed: dict[str, Any]):
    """Plain HTTP, a certificate that is not pinned, relative paths, and what is not known."""
    with pytest.raises(NotChecked):
        make_server(folder, **changed)


@pytest.mark.parametrize("table", [None, "unix:/x", {}, {"address": "unix:/x"}, {"key": "/x"}])
def test_a_table_needs_an_address_and_a_key(table: object):
    """Both, in one table."""
    with pytest.raises(NotChecked):
        read_server_table(table)


@pytest.mark.parametrize(
    "event",
    [
        b"no event",
        b"[]",
        json.dumps({"tool_name": "Bash"}).encode(),
        json.dumps({"tool_name": "Bash", "cwd": "work"}).encode(),
        json.dumps({"tool_name": "Bash", "cwd": "/"}).encode(),
    ],
)
def test_an_event_is_not_sent_for_a_session_that_could_change_the_hook(
    folder: Path, start: Callable[[Reply], Listener], event: bytes
):
    """Its folder holds the configuration or the key, or is not told."""
    listener = start(write_reply)
    server, config = make_server(folder), str(folder / "adjudge.toml")

    with pytest.raises(NotChecked):
        answer_event(event, server, "claude", managed=False, seconds=HANG, config=config, digest=DIGEST)
    assert listener.requests == []


# ---------------------------------------------------------------- results


MADE = {"hook_event_name": "PostToolUse", "cwd": "/", "tool_name": "Read", "tool_input": {}, "tool_response": "x" * 99}


def answer_made(folder: Path, server: GuardServer, **changed: Any) -> dict[str, Any]:
    event = json.dumps(MADE | {"cwd": "/work"} | changed).encode()
    config = str(folder / "adjudge.toml")
    return answer_event(event, server, "claude", managed=True, seconds=HANG, config=config, digest=DIGEST)


@pytest.mark.parametrize("status", ["413 Content Too Large", "400 Bad Request", "422 Unprocessable", "503 Busy"])
@pytest.mark.parametrize("size", [10, 500_000])
def test_a_result_that_the_server_does_not_take_is_left_out(
    folder: Path, start: Callable[[Reply], Listener], status: str, size: int
):
    """Else the agent would have read it, and its call would be on no record."""
    replies = [write_reply({}, status=status)]
    listener = start(lambda headers: replies.pop() if replies else write_reply(headers, b'{"a": 1}'))

    assert answer_made(folder, make_server(folder), tool_response="x" * size) == {"a": 1}
    first, second = listener.requests
    assert first.startswith(b"POST /v1/hooks/claude?managed=true HTTP")
    assert second.startswith(b"POST /v1/hooks/claude?managed=true&left_out=true HTTP")
    assert json.loads(second.partition(b"\r\n\r\n")[2])["tool_response"] is None


def test_a_call_is_asked_about_once(folder: Path, start: Callable[[Reply], Listener]):
    """It has no result that could be left out, and is refused."""
    listener = start(lambda _headers: write_reply({}, status="413 Content Too Large"))

    with pytest.raises(NotChecked, match="413"):
        answer_made(folder, make_server(folder), hook_event_name="PreToolUse")
    assert len(listener.requests) == 1


def test_a_server_that_takes_neither_is_a_failure(folder: Path, start: Callable[[Reply], Listener]):
    """The hook fails closed, as for everything else."""
    listener = start(lambda _headers: write_reply({}, status="503 Busy"))

    with pytest.raises(NotChecked, match="503"):
        answer_made(folder, make_server(folder))
    assert len(listener.requests) == 2


def test_on_windows_a_key_in_a_file_counts_for_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Nobody says there who else can write the file, so the call is not checked, and not let through."""
    key = tmp_path / "key"
    key.write_text("k" * 30)
    key.chmod(0o600)
    assert read_key(str(key)) == "k" * 30
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(NotChecked):
        read_key(str(key))
