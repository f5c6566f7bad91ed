"""The jobs of OpenAI Guardrails: the check "Custom Prompt Check", by ``check_plain_text``.

With ``raise_guardrail_errors``, by which its documentation lets an application fail closed; by default an error of a
check counts as safe. Read for what it lacks: openai.github.io/openai-guardrails-python and the package.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import Any

from guardrails import GuardrailsAsyncOpenAI, GuardrailTripwireTriggered, check_plain_text
from guardrails.registry import default_spec_registry
from guardrails.types import GuardrailResult
from openai import AsyncOpenAI
from pydantic import BaseModel

from seven.work import (
    BROKEN,
    BY_DEFAULT,
    DONE,
    FINE,
    LABELLED,
    MODEL,
    NO_JSON,
    NONE,
    NOT,
    OWN,
    RAISES,
    RUDE,
    TIMEOUT_S,
    Found,
    Server,
    judge_rows,
    try_each,
    weigh_fault,
    weigh_own_file,
    weigh_own_loop,
    weigh_second,
)

CHECK = "Custom Prompt Check"
CONFIG = {"model": MODEL, "confidence_threshold": 0.7, "system_prompt_details": "Flag what is impolite."}
STAGE = {"version": 1, "guardrails": [{"name": CHECK, "config": CONFIG}]}


def check(client: AsyncOpenAI, content: str, stage: dict[str, Any] = STAGE, **options: Any) -> str:
    context = SimpleNamespace(guardrail_llm=client)
    try:
        asyncio.run(check_plain_text(content, stage, ctx=context, **options))
    except GuardrailTripwireTriggered:
        return "failed"
    except ExceptionGroup as group:  # of one check
        raise group.exceptions[0] from None
    return "passed"


def judge(server: Server, mode: str, content: str, run_name: str = "one", **options: Any) -> str:
    client = AsyncOpenAI(base_url=server.get_address(mode, run_name), api_key="sk-mock", **options)
    return check(client, content, raise_guardrail_errors=True)


def try_mode(server: Server, mode: str, **options: Any) -> Found:
    found = weigh_fault(*try_each(lambda content: judge(server, mode, content, **options), FINE, BROKEN))
    client = AsyncOpenAI(base_url=server.get_address(mode, "default"), api_key="sk-mock", **options)
    [default] = try_each(lambda content: check(client, content), BROKEN)
    return Found(found.word, f"{found.evidence}{BY_DEFAULT}{default}")


def down(server: Server) -> Found:
    return try_mode(server, "down")


def cut(server: Server) -> Found:
    return try_mode(server, "cut")


def scale(server: Server) -> Found:
    return try_mode(server, "scale")


def timeout(server: Server) -> Found:
    return try_mode(server, "hang", timeout=TIMEOUT_S, max_retries=0)


def again(server: Server) -> Found:
    """llm_base.py makes an error of a reply that can't be read."""
    return weigh_second(lambda: judge(server, "again", BROKEN))


def orders(_server: Server) -> Found:
    """Every check of checks/text/ takes one text."""
    return Found(NONE, "its checks take one text")


class NoConfig(BaseModel):
    pass


async def own_check(_ctx: Any, data: str, config: NoConfig) -> GuardrailResult:  # noqa: ARG001 - its signature
    values = {"true": True, "number": 0.25, "none": None}
    if values[data] is None:
        raise ValueError("cannot tell")
    return GuardrailResult(tripwire_triggered=values[data] < 0.5, info={"score": values[data], "why": "…"})


async def check_json(_ctx: Any, data: str, config: NoConfig) -> GuardrailResult:  # noqa: ARG001 - as above
    try:
        json.loads(data)
    except ValueError:
        return GuardrailResult(tripwire_triggered=True)
    return GuardrailResult(tripwire_triggered=False)


for name, own in (("Own", own_check), ("Is JSON", check_json)):
    default_spec_registry.register(name, own, name, "text/plain")


