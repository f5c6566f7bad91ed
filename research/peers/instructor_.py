"""instructor: a verdict as a pydantic model, by a tool call."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common


def tools(ctx: Any) -> common.J:
    import instructor
    from openai import AsyncOpenAI
    from pydantic import create_model

    openai = AsyncOpenAI(base_url=ctx.base_url, api_key="sk-mock", **ctx.given)
    client = instructor.from_openai(openai, mode=instructor.Mode.TOOLS)
    verdict = create_model("Verdict", reason=(str, ...), passed=(bool, ...))

    async def judge(item: common.Item) -> bool:
        messages = [{"role": "system", "content": common.PROMPT}, {"role": "user", "content": common.write_user(item)}]
        reply = await client.chat.completions.create(
            model=ctx.model, response_model=verdict, temperature=0, messages=messages
        )
        return bool(reply.passed)

    return common.J(judge=judge, close=openai.close)


if __name__ == "__main__":
    common.main("instructor", "instructor", {"tools": tools})
