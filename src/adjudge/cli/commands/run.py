"""``adjudge run``: judge a data set into a folder, and resume a run that was interrupted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from shlex import quote
from typing import Any, cast

import msgspec

from adjudge.cli import options as option
from adjudge.cli.batches import describe_batches, list_batch_prices, note_batches_left, read_batch
from adjudge.cli.commands.dataset import report_notes, report_skipped
from adjudge.cli.commands.estimate import estimate_data
from adjudge.cli.exit_status import DONE, FAILED, INTERRUPTED, UNDECIDED
from adjudge.cli.input import SUITES, open_from_options
from adjudge.cli.interruption import catching_interrupts, finish_or_leave
from adjudge.cli.judging import check_cost, choose_rubric, list_arguments, make_case_criteria, make_panel
from adjudge.cli.measurement_options import MeasureRequest, make_request, print_labels, print_short, read_labels
from adjudge.cli.output import (
    add_row,
    complain,
    format_seconds,
    make_table,
    note,
    show_drawing,
    watch,
    write_json,
)
from adjudge.cli.results import describe_case_terms, list_seats
from adjudge.config.file import read_config
from adjudge.config.judges import Choice, choose
from adjudge.config.layers import explain_uncached
from adjudge.dataset.case_criteria import CaseCriteria
from adjudge.dataset.dataset import Dataset
from adjudge.dataset.formats import FORMATS, count_rows
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import (
    count_digits,
    format_amounts,
    format_apart,
    format_dollars,
    format_points,
    format_range,
    format_score,
)
from adjudge.formats.text import clean, show
from adjudge.judges.pair_summary import PairSummary
from adjudge.judges.remedies import list_code_judges, may_doctor_help
from adjudge.result import JudgeChainResult
from adjudge.rubric.rubric import Rubric
from adjudge.runs.estimate.kept_estimate import find_estimate
from adjudge.runs.folder import MANIFEST_FILE, Run, open_run
from adjudge.runs.item import RunItem
from adjudge.runs.launch import Running
from adjudge.runs.options import Progress
from adjudge.runs.resume import BROKEN
from adjudge.runs.terms import read_terms
from adjudge.trust.intervals import Share


def run_data(
    data: option.DataPath,
    criteria: option.CriteriaOptions,
    judging: option.JudgeOptions,
    cost: option.CostOptions,
    pairing: option.PairOptions,
    options: option.RunOptions,
    batching: option.BatchingOptions,
    estimating: option.EstimateOptions,
    fields: option.DataOptions,
    measuring: option.MeasureOptions,
    fail_under: option.FailUnder = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Judge a data set by a rubric or a sentence, and keep every case, result and reply in a folder.

    $ adjudge run answers.jsonl --rubric correctness --out runs/monday

    DATA is a file: .jsonl, .csv, .tsv, .json, .yaml, .parquet; lines and tables may be .gz; - is standard input.

    --case-criteria and --criteria-field let DATA bring the criteria of its cases: for suites you wrote. A suite read
    from a file with --from promptfoo or openai-evals always does so; what is not applied is listed first.

    With --pairs each content is {"a": ..., "b": ...}, and the judge is asked in both orders which is better.

    Ctrl-C gives calls under way five seconds to finish; a second one stops at once. To resume, also after a crash,
    repeat the command with --resume.

    With --batch the first 20 cases are judged live, and the rest is sent by batch and waited for. Ctrl-C leaves what
    was sent at the provider; --resume goes on, here or on another machine with the folder. adjudge batch lists,
    collects and cancels.

    With --estimate nobody is asked: it says how many tokens the run would take, and what they cost live and by batch.
    --estimate-from takes the averages of a run that is there, so judge 20 cases with --sample first.

    With --labels, it also says what people would pass; with --measured-on, what the judge got right on that run. This
    needs pip install 'adjudge[trust]'.
    --label-file puts labels into the cases that are kept; --labels only compares with them.

    Exit status: 0 the data set is judged, 1 fewer than --fail-under passed or the lower limit is below
    --fail-under-corrected, 2 wrong usage or unreadable input, 3 nothing was decided, so many cases are undecided that
    it is unknown whether --fail-under was reached, planned labels are missing or give no corrected rate, 130
    interrupted.
    """
    from adjudge.runs.launch import run

    configuration = read_config(config)
    case_criteria = make_case_criteria(criteria, configuration)
    rubric = choose_rubric(criteria, configuration, needed=not case_criteria.is_asked and fields.kind not in SUITES)
    arguments = list_arguments(criteria)
    execution = _make_execution_arguments(options, cost)
    _check(options, fail_under)
    request = make_request(measuring, read_labels(measuring.labels), by="run")
    request.check_extra()
    check_cost(judging, cost)
    _check_estimate(estimating, resume=options.resume)
    batch = read_batch([options.out], batching, resume=options.resume)
    _check_pairs(pairing, criteria)
    dataset = _open_data(data, fields, rubric, case_criteria)
    chosen = choose(make_panel(judging), configuration, rubric)
    drawn = {"repeat": options.repeat, "sample": options.sample, "seed": options.seed, "prices": configuration.prices}
    on_conflict: Any = pairing.on_conflict or "tie"
    if estimating.estimate:
        planned = {"on_conflict": on_conflict if pairing.pairs else None, "batch": batch, "arguments": arguments}
        recorded = estimating.estimate_from
        return estimate_data(dataset, chosen, planned | drawn, recorded=recorded, out=options.out, as_json=as_json)
    _note_choice(
        chosen, configuration.prices, as_json=as_json, caches=cost.cache is not None, by_batch=batch is not None
    )
    folder = options.out or _find_free_folder(datetime.now(UTC))
    running = run(
        dataset,
        chosen.judge,
        chosen.rubric,
        out=folder,
        command=["adjudge", *sys.argv[1:]],
        pairs=pairing.pairs,
        on_conflict=on_conflict,
        batch=batch or False,
        **cast("Any", drawn | arguments | execution),
    )
    session = RunSession(
        running=running,
        judge=chosen.judge,
        folder=folder,
        as_json=as_json,
        fail_under=fail_under,
        dataset=dataset,
        request=request,
        suite=fields.kind,
        retry=expand_retry(options.retry),
    )
    return session.run()


