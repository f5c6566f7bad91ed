"""``adjudge demo``: judge an example that is shipped with the package, without a key and without a network.

It has three parts: a rubric of rules, three judges whose verdicts two strategies combine, and the report of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from shlex import quote
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.demo.recorded import load_judges
from adjudge.cli.output import add_row, can_draw_boxes, make_table, print_line, show_drawing, write_file, write_json
from adjudge.dataset.case import Case
from adjudge.dataset.dataset import open_dataset
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.display import COLOURS, SIGNS
from adjudge.formats.numbers import format_score
from adjudge.judges.chain import JudgeChain
from adjudge.judges.judge import Judge
from adjudge.models.defaults import EXAMPLE
from adjudge.result import JudgeResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric

if TYPE_CHECKING:
    from rich.table import Table


STRATEGIES = ("consensus", "majority")

REPORTED = "majority"
"""The strategy whose run is reported."""

EXAMPLE_CRITERION = "Answers the question and invents nothing."

REPLIES_NOTE = "No model is asked here: the replies of all three judges were written for this demonstration."


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The example: answers to judge, a rubric of rules, a rubric for the judges, and three judges."""

    cases: list[Case]
    rules: Rubric
    rubric: Rubric
    judges: list[Judge]

    def make_chain(self, strategy: str) -> JudgeChain:
        """Make a chain of the three judges."""
        return JudgeChain(self.judges, strategy=strategy)  # type: ignore[arg-type]


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the run and its report.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    as_json: option.AsJson = False,
) -> None:
    """Judge ten example answers by rules, then by three judges, and write a report: no key, no network.

    $ adjudge demo

    What the judges reply was written for the demonstration. The report and its run go to the folder of --out, by
    default a new temporary one; with --json they are written with --out alone.
    """
    example = load_example()
    folder = _make_folder(out) if out is not None or not as_json else None
    results = asyncio.run(_judge_all(example, folder))
    report = _write_report(folder) if folder is not None else None
    if as_json:
        _write_json(example, results, report)
    else:
        _print_rules(example, results["rules"])
        _print_judges(example, results)
        _print_report(folder, report)
    if show and report is not None:
        import webbrowser

        webbrowser.open(report.resolve().as_uri())


def load_example() -> Example:
    """Load the example from the package's data."""
    with as_file(files("adjudge.cli.demo")) as folder:
        return Example(
            cases=list(open_dataset(folder / "answers.jsonl")),
            rules=load_rubric(folder / "rubric.yaml"),
            rubric=load_rubric(folder / "judges.yaml"),
            judges=load_judges(folder / "replies.jsonl"),
        )


def _make_folder(out: Path | None) -> Path:
    """Make the folder for the run and its report: ``out``, or a temporary one without it.

    Raises ``UsageError`` for a folder that cannot be made, or holds a run already.
    """
    try:
        if out is None:
            return Path(mkdtemp(prefix="adjudge-demo-"))
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        folder_name = out or "the temporary folder"
        raise UsageError(f"{folder_name} cannot be made a folder: {error.strerror}; name another with --out") from None
    if (out / "run").exists():
        raise UsageError(f"{out} holds a run already; name another folder with --out")
    return out


async def _judge_all(example: Example, folder: Path | None) -> dict[str, list[JudgeResult]]:
    """Judge all cases by the rules, by each judge alone, and by each strategy; return the results by these names.

    With a folder, a run by the strategy ``REPORTED`` is written into it.
    """
    results = {"rules": await _judge_cases(Judge("rules"), example.cases, example.rules)}
    for judge in example.judges:
        results[judge.name] = await _judge_cases(judge, example.cases, example.rubric)
    for strategy in STRATEGIES:
        results[strategy] = await _judge_cases(example.make_chain(strategy), example.cases, example.rubric)
    if folder is not None:
        from adjudge.runs.launch import run

        chain = example.make_chain(REPORTED)
        await run(example.cases, chain, example.rubric, out=folder / "run", command=["adjudge", "demo"])
    return results


