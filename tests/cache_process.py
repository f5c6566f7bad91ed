"""A process that asks through a cache: ``cache_process.py FILE NAME COUNT``; it says how often its model was asked.

With COUNT 0 it goes on until it is killed, and says each number once its reply is in the file.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count

from adjudge.models import Reply, ReplyCache, Request
from judge_support import keep_replies


class Counting:
    """A model that counts."""

    name = "counting"
    asked = 0

    async def complete(self, request: Request, /) -> Reply:
        self.asked += 1
        return Reply(text=f"answer to {request.user}")


async def main(path: str, name: str, times: int) -> None:
    """Ask."""
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


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