def _find_free_folder(now: datetime) -> Path:
    """Find the folder of a run that was given none: the time, and a number where another run of this second has it."""
    name = now.strftime("%Y-%m-%d-%H%M%S")
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(folder for folder in (Path("runs") / each for each in names) if not folder.exists())


def open_counted(data: str, fields: option.DataOptions, case_criteria: CaseCriteria | None = None) -> Dataset:
    """Open the data set, with its number of rows where they can be counted: progress has a total and a time left."""
    # Ids are compared on disk, where the run keeps them.
    dataset = open_from_options(data, fields, case_criteria=case_criteria, check_ids=False)
    if (fields.kind is None or fields.kind in FORMATS) and dataset.size is None:
        dataset.size = count_rows(data, fields.kind)
    return dataset


def _open_data(
    data: str, fields: option.DataOptions, rubric: Rubric | None, case_criteria: CaseCriteria | None
) -> Dataset:
    """Open the data set, or a suite of another tool."""
    if fields.kind in SUITES:
        return open_suite(data, fields, rubric, case_criteria)
    return open_counted(data, fields, case_criteria)


def open_suite(
    data: str, fields: option.DataOptions, rubric: Rubric | None, case_criteria: CaseCriteria | None = None
) -> Dataset:
    """Open a suite of another tool, and list what cannot be judged before anybody is asked; the rest runs.

    Where nothing of it can be, it is opened as it is, so that the run says why. Raises ``UsageError`` for standard
    input: it can be read once, and nobody may be asked, and paid, before what is not applied is said.
    """
    if data == "-":
        raise UsageError(
            f"--from {fields.kind} reads its suite twice, first to list what is not applied, and standard input can be "
            "read once; write it to a file and name that"
        )
    skipping = replace(fields, on_bad_row="skip")
    suite = open_from_options(data, skipping, case_criteria=case_criteria, check_ids=False)
    judged = unjudged = 0
    for case in suite:
        brings = rubric is not None or case.criteria is not None or case.rubric is not None
        judged, unjudged = judged + brings, unjudged + (not brings)
    report_skipped(suite)
    if not judged:
        suite = open_from_options(data, fields, check_ids=False)
    elif unjudged:
        of = f"{unjudged:,} of {judged + unjudged:,} cases"
        note(f"{of} are not judged, because nothing of theirs is applied; --criteria judges them")
    suite.size, suite.has_listed = judged or suite.size, True
    return suite


