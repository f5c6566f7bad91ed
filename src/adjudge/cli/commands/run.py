"""``adjudge run``: judge a data set and keep the results in a folder, or resume a run that was interrupted."""

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
from adjudge.cli.judge_output import describe_case_terms, list_seats
from adjudge.cli.judging import check_cost, choose_rubric, list_arguments, make_case_criteria, make_panel
from adjudge.cli.measurement_options import MeasureRequest, make_request, print_labels, print_short, read_labels
from adjudge.cli.output import (
    add_row,
    complain,
    format_seconds,
    make_table,
    note,
    show_drawing,
    show_status,
    write_json,
)
from adjudge.config.file import read_config
from adjudge.config.judge_layers import explain_uncached
from adjudge.config.judges import Choice, choose
from adjudge.dataset.case_criteria import CaseCriteria
from adjudge.dataset.dataset import Dataset
from adjudge.dataset.formats import FORMATS, count_rows
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.numbers import (
    count_digits,
    format_amounts,
    format_distinct,
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
from adjudge.runs.case_terms import read_terms
from adjudge.runs.estimate.kept_estimate import find_estimate
from adjudge.runs.folder import MANIFEST_FILE, Run, open_run
from adjudge.runs.item import RunItem
from adjudge.runs.launch import Running
from adjudge.runs.options import Progress
from adjudge.runs.resume import BROKEN
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
    _check_options(options, fail_under)
    request = make_request(measuring, read_labels(measuring.labels), by="run")
    request.check_extra()
    check_cost(judging, cost)
    _check_estimate(estimating, resume=options.resume)
    batch = read_batch([options.out], batching, resume=options.resume)
    _check_pairs(pairing, criteria)
    dataset = _open_data(data, fields, rubric, case_criteria)
    chosen = choose(make_panel(judging), configuration, rubric)
    sampling: dict[str, Any] = {"repeat": options.repeat, "sample": options.sample, "seed": options.seed}
    sampling |= {"prices": configuration.prices}
    on_conflict: Any = pairing.on_conflict or "tie"
    if estimating.estimate:
        planned = {"on_conflict": on_conflict if pairing.pairs else None, "batch": batch, "arguments": arguments}
        recorded = estimating.estimate_from
        return estimate_data(dataset, chosen, planned | sampling, recorded=recorded, out=options.out, as_json=as_json)
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
        **cast("Any", sampling | arguments | execution),
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
    """Find a folder for a run that was given none, named by the time; with a number if that folder exists already."""
    time = now.strftime("%Y-%m-%d-%H%M%S")
    folders = (Path("runs") / (time if number == 1 else f"{time}-{number}") for number in count(1))
    return next(folder for folder in folders if not folder.exists())


def open_counted(data: str, fields: option.DataOptions, case_criteria: CaseCriteria | None = None) -> Dataset:
    """Open the data set, and count its rows if its format allows it, so that progress has a total and a time left."""
    # The run itself looks for ids that occur twice; it does so on disk, where it keeps them.
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
    """Open a suite of another tool, after listing the rows and the cases of it that cannot be judged.

    The suite is read twice, because the user should read this before a judge is asked and paid. So standard input,
    which can be read once, raises ``UsageError``. A suite of which no case can be judged is opened without skipping bad
    rows, so that the run raises the reason.
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
        has_criteria = rubric is not None or case.criteria is not None or case.rubric is not None
        judged += has_criteria
        unjudged += not has_criteria
    report_skipped(suite)
    if not judged:
        suite = open_from_options(data, fields, check_ids=False)
    elif unjudged:
        unjudged_cases = f"{unjudged:,} of {judged + unjudged:,} cases"
        note(f"{unjudged_cases} are not judged, because nothing of theirs is applied; --criteria judges them")
    suite.size, suite.has_listed = judged or suite.size, True
    return suite


def _check_options(options: option.RunOptions, fail_under: float | None) -> None:
    """Raise ``UsageError`` for a wrong ``--fail-under``, and for options of a run that do not go together."""
    if fail_under is not None:
        check_share("fail_under", fail_under)
    if options.resume and options.out is None:
        raise UsageError("--resume needs --out RUN: the folder of the run to resume")
    check_retry(options.retry, resume=options.resume)


def check_retry(retry: list[str] | None, *, resume: bool) -> None:
    """Raise ``UsageError`` for ``--retry`` without ``--resume``."""
    if retry and not resume:
        raise UsageError("--retry belongs to --resume: it judges again what a run has left undecided")


_BROKEN_WORD = "broken"
"""The value of ``--retry`` that means all reasons of ``BROKEN``."""


def expand_retry(retry: list[str] | None) -> tuple[str, ...]:
    """Expand ``broken`` among the values of ``--retry`` into the reasons that it means; ``run`` checks the others."""
    reasons: list[str] = []
    for value in retry or ():
        reasons += BROKEN if value == _BROKEN_WORD else (value,)
    return tuple(reasons)


def _check_estimate(options: option.EstimateOptions, *, resume: bool) -> None:
    """Raise ``UsageError`` for options that do not go with ``--estimate``, or need it."""
    if options.estimate_from is not None and not options.estimate:
        raise UsageError("--estimate-from belongs to --estimate: it says which run the averages are taken from")
    if options.estimate and resume:
        raise UsageError("--estimate is of a whole run, before it begins; leave --resume out")


def _make_execution_arguments(options: option.RunOptions, cost: option.CostOptions) -> dict[str, Any]:
    """Make the arguments of ``run`` that say how, where and at which cost the cases are judged."""
    return {
        "resume": options.resume,
        # Cases that the budget left out are judged on resuming without --retry, because there may be more money now.
        "retry": ("budget", *expand_retry(options.retry)),
        "concurrency": options.concurrency,
        "engine": options.engine,
        "ray_address": options.ray_address,
        "ray_actors": options.ray_actors,
        "cache": cost.cache,
        "budget": cost.budget,
    }


def _note_choice(chosen: Choice, prices: Any, *, as_json: bool, caches: bool, by_batch: bool) -> None:
    """Tell the user which judge was chosen if none was named, which replies the cache misses, and what batches cost."""
    if chosen.reason and not as_json:
        note(f"judging with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
    if caches:
        note(explain_uncached(chosen.judge))
    if by_batch:
        note("\n".join(list_batch_prices(chosen.judge, prices)) or None)


def _check_pairs(options: option.PairOptions, criteria: option.CriteriaOptions) -> None:
    """Raise ``UsageError`` for options that need ``--pairs``, and for those that do not judge_and_report with it."""
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
"""The remedy for a suite without criteria, by the tool that wrote it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """One call of the command: the run under way, how its results are shown, and how its judge is measured."""

    running: Running
    judge: Any
    folder: Path
    as_json: bool
    fail_under: float | None
    dataset: Dataset
    request: MeasureRequest
    """The request by which the judge of the run is measured."""
    suite: str | None = None
    """The format that ``--from`` names. What is not applied of a test suite was listed before the run."""
    retry: tuple[str, ...] = ()
    """The reasons for which undecided judgements are made again."""

    def _note_retirements_and_skips(self, run: Run | None) -> None:
        """Warn of models that are retired, and list what was not applied of the data set.

        This is done also after an error, because it may be the cause.
        """
        if run is not None:
            _note_retirements(run)
        if self.suite not in SUITES:
            report_notes(self.dataset)

    def run(self) -> int:
        """Judge, report, and return the exit status; explain how to resume after an interrupt that was not handled."""
        try:
            return asyncio.run(self.judge_and_report())
        except KeyboardInterrupt:
            self._explain_resuming(None)
            raise

    async def judge_and_report(self) -> int:
        """Judge the data set, show the results and the measurement, and return the exit status.

        After an interrupt it is explained how to resume. Raises ``UsageError`` for a data set without a case.
        """
        interrupted, run = asyncio.Event(), None
        undecided_before = _find_undecided_judgements(self.folder, self.retry)
        try:
            with show_status(self._describe), catching_interrupts(self.running.wind_down, interrupted):
                run = await self._finish(interrupted)
        except asyncio.CancelledError:
            if not interrupted.is_set():
                raise
        except UsageError as error:
            if self.suite is not None and error.argument == "criteria":
                note(_SUITE_REMEDIES.get(self.suite))
            raise
        finally:
            self._note_retirements_and_skips(run)
            await self.judge.aclose()
        if run is None or run.status == "interrupted" or interrupted.is_set():
            self._explain_resuming(run)
            return INTERRUPTED
        if not sum(run.counts.values()):
            # Exit status 0 for nothing judged would look like a pass.
            raise UsageError("the data set has no case, so there is nothing to judge")
        measured = self.request.measure(run)
        if self.as_json:
            optional_members = {"pairs": run.sum_up_pairs().to_dict()} if run.compares else {}
            optional_members |= {"measurement": measured.to_dict()} if measured is not None else {}
            estimated = find_estimate(run.folder, run.manifest)
            optional_members |= {"estimate": msgspec.to_builtins(estimated)} if estimated is not None else {}
            write_json(run.to_dict() | {"folder": str(run.folder)} | optional_members)
        else:
            print_labels(measured)
            print_summary(run, list_code_judges(self.judge))
            _note_undecided_again(run, undecided_before)
            print_short(measured)
        status = find_status(run.counts, self.fail_under)
        if status != DONE:
            # The reason is written, or whose CI job fails would look for an error elsewhere.
            complain(_explain_status(run.counts, self.fail_under))
        statuses = {status, self.request.report_status(measured, run)}
        return FAILED if FAILED in statuses else max(statuses)

    async def _finish(self, interrupted: asyncio.Event) -> Run | None:
        """Wait for the end of the run and return it; ``None`` if it was interrupted before there was a folder."""
        run = await finish_or_leave(self.running, interrupted)
        if run is None:
            with suppress(UsageError):  # raised if there is no folder yet
                run = await self.running
        return run

    def _describe(self) -> str:
        """Describe the progress in one line, also while the data set is still read."""
        progress = self.running.progress
        return "reading the data set" if progress is None else describe_progress(progress)

    def _explain_resuming(self, run: Run | None) -> None:
        """Tell the user what is kept of a run that was interrupted, and how to resume it."""
        if not (self.folder / MANIFEST_FILE).exists():
            note("nothing was judged yet, and no run is kept; repeat the command")
            return
        subject = f"{sum(run.counts.values()):,} results are" if run is not None else "what was finished is"
        note_batches_left(self.running.progress, self.folder)
        note(f"{subject} kept in {self.folder}; to resume, repeat the command with:")
        note(f"  --out {quote(str(self.folder))} --resume")


def _find_undecided_judgements(folder: Path, reasons: Collection[str]) -> frozenset[tuple[int, int]]:
    """Find the judgements of an existing run that are undecided for one of the reasons.

    Each is given as the position of its case in the data set, and the number of its sample.
    """
    if not reasons or not (folder / MANIFEST_FILE).exists():
        return frozenset()
    undecided = open_run(folder).items("undecided")
    return frozenset((item.place, item.sample) for item in undecided if item.result.undecided_because in reasons)


def _note_undecided_again(run: Run, undecided_before: Collection[tuple[int, int]]) -> None:
    """Tell the user how many of the judgements that were made again are undecided again.

    ``undecided_before`` are these judgements, as ``_find_undecided_judgements`` found them before the run.
    """
    if not undecided_before:
        return
    again = sum((item.place, item.sample) in undecided_before for item in run.items("undecided"))
    if again:
        note(
            f"{again:,} of the {len(undecided_before):,} that were judged again "
            f"{'is' if again == 1 else 'are'} undecided again; "
            f"adjudge report {quote(str(run.folder))} CASE shows what was replied about one of them"
        )


def _note_retirements(run: Run) -> None:
    """Warn of each model that is retired, deprecated, or retired soon."""
    for retirement in run.retirements:
        note(retirement.warn(datetime.now(UTC).date()))


def describe_progress(progress: Progress) -> str:
    """Describe how far a run is, in one line."""
    judged = f"judged {progress.done:,}" + (f" of {progress.total:,}" if progress.total else "")
    if progress.batch is not None:
        return judged + describe_batches(progress.batch)
    share = f" ({format_points(progress.done / progress.total, digits=0)} %)" if progress.total else ""
    speed = f", {progress.per_second:,.1f}/s"
    time_left = "" if progress.seconds_left is None else f", {format_seconds(progress.seconds_left)} left"
    outcomes = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(progress.outcomes.items()))
    cost = f"; {format_dollars(progress.cost_usd, digits=2)}" if progress.cost_usd else ""
    return f"{judged}{share}{speed}{time_left}; {outcomes}{cost}"


