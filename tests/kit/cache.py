"""Asking through a cache: here, and in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from adjudge.models import Model, Reply, ReplyCache, Request
from kit.judges import keep_replies


class Counting:
    """A model that counts."""

    name = "counting"
    asked = 0

    async def complete(self, request: Request, /) -> Reply:
        self.asked += 1
        return Reply(text=f"answer to {request.user}")


async def ask_often(path: str, name: str, times: int) -> None:
    """Ask so often, and print how often the model was asked.

    With 0 go on until killed, and print each number once its reply is in the file.
    """
    model = Counting()
    with ReplyCache(path) as cache:
        cached = keep_replies(model, cache)
        for number in range(times) if times else count():
            reply = await cached.complete(Request(system="", user=f"{name} {number}"))
            assert reply.text == f"answer to {name} {number}"
            if not times:
                cache.flush()
                sys.stdout.write(f"{number}\n")
                sys.stdout.flush()
    if times:
        sys.stdout.write(f"{model.asked}\n")


def main() -> None:
    """Ask in a process of its own: a file, a name and a number."""
    path, name, times = sys.argv[1:]
    asyncio.run(ask_often(path, name, int(times)))


def ask(model: Model, *requests: Request) -> list[Reply]:
    async def run() -> list[Reply]:
        return [await model.complete(request) for request in requests]

    return asyncio.run(run())
