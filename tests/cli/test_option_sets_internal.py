"""Sets of options: a command says which it has, and typer and the help text know each option by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import pytest
import typer

from adjudge.cli.command_groups import make_group
from adjudge.cli.option_sets import Only, Without


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A set."""

    heading: ClassVar[str] = "Size"
    width: Annotated[int, typer.Option("--width", "-w", help="From left to right.")] = 3
    height: Annotated[float | None, typer.Option("--height", help="From top to bottom.")] = None
    names: Annotated[list[str] | None, typer.Option("--name", help="One of several.")] = None


calls: list[tuple[object, ...]] = []


def draw(
    size: Size,
    place: Annotated[str, typer.Argument(hidden=True)],
    bold: Annotated[bool, typer.Option("--bold")] = False,
):
    """Draw something."""
    calls.append((size, place, bold))


def fold(size: Annotated[Size, Only("width")]):
    """Fold something."""
    calls.append((size,))


def cut(size: Annotated[Size, Without("width")]):
    """Cut something."""
    calls.append((size,))


group = typer.main.get_command(make_group("paper", "Work on paper.", {"draw": draw, "fold": fold, "cut": cut}))


def run(*arguments: str) -> tuple[object, ...]:
    calls.clear()
    group(list(arguments), standalone_mode=False, prog_name="paper")
    return calls[0]


def test_a_command_is_called_with_its_sets():
    """Each option has its type, and what was left out its default."""
    typed = run("draw", "-w", "4", "here", "--height", "2.5", "--name", "a", "--name", "b", "--bold")

    assert typed == (Size(width=4, height=2.5, names=["a", "b"]), "here", True)
    assert run("draw", "here") == (Size(), "here", False)


@pytest.mark.parametrize(("command", "option"), [("fold", "--height"), ("cut", "--width")])
def test_a_command_may_have_some_options_of_a_set(command: str, option: str):
    """The others are unknown to it, and keep their defaults."""
    assert run(command) == (Size(),)
    with pytest.raises(Exception, match=f"No such option: {option}"):
        run(command, option, "1")


def test_a_value_of_another_type_is_refused():
    """Also where the default needs no conversion."""
    with pytest.raises(Exception, match="integer"):
        run("draw", "here", "--width", "wide")


def test_the_help_text_has_the_headings(capsys: pytest.CaptureFixture[str]):
    """The options of no set come last, with --help."""
    group(["draw", "--help"], standalone_mode=False, prog_name="paper")
    out = capsys.readouterr().out

    assert (
        out.index("Size:\n  -w, --width") < out.index("--name") < out.index("Options:\n  --bold") < out.index("--help")
    )