def find_status(counts: Any, fail_under: float | None) -> int:
    """Find the exit status by the number of judgements of each outcome, and by the share that has to pass.

    0 if it passed; 1 if it would not have passed even with all undecided ones; else 3. Without such a share, the status
    is 3 if everything is undecided, and else 0.
    """
    total = sum(counts.values())
    if fail_under is None:
        return UNDECIDED if counts["undecided"] == total else DONE
    needed = fail_under * total - 1e-9  # a little less, so that no rounding error misses it
    if counts["passed"] >= needed:
        return DONE
    most_passed = counts["passed"] + counts["undecided"]
    return UNDECIDED if most_passed >= needed else FAILED


def _explain_status(counts: Any, fail_under: float | None) -> str:
    """Explain why the exit status is not 0."""
    total, passed, undecided = sum(counts.values()), counts["passed"], counts["undecided"]
    if fail_under is None:
        return "nothing could be decided"
    digits = max(count_digits(passed / total, fail_under, digits=3) - 2, 1)
    share = f"{passed:,} of {total:,} passed ({format_points(passed / total, digits=digits)} %)"
    requirement = f"--fail-under asks for {100 * fail_under:g} %"
    if find_status(counts, fail_under) == FAILED:
        return f"{share}, and {requirement}"
    return f"{share}, {undecided:,} are undecided, and {requirement}: whether it was reached cannot be said"


