"""The arguments of a command line of the documentation: parsed by the program itself, and names looked up."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from adjudge.errors import Reason, UsageError
from adjudge.judges import Strategy
from adjudge.rubric import load_rubric
from kit.docs import Block

PLACEHOLDERS = frozenset("ABCDNRX")
"""A single capital stands for a name, as in a help text."""


@cache
def find_group() -> Any:
    """The command line as what parses it."""
    import typer

    from adjudge.cli.app import app

    return typer.main.get_command(app)


def parse(arguments: Sequence[str]) -> tuple[str, Mapping[str, Any], Mapping[str, Sequence[str]]]:
    """The error of a command line, empty where it has none, its values, and those of each option by its first name."""
    context, left = None, list(drop_redirections(arguments))
    command = find_group()
    try:
        while True:
            context = command.make_context(command.name, left, parent=context)
            if not hasattr(command, "resolve_command"):
                break
            left = [*context._protected_args, *context.args]
            if not left:
                return "", {}, {}
            _, command, left = command.resolve_command(context, left)
    except Exception as error:  # the classes are click's, or those of a copy that typer brings
        explain = getattr(error, "format_message", None)
        if explain is None and type(error).__name__ != "Exit":  # an exit is that of --help or --version
            raise
        return "" if explain is None else explain(), {}, {}
    names = {item.name: item.opts[0] for item in command.params if item.opts[0].startswith("-")}
    values = {names[name]: value for name, value in context.params.items() if name in names and value is not None}
    return "", context.params, {name: _as_list(value) for name, value in values.items()}


def drop_redirections(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments without what the shell takes from them."""
    words = iter(arguments)
    for word in words:
        if set(word) <= {"<", ">", "&"} and word:
            next(words, None)
        else:
            yield word


def _as_list(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def read_names(blocks: Sequence[Block]) -> dict[str, set[str]]:
    """The names that the configuration on a page gives to rubrics, judges and gates."""
    names_by_kind: dict[str, set[str]] = {"rubrics": set(), "judges": set(), "gates": set()}
    for block in blocks:
        if block.language != "toml":
            continue
        table = tomllib.loads(block.text)
        for kind, names in names_by_kind.items():
            value = table.get(kind)
            names.update(value if isinstance(value, dict) else ())
    return names_by_kind


def find_wrong(arguments: Sequence[str], names: Mapping[str, set[str]]) -> Iterator[str]:
    """Find what the program would refuse in one command line: its form, and names that nothing has."""
    error, _, options = parse(arguments)
    if error:
        yield error
    for value in options.get("--rubric", ()):
        if not is_rubric(value, names["rubrics"]):
            yield f"--rubric {value}: neither shipped, nor of a configuration on this page, nor a file"
    if arguments and arguments[0] not in ("agree", "redecide"):  # there it names a judge of the file, or a seat
        for option in ("--judge", "--candidate"):
            yield from (
                f"{option} {value}" for value in options.get(option, ()) if not is_judge(value, names["judges"])
            )
    for option, known in (("--strategy", get_args(Strategy)), ("--retry", get_args(Reason))):
        yield from (f"{option} {value}" for value in options.get(option, ()) if value not in (*known, "REASON"))


def is_rubric(value: str, configured: set[str]) -> bool:
    """Return True if a rubric can have this name: a file is named with its ending, and need not be here."""
    if value in configured or value in PLACEHOLDERS or value.endswith((".yaml", ".yml", ".json", ".toml")):
        return True
    try:
        load_rubric(value)
    except UsageError:
        return False
    return True


def is_judge(value: str, configured: set[str]) -> bool:
    """Return True if a judge can have this name: a model's, one of the configuration, or the folder of a run."""
    is_model = ":" in value or value in ("rules", "SPEC")
    return is_model or value in configured or value in PLACEHOLDERS or "/" in value
