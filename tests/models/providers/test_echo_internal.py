"""A server that repeats the key it was asked with, in whatever form: nothing that is shown or kept says it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge import ModelError
from adjudge.models import RecordingModel, open_model
from adjudge.models.providers.error import LONGEST
from adjudge.models.providers.key_redaction import hide_key, redact_error
from kit.wire import PLAIN, completion, error, talk

pytestmark = pytest.mark.timed


KEY = "sk-very/secret+0123456789_AbCd"


ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper": str.upper,
    "url": lambda text: quote(text, safe=""),
    "url-all": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64-url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64-bearer": lambda text: base64.b64encode(f"Bearer {text}".encode()).decode(),
    "base64-user": lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
    "base64-lines": lambda text: "\r\n".join(split(base64.b64encode(text.encode()).decode(), 7)),
    "base64-in-url": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "lines": lambda text: "\n".join(split(text, 5)),
    "escaped-lines": lambda text: "\\n".join(split(text, 5)),
    "half": lambda text: text[: len(text) // 2 + 1],
    "end": lambda text: text[len(text) // 2 - 1 :],
}


def split(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def list_windows(text: str, size: int) -> set[str]:
    return {text[at : at + size].lower() for at in range(len(text) - size + 1)}


def check_unsaid(shown: str, *forms: str) -> None:
    """No 8 characters of the key, and no 16 of what it was made into, stand in a text."""
    low = shown.lower()
    assert not [item for item in list_windows(KEY, 8) if item in low]
    assert not [item for form in forms for item in list_windows(form, 16) if item in low]


@asynccontextmanager
async def answer_raw(data: bytes):
    """A server that answers every request with these bytes."""

    async def handle(reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def ask_raw(data: bytes, **variables: str) -> ModelError:
    """What is raised when a server answers with these bytes."""

    async def run() -> ModelError:
        async with answer_raw(data) as port, open_model(f"http://127.0.0.1:{port}/v1?key_env=MY_KEY#m") as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(PLAIN)
            return caught.value

    return asyncio.run(run())


def list_shown(failed: BaseException | None) -> Iterator[str]:
    """Everything that a program could print of an error: itself, and what it carries."""
    while failed is not None:
        yield from (str(failed), repr(failed), repr(vars(failed)), "".join(traceback.format_exception(failed)))
        failed = failed.__cause__ or failed.__context__


def write_answer(head: str, body: object = None) -> bytes:
    data = b"" if body is None else json.dumps(body).encode()
    return f"HTTP/1.1 {head}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data


PLACES: dict[str, Callable[[str], bytes]] = {
    "message": lambda said: write_answer("401 No", error(f"the key {said} is wrong")),
    "text": lambda said: write_answer("400 No").replace(b"th: 0", b"th: %d" % len(said.encode())) + said.encode(),
    "reason": lambda said: write_answer(f"403 {flat(said)}"),
    "encoding": lambda said: write_answer(f"200 OK\r\nContent-Encoding: {flat(said)}", completion()),
    "redirect": lambda said: write_answer(f"302 No\r\nLocation: http://other/{flat(said)}"),
    "header": lambda said: write_answer(f"500 No\r\nx-should-retry: false\r\nX-Echo: {flat(said)}", error(said)),
    "broken-header": lambda said: b"HTTP/1.1 200 OK\r\nX\x00 " + said.encode() + b"\r\n\r\n",
    "no-http": lambda said: said.encode() + b"\r\n\r\n",
    "bad-length": lambda said: f"HTTP/1.1 200 OK\r\nContent-Length: {flat(said)}\r\n\r\n".encode(),
    "bad-chunk": lambda said: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + said.encode() + b"\r\n",
    "finish": lambda said: write_answer("200 OK", completion_with(finish_reason=said)),
    "shape": lambda said: write_answer("200 OK", {"error": f"no {said}"}),
    "wrong-type": lambda said: write_answer("200 OK", {"choices": [{said: said, "finish_reason": [said]}]}),
    "wait": lambda said: write_answer("429 No\r\nRetry-After: 900", error(said)),
    "param": lambda said: write_answer("400 No", error("unsupported", param=said, code=said)),
    "details": lambda said: write_answer("422 No", {"detail": [{"loc": ["body", said], "msg": said}]}),
}


def flat(text: str) -> str:
    return " ".join(text.split())


def completion_with(**choice: Any) -> dict[str, Any]:
    made = completion()
    made["choices"][0] |= choice
    return made


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("form", list(ENCODINGS))
def test_no_error_says_the_key(place: str, form: str, monkeypatch, caplog):
    """Wherever a server puts it, and whatever it has made of it: not in the error, what it carries, or a log."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setattr("adjudge.models.providers.http.count_attempts", lambda kind: 1)
    encoded = ENCODINGS[form](KEY)
    failed = ask_raw(PLACES[place](encoded))

    for shown in (*list_shown(failed), caplog.text):
        check_unsaid(shown, encoded)


def test_an_error_carries_no_request(monkeypatch):
    """What the HTTP client raised holds the headers that were sent; programs that report errors follow it."""
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setattr("adjudge.models.providers.http.count_attempts", lambda kind: 1)
    for data in (
        b"no http\r\n\r\n",
        b"",
        write_answer("200 OK\r\nContent-Encoding: x"),
        write_answer("200 OK", {"a": 1}),
    ):
        failed = ask_raw(data)

        assert (failed.__cause__, failed.__context__) == (None, None)


