"""Files of results that a provider does not hand over at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from adjudge.errors import ModelError
from adjudge.models.batch import batch_http
from adjudge.models.providers.base import Access

ACCESS = Access(base="https://provider.test/v1", host="provider.test", headers={}, secrets=())

FILE = (200, {}, b'{"id": 1}\n')


class Transport:
    """Answers with what it was made with, one after the other."""

    def __init__(self, *answers: tuple[int, Mapping[str, str], bytes]) -> None:
        self.answers = list(answers)
        self.requests = 0

    async def ask_once(self, *_: Any, take: Callable[[bytes], None], **__: Any) -> tuple[int, Mapping[str, str], bytes]:
        self.requests += 1
        status, headers, content = self.answers.pop(0)
        if status == 200:
            take(content)
        return status, headers, content


@pytest.fixture(name="waits")
def watch_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited, which nobody waits here."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(batch_http.asyncio, "sleep", sleep)
    return waits


def download(transport: Transport) -> list[bytes]:
    lines: list[bytes] = []
    asyncio.run(batch_http.BatchHttp(ACCESS, transport).download("https://provider.test/v1/file", lines.append))
    return lines


def test_a_provider_that_asks_for_time_gets_it(waits: list[float]):
    """And no more than a minute, whatever it asks for."""
    transport = Transport((503, {"retry-after": "7"}, b""), (429, {"retry-after": "9000"}, b""), FILE)

    assert download(transport) == [b'{"id": 1}']
    assert waits == [7.0, 60.0]


def test_a_provider_that_wants_no_second_request_gets_none(waits: list[float]):
    """``x-should-retry`` says so, as for every other request."""
    transport = Transport((503, {"x-should-retry": "false"}, b""), FILE)

    with pytest.raises(ModelError):
        download(transport)
    assert (transport.requests, waits) == (1, [])