async def _judge_cases(judge: Judge | JudgeChain, cases: list[Case], rubric: Rubric) -> list[JudgeResult]:
    return [result async for result in judge.evaluate_many(cases, rubric)]


def _write_report(folder: Path) -> Path:
    """Write the report of the run in a folder beside the run, and return its path."""
    from adjudge.report.render import render_html
    from adjudge.report.report import Report
    from adjudge.report.report_tally import read_status, summarise
    from adjudge.runs.folder import open_run

    with open_run(folder / "run") as opened:
        report: Report = summarise(opened.items(), opened.manifest, status=read_status(opened))
    path = folder / "report.html"
    write_file(path, [render_html(report)], announce=False)
    return path


def _write_json(example: Example, results: Mapping[str, Sequence[JudgeResult]], report: Path | None) -> None:
    """Write the results of the rules and of the strategies as JSON, and the path of the report."""
    rule_results = _list_results(example.cases, results["rules"])
    strategies = {name: _list_results(example.cases, results[name]) for name in STRATEGIES}
    report_path = str(report) if report is not None else None
    document = {"results": rule_results, "strategies": strategies, "report": report_path}
    write_json({"schema": "adjudge/results/1", **document})


def _list_results(cases: Sequence[Case], results: Sequence[JudgeResult]) -> list[dict[str, Any]]:
    """Return the results of the cases as plain data, as ``adjudge judge --json`` writes them."""
    pairs = zip(cases, results, strict=True)
    return [{"input": "answers.jsonl", "case": case.id, **result.to_dict()} for case, result in pairs]


# ---------------------------------------------------------------- part 1: rules


def _print_rules(example: Example, results: list[JudgeResult]) -> None:
    """Print part 1: the results of the rubric of rules, and why one answer failed."""
    cases, rubric = example.cases, example.rules
    print_line("1. Rules: what can be checked without asking a model\n")
    show_drawing(_draw_rules(cases, results, rubric))
    passed = sum(result.passed for result in results)
    needed = f"{rubric.passing_threshold:g}"
    print_line(f"{passed} of {len(results)} answers pass the rubric {rubric.name!r}, which needs {needed}.")
    _explain_failure(cases, results)
    print_line("\nFor your own answers (adjudge init writes a rubric to begin with):")
    print_line("  adjudge judge answers/ --rubric rubrics/answers.yaml")


def _draw_rules(cases: list[Case], results: list[JudgeResult], rubric: Rubric) -> Table:
    """Make the table of the results of the rules: a row for each answer, and a column for each criterion."""
    # On a terminal, the name of a criterion is broken at its hyphens, to leave room for the names of the answers.
    names = tuple(
        criterion.name.replace("-", "-\n") if can_draw_boxes() else criterion.name for criterion in rubric.criteria
    )
    table = make_table("Answers of a support agent", ("answer", "verdict", "score", *names), whole=3)
    for case, result in zip(cases, results, strict=True):
        marks = [SIGNS["passed" if criterion.passed else "failed"] for criterion in result.criteria] or [""] * len(
            names
        )
        score = "-" if result.score is None else format_score(result.score)
        verdict = f"{SIGNS[result.outcome]} {result.outcome}"
        add_row(table, case.id, verdict, score, *marks, style=COLOURS[result.outcome])
    return table


def _explain_failure(cases: list[Case], results: list[JudgeResult]) -> None:
    """Print why the answer failed that has the highest score of those that failed; nothing if none did."""
    failed = [(case, result) for case, result in zip(cases, results, strict=True) if result.outcome == "failed"]
    if not failed:
        return
    # This answer shows most: its score would have passed, and it failed by the threshold of one criterion.
    case, result = max(failed, key=lambda pair: pair[1].score or 0.0)
    print_line(f"\nWhy {case.id!r} failed: {result.explain()}")
    print_line(f"  the customer wrote: {case.task}")
    print_line(f"  the agent answered: {case.content}")
    for criterion in result.criteria:
        if not criterion.passed:
            needs = f", and it needs {criterion.threshold:g}" if criterion.threshold is not None else ""
            print_line(f"  {criterion.name}: {criterion.score:g}{needs}; {criterion.reasoning}")


