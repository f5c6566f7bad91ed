"""JSON Schema, compiled so that neither a schema nor a value can block the process or make it fetch anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from posixpath import normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

from adjudge.formats.schema_steps import SchemaSteps
from adjudge.formats.text import flatten
from adjudge.panic import convert_panics

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


_DRAFT_NAMES = {
    "json-schema.org/draft-04/schema": "4",
    "json-schema.org/draft-06/schema": "6",
    "json-schema.org/draft-07/schema": "7",
    "json-schema.org/draft/2019-09/schema": "2019-09",
    "json-schema.org/draft/2020-12/schema": "2020-12",
}

_DRAFTS = tuple(_DRAFT_NAMES.values())

_KEYWORD_DRAFTS: Mapping[str, tuple[str, str]] = {
    "const": ("6", "2020-12"),
    "contains": ("6", "2020-12"),
    "propertyNames": ("6", "2020-12"),
    "if": ("7", "2020-12"),
    "then": ("7", "2020-12"),
    "else": ("7", "2020-12"),
    "dependencies": ("4", "7"),
    "additionalItems": ("4", "2019-09"),
    "dependentRequired": ("2019-09", "2020-12"),
    "dependentSchemas": ("2019-09", "2020-12"),
    "unevaluatedItems": ("2019-09", "2020-12"),
    "unevaluatedProperties": ("2019-09", "2020-12"),
    "minContains": ("2019-09", "2020-12"),
    "maxContains": ("2019-09", "2020-12"),
    "$recursiveRef": ("2019-09", "2019-09"),
    "$dynamicRef": ("2020-12", "2020-12"),
    "prefixItems": ("2020-12", "2020-12"),
}
"""The first and the last draft that know a keyword, for keywords that not all drafts know.

Keywords that name parts (``$defs``, ``$anchor``) are left out: where a draft does not know them, a reference to such a
name leads nowhere, which is an error anyway."""


_NEW_FORMATS: Mapping[str, tuple[str, ...]] = {
    "6": ("uri-reference", "uri-template", "json-pointer"),
    "7": ("idn-hostname", "iri", "iri-reference", "relative-json-pointer"),
    "2019-09": ("duration", "uuid"),
}
"""The formats that each draft added, except those that the validator also checks in older drafts."""

_SCHEMA_KEYWORDS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not"),
    *("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)

_LIST_KEYWORDS = frozenset(("allOf", "anyOf", "items", "oneOf", "prefixItems"))

_MAPPING_KEYWORDS = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")


Part = tuple[dict[str, Any], str]
"""An object of the schema, and the base address of its references."""


class DialectError(ValueError):
    """A schema that cannot be read in its draft, and why."""


def check_dialect(schema: Any) -> None:
    """Raise ``DialectError`` for a part of a schema that its draft would ignore, or that could be read in two ways."""
    _read_schema(schema)


def _read_schema(schema: Any) -> _SchemaReader | None:
    """Read and check a schema; ``None`` for ``true`` and ``false``, which have no parts."""
    if not isinstance(schema, dict):
        return None
    reader = _SchemaReader(schema)
    reader.check()
    return reader


def list_new_formats(schema: dict[str, Any]) -> list[str]:
    """List the formats that only later drafts than a schema's know."""
    schema_draft = _DRAFTS.index(_find_draft(schema.get("$schema", DRAFT_2020)))
    new_formats: list[str] = []
    for draft, names in _NEW_FORMATS.items():
        if _DRAFTS.index(draft) > schema_draft:
            new_formats += names
    return new_formats


def _find_draft(schema_name: object) -> str:
    """Find the draft, such as ``7``, that a ``$schema`` names; raises ``DialectError`` for any other name."""
    address = schema_name.removesuffix("#") if isinstance(schema_name, str) else ""
    scheme, _, name = address.partition("://")
    draft = _DRAFT_NAMES.get(name) if scheme in ("http", "https") else None
    if draft is None:
        raise DialectError(
            f"$schema is {_show_value(schema_name)}, which is no draft that is read here; name {DRAFT_2020} or "
            f"{DRAFT_7}"
        )
    return draft


