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
from adjudge.cli.output import add_row, complain_once, make_table, print_line, show_drawing, write_json
from adjudge.cli.results import name_item
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.result import RuleResult
from adjudge.rules.ruleset import Rules, load_rules
from adjudge.rules.shipped import SHIPPED

RuleFile = Annotated[Path | None, typer.Option("--rules", metavar="FILE", help="A file of rules.")]


Checked = tuple[InputItem, tuple[RuleResult, ...] | None]
"""An item and what the rules said; ``None`` where it could not be read, and the item says why."""


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
    known = read_text_file(reference, what="--reference") if reference is not None else None
    done = asyncio.run(_check_all(Rules(chosen), list_inputs(paths).items, known))
    (_write_checks if as_json else _print)(done)
    complain_once(item.error for item, _ in done if item.error is not None)
    return _find_status([results for _, results in done])


async def _check_all(rules: Rules, items: Any, reference: str | None) -> list[Checked]:
    """Check each content; a case's own reference comes before ``reference``.

    ``None`` is beside an input that could not be read.
    """
    done: list[Checked] = []
    for item in items:
        row = item.content if isinstance(item.content, Case) else None
        content = row.content if row is not None else item.content
        known = row.reference if row is not None and row.reference is not None else reference
        done.append((item, await rules.evaluate(content, known) if item.error is None else None))
    return done


def _find_status(checked: Sequence[tuple[RuleResult, ...] | None]) -> int:
    if not checked or any(results is None for results in checked):
        return USAGE
    return int(any(_failed(results) for results in checked if results is not None))


def _failed(results: Sequence[RuleResult]) -> bool:
    return any(not result.passed and result.severity == "error" for result in results)


def _write_checks(done: Sequence[Checked]) -> None:
    """Write the results as JSON; ``passed`` depends on rules of the severity ``error`` alone."""
    checks = [
        name_item(item)
        | (
            {"passed": not _failed(results), "rule_results": [each.to_dict() for each in results]}
            if results is not None
            else {"error": item.error}
        )
        for item, results in done
    ]
    write_json({"schema": "adjudge/rule-checks/1", "checks": checks})


def _print(done: Sequence[Checked]) -> None:
    """Print each failed rule of any severity in a line, or that all passed; unreadable inputs are left out."""
    for item, results in done:
        if results is None:
            continue
        failed = [each for each in results if not each.passed]
        for each in failed:
            # On one line, whatever a function of somebody's wrote.
            print_line(f"{item.label}: {each.severity}: {' '.join(f'{each.name}: {each.message}'.split())}")
        if not failed:
            print_line(f"{item.label}: passed {len(results)} rule{'s' * (len(results) > 1)}")


rules_app = make_group(
    "rules",
    "List the rules that ship, and check contents by rules alone.",
    {"list": list_rules, "check": check_rules},
)