# ---------------------------------------------------------------- part 2: three judges


def _print_judges(example: Example, results: Mapping[str, list[JudgeResult]]) -> None:
    """Print part 2: the results of the three judges, and the answers about which the two strategies differ."""
    print_line("\n2. Three judges: who decides where they disagree, and where one of them fails\n")
    print_line(f"{REPLIES_NOTE}\n")
    show_drawing(_draw_judges(example, results))
    print_line("Where the two strategies differ:")
    for index, case in enumerate(example.cases):
        judge_results = {judge.name: results[judge.name][index] for judge in example.judges}
        outcomes = {name: results[name][index].outcome for name in STRATEGIES}
        if len(set(outcomes.values())) > 1:
            print_line(f"  {case.id}: {_count_votes(judge_results)}")
            for name, outcome in outcomes.items():
                print_line(f"    {name} needs {_count_needed(name, len(judge_results))}: {SIGNS[outcome]} {outcome}")
    print_line("A judge that fails never counts as a pass: undecided is not passed.")
    print_line("\nFor your own answers, with judges that read:")
    print_line(f'  adjudge judge answer.txt --criteria "{EXAMPLE_CRITERION}" --judge {EXAMPLE}')
    print_line("  and with --strategy majority and three times --judge, three of them")


def _draw_judges(example: Example, results: Mapping[str, list[JudgeResult]]) -> Table:
    """Make the table of what each judge and each strategy says; a row is bold where the strategies differ."""
    names = [judge.name for judge in example.judges]
    table = make_table("The same answers, read by three judges", ("answer", *names, *STRATEGIES), whole=6)
    for index, case in enumerate(example.cases):
        verdicts = [_describe_seat(results[name][index]) for name in names]
        outcomes = [results[name][index].outcome for name in STRATEGIES]
        style = None if len(set(outcomes)) == 1 else "bold"
        add_row(table, case.id, *verdicts, *[f"{SIGNS[outcome]} {outcome}" for outcome in outcomes], style=style)
    return table


def _describe_seat(result: JudgeResult) -> str:
    """Describe the result of one judge in a cell: a sign for its outcome, and its score or why it is undecided."""
    score = result.undecided_because if result.score is None else format_score(result.score)
    return f"{SIGNS[result.outcome]} {score}"


def _count_votes(results: Mapping[str, JudgeResult]) -> str:
    """Describe how many judges had each outcome, and the reason of each judge that could not decide."""
    judges_by_outcome = {
        outcome: [name for name, result in results.items() if result.outcome == outcome] for outcome in SIGNS
    }
    counts = ", ".join(f"{len(names)} {outcome}" for outcome, names in judges_by_outcome.items() if names)
    reasons = "; ".join(f"{name}: {results[name].detail}" for name in judges_by_outcome["undecided"])
    return f"{counts} ({reasons})" if reasons else counts


def _count_needed(strategy: str, seats: int) -> str:
    """Describe how many of the judges have to agree for a strategy to decide: all (consensus), or more than half."""
    if strategy == "consensus":
        return f"{seats} of {seats} to pass, and 1 to fail"
    return f"{seats // 2 + 1} of {seats} to pass or to fail"


# ---------------------------------------------------------------- part 3: the report


def _print_report(folder: Path | None, report: Path | None) -> None:
    """Print part 3: where the report is, and the commands for answers of the user's own.

    ``demo`` always makes a report if it prints; without one, ``AdjudgeError`` is raised.
    """
    if folder is None or report is None:
        raise AdjudgeError("the demonstration wrote no report")
    run = quote(str(folder / "run"))
    print_line("\n3. A report: a summary of the whole run, in one file\n")
    print_line(f"Written to {report}; adjudge demo --open opens it in a browser.")
    print_line("One of its cases, with everything that every judge replied:")
    print_line(f"  adjudge report {run} no-order")
    print_line("\nFor your own answers, one in each line of a file:")
    print_line(f'  adjudge run answers.jsonl --criteria "{EXAMPLE_CRITERION}" --judge {EXAMPLE} --out monday')
    print_line("  adjudge report monday --html monday.html")