class _SchemaReader:
    """A reader of one schema, which visits and checks every part that a keyword contains or a reference leads to."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.root = schema
        self.draft = _find_draft(schema.get("$schema", DRAFT_2020))
        self.is_old = _DRAFTS.index(self.draft) <= _DRAFTS.index("7")
        """True up to draft 7, in which keywords beside ``$ref`` are ignored and there are no anchors."""
        self.resources: dict[str, dict[str, Any]] = {"": schema}
        """The root, and each part with an ``$id``, by its address."""
        self.anchors: dict[tuple[str, str], dict[str, Any]] = {}
        """The parts that have a name, by their address and this name."""
        self.bases: dict[int, str] = {}
        """The base address of each part that was read, by its ``id()``."""
        self.waiting: list[Part] = [(schema, "")]
        """Parts that are still to be read."""
        self.pointers: list[tuple[str, str]] = []
        """JSON pointers that are still to be followed, each with its address."""

    def check(self) -> None:
        """Read every part; raises ``DialectError``."""
        while self.waiting or self.pointers:
            while self.waiting:
                self._read_part(*self.waiting.pop())
            # Pointers are followed last, because the part that one starts from may get its address further down.
            pointers, self.pointers = self.pointers, []
            for base, pointer in pointers:
                self._follow_pointer(base, pointer)

    def _read_part(self, part: dict[str, Any], base: str) -> None:
        """Check a part, record its names, and queue its inner parts and pointers; a part that was read is skipped."""
        if id(part) in self.bases:
            return
        self.bases[id(part)] = base
        self._check_keywords(part)
        if not (self.is_old and "$ref" in part):  # in an old draft, keywords beside a reference do not count
            base = self.bases[id(part)] = self._record_names(part, base)
        references = self._list_references(part)
        self.pointers += [(where, fragment) for where, fragment in references if fragment.startswith("/")]
        self.waiting += [(inner_part, base) for inner_part in _list_parts(part)]

    def _list_references(self, part: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the address and the fragment of each reference of a part."""
        base = self.bases[id(part)]
        for key in ("$ref", "$dynamicRef"):
            target = part.get(key)
            if isinstance(target, str):
                yield urldefrag(urljoin(base, target) if not target.startswith("#") else base + target)

    def list_targets(self, part: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the parts that the references of a part may lead to; for a schema that was read to its end.

        A reference to JSON Schema itself leads to none: the validator knows that schema.
        """
        for where, fragment in self._list_references(part):
            if fragment.startswith("/"):
                target, _ = self._resolve_pointer(where, fragment)
                yield from [target] if isinstance(target, dict) else ()
            elif not fragment:
                yield from [self.resources[where]] if where in self.resources else ()
            elif "$dynamicRef" in part:
                # Which part of that name is meant depends on the way to the reference, so all of them are possible.
                yield from [anchored for (_, name), anchored in self.anchors.items() if name == unquote(fragment)]
            else:
                target = self.anchors.get((_normalise_address(where), unquote(fragment)))
                yield from [target] if target is not None else ()
        if "$recursiveRef" in part:
            yield from {id(root): root for root in self.resources.values()}.values()

    def _check_keywords(self, part: dict[str, Any]) -> None:
        """Raise ``DialectError`` for a keyword that the draft does not know or reads in another way."""
        if part is not self.root and "$schema" in part and _find_draft(part["$schema"]) != self.draft:
            raise DialectError(
                f"a part of it names another $schema, {_show_value(part['$schema'])}; a schema has one draft"
            )
        if self.draft == "2020-12" and isinstance(part.get("items"), list):
            raise DialectError("items is a list, which draft 2020-12 writes as prefixItems")
        if part.get("$recursiveRef", "#") != "#":
            raise DialectError(f"$recursiveRef is {_show_value(part['$recursiveRef'])}, and it can only be '#'")
        for key in part.keys() & _KEYWORD_DRAFTS.keys():
            first, last = _KEYWORD_DRAFTS[key]
            if not _DRAFTS.index(first) <= _DRAFTS.index(self.draft) <= _DRAFTS.index(last):
                raise DialectError(f"{key} is no keyword of draft {self.draft}, which would ignore it or guess")

    def _record_names(self, part: dict[str, Any], base: str) -> str:
        """Record a part under its address and its anchors, and return its base address.

        Raises ``DialectError`` if two parts have one name.
        """
        identifier = part.get("$id" if self.draft != "4" else "id")
        if isinstance(identifier, str):
            full = urljoin(base, identifier) if not identifier.startswith("#") else base + identifier
            where, fragment = urldefrag(full)
            if where.partition("://")[2].startswith("json-schema.org/draft"):
                raise DialectError(
                    f"a part of it has the $id {_show_value(identifier)}, which is that of JSON Schema itself"
                )
            if fragment:
                self._record_name(where, fragment, part)
            elif part is not self.root or where:
                self._record_name(where, "", part)
                self.resources[where] = part
                base = where
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(part.get(key), str) and not self.is_old:
                self._record_name(base, part[key], part)
        return base

    def _record_name(self, where: str, fragment: str, part: dict[str, Any]) -> None:
        """Record a part under its address and fragment; raises ``DialectError`` if another part has them."""
        # Addresses are compared as the validator does, for which http://a/b and HTTP://A:80/x/../b are equal.
        name = (_normalise_address(where), unquote(fragment))
        if name in self.anchors:
            raise DialectError(
                f"two parts of it have the name {_show_value(f'{where}#{fragment}')}, and one would be ignored"
            )
        self.anchors[name] = part

    def _follow_pointer(self, where: str, pointer: str) -> None:
        """Queue the part that a pointer leads to as a schema, because it need not be under a keyword for schemas."""
        target, base = self._resolve_pointer(where, pointer)
        if isinstance(target, dict):
            self.waiting.append((target, base))

    def _resolve_pointer(self, where: str, pointer: str) -> tuple[Any, str]:
        """Resolve a pointer; return the part that it leads to, and the base address of references in that part.

        The part is ``None`` for a pointer into JSON Schema itself, which needs no check. Raises ``DialectError``.
        """
        target: Any = self.resources.get(where)
        base = where
        if target is None:  # the address is that of JSON Schema itself, or of nothing
            if not where.partition("://")[2].startswith("json-schema.org/draft"):
                raise DialectError(f"a reference to {_show_value(f'{where}#{pointer}')} leads nowhere")
            return None, base
        for step in unquote(pointer).split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(target, list) and key.isdecimal() and len(key) < 7 and int(key) < len(target):
                target = target[int(key)]
            elif isinstance(target, dict) and key in target:
                target = target[key]
            else:
                raise DialectError(f"a reference to {_show_value(f'{where}#{pointer}')} leads nowhere")
            if isinstance(target, dict) and isinstance(target.get("$id"), str) and not target["$id"].startswith("#"):
                base = base if id(target) in self.bases else urldefrag(urljoin(base, target["$id"]))[0]
        return target, base


def _list_parts(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas directly under the keywords of a part, except ``true`` and ``false``."""
    for key, value in part.items():
        candidates: list[Any] = [value] if key in _SCHEMA_KEYWORDS else []
        if key in _LIST_KEYWORDS and isinstance(value, list):
            candidates += value
        if key in _MAPPING_KEYWORDS and isinstance(value, dict):
            candidates += value.values()
        yield from [candidate for candidate in candidates if isinstance(candidate, dict)]


def _normalise_address(address: str) -> str:
    """Normalise an address: case, default port, dot segments and escapes."""
    scheme, _, remainder = unquote(address).partition("://")
    host, slash, path = remainder.partition("/")
    if not remainder:
        return normpath(scheme)
    host = host.lower().removesuffix({"http": ":80", "https": ":443"}.get(scheme.lower(), ":"))
    return f"{scheme.lower()}://{host}{normpath(slash + path)}"


def _show_value(value: object) -> str:
    return repr(value)[:120]


PATTERN_BYTES = 2_000_000
"""The most bytes that all patterns of one JSON Schema may take together when compiled. ``\\pL{90}`` takes 4 MB, so
without a limit a schema of 30 KB would fill the memory."""


class CompiledSchema:
    """A validator that never runs for long: too many steps raise ``TooManyStepsError`` before that."""

    __slots__ = ("_steps", "_validator")

    def __init__(self, validator: Any, steps: SchemaSteps) -> None:
        self._validator, self._steps = validator, steps

    def is_valid(self, value: object) -> bool:
        """Return whether a value of plain types fits the schema."""
        self._steps.check(value)
        with convert_panics():
            return bool(self._validator.is_valid(value))

    def find_error(self, value: object) -> ValidationError | None:
        """Find the first reason why a value does not fit."""
        from jsonschema_rs import ValidationError

        self._steps.check(value)
        try:
            with convert_panics():
                self._validator.validate(value)
        except ValidationError as error:
            return error
        return None

    def list_errors(self, value: object) -> Iterator[ValidationError]:
        """List all reasons why a value does not fit, which can be as many as the value is long."""
        self._steps.check(value)
        with convert_panics():
            yield from self._validator.iter_errors(value)


def compile_schema(schema: Any, *, mask: str | None = None, validate_formats: bool | None = None) -> CompiledSchema:
    """Compile a schema of plain types; raises ``ValueError`` for what is no schema.

    The draft is 2020-12, or the one that ``$schema`` names. A keyword that the draft does not know is an error. If the
    schema would be right in draft 7, the message says so.

    ``mask`` replaces values in messages. ``validate_formats`` says whether ``format`` is checked; by default the draft
    decides.
    """
    try:
        reader = _read_schema(schema)
        validator = _compile_schema(schema, mask, validate_formats)
    except ValueError as error:
        if not isinstance(schema, dict) or "$schema" in schema or not _is_draft_7(schema, validate_formats):
            raise
        message = flatten(str(getattr(error, "message", error)), 150)
        raise DialectError(f'{message}; if it is a schema of draft 7, let it say so: "$schema": "{DRAFT_7}"') from error
    return CompiledSchema(validator, SchemaSteps(schema, reader.list_targets if reader else lambda _: ()))


def _is_draft_7(schema: dict[str, Any], validate_formats: bool | None) -> bool:  # noqa: FBT001 - as compile_schema
    """Return whether a schema could be compiled if it named draft 7."""
    schema = {"$schema": DRAFT_7, **schema}
    try:
        check_dialect(schema)
        _compile_schema(schema, None, validate_formats)
    except ValueError:
        return False
    return True


def _compile_schema(schema: Any, mask: str | None, validate_formats: bool | None) -> Any:  # noqa: FBT001 - as above
    """Compile a schema so that nothing is fetched and no pattern takes longer than its text."""
    import jsonschema_rs

    # Nothing is fetched, because a remote $ref would let whoever writes a schema make this machine read a file or call
    # a host. Linear patterns only: a limit on backtracking makes `not: {pattern: ...}` pass when it is exceeded.
    bytes_for_each = PATTERN_BYTES // max(1, len(set(_find_patterns(schema))))
    options = jsonschema_rs.RegexOptions(size_limit=bytes_for_each, dfa_size_limit=bytes_for_each)
    formats = None
    if validate_formats and isinstance(schema, dict):
        # An older draft ignores formats that later drafts added, but whoever wrote the schema expects them to be
        # checked.
        formats = {name: _make_format_check(name) for name in list_new_formats(schema)}
    with convert_panics():
        return jsonschema_rs.validator_for(
            schema,
            formats=formats,
            validate_formats=validate_formats,
            mask=mask,
            retriever=_refuse_fetch,
            pattern_options=options,
        )


def _refuse_fetch(uri: str) -> Any:
    raise ValueError(f"{uri} is not part of the schema, and nothing is fetched")


@cache
def _make_format_check(name: str) -> Callable[[str], bool]:
    import jsonschema_rs

    check = jsonschema_rs.validator_for({"$schema": DRAFT_2020, "format": name}, validate_formats=True)
    return lambda text: bool(check.is_valid(text))


def _find_patterns(part: Any) -> Iterator[str]:
    """Yield every pattern of a schema.

    A value under a key like ``pattern`` that is no pattern may be included; it only makes the size limit of the others
    smaller.
    """
    if isinstance(part, dict):
        pattern, named_patterns = part.get("pattern"), part.get("patternProperties")
        yield from [pattern] if isinstance(pattern, str) else []
        yield from named_patterns if isinstance(named_patterns, dict) else ()
        inner_parts = list(part.values())
    else:
        inner_parts = part if isinstance(part, list) else []
    for inner in inner_parts:
        yield from _find_patterns(inner)
