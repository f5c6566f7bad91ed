"""Programs of research/ write their tables into pages of docs/, and nothing else of the page."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kit import house

SCRIPT = house.ROOT / "research" / "measured_page.py"

if not SCRIPT.is_file():
    pytest.skip("research/ is absent; it is in the repository", allow_module_level=True)


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("script_measured_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MeasuredPage = load_script().MeasuredPage


def list_parts() -> list[tuple[str, str]]:
    """Every page with a part that a program wrote, and the program."""
    return [
        (page.name, program)
        for page in sorted((house.ROOT / "docs").glob("*.md"))
        for program in re.findall(r"<!-- begin: written by research/(\S+) -->", page.read_text("utf-8"))
    ]


@pytest.mark.parametrize(("page", "program"), list_parts())
def test_a_part_written_again_leaves_its_page_as_it_is(page: str, program: str, tmp_path: Path):
    """To the byte, and the program that its marks name is there."""
    text = (house.ROOT / "docs" / page).read_bytes()
    (tmp_path / page).write_bytes(text)
    measured = MeasuredPage(page, program, tmp_path)

    measured.write(measured.split()[1])

    assert (tmp_path / page).read_bytes() == text
    assert f'MeasuredPage("{page}", "{program}")' in (SCRIPT.parent / program).read_text("utf-8")


def read_texts(program: str) -> list[str]:
    """The texts that a program fills its figures into, in their order."""
    tree = ast.parse((SCRIPT.parent / program).read_text("utf-8"))
    assigned = [node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    return [ast.literal_eval(node.value) for node in assigned if node.targets[0].id in {"TEXT", "RECORDED"}]


@pytest.mark.parametrize(("page", "program"), [part for part in list_parts() if read_texts(part[1])])
def test_the_words_of_a_part_are_those_of_its_program(page: str, program: str):
    """Written by hand into the page alone, they would be lost when the figures are written the next time."""
    text = "".join(read_texts(program)).strip("\n")
    pieces = ["(?:.|\n)*?" if piece.startswith("{") else re.escape(piece) for piece in re.split(r"(\{.*?\})", text)]

    assert re.fullmatch("".join(pieces), MeasuredPage(page, program).split()[1])


@pytest.mark.parametrize("text", ["no marks", "<!-- begin: written by research/it.py -->\n"])
def test_a_page_without_both_marks_is_left_alone(text: str, tmp_path: Path):
    """The program ends with an error that names the marks, and does not write its tables somewhere else."""
    (tmp_path / "page.md").write_text(text, "utf-8")

    with pytest.raises(SystemExit, match=r"end: written by research/it\.py"):
        MeasuredPage("page.md", "it.py", tmp_path).write("| a |")

    assert (tmp_path / "page.md").read_text("utf-8") == text
