"""``adjudge rules``: list the rules that ship, and check contents by rules alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.exit_status import USAGE
from adjudge.cli.input import InputItem, list_inputs, read_rule, read_text_file
from adjudge.cli.judge_output import name_item
from adjudge.cli.output import add_row, complain_once, make_table, print_line, show_drawing, write_json
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules.ruleset import Rules, load_rules
from adjudge.rules.shipped import SHIPPED

RuleFile = Annotated[Path | None, typer.Option("--rules", metavar="FILE", help="A file of rules.")]


CheckedItem = tuple[InputItem, tuple[RuleResult, ...] | None]
"""An input item and the results of its rules; ``None`` where it could not be read, and its ``error`` says why."""


def list_rules(as_json: option.AsJson = False) -> None:
    """List the rules that ship, and what each takes.

    $ adjudge rules list
    """
    if as_json:
        write_json({"schema": "adjudge/shipped-rules/1", "rules": dict(SHIPPED)})
        return
    table = make_table("", ("rule", "takes"))
    for name, takes in SHIPPED.items():
        add_row(table, name, takes)
    show_drawing(table)


def check_rules(
    paths: option.Contents = None,
    file: RuleFile = None,
    rules: option.Rules = None,
    reference: option.Reference = None,
    as_json: option.AsJson = False,
) -> int:
    """Check contents by a file of rules, by --rule, or by both; no model is asked.

    $ adjudge rules check answer.txt --rule secrets

    PATH is a file with one content, or, ending in .jsonl, a data set with one in each row. Without PATH, or with -,
    standard input is read. Failed rules of every severity are shown.

    Exit status: 0 no error rule failed, 1 one did, 2 wrong usage or unreadable input. Of several inputs, 2 beats 1
    beats 0.
    """
    chosen = [*(load_rules(file) if file is not None else ()), *map(read_rule, rules or ())]
    if not chosen:
        raise UsageError("there is nothing to check by; give --rules FILE or --rule RULE")
    reference_text = read_text_file(reference, described_as="--reference") if reference is not None else None
    checked_items = asyncio.run(_check_all(Rules(chosen), list_inputs(paths).items, reference_text))
    (_write_checks if as_json else _print_checks)(checked_items)
    complain_once(item.error for item, _ in checked_items if item.error is not None)
    return _find_status([results for _, results in checked_items])


async def _check_all(rules: Rules, items: Any, reference: str | None) -> list[CheckedItem]:
    """Check each content by the rules, and return the inputs with their results, or ``None`` for an unreadable input.

    ``reference`` is the known good answer for contents that are no cases, or are cases without one.
    """
    checked_items: list[CheckedItem] = []
    for item in items:
        case = item.content if isinstance(item.content, Case) else None
        content = case.content if case is not None else item.content
        known_answer = case.reference if case is not None and case.reference is not None else reference
        checked_items.append((item, await rules.evaluate(content, known_answer) if item.error is None else None))
    return checked_items


def _find_status(results_by_item: Sequence[tuple[RuleResult, ...] | None]) -> int:
    """Find the exit status for several inputs: 2 if one could not be read (``None``), 1 if an error rule failed."""
    if not results_by_item or any(results is None for results in results_by_item):
        return USAGE
    return int(any(_has_failed(results) for results in results_by_item if results is not None))


def _has_failed(results: Sequence[RuleResult]) -> bool:
    """Return whether a rule of the severity ``error`` failed."""
    return any(not result.passed and result.severity == "error" for result in results)


def _write_checks(checked_items: Sequence[CheckedItem]) -> None:
    """Write the results as JSON; ``passed`` depends on rules of the severity ``error`` alone."""
    checks = [
        name_item(item)
        | (
            {"passed": not _has_failed(results), "rule_results": [result.to_dict() for result in results]}
            if results is not None
            else {"error": item.error}
        )
        for item, results in checked_items
    ]
    write_json({"schema": "adjudge/rule-checks/1", "checks": checks})


def _print_checks(checked_items: Sequence[CheckedItem]) -> None:
    """Print a line for each failed rule of any severity, or that all rules passed; unreadable inputs are left out."""
    for item, results in checked_items:
        if results is None:
            continue
        failures = [result for result in results if not result.passed]
        for failure in failures:
            text = " ".join(f"{failure.name}: {failure.message}".split())  # on one line, whatever the rule's code wrote
            print_line(f"{item.label}: {failure.severity}: {text}")
        if not failures:
            print_line(f"{item.label}: passed {len(results)} rule{'s' * (len(results) > 1)}")


rules_app = make_group(
    "rules",
    "List the rules that ship, and check contents by rules alone.",
    {"list": list_rules, "check": check_rules},
)
