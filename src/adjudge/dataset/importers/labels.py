"""Labels from the exports of other tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Literal, get_args

from adjudge.dataset.dataset import OnBadRow
from adjudge.dataset.importers.annotation import ImportedLabels, Tool, list_labels
from adjudge.dataset.importers.langfuse import LANGFUSE
from adjudge.dataset.importers.langsmith import LANGSMITH
from adjudge.dataset.importers.mlflow import MLFLOW
from adjudge.dataset.importers.phoenix import PHOENIX
from adjudge.dataset.label_map import LabelMap
from adjudge.formats.arguments import check_choice

AnnotationTool = Literal["langfuse", "langsmith", "mlflow", "phoenix"]
"""Tools in which people annotate, and whose annotations are read."""

_TOOLS: Mapping[str, Tool] = {"langfuse": LANGFUSE, "langsmith": LANGSMITH, "mlflow": MLFLOW, "phoenix": PHOENIX}


def import_labels(
    path: str | os.PathLike[str],
    *,
    format: AnnotationTool,  # noqa: A002 - as open_dataset has it
    label_map: LabelMap | None = None,
    label_name: str | None = None,
    on_bad_row: OnBadRow = "fail",
) -> ImportedLabels:
    """Import the annotations in an export of another tool as labels; those of models have ``kind="model"``.

    ``case`` is the id of the trace, run or span. ``criterion`` is the annotation's name; annotations called
    ``label_name`` have none, because they are about the case as a whole. If an annotation has both a word and a number,
    the word counts with a map, the number without one. A word that is not in the map is a bad row, unless
    ``label_name`` names another annotation. Raises ``UsageError`` naming file, row, value and remedy.

    Args:
        path: The file to read.
        format: The tool that exported the file.
        label_map: What words mean: ``{"good": True, "bad": False}``. ``None``: numbers count, and words that are labels
            of a pair or ``cannot_tell``.
        label_name: The annotation that is about the case as a whole, and becomes no criterion.
        on_bad_row: ``"fail"`` raises for a row that cannot be read, ``"skip"`` counts and lists it.
    """
    check_choice("format", format, get_args(AnnotationTool))
    check_choice("on_bad_row", on_bad_row, get_args(OnBadRow))
    return list_labels(
        os.fspath(path), _TOOLS[format], on_bad_row=on_bad_row, label_map=label_map, label_name=label_name
    )
