"""``adjudge judge``: judge files, standard input or the cases of a data set."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from adjudge.cli import options as option
from adjudge.cli.error_messages import format_error
from adjudge.cli.input import InputItem, Inputs, list_inputs, read_material
from adjudge.cli.judge_output import (
    JudgedItem,
    describe_case_terms,
    find_status,
    get_case,
    list_prompts,
    print_prompt,
    print_results,
    write_complaints,
    write_results,
)
from adjudge.cli.judging import check_cost, choose_rubric, list_arguments, make_case_criteria, make_panel
from adjudge.cli.output import complain, complain_once, note, print_line, show_progress, write_json
from adjudge.concurrency import map_concurrently
from adjudge.config.file import read_config
from adjudge.config.judge_layers import explain_uncached, open_layers
from adjudge.config.judges import Choice, choose
from adjudge.config.ledger import CommandRecorder, open_recorder
from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.judges.remedies import list_code_judges
from adjudge.models.open import asks_nobody
from adjudge.question.question import Question
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import make_rubric

if TYPE_CHECKING:
    from adjudge.judges.evaluate import RubricSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One call of the command: the judge, the question and the contents, and where results are recorded."""

    choice: Choice
    arguments: dict[str, Any]
    """The arguments of ``evaluate`` that are the same for every content."""
    inputs: Inputs
    as_json: bool
    recorder: CommandRecorder = field(default_factory=CommandRecorder)

    async def judge(self, concurrency: int) -> int:
        """Judge everything, write the results and return the exit status."""
        try:
            await self._check_judges()
            await self.recorder.prepare()
            with show_progress("judged", self.inputs.total) as progress:
                judged_items = await self._judge_all(concurrency, progress.step)
        finally:
            await self.choice.judge.aclose()
            await self.recorder.aclose()
        (write_results if self.as_json else print_results)(judged_items, single=self.inputs.single)
        self._note_case_terms(judged_items)
        code_judges = list_code_judges(self.choice.judge)
        write_complaints(judged_items, single=self.inputs.single, shown=not self.as_json, code_judges=code_judges)
        complain_once(self.recorder.troubles)
        # Results that could not be recorded must not end with 0: the exit status is 3 then.
        return find_status([result for _, result in judged_items]) or (3 if self.recorder.troubles else 0)

    def _note_case_terms(self, judged_items: Sequence[JudgedItem]) -> None:
        """Tell the user how many cases brought criteria, rules or a threshold of their own, which may ask for less."""
        from adjudge.runs.case_terms import Terms

        rubric, criteria, threshold = (
            self.choice.rubric,
            self.arguments.get("criteria"),
            self.arguments.get("threshold"),
        )
        terms = Terms(rubric=rubric if criteria is None else make_rubric(criteria), threshold=threshold)
        counts: Counter[str] = Counter()
        for item, _ in judged_items:
            case = get_case(item)
            counts.update(terms.count(case) if case is not None else {})
        for sentence in describe_case_terms(counts, terms.needed):
            note(sentence)

    async def show_prompts(self) -> int:
        """Write what would be sent to every judge, and return the exit status; nobody is asked and no key is needed."""
        prompts: list[dict[str, Any]] = []
        status = 0
        for item in self.inputs.items:
            try:
                listed = await self._list_prompts(item)
            except UsageError as error:
                complain(format_error(error))
                status = 2
                continue
            prompts += listed
            if not self.as_json:
                _print_prompts(item, listed)
        if self.as_json and prompts:
            write_json({"schema": "adjudge/prompts/1", "prompts": prompts})
        return status

    async def find_question(self, item: InputItem) -> Question:
        """Make the question about an item; raises ``UsageError`` where it could not be read."""
        if item.error is not None:
            raise UsageError(item.error)
        from adjudge.judges.evaluate import merge_case

        case = get_case(item)
        if case is None:
            return await self._make_question(item.content, self.choice.rubric, self.arguments)
        return await self._make_question(case.content, *merge_case(case, self.choice.rubric, self.arguments))

    async def _list_prompts(self, item: InputItem) -> list[dict[str, Any]]:
        """List the prompts that the judges would be sent about an item; none where rules decide without a judge."""
        from adjudge.judges.evaluate import decide_by_rules

        question = await self.find_question(item)
        return [] if decide_by_rules(question) is not None else list_prompts(item, question, self.choice.judge)

    async def _make_question(
        self, content: object, rubric: RubricSource | None, arguments: dict[str, Any], *, stand_in: bool = False
    ) -> Question:
        """Make the question about a content; ``stand_in`` says that it is a placeholder for contents not read yet."""
        from adjudge.judges.evaluate import EvaluateArguments, prepare

        return await prepare(content, rubric, None, cast("EvaluateArguments", arguments), stand_in=stand_in)

    async def _check_judges(self) -> None:
        """Raise ``UsageError`` for a judge that cannot be asked (no key, no address) before a content is read.

        Each content would have the same error, and the user should read it once. Where rules decide everything, no
        judge is asked, and none is checked.
        """
        rubric = self.choice.rubric
        if rubric is not None and all(criterion.rule for criterion in rubric.criteria):
            return
        cases_bring_criteria = rubric is None and self.arguments.get("criteria") is None
        if cases_bring_criteria:
            # The criteria of each case may all be rules, for which the judge called "rules" needs no model.
            if asks_nobody(getattr(self.choice.judge, "model", None)):
                return
            rubric = make_rubric("-")
        question = await self._make_question("-", rubric, {**self.arguments, "rules": ()}, stand_in=True)
        self.choice.judge.check(question)

    async def _judge_all(self, concurrency: int, step: Callable[[], None]) -> list[JudgedItem]:
        """Judge every input, and return each with its result, in order; ``step`` is called after each.

        An input that cannot be read or judged (a ``UsageError``) has its error, and the others are still judged. An
        error of the ledger ends all, because further results would not be recorded.
        """

        async def work(item: InputItem) -> JudgedItem:
            try:
                return await self._judge_one(item)
            finally:
                step()

        return await map_concurrently(self.inputs.items, work, concurrency, give_up=_leave_out)

    async def _judge_one(self, item: InputItem) -> JudgedItem:
        """Judge an input, record the result, and return both.

        The result is ``None`` for an input that could not be read or judged; its ``error`` says why.
        """
        if item.error is not None:
            return item, None
        judge, rubric = self.choice.judge, self.choice.rubric
        try:
            results = [result async for result in judge.evaluate_many([item.content], rubric, **self.arguments)]
        except UsageError as error:
            return replace(item, error=f"{item.label}: {format_error(error)}"), None
        return await self._record(item, results[0]) if results else _leave_out(item)

    async def _record(self, item: InputItem, result: JudgeResult) -> JudgedItem:
        """Record an item's result in the ledger, if there is one, and return both; the item gets the entry's number.

        A judgement ends only when it is recorded. Those that wait for the ledger at the same time share a commit.
        """
        if self.recorder.ledger is None:
            return item, result
        case = get_case(item)
        text = content_text(item.content if case is None else case.content)
        return replace(item, ledger_seq=await self.recorder.keep(result, content=text)), result