def _check(options: option.RunOptions, fail_under: float | None) -> None:
    """Raise ``UsageError`` for options that do not fit together."""
    if fail_under is not None:
        check_share("fail_under", fail_under)
    if options.resume and options.out is None:
        raise UsageError("--resume needs --out RUN: the folder of the run to resume")
    check_retry(options.retry, resume=options.resume)


def check_retry(retry: list[str] | None, *, resume: bool) -> None:
    """Raise ``UsageError`` for reasons where nothing is resumed."""
    if retry and not resume:
        raise UsageError("--retry belongs to --resume: it judges again what a run has left undecided")


_RETRY_BROKEN = "broken"
"""The word of ``--retry`` for all reasons of ``BROKEN``."""


def expand_retry(retry: list[str] | None) -> tuple[str, ...]:
    """Expand ``broken`` into the reasons that it stands for; anything else stays, for ``run`` to check."""
    return tuple(name for each in retry or () for name in (BROKEN if each == _RETRY_BROKEN else (each,)))


def _check_estimate(options: option.EstimateOptions, *, resume: bool) -> None:
    if options.estimate_from is not None and not options.estimate:
        raise UsageError("--estimate-from belongs to --estimate: it says which run the averages are taken from")
    if options.estimate and resume:
        raise UsageError("--estimate is of a whole run, before it begins; leave --resume out")


def _make_execution_arguments(options: option.RunOptions, cost: option.CostOptions) -> dict[str, Any]:
    """Make the arguments of ``run`` that say how, where and at which cost the cases are judged."""
    return {
        "resume": options.resume,
        # A case that the budget left out is judged on resuming without being asked for: there may be more money now.
        "retry": ("budget", *expand_retry(options.retry)),
        "concurrency": options.concurrency,
        "engine": options.engine,
        "ray_address": options.ray_address,
        "ray_actors": options.ray_actors,
        "cache": cost.cache,
        "budget": cost.budget,
    }


