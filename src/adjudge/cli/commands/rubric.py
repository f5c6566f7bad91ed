"""``adjudge rubric``: list, show and check rubrics, and their schema for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.error_messages import format_error
from adjudge.cli.output import add_row, complain, make_table, note, print_line, show_drawing, write_json
from adjudge.config.file import Config, read_config
from adjudge.errors import UsageError
from adjudge.formats.numbers import format_points
from adjudge.rubric.file import SHIPPED_RUBRICS, list_shipped, rubric_schema
from adjudge.rubric.lint import lint_rubric
from adjudge.rubric.rubric import Rubric


def list_rubrics(config: option.ConfigFile = None, as_json: option.AsJson = False) -> int:
    """List the shipped rubrics and those of adjudge.toml.

    $ adjudge rubric list
    """
    configuration = read_config(config)
    configured, status = _read_configured(configuration)
    rows = dict(zip(SHIPPED_RUBRICS, list_shipped(), strict=True)) | configured
    if as_json:
        if status == 0:
            write_json(
                {"schema": "adjudge/rubrics/1", "rubrics": {name: rubric.to_dict() for name, rubric in rows.items()}}
            )
        return status
    table = make_table("", ("name", "rubric", "criteria", "passes at", "from"))
    for name, rubric in rows.items():
        source = str(configuration.path) if name in configured else "adjudge"
        add_row(table, name, rubric.name, str(len(rubric.criteria)), f"{rubric.passing_threshold:g}", source)
    show_drawing(table)
    return status


def show_rubric(
    name: Annotated[str, typer.Argument(metavar="R", hidden=True)],
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Show a rubric: criteria, shares and thresholds.

    $ adjudge rubric show security

    R is the name of a shipped rubric, a name of adjudge.toml, or a path.
    """
    rubric = read_config(config).find_rubric(name)
    if as_json:
        write_json(rubric.to_dict())
        return
    table = make_table(
        f"{rubric.name}, passes at {rubric.passing_threshold:g}", ("criterion", "share", "needs", "description")
    )
    for criterion in rubric.criteria:
        needs = "-" if criterion.threshold is None else f"{criterion.threshold:g}"
        rule = f" [rule: {criterion.rule.kind}]" if criterion.rule else ""
        add_row(
            table,
            criterion.name,
            f"{format_points(rubric.shares[criterion.name])}%",
            needs,
            criterion.description + rule,
        )
    show_drawing(table)


def check_rubrics(
    names: option.Rubrics,
    config: option.ConfigFile = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when there is advice.")] = False,
) -> int:
    """Check that rubrics are valid, and advise how to improve them.

    $ adjudge rubric check rubrics/support.yaml

    R is a path, a name of adjudge.toml, or the name of a shipped rubric. Exit status: 0 valid, 1 valid with advice
    under --strict, 2 not valid.
    """
    configuration = read_config(config)
    has_advice, status = False, 0
    for name in names:
        try:
            advice = lint_rubric(configuration.find_rubric(name))
        except UsageError as error:
            complain(format_error(error))
            status = 2
            continue
        has_advice = has_advice or bool(advice)
        for piece in advice:
            note(f"{name}: {piece.where}: {piece.message} [{piece.code}]")
        print_line(f"{name}: valid" + (f", {len(advice)} piece{'s' * (len(advice) > 1)} of advice" if advice else ""))
    return status or int(strict and has_advice)


def show_schema() -> None:
    """Print the JSON Schema of rubric files, for editors.

    $ adjudge rubric schema
    """
    write_json(rubric_schema())


def _read_configured(config: Config) -> tuple[dict[str, Rubric], int]:
    """Read the configuration's rubrics; return those that can be read, and the exit status: 2 if some cannot."""
    rubrics: dict[str, Rubric] = {}
    status = 0
    for name in config.rubrics:
        try:
            rubrics[name] = config.find_rubric(name)
        except UsageError as error:
            complain(f"rubric {name!r} of {config.path}: {format_error(error)}")
            status = 2
    return rubrics, status


rubric_app = make_group(
    "rubric",
    "List, show and check rubrics.",
    {"list": list_rubrics, "show": show_rubric, "check": check_rubrics, "schema": show_schema},
)