def _leave_out(item: InputItem) -> JudgedItem:
    """Return an item for which the judge gave no result, with an error that says so."""
    return replace(item, error=item.error or f"{item.label}: the judge ended without a result; run it again"), None


def _print_prompts(item: InputItem, prompts: Sequence[dict[str, Any]]) -> None:
    """Print the prompts about an item, or that rules decide it without a judge."""
    for prompt in prompts:
        print_prompt(prompt)
    if not prompts:
        print_line(f"=== {item.label}: rules decide, so nothing is sent")


def judge(
    criteria: option.CriteriaOptions,
    material: option.MaterialOptions,
    judging: option.JudgeOptions,
    cost: option.CostOptions,
    recording: option.LedgerOptions,
    paths: option.Contents = None,
    show_prompt: option.ShowPrompt = False,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
    label_map: option.LabelMapText = None,
) -> int:
    """Judge one or more texts against a rubric or a sentence.

    $ adjudge judge answer.txt -c "Is polite." -j openai:gpt-6.1-terra

    PATH is a file with one content, a data set (.jsonl or .parquet) with one content in each case, or a folder. In a
    folder, every text file in it and below it is judged, in the order of their names, except hidden ones. With -, or
    without PATH, standard input is read.

    --case-criteria and --criteria-field let a data set bring the criteria of its cases: for suites you wrote.

    Without --judge, the judge is what [defaults] of adjudge.toml or ADJUDGE_JUDGE names, the first provider whose key
    is set, or a local server on its usual port.

    Every result is recorded where --ledger or [ledger] of adjudge.toml says, if one of them does.

    Exit status: 0 passed, 1 failed, 2 wrong usage or unreadable input, 3 undecided or not recorded. Of several
    inputs, 2 beats 1 beats 3 beats 0.
    """
    configuration = read_config(config)
    case_criteria = make_case_criteria(criteria, configuration)
    rubric = choose_rubric(criteria, configuration, needed=not case_criteria.is_asked)
    arguments = list_arguments(criteria) | read_material(material)
    panel = make_panel(judging)
    check_whole_number("concurrency", concurrency, least=1)
    inputs = list_inputs(paths, case_criteria, label_map=label_map, folders=True)
    for sentence in inputs.notes:
        note(sentence)
    check_cost(judging, cost)
    layers = open_layers(cache=cost.cache, budget=cost.budget, prices=configuration.prices)
    chosen = choose(panel, configuration, rubric)
    if cost.cache is not None:
        note(explain_uncached(chosen.judge))
    chosen = chosen if show_prompt else replace(chosen, judge=layers.apply(chosen.judge))
    if chosen.reason and not as_json:
        note(f"judging with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
    recorder = open_recorder(configuration, recording.ledger, off=recording.no_ledger)
    session = Session(choice=chosen, arguments=arguments, inputs=inputs, as_json=as_json, recorder=recorder)
    # Not the library's sync door: an interrupt has to end here only when every call that was under way has ended.
    if show_prompt:
        return asyncio.run(session.show_prompts())
    try:
        return asyncio.run(session.judge(concurrency))
    finally:
        note(layers.close())
