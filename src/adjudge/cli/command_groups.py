"""Groups of commands, and a command line that imports a command's module when the command is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from adjudge.cli.command_list import COMMANDS, ListedCommand
from adjudge.cli.option_sets import expand_sets
from adjudge.errors import UsageError

_FIRST_EXAMPLE = "$ adjudge demo"

WIDEST = 160
"""Columns of a help text at most; it takes those of the terminal below that."""

_SETTINGS: Any = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
}


class Command(TyperCommand):
    """A command that is no group; its docstring has an example of a call in a paragraph that begins with ``$``."""

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a quick conversion."""
        return use_quick_conversion(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raises ``UsageError`` for an option with one value that is given twice."""
        if not ctx.resilient_parsing:  # a shell that completes a line asks about half of it
            _refuse_repeated(self.make_parser(ctx).parse_args(args=list(args))[2])
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the example first, on one line however narrow the terminal is, so that it can be copied."""
        del ctx
        paragraphs = cleandoc(self.help or "").split("\n\n")
        examples = find_examples(self)
        write_text(formatter, examples, "\n\n".join(paragraph for paragraph in paragraphs if paragraph not in examples))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each heading, and those without one last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(parameter.rich_help_panel or "Options", []).append(record)
        for heading in sorted(sections, key="Options".__eq__):
            write_section(formatter, heading, sections[heading])


class CommandGroup(TyperGroup):
    """Commands of a group, each with its whole first sentence: the library cuts it after 45 characters."""

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a quick conversion."""
        return use_quick_conversion(super().get_params(ctx))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the example of its first command first."""
        first = self.get_command(ctx, self.list_commands(ctx)[0])
        write_text(formatter, find_examples(first), cleandoc(self.help or ""))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1_000)) for name, command in commands if command is not None]
        write_section(formatter, "Commands", rows)


class CommandLine(CommandGroup):
    """The commands of ``COMMANDS``, of which only the one that is called is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names, in the order of the help text."""
        del ctx
        return [command.name for command in _list_all()]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write an example that needs nothing, without importing a command."""
        del ctx
        write_text(formatter, [_FIRST_EXAMPLE], self.help or "")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of a name; ``None`` where there is none."""
        del ctx
        return next((load_command(command) for command in _list_all() if command.name == cmd_name), None)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each heading."""
        del ctx
        for heading, commands in COMMANDS.items():
            write_section(formatter, heading, [(command.name, command.sentence) for command in commands])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """List the commands and options that a word can become, without importing a command."""
        from typer.core import CompletionItem

        names = [command for command in _list_all() if command.name.startswith(incomplete)]
        commands = [CompletionItem(command.name, help=command.sentence) for command in names]
        return [*commands, *super(TyperGroup, self).shell_complete(ctx, incomplete)]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickConversion:
    """Converts the text of a parameter to its value, with pydantic only where something has to be converted.

    typer has pydantic convert every parameter, also one that was left out, and importing pydantic takes longer than
    most commands.
    """

    make_typer_conversion: Callable[[], Any]
    """Makes typer's own converter, which imports pydantic."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert a value as typer would; a text, and a default of the right type, stay as they are."""
        kind, repeats = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if repeats else None
        if kind == list[str] and all(isinstance(text, str) for text in value):
            return value
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        return self.make_typer_conversion().coerce(value, param=param, ctx=ctx)


def use_quick_conversion(parameters: list[Any]) -> list[Any]:
    """Put a ``QuickConversion`` in place of typer's own converter of each parameter, and return the parameters.

    typer gets the converter of a parameter by calling its method ``get_runtime_param``, which is replaced here on the
    parameter itself. typer lists the parameters several times, so one may have been changed already.
    """
    for parameter in parameters:
        is_changed = "get_runtime_param" in vars(parameter)
        if not is_changed:
            conversion = QuickConversion(make_typer_conversion=parameter.get_runtime_param)
            parameter.get_runtime_param = lambda conversion=conversion: conversion
    return parameters


def _refuse_repeated(parameters: Iterable[Any]) -> None:
    """Raise ``UsageError`` for an option with one value that is among the given parameters twice.

    The library lets the last one count. A criterion or a threshold that is dropped without a word is a verdict that
    nobody asked for.
    """
    single = [
        param for param in parameters if param.param_type_name == "option" and not (param.is_flag or param.multiple)
    ]
    for place, param in enumerate(single):
        if param in single[:place]:
            raise UsageError(f"{param.opts[0]} is given twice, and has one value; leave one of them out")


def find_examples(command: Any) -> list[str]:
    """Find the examples in the docstring of a command: the paragraphs that begin with ``$``."""
    return [paragraph for paragraph in cleandoc(command.help or "").split("\n\n") if paragraph.startswith("$ ")]


def write_text(formatter: Any, examples: Iterable[str], text: str) -> None:
    """Write the beginning of a help text: examples, each on one line as it is, and what the command does."""
    formatter.write_paragraph()
    formatter.indent()
    for example in examples:
        formatter.write(f"{'':>{formatter.current_indent}}{example}\n\n")
    formatter.write_text(text)
    formatter.dedent()


def write_section(formatter: Any, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Write rows of a help text under a heading."""
    with formatter.section(title):
        formatter.write_dl(rows)


def make_group(name: str, sentence: str, commands: Mapping[str, Callable[..., Any]]) -> typer.Typer:
    """A group of commands, by their names in the order of its help text."""
    group = typer.Typer(name=name, help=sentence, cls=CommandGroup, **_SETTINGS)
    if len(commands) == 1:
        # A group of one command would be that command, and its name no word of it.
        group.callback()(_do_nothing)
    for command_name, function in commands.items():
        group.command(command_name, cls=Command)(expand_sets(function))
    return group


def _do_nothing() -> None:
    """Do nothing before a command of a group."""


def make_command_line(sentence: str) -> typer.Typer:
    """The program with all its commands."""
    return typer.Typer(name="adjudge", help=sentence, cls=CommandLine, **_SETTINGS)


@cache
def load_command(listed: ListedCommand) -> Any:
    """Import a command and read its options, once in a process: reading them takes longer than most commands."""
    module, _, attribute = listed.place.partition(":")
    loaded = getattr(import_module(f"adjudge.cli.commands.{module}"), attribute)
    if not isinstance(loaded, typer.Typer):
        function, loaded = loaded, typer.Typer(**_SETTINGS | {"no_args_is_help": False})
        loaded.command(listed.name, cls=Command)(expand_sets(function))
    return typer.main.get_command(loaded)


def _list_all() -> Iterable[ListedCommand]:
    return (command for commands in COMMANDS.values() for command in commands)