def test_what_a_proxy_says_is_cleaned_too(monkeypatch):
    """Of the key it was shown, and of the password it was asked with."""

    async def run(encoded: str) -> str:
        async with answer_raw(f"HTTP/1.1 407 {encoded}\r\nContent-Length: 0\r\n\r\n".encode()) as port:
            for name in ("HTTPS_PROXY", "https_proxy"):
                monkeypatch.setenv(name, f"http://me:hunter2-and-more@127.0.0.1:{port}")
            async with open_model("https://somewhere.test/v1?key_env=MY_KEY#m") as model:
                with pytest.raises(ModelError) as caught:
                    await model.complete(PLAIN)
                return "".join(list_shown(caught.value))

    monkeypatch.setenv("MY_KEY", KEY)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for secret in (KEY, "hunter2-and-more"):
        for form in ("plain", "base64-user", "url-all"):
            encoded = ENCODINGS[form](secret)
            shown = asyncio.run(run(encoded))
            assert encoded not in shown
            assert "hunter2-" not in shown


@pytest.mark.parametrize("form", sorted(ENCODINGS))
def test_no_reply_and_no_recording_says_the_key(form: str, monkeypatch, tmp_path):
    """In its text, the model it names, its id; nor in what is recorded of it."""
    monkeypatch.setenv("MY_KEY", KEY)
    encoded = ENCODINGS[form](KEY)
    body = completion(f"it is {encoded}!", id=f"id {encoded}", model=f"m {encoded}")
    body["choices"][0]["logprobs"] = {
        "content": [{"token": piece, "logprob": -0.1} for piece in ("it", " is ", *split(encoded, 4), "!")]
    }
    reply, _ = talk((200, {}, body), key_env="MY_KEY")
    file = tmp_path / "recorded.jsonl"

    class Answers:
        name = "m"

        async def complete(self, request: Any, /) -> Any:
            return reply

    async def record() -> None:
        await RecordingModel(Answers(), file).complete(PLAIN)

    asyncio.run(record())
    written = file.read_text()
    assert reply.logprobs is None
    for shown in (repr(reply), written, json.dumps(json.loads(written), ensure_ascii=False)):
        check_unsaid(shown, encoded)


def test_what_is_no_key_stays():
    """A placeholder, the beginning that all keys of a provider have, and words that resemble a key."""
    for text, key in (
        ("this is not needed here", "not-needed"),
        ("the code holds sk-proj-XXXX, a key", "sk-proj-" + "a1b2C3d4" * 8),
        ("the code holds sk-ant-api03-XXXX", "sk-ant-api03-" + "a1b2C3d4" * 8),
        ("a very secret thing: 0123", KEY),
        ("Z" * 5_000 + "%41&amp;\\u0041" * 100, KEY),
    ):
        assert hide_key(text, (key,)) == text
    assert redact_error("the model gpt-5-mini does not exist: %41 \\n &amp; c2VjcmV0", (KEY,)).endswith("c2VjcmV0")
    assert redact_error("Incorrect API key provided: sk-very/*****AbCd", (KEY,)).endswith("provided: [key]*****AbCd")


# ---------------------------------------------------------------- properties

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
KEYS = st.text(alphabet=LETTERS + "-_./+=~", min_size=16, max_size=64).filter(
    lambda key: sum(map(str.isalnum, key)) >= 12 and all(len(set(item)) > 4 for item in list_windows(key, 8))
)


@given(key=KEYS, form=st.sampled_from(sorted(ENCODINGS)), around=st.text(alphabet=LETTERS + " .:='\"", max_size=20))
@example(key=KEY, form="base64-lines", around="token=")
@example(key=KEY, form="base64", around="x")
def test_no_form_of_any_key_is_shown(key: str, form: str, around: str):
    """What is shown of a message holds no part of the key, and nothing long of what it was made into."""
    encoded = ENCODINGS[form](key)
    shown = redact_error(f"{around} {encoded} {around}", (key,))

    assert not list_windows(key, 8) & list_windows(shown, 8)
    if len(encoded) <= LONGEST - 2 * len(around) - 2:
        assert not [item for item in list_windows(flat(encoded), 20) if item in shown.lower()]


@given(key=KEYS, before=st.integers(0, LONGEST + 20), form=st.sampled_from(["base64", "base64-url", "url-all"]))
def test_no_cut_leaves_half_a_key(key: str, before: int, form: str):
    """Of an encoded key, what stands before the cut is as much of it as was decoded."""
    encoded = ENCODINGS[form](key)
    shown = redact_error("-" * before + " " + encoded, (key,)).rstrip("…")
    kept = next((size for size in range(len(encoded), 0, -1) if shown.endswith(encoded[:size])), 0)

    assert kept < {"base64": 15, "base64-url": 15, "url-all": 30}[form]


@given(st.text(max_size=400))
def test_what_holds_no_key_is_shown(text: str):
    """Cleaned, and otherwise as it was."""
    assert redact_error(text, (KEY,)) == redact_error(text)
    assert hide_key(text, (KEY,)) == text


@pytest.mark.slow
@pytest.mark.no_cover
def test_a_large_reply_is_looked_through_in_linear_time():
    """Also one that is made of nothing but what could be decoded."""
    made = random.Random(7)
    texts = ["a" * 2_000_000, "%25" * 200_000, "\\u005c" * 200_000, "&amp;" * 200_000, "65," * 300_000]
    texts += ["".join(made.choices("abcdefghABCDEF0123456789+/%&\\", k=500_000)), "YWFh" * 300_000]
    for text in texts:
        assert hide_key(text, (KEY,)) in {text, "***"}