def print_summary(run: Run, code_judges: Collection[str]) -> None:
    """Print the totals of a run: outcomes, reasons, score, labels, tokens and cost, and the next command.

    ``code_judges`` names the judges in code, which the doctor cannot help.
    """
    from adjudge.report.report import read_description
    from adjudge.report.run_words import format_paid_again
    from adjudge.templates.figures import format_count

    summary = run.summary
    pairs = run.sum_up_pairs() if run.compares else None
    title = f"{format_count(summary['items'], 'judgement')} of {format_count(summary['cases'], 'case')}"
    if pairs is not None:
        title = f"{format_count(summary['items'], 'comparison')} of pairs"
    table = make_table(title, ("", "", ""))
    for outcome, number in (summary["counts"] if pairs is None else _list_preference_counts(pairs)).items():
        add_row(table, outcome, f"{number:,}", f"{format_points(number / summary['items'])} %")
    for reason, number in summary["undecided_because"].items():
        add_row(table, f"  {reason}", f"{number:,}", "")
    if pairs is not None:
        _add_pair_shares(table, pairs)
    elif summary["mean_score"] is not None:
        add_row(table, "mean score", format_score(summary["mean_score"]), "")
    if summary["labelled"] and pairs is None:
        share = f"{format_points(summary['agreed'] / summary['labelled'])} %"
        add_row(table, "agree with the label", f"{summary['agreed']:,} of {summary['labelled']:,}", share)
    if summary["input_tokens"] is not None:
        add_row(table, "tokens", f"{summary['input_tokens']:,} in", f"{summary['output_tokens']:,} out")
    description = read_description(run.manifest)
    if summary["calls"] is not None or summary["unknown_costs"] or description.paid_again:  # else no model was asked
        paid_again = format_paid_again(description.paid_again, description.paid_again_usd)
        add_row(table, "cost", _format_cost(summary) + paid_again, "")
    _add_estimate(table, run)
    show_drawing(table)
    note(f"kept in {run.folder}; see it with: adjudge report {quote(str(run.folder))}")
    _note_caveats(run, code_judges)


