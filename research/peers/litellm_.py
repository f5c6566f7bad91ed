"""litellm: ``acompletion`` with a JSON Schema, and the verdict read from the reply."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "pass": {"type": "boolean"}},
    "required": ["reason", "pass"],
    "additionalProperties": False,
}
FORM = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}


def plain(ctx: Any) -> common.J:
    import litellm

    litellm.suppress_debug_info = True
    given = {"timeout": ctx.timeout, "num_retries": ctx.retries}
    given = {name: value for name, value in given.items() if value is not None}

    async def judge(item: common.Item) -> bool:
        reply = await litellm.acompletion(
            model=f"openai/{ctx.model}",
            api_base=ctx.base_url,
            api_key="sk-mock",
            messages=[
                {"role": "system", "content": common.PROMPT},
                {"role": "user", "content": common.write_user(item)},
            ],
            response_format=FORM,
            temperature=0,
            **given,
        )
        return json.loads(reply.choices[0].message.content)["pass"] is True

    return common.J(judge=judge)


if __name__ == "__main__":
    common.main("litellm", "litellm", {"plain": plain})