def function(_server: Server) -> Found:
    """Its page "Custom checks": a function that returns a GuardrailResult, registered under a name."""
    stage = {"version": 1, "guardrails": [{"name": "Own", "config": {}}]}
    client = AsyncOpenAI(api_key="sk-mock")

    contents = ("true", "number", "none")
    found = try_each(lambda content: check(client, content, stage, raise_guardrail_errors=True), *contents)
    told = dict(zip(contents, found, strict=True))
    good = told["none"].startswith("raised")
    return Found(RAISES if good else NOT, f"a function that returns yes or no, with a score as information: {told}")


def several(server: Server) -> Found:
    """Every check of a stage can stop the text by itself; nothing counts them."""
    modes = ("good", "good", "down-all")
    votes = Counter(try_each(lambda mode: judge(server, mode, FINE, mode, max_retries=0), *modes))
    word, count = votes.most_common(1)[0]
    return Found(OWN, f"each check decides by itself; counted by hand: {word} by {count} of 3")


def rule(server: Server) -> Found:
    """Its page on the pipeline: what the stage pre_flight stops reaches no later stage."""
    client = {"base_url": server.get_address("good"), "api_key": "sk-mock"}
    first = {"version": 1, "guardrails": [{"name": "Is JSON", "config": {}}]}
    guarded = GuardrailsAsyncOpenAI(config={"version": 1, "pre_flight": first, "input": STAGE}, **client)
    asked = [{"role": "user", "content": NO_JSON}]

    def ask(_: str) -> str:
        return str(asyncio.run(guarded.chat.completions.create(model=MODEL, messages=asked)))

    [told] = try_each(ask, "")
    stopped = "Tripwire" in told and not server.count()
    return Found(OWN if stopped else NOT, f"a check of our own in pre_flight: {told}, after {server.count()} requests")


def long_run(server: Server) -> Found:
    return judge_rows(lambda content: judge(server, "slow", content))


def resume(server: Server) -> Found:
    """``guardrails-evals`` (evals/guardrail_evals.py) has no option for it."""
    return weigh_own_loop("guardrails", long_run, server)


def cache(server: Server) -> Found:
    """Nothing in the package keeps replies."""
    return weigh_own_file(long_run, server)


def budget(_server: Server) -> Found:
    return Found(NONE, "it adds up tokens (total_guardrail_token_usage); nothing limits them")


def run_evals(server: Server, rows: list[tuple[str, bool]]) -> tuple[int, dict[str, Any]]:
    """Run its program for labelled texts, and read what it found."""
    Path("config.json").write_text(json.dumps({"version": 1, "input": STAGE}), "utf-8")
    lines = [
        json.dumps({"id": str(at), "data": content, "expected_triggers": {CHECK: not good}})
        for at, (content, good) in enumerate(rows)
    ]
    Path("rows.jsonl").write_text("\n".join(lines), "utf-8")
    program = str(Path(sys.executable).parent / "guardrails-evals")
    options = ["--config-path", "config.json", "--dataset-path", "rows.jsonl", "--output-dir", "out"]
    given = os.environ | {"OPENAI_BASE_URL": server.get_address("good")}
    done = run([program, *options], capture_output=True, text=True, check=False, env=given)
    found = next(iter(Path("out").rglob("*metrics*.json")), None)
    return done.returncode, json.loads(found.read_text("utf-8")) if found else {"stderr": done.stderr[-300:]}


def status(server: Server) -> Found:
    """``guardrails-evals`` ends with 0 whatever it found; it has no threshold."""
    ended, found = run_evals(server, [(FINE, True), (RUDE, True)])
    told = (
        f"guardrails-evals ended with {ended} though one of two failed; assert in pytest: {judge(server, 'good', RUDE)}"
    )
    return Found(OWN if "stderr" not in found else NOT, told)


def people(server: Server) -> Found:
    """Its page "Evaluation tool": precision, recall and F1 against the labels of a data set."""
    _, found = run_evals(server, LABELLED)
    return Found(DONE if "stderr" not in found else NOT, f"guardrails-evals: {json.dumps(found)}")


def approval(_server: Server) -> Found:
    """A tripwire stops a call; no page has a person who lets it go on."""
    return Found(NONE, "a tripwire stops a call for good; no person is asked")


def record(_server: Server) -> Found:
    return Found(NONE, "nothing is kept, by the package or its pages")
