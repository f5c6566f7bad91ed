"""``adjudge validate``: hold what a tool put out against its schema; no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import _options as option
from adjudge.cli._input import Item, list_inputs, read_text_file
from adjudge.cli._output import complain, say, write_json
from adjudge.cli._show import name_item
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.tools import ReuseVerdict

SchemaFile = Annotated[str, typer.Option("--schema", metavar="S", help="File with the JSON Schema, in JSON or YAML.")]
StrictProperties = Annotated[
    bool, typer.Option("--strict-properties", help="Properties that are declared have to be there.")
]
_YAML = (".yaml", ".yml")

Validated = tuple[Item, "ReuseVerdict | None"]
"""An output and the verdict on it; ``None`` where it could not be read, and the item says why."""


def validate(
    schema: SchemaFile,
    paths: option.Contents = None,
    strict_properties: StrictProperties = False,
    as_json: option.AsJson = False,
) -> int:
    """Hold outputs against a JSON Schema; no model is asked.

    PATH is a file with one output in JSON, or, ending in .yaml or .yml, in YAML; - is standard input, in JSON, and so
    is no PATH at all. The schema is draft 2020-12, or what its $schema names; references stay inside it.

    Exit status: 0 valid, 1 not valid, 2 wrong usage, or a file or schema that cannot be read. Of several outputs, 2
    beats 1 beats 0.
    """
    wanted = _read_schema(schema)
    done = [_check(item, wanted, strict=strict_properties) for item in _list(paths)]
    (_write if as_json else _print)(done)
    for item, _ in done:
        if item.error is not None:
            complain(item.error)
    if any(verdict is None for _, verdict in done):
        return 2
    return 0 if all(verdict is not None and verdict.valid for _, verdict in done) else 1


def _read_schema(path: str) -> Any:
    from adjudge.tools import validate_reuse

    try:
        schema = _parse(read_text_file(Path(path), what="--schema"), path)
    except ValueError as error:
        raise error if isinstance(error, UsageError) else UsageError(f"--schema: {path} {error}") from None
    fault = next((item for item in validate_reuse("", None, schema).schema_errors if item.startswith("schema: ")), None)
    if fault is not None:
        raise UsageError(f"--schema: {path} is not a JSON Schema that can be used: {fault.removeprefix('schema: ')}")
    return schema


def _list(paths: Sequence[str] | None) -> list[Item]:
    # A row of a data set is a content and not an output, so .jsonl means nothing here.
    for path in paths or ():
        if path.lower().endswith(".jsonl"):
            raise UsageError(f"{path} holds rows; name a file with one output, or write one to standard input")
    return list(list_inputs(paths).items)


def _check(item: Item, schema: Any, *, strict: bool) -> Validated:
    from adjudge.tools import ReuseVerdict, validate_reuse

    if item.error is not None:
        return item, None
    try:
        output = _parse(item.content, item.name)
    except ValueError as error:
        # It was read, and what the tool put out is no JSON: that is what is asked here.
        return item, ReuseVerdict(valid=False, schema_errors=(f"the output: {error}",))
    return item, validate_reuse("", output, schema, strict_properties=strict)


def _parse(text: str, path: str) -> Any:
    from adjudge._yaml import read_yaml
    from adjudge.rules._json import read_json

    in_yaml = path.lower().endswith(_YAML)
    try:
        return read_yaml(text)[0] if in_yaml else read_json(text)
    except ValueError as error:
        raise ValueError(f"is not {'YAML' if in_yaml else 'JSON'}: {' '.join(str(error).split())}") from None


def _write(done: Sequence[Validated]) -> None:
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in done
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/reuse-verdicts/1", "verdicts": entries})
    elif done[0][1] is not None:
        write_json(entries[0])


def _print(done: Sequence[Validated]) -> None:
    for item, verdict in done:
        if verdict is None:
            continue
        name = "" if len(done) == 1 else f"{item.label}: "
        for said in verdict.schema_errors or ("valid",):
            say(f"{name}{said}")
