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
    """A command that is no group.

    Its docstring has an example of a call in a paragraph that begins with ``$``.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a quick conversion."""
        return use_quick_conversion(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raises ``UsageError`` for an option with one value that is given twice."""
        if not ctx.resilient_parsing:  # true while a shell completes a line: it is not a whole command yet
            _, _, parsed_parameters = self.make_parser(ctx).parse_args(args=list(args))
            _refuse_repeated(parsed_parameters)
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the example first, on one line however narrow the terminal is, so that it can be copied."""
        del ctx
        paragraphs = cleandoc(self.help or "").split("\n\n")
        examples = find_examples(self)
        write_text(formatter, examples, "\n\n".join(paragraph for paragraph in paragraphs if paragraph not in examples))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, in a section for each heading; the section "Options" of those without one is the last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections.setdefault(parameter.rich_help_panel or "Options", []).append(record)
        for heading in sorted(sections, key="Options".__eq__):  # False comes before True
            write_section(formatter, heading, sections[heading])


class CommandGroup(TyperGroup):
    """A group of commands, whose help shows the whole first sentence of each; typer cuts it after 45 characters."""

    def get_params(self, ctx: Any) -> list[Any]:
        """List the parameters, each with a quick conversion."""
        return use_quick_conversion(super().get_params(ctx))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the example of the group's first command, and then the help text of the group."""
        first_command = self.get_command(ctx, self.list_commands(ctx)[0])
        write_text(formatter, find_examples(first_command), cleandoc(self.help or ""))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write all commands of the group in one section, each with its first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(limit=1_000)) for name, command in commands if command is not None]
        write_section(formatter, "Commands", rows)


class CommandLine(CommandGroup):
    """The commands of ``COMMANDS``, of which only the one that is called is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the names, in the order of the help text."""
        del ctx
        return [command.name for command in _list_all_commands()]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write an example that needs no key and no file, and the help text; no command is imported for it."""
        del ctx
        write_text(formatter, [_FIRST_EXAMPLE], self.help or "")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command of a name; ``None`` where there is none."""
        del ctx
        return next((load_command(command) for command in _list_all_commands() if command.name == cmd_name), None)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in a section for each heading of ``COMMANDS``."""
        del ctx
        for heading, commands in COMMANDS.items():
            write_section(formatter, heading, [(command.name, command.sentence) for command in commands])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """List the commands and options that begin with an incomplete word, without importing a command."""
        from typer.core import CompletionItem

        matching = [command for command in _list_all_commands() if command.name.startswith(incomplete)]
        commands = [CompletionItem(command.name, help=command.sentence) for command in matching]
        # The options are listed by the base class of TyperGroup; TyperGroup itself would import every command.
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
        value_type, takes_several = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if takes_several else None
        if value_type == list[str] and all(isinstance(text, str) for text in value):
            return value
        if isinstance(value_type, type) and isinstance(value, value_type):
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
    """Raise ``UsageError`` for an option with one value that the command line gives twice.

    ``parameters`` are those of the command line, in its order. typer would use the last value and drop the others
    without a word: with a criterion or a threshold dropped, the verdict would be about something nobody asked.
    """
    single_options = [
        param for param in parameters if param.param_type_name == "option" and not (param.is_flag or param.multiple)
    ]
    for index, param in enumerate(single_options):
        if param in single_options[:index]:
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
    """Make a group of commands: functions by their names, in the order of the help text."""
    group = typer.Typer(name=name, help=sentence, cls=CommandGroup, **_SETTINGS)
    if len(commands) == 1:
        # Without a callback, typer makes a group of one command that command itself: "adjudge certificate verify" would
        # have to be typed as "adjudge certificate".
        group.callback()(_do_nothing)
    for command_name, function in commands.items():
        group.command(command_name, cls=Command)(expand_sets(function))
    return group


def _do_nothing() -> None:
    """Do nothing before a command of a group; typer needs a callback to see that a group is one."""


def make_command_line(sentence: str) -> typer.Typer:
    """Make the program with all its commands; ``sentence`` is the first of its help text."""
    return typer.Typer(name="adjudge", help=sentence, cls=CommandLine, **_SETTINGS)


@cache
def load_command(listed: ListedCommand) -> Any:
    """Import a command or a group, and read its options; once in a process, as that takes longer than most commands."""
    module, _, attribute = listed.location.partition(":")
    function_or_group = getattr(import_module(f"adjudge.cli.commands.{module}"), attribute)
    if isinstance(function_or_group, typer.Typer):
        return typer.main.get_command(function_or_group)
    program_of_one_command = typer.Typer(**_SETTINGS | {"no_args_is_help": False})
    program_of_one_command.command(listed.name, cls=Command)(expand_sets(function_or_group))
    return typer.main.get_command(program_of_one_command)


def _list_all_commands() -> Iterable[ListedCommand]:
    """Yield every command and group of ``COMMANDS``, whatever its heading."""
    return (command for commands in COMMANDS.values() for command in commands)