def _add_estimate(table: Any, run: Run) -> None:
    """Add rows with the tokens and the cost that were estimated before the run, if an estimate was kept."""
    estimated = find_estimate(run.folder, run.manifest)
    if estimated is None:
        return
    total = estimated.total
    add_row(table, "tokens estimated", f"{total.input_tokens:,.0f} in", f"{total.output_tokens:,.0f} out")
    by_batch = run.manifest["options"].get("batch") is not None
    usd = total.batch_usd if by_batch else total.live_usd
    cost_range = ""
    if not by_batch and total.least_usd is not None and total.most_usd is not None:
        cost_range = " to ".join(format_distinct(total.least_usd, total.most_usd, digits=4))
    add_row(table, "cost estimated", format_dollars(usd, digits=4), cost_range)


def _list_preference_counts(pairs: PairSummary) -> dict[str, int]:
    """Return the number of comparisons by their outcome, in words for the table."""
    counts = {"first is better": pairs.wins, "second is better": pairs.losses, "tie": pairs.ties}
    return counts | {"undecided": pairs.undecided}


def _add_pair_shares(table: Any, pairs: PairSummary) -> None:
    """Add rows with the shares of a run of pairs: win rate, agreement of both orders, and agreement with labels."""
    shares = {"win rate of the first": pairs.win_rate, "orders agree": pairs.agreement, "orders disagree": pairs.flips}
    if pairs.labelled:
        shares |= {"agree with the label": pairs.accuracy, "  first shown first": pairs.accuracy_ab}
        shares |= {"  second shown first": pairs.accuracy_ba, "  in both orders": pairs.both_right}
    for name, share in shares.items():
        add_row(table, name, f"{share.count:,g} of {share.of:,}", _format_share(share))


