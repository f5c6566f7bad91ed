"""promptfoo, a program of Node: the echo provider gives each output back, and ``llm-rubric`` judges it.

CPU and memory are those of its process, its start of more than a second included: it has no other way in.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import common

HOME = Path(sys.prefix) / "node_modules"
OPTIONS = ("--no-cache", "--no-progress-bar", "--no-table", "--no-write", "--no-share")


CONFIG, OUT = Path("config.json"), Path("out.json")


def write_config(ctx: Any, items: Iterator[common.Item]) -> None:
    """A configuration with a test for each item."""
    grader = {"id": f"openai:chat:{ctx.model}", "config": {"apiBaseUrl": ctx.base_url, "apiKey": "sk-mock"}}
    asked = {"type": "llm-rubric", "value": f"{common.CRITERION}\nThe input was: {{{{input}}}}"}
    tests = [{"vars": {"input": item["input"], "output": item["output"]}, "assert": [asked]} for item in items]
    options = {"defaultTest": {"options": {"provider": grader}}}
    said = {"prompts": ["{{output}}"], "providers": ["echo"], **options, "tests": tests}
    CONFIG.write_text(json.dumps(said), encoding="utf-8")


def read_verdicts() -> list[Any]:
    """Every verdict; a grader that could not be asked, or read, is reported by promptfoo as a fail."""
    rows = json.loads(OUT.read_text(encoding="utf-8"))["results"]["results"]
    return [True if (row.get("gradingResult") or {}).get("pass") else "a fail for an error" for row in rows]


def evaluate(ctx: Any) -> common.J:
    given = {"REQUEST_TIMEOUT_MS": str(int(ctx.timeout * 1000))} if ctx.timeout else {}
    given |= {"PROMPTFOO_REQUEST_MAX_RETRIES": str(ctx.retries)} if ctx.retries is not None else {}
    off = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION")
    given |= {f"PROMPTFOO_DISABLE_{name}": "1" for name in off} | {"PROMPTFOO_CONFIG_DIR": str(Path.cwd() / "home")}

    async def batch(items: Iterator[common.Item], in_flight: int, take: Callable[[Any], None]) -> None:
        await asyncio.to_thread(write_config, ctx, items)
        command = [str(HOME / ".bin" / "promptfoo"), "eval", "-c", str(CONFIG), "-j", str(in_flight), "-o", str(OUT)]
        quiet = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}
        process = await asyncio.create_subprocess_exec(*command, *OPTIONS, env=os.environ | given, **quiet)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        for verdict in await asyncio.to_thread(read_verdicts):
            take(verdict)

    return common.J(batch=batch)


def find_version(name: str) -> str:
    return str(json.loads((HOME / name / "package.json").read_text(encoding="utf-8"))["version"])


if __name__ == "__main__":
    common.find_version = find_version
    common.main("promptfoo", "promptfoo", {"eval": evaluate})