def _note_choice(chosen: Choice, prices: Any, *, as_json: bool, caches: bool, by_batch: bool) -> None:
    """Say who judges, where that was not said, and what is not as one might expect of it."""
    if chosen.reason and not as_json:
        note(f"judging with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
    if caches:
        note(explain_uncached(chosen.judge))
    if by_batch:
        note("\n".join(list_batch_prices(chosen.judge, prices)) or None)


def _check_pairs(options: option.PairOptions, criteria: option.CriteriaOptions) -> None:
    """Raise ``UsageError`` for options that need ``--pairs``, and for those that do not go with it."""
    if not options.pairs:
        if options.on_conflict is not None:
            raise UsageError("--on-conflict belongs to --pairs: it says what two orders that disagree come to")
        return
    for name, value in (("--threshold", criteria.threshold), ("--rule", criteria.rules)):
        if value:
            raise UsageError(f"--pairs compares two contents, and {name} is for judging one by itself; leave it out")


_SUITE_REMEDIES = {
    "promptfoo": "a case of which no assertion is applied needs --criteria or --rubric; where answers are missing, "
    "promptfoo eval -o results.json records them, and adjudge run results.json judges those",
    "openai-evals": "the graders are those of the eval: put it beside the items as eval.json, or give --criteria",
}
"""The remedy for a suite that does not say what good means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """One run of the command."""

    running: Running
    judge: Any
    folder: Path
    as_json: bool
    fail_under: float | None
    dataset: Dataset
    request: MeasureRequest
    """The request by which its judge is measured."""
    suite: str | None = None
    """The tool whose suite it is, of which it was said before the run what is not applied."""
    retry: tuple[str, ...] = ()
    """The reasons for which undecided judgements are made again."""

    def _note_end(self, done: Run | None) -> None:
        """Say what models retire, and what was not applied: also where it ends with an error, it may be why."""
        if done is not None:
            _note_retirements(done)
        if self.suite not in SUITES:
            report_notes(self.dataset)

    def run(self) -> int:
        """Run ``go``, and say what is kept after an interrupt that it could not catch."""
        try:
            return asyncio.run(self.go())
        except KeyboardInterrupt:
            self._explain_going_on(None)
            raise

    async def go(self) -> int:
        """Judge, show what it came to, and return the exit status.

        Raises ``UsageError`` for a data set without a case.
        """
        interrupted, done = asyncio.Event(), None
        before = _find_undecided(self.folder, self.retry)
        try:
            with watch(self._describe), catching_interrupts(self.running.wind_down, interrupted):
                done = await self._finish(interrupted)
        except asyncio.CancelledError:
            if not interrupted.is_set():
                raise
        except UsageError as error:
            if self.suite is not None and error.argument == "criteria":
                note(_SUITE_REMEDIES.get(self.suite))
            raise
        finally:
            self._note_end(done)
            await self.judge.aclose()
        if done is None or done.status == "interrupted" or interrupted.is_set():
            self._explain_going_on(done)
            return INTERRUPTED
        if not sum(done.counts.values()):
            # Exit status 0 for nothing judged would look like a pass.
            raise UsageError("the data set has no case, so there is nothing to judge")
        measured = self.request.measure(done)
        if self.as_json:
            more = {"pairs": done.sum_up_pairs().to_dict()} if done.compares else {}
            more |= {"measurement": measured.to_dict()} if measured is not None else {}
            estimated = find_estimate(done.folder, done.manifest)
            more |= {"estimate": msgspec.to_builtins(estimated)} if estimated is not None else {}
            write_json(done.to_dict() | {"folder": str(done.folder)} | more)
        else:
            print_labels(measured)
            print_summary(done, list_code_judges(self.judge))
            _note_undecided_again(done, before)
            print_short(measured)
        status = find_status(done.counts, self.fail_under)
        if status != DONE:
            # A job that ends with 1 or 3 and does not say so is looked for in the wrong place.
            complain(_explain_status(done.counts, self.fail_under))
        statuses = {status, self.request.report_status(measured, done)}
        return FAILED if FAILED in statuses else max(statuses)

    async def _finish(self, interrupted: asyncio.Event) -> Run | None:
        """The run at its end; ``None`` when it was interrupted before it had begun."""
        done = await finish_or_leave(self.running, interrupted)
        if done is None:
            with suppress(UsageError):  # interrupted before there was a folder
                done = await self.running
        return done

    def _describe(self) -> str:
        progress = self.running.progress
        return "reading the data set" if progress is None else describe(progress)

    def _explain_going_on(self, done: Run | None) -> None:
        """Say what is kept of a run that was interrupted, and how it is resumed."""
        if not (self.folder / MANIFEST_FILE).exists():
            note("nothing was judged yet, and no run is kept; repeat the command")
            return
        kept = f"{sum(done.counts.values()):,} results are" if done is not None else "what was finished is"
        note_batches_left(self.running.progress, self.folder)
        note(f"{kept} kept in {self.folder}; to resume, repeat the command with:")
        note(f"  --out {quote(str(self.folder))} --resume")


def _find_undecided(folder: Path, reasons: Collection[str]) -> frozenset[tuple[int, int]]:
    """Find the judgements of a run that is there which are undecided for one of some reasons: case and sample."""
    if not reasons or not (folder / MANIFEST_FILE).exists():
        return frozenset()
    undecided = open_run(folder).items("undecided")
    return frozenset((item.place, item.sample) for item in undecided if item.result.undecided_because in reasons)


def _note_undecided_again(done: Run, before: Collection[tuple[int, int]]) -> None:
    """Say how many of the judgements that were made again came to nothing again."""
    again = sum((item.place, item.sample) in before for item in done.items("undecided")) if before else 0
    if again:
        note(
            f"{again:,} of the {len(before):,} that were judged again {'is' if again == 1 else 'are'} undecided again; "
            f"adjudge report {quote(str(done.folder))} CASE shows what was replied about one of them"
        )


def _note_retirements(done: Run) -> None:
    """Warn of each model that is retired, deprecated, or retired soon."""
    for retirement in done.retirements:
        note(retirement.warn(datetime.now(UTC).date()))


def describe(progress: Progress) -> str:
    """Describe how far a run is, in one line."""
    judged = f"judged {progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")
    if progress.batch is not None:
        return judged + describe_batches(progress.batch)
    share = f" ({format_points(progress.done / progress.total, digits=0)} %)" if progress.total else ""
    speed = f", {progress.per_second:,.1f}/s"
    left = "" if progress.seconds_left is None else f", {format_seconds(progress.seconds_left)} left"
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(progress.outcomes.items()))
    cost = f"; {format_dollars(progress.cost_usd, digits=2)}" if progress.cost_usd else ""
    return f"{judged}{share}{speed}{left}; {outcomes}{cost}"


def find_status(counts: Any, fail_under: float | None) -> int:
    """The exit status: whether enough passed, as far as that can be said."""
    total = sum(counts.values())
    if fail_under is None:
        return UNDECIDED if counts["undecided"] == total else DONE
    if counts["passed"] >= fail_under * total - 1e-9:
        return DONE
    # What is undecided did not pass. Whether it would have is not known, and only that keeps this from being a miss.
    could = counts["passed"] + counts["undecided"]
    return UNDECIDED if could >= fail_under * total - 1e-9 else FAILED


def _explain_status(counts: Any, fail_under: float | None) -> str:
    """Explain why the exit status is not 0."""
    total, passed, undecided = sum(counts.values()), counts["passed"], counts["undecided"]
    if fail_under is None:
        return "nothing could be decided"
    digits = max(count_digits(passed / total, fail_under, digits=3) - 2, 1)
    share = f"{passed:,} of {total:,} passed ({format_points(passed / total, digits=digits)} %)"
    needed = f"--fail-under asks for {100 * fail_under:g} %"
    if find_status(counts, fail_under) == FAILED:
        return f"{share}, and {needed}"
    return f"{share}, {undecided:,} are undecided, and {needed}: whether it was reached cannot be said"


def print_summary(done: Run, code_judges: Collection[str]) -> None:
    """Print the totals of a run: outcomes, reasons, score, labels, tokens and cost, and the next command.

    ``code_judges`` names the judges in code, which the doctor cannot help.
    """
    from adjudge.report.format import format_paid_again
    from adjudge.report.report import read_description
    from adjudge.templates.figures import format_count

    summary = done.summary
    pairs = done.sum_up_pairs() if done.compares else None
    title = f"{format_count(summary['items'], 'judgement')} of {format_count(summary['cases'], 'case')}"
    if pairs is not None:
        title = f"{format_count(summary['items'], 'comparison')} of pairs"
    table = make_table(title, ("", "", ""))
    for outcome, number in (summary["counts"] if pairs is None else _count_preferences(pairs)).items():
        add_row(table, outcome, f"{number:,}", f"{format_points(number / summary['items'])} %")
    for reason, number in summary["undecided_because"].items():
        add_row(table, f"  {reason}", f"{number:,}", "")
    if pairs is not None:
        _add_shares(table, pairs)
    elif summary["mean_score"] is not None:
        add_row(table, "mean score", format_score(summary["mean_score"]), "")
    if summary["labelled"] and pairs is None:
        share = f"{format_points(summary['agreed'] / summary['labelled'])} %"
        add_row(table, "agree with the label", f"{summary['agreed']:,} of {summary['labelled']:,}", share)
    if summary["input_tokens"] is not None:
        add_row(table, "tokens", f"{summary['input_tokens']:,} in", f"{summary['output_tokens']:,} out")
    about = read_description(done.manifest)
    if summary["calls"] is not None or summary["unknown_costs"] or about.paid_again:  # else no model was asked
        add_row(table, "cost", _format_cost(summary) + format_paid_again(about.paid_again, about.paid_again_usd), "")
    _add_estimate(table, done)
    show_drawing(table)
    note(f"kept in {done.folder}; see it with: adjudge report {quote(str(done.folder))}")
    _note_what_is_missing(done, code_judges)


def _add_estimate(table: Any, done: Run) -> None:
    """Add what was estimated before the run."""
    estimated = find_estimate(done.folder, done.manifest)
    if estimated is None:
        return
    total = estimated.total
    add_row(table, "tokens estimated", f"{total.input_tokens:,.0f} in", f"{total.output_tokens:,.0f} out")
    by_batch = done.manifest["options"].get("batch") is not None
    usd = total.batch_usd if by_batch else total.live_usd
    between = ""
    if not by_batch and total.least_usd is not None and total.most_usd is not None:
        between = " to ".join(format_apart(total.least_usd, total.most_usd, digits=4))
    add_row(table, "cost estimated", format_dollars(usd, digits=4), between)


def _count_preferences(pairs: PairSummary) -> dict[str, int]:
    counts = {"first is better": pairs.wins, "second is better": pairs.losses, "tie": pairs.ties}
    return counts | {"undecided": pairs.undecided}


def _add_shares(table: Any, pairs: PairSummary) -> None:
    shares = {"win rate of the first": pairs.win_rate, "orders agree": pairs.agreement, "orders disagree": pairs.flips}
    if pairs.labelled:
        shares |= {"agree with the label": pairs.accuracy, "  first shown first": pairs.accuracy_ab}
        shares |= {"  second shown first": pairs.accuracy_ba, "  in both orders": pairs.both_right}
    for name, share in shares.items():
        add_row(table, name, f"{share.count:,g} of {share.of:,}", _format_share(share))


def _format_share(share: Share) -> str:
    if share.rate is None or share.interval is None:
        return ""
    return f"{format_points(share.rate)} % ({format_range(*share.interval).removesuffix(' %')})"


def _note_what_is_missing(done: Run, code_judges: Collection[str]) -> None:
    """Write to standard error what a reader of the figures has to know: budget, undecided cases, skipped rows."""
    if brought := done.manifest.get("own"):
        for sentence in describe_case_terms(brought, read_terms(done.manifest).needed):
            note(sentence)
    budget, cut_off = done.manifest.get("budget"), done.summary["undecided_because"].get("budget", 0)
    if budget is not None:
        note("spent {} of the budget of {}".format(*format_amounts(budget["spent"], budget["usd"])))
    if cut_off:
        note(f"{cut_off:,} were cut off by the budget; judge them with --out, --resume and a higher --budget")
    firsts = _find_first_of_each(done)
    unread = firsts.get("unparseable")
    ask_doctor = unread is not None and may_doctor_help(unread.result, code_judges)
    for sentence in _list_remedies(done.summary["undecided_because"], quote(str(done.folder)), ask_doctor=ask_doctor):
        note(sentence)
    for name, item in firsts.items():
        result = item.result
        # A chain's own detail says only how each of its seats ended, and theirs what to do about it.
        text = list_seats(result) if isinstance(result, JudgeChainResult) else result.explain()
        reason = clean(text, keep_lines=False).removeprefix(f"undecided: {name}; ")[:400]
        note(f"the first {name}, of case {show(item.case.id)}: {reason}")
    skipped = done.manifest["dataset"].get("skipped")
    if skipped:
        because = "was skipped, because it is no case" if skipped == 1 else "were skipped, because they are no cases"
        note(f"{skipped:,} of the data set's rows {because}; run.json lists them")


def _find_first_of_each(done: Run) -> dict[str, RunItem]:
    """Find the first undecided judgement of each reason: mostly it is the same for the others of that reason."""
    wanted = [name for name in done.summary["undecided_because"] if name != "budget"]
    firsts: dict[str, RunItem] = {}
    if wanted:
        for item in done.items("undecided"):
            firsts.setdefault(item.result.undecided_because or "", item)
            if firsts.keys() >= set(wanted):
                break
    return {name: firsts[name] for name in wanted if name in firsts}


def _list_remedies(reasons: Mapping[str, int], folder: str, *, ask_doctor: bool) -> Iterator[str]:
    """Yield sentences on what may help.

    ``reasons`` has the number of undecided judgements of each reason. ``ask_doctor`` is false where the first that is
    unparseable, which is shown below, is nothing that the doctor could say more about.
    """
    if ask_doctor:
        yield f"{reasons['unparseable']:,} unparseable; adjudge doctor --judge says why, and whether --no-token helps"
    broken = [name for name in BROKEN if reasons.get(name)]
    if broken:
        number = sum(reasons[name] for name in broken)
        cause = f"{number:,} {'is' if number == 1 else 'are'} undecided because of {' or '.join(broken)}"
        retry = broken[0] if len(broken) == 1 else _RETRY_BROKEN
        them = "it" if number == 1 else "them"
        yield f"{cause}; to judge {them} again, repeat the command with --out {folder} --resume --retry {retry}"


def _format_cost(summary: Any) -> str:
    known, unknown = summary["known_cost_usd"], summary["unknown_costs"]
    if not unknown:
        return "none" if not known and not summary["calls"] else format_dollars(known, digits=4)
    return "unknown" if not known else f"{format_dollars(known, digits=4)} and more (unknown for {unknown:,})"
