"""One run of ``adjudge judge``: every input is asked about, and nothing that goes wrong with one stops another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge import JudgeResult
from adjudge.cli._choose import Choice
from adjudge.cli._input import Inputs, Item
from adjudge.cli._ledgers import Recorder
from adjudge.cli._output import complain, say, show_progress, write_json
from adjudge.cli._show import (
    Done,
    complain_about,
    find_status,
    get_case,
    list_prompts,
    print_prompt,
    print_results,
    write_results,
)
from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run of the command: who is asked what about which contents."""

    choice: Choice
    how: dict[str, Any]
    """The arguments of every ``evaluate``."""
    inputs: Inputs
    as_json: bool
    recorder: Recorder = field(default_factory=Recorder)

    async def judge(self, concurrency: int) -> int:
        """Judge everything, write the results and return the exit status."""
        try:
            await self._check()
            await self.recorder.prepare()
            with show_progress("judged", self.inputs.total) as progress:
                done = await self._judge_all(concurrency, progress.step)
        finally:
            await self.choice.judge.aclose()
            await self.recorder.aclose()
        (write_results if self.as_json else print_results)(done, single=self.inputs.single)
        complain_about(done, single=self.inputs.single)
        for text in self.recorder.troubles:
            complain(text)
        # What was to be on record and is not must not end like what is.
        return find_status([result for _, result in done]) or (3 if self.recorder.troubles else 0)

    async def show_prompts(self) -> int:
        """Write what would be sent to every judge; nobody is asked and no key is needed."""
        prompts: list[dict[str, Any]] = []
        status = 0
        for item in self.inputs.items:
            try:
                found = await self._list_prompts(item)
            except UsageError as error:
                complain(str(error))
                status = 2
                continue
            prompts += found
            if not self.as_json:
                _print_prompts(item, found)
        if self.as_json and prompts:
            write_json({"schema": "adjudge/prompts/1", "prompts": prompts})
        return status

    async def find_question(self, item: Item) -> Question:
        """What is asked about an item; raises ``UsageError`` where it could not be read."""
        if item.error is not None:
            raise UsageError(item.error)
        case = get_case(item)
        own = {
            name: getattr(case, name)
            for name in ("reference", "task", "context")
            if getattr(case, name, None) is not None
        }
        return await self._prepare(case.content if case else item.content, own)

    async def _list_prompts(self, item: Item) -> list[dict[str, Any]]:
        from adjudge._evaluate import decide_by_rules

        question = await self.find_question(item)
        return [] if decide_by_rules(question) is not None else list_prompts(item, question, self.choice.judge)

    async def _prepare(self, content: object, more: dict[str, Any]) -> Question:
        from adjudge._asking import prepare

        return await prepare(content, self.choice.rubric, None, {**self.how, **more})  # type: ignore[typeddict-item]

    async def _check(self) -> None:
        """Raise ``UsageError`` for what is wrong with the judges (no key, no address) before a content is read.

        It would be wrong for every content, and it is to be said once.
        """
        rubric = self.choice.rubric
        if rubric is not None and all(item.rule for item in rubric.criteria):
            return
        question = await self._prepare("-", {"rules": ()})
        self.choice.judge.check(question)

    async def _judge_all(self, concurrency: int, step: Callable[[], None]) -> list[Done]:
        """Every input with its result, in order; what goes wrong with one stops no other."""
        numbered = enumerate(self.inputs.items)
        done: dict[int, Done] = {}

        async def work() -> None:
            # One iterator for all workers: each takes the next input when it is free, so files are read when needed.
            for number, item in numbered:
                done[number] = _leave_out(item)
                done[number] = await self._judge_one(item)
                step()

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        # Nobody is left who would judge these, and an exit status that knows nothing of them could be a pass.
        done |= {number: _leave_out(item) for number, item in numbered}
        return [done[number] for number in sorted(done)]

    async def _judge_one(self, item: Item) -> Done:
        if item.error is not None:
            return item, None
        judge, rubric = self.choice.judge, self.choice.rubric
        try:
            results = [result async for result in judge.evaluate_many([item.content], rubric, **self.how)]
        except UsageError as error:
            return replace(item, error=f"{item.label}: {error}"), None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            results = []  # nobody cancelled this: something that was called cancelled itself
        return await self._record(item, results[0]) if results else _leave_out(item)

    async def _record(self, item: Item, result: JudgeResult) -> Done:
        """The item with the place of its result. Whoever judges waits for it, and those who wait share a commit."""
        if self.recorder.ledger is None:
            return item, result
        case = get_case(item)
        text = content_text(item.content if case is None else case.content)
        return replace(item, ledger_seq=await self.recorder.keep(result, content=text)), result


def _leave_out(item: Item) -> Done:
    """What is shown of an item for which no result came."""
    return replace(item, error=item.error or f"{item.label}: the judge ended without a result; run it again"), None


def _print_prompts(item: Item, prompts: Sequence[dict[str, Any]]) -> None:
    for prompt in prompts:
        print_prompt(prompt)
    if not prompts:
        say(f"=== {item.label}: rules decide, so nothing is sent")
