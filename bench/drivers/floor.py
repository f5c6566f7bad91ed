"""The floor: aiohttp as bare as it can be. One body made beforehand, sent every time, and the reply not decoded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import common


def post(ctx: Any) -> common.J:
    """One tuned session: no cookies, no timeouts, no limit of connections, an address parsed once."""
    import aiohttp
    from yarl import URL

    url = URL(f"{ctx.base_url}/chat/completions")
    body = Path(ctx.options.body).read_bytes()
    sessions: list[aiohttp.ClientSession] = []

    def open_session() -> aiohttp.ClientSession:
        sessions.append(
            aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                auto_decompress=False,
                headers={"Content-Type": "application/json", "User-Agent": "floor", "Accept-Encoding": "identity"},
            )
        )
        return sessions[0]

    async def judge(_item: common.Item) -> bool:
        session = sessions[0] if sessions else open_session()
        async with session.post(url, data=body) as answer:
            return bool(await answer.read()) and answer.status == 200

    async def close() -> None:
        await sessions[0].close()

    return common.J(judge=judge, close=close)


if __name__ == "__main__":
    common.main("aiohttp", "aiohttp", {"post": post})