def _format_share(share: Share) -> str:
    """Format a share in percent with its interval; empty where there is none."""
    if share.rate is None or share.interval is None:
        return ""
    return f"{format_points(share.rate)} % ({format_range(*share.interval).removesuffix(' %')})"


def _note_caveats(run: Run, code_judges: Collection[str]) -> None:
    """Write to standard error what the user has to know beside the figures.

    These are cases with criteria of their own, the budget, remedies for undecided judgements, and skipped rows.
    ``code_judges`` names the judges in code, which the doctor cannot help.
    """
    case_term_counts = run.manifest.get("own")
    if case_term_counts:
        for sentence in describe_case_terms(case_term_counts, read_terms(run.manifest).needed):
            note(sentence)
    budget, cut_off = run.manifest.get("budget"), run.summary["undecided_because"].get("budget", 0)
    if budget is not None:
        note("spent {} of the budget of {}".format(*format_amounts(budget["spent"], budget["usd"])))
    if cut_off:
        note(f"{cut_off:,} were cut off by the budget; judge them with --out, --resume and a higher --budget")
    first_items = _find_first_of_each_reason(run)
    unparseable = first_items.get("unparseable")
    ask_doctor = unparseable is not None and may_doctor_help(unparseable.result, code_judges)
    for sentence in _suggest_remedies(run.summary["undecided_because"], quote(str(run.folder)), ask_doctor=ask_doctor):
        note(sentence)
    for reason, item in first_items.items():
        result = item.result
        # The detail of a chain says only how each of its seats ended. Those of the seats say what to do about it.
        text = list_seats(result) if isinstance(result, JudgeChainResult) else result.explain()
        explanation = clean(text, keep_lines=False).removeprefix(f"undecided: {reason}; ")[:400]
        note(f"the first {reason}, of case {show(item.case.id)}: {explanation}")
    skipped = run.manifest["dataset"].get("skipped")
    if skipped:
        predicate = "was skipped, because it is no case" if skipped == 1 else "were skipped, because they are no cases"
        note(f"{skipped:,} of the data set's rows {predicate}; run.json lists them")


def _find_first_of_each_reason(run: Run) -> dict[str, RunItem]:
    """Find the first undecided judgement of each reason but the budget, as an example of the others of that reason."""
    reasons = [reason for reason in run.summary["undecided_because"] if reason != "budget"]
    first_items: dict[str, RunItem] = {}
    if reasons:
        for item in run.items("undecided"):
            first_items.setdefault(item.result.undecided_because or "", item)
            if first_items.keys() >= set(reasons):
                break
    return {reason: first_items[reason] for reason in reasons if reason in first_items}


def _suggest_remedies(reasons: Mapping[str, int], folder: str, *, ask_doctor: bool) -> Iterator[str]:
    """Yield sentences on what may help against undecided judgements.

    ``reasons`` has the number of undecided judgements of each reason. ``ask_doctor`` says whether the doctor can
    explain why replies are unparseable. ``folder`` is that of the run, quoted for a shell.
    """
    if ask_doctor:
        yield f"{reasons['unparseable']:,} unparseable; adjudge doctor --judge says why, and whether --no-token helps"
    broken_reasons = [reason for reason in BROKEN if reasons.get(reason)]
    if broken_reasons:
        number = sum(reasons[reason] for reason in broken_reasons)
        cause = f"{number:,} {'is' if number == 1 else 'are'} undecided because of {' or '.join(broken_reasons)}"
        retry = broken_reasons[0] if len(broken_reasons) == 1 else _BROKEN_WORD
        pronoun = "it" if number == 1 else "them"
        yield f"{cause}; to judge {pronoun} again, repeat the command with --out {folder} --resume --retry {retry}"


def _format_cost(summary: Any) -> str:
    """Format the cost of a run: known, unknown, or known in part."""
    known, unknown = summary["known_cost_usd"], summary["unknown_costs"]
    if not unknown:
        return "none" if not known and not summary["calls"] else format_dollars(known, digits=4)
    return "unknown" if not known else f"{format_dollars(known, digits=4)} and more (unknown for {unknown:,})"
