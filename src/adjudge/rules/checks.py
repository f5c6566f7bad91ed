"""The checks that ship: each ``make_*`` takes a rule's parameters and returns the function that looks at content.

A new kind of rule is a ``make_*`` here and an entry of ``_KINDS`` in ``shipped.py``.

Parameters are checked when a check is made and never when it runs. A check answers with a ``RuleResult`` whose
message quotes at most 120 characters of the content; ``Rule.check`` puts the rule's name and severity on it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_share, check_whole_number
from adjudge.formats.invisible import drop_unseen
from adjudge.formats.json import MOST_DEPTH, nests_too_deeply, read_json, to_json_value
from adjudge.formats.json_schema import CompiledSchema, compile_schema
from adjudge.formats.numbers import format_distinct
from adjudge.formats.schema_steps import TooManyStepsError
from adjudge.formats.schema_types import find_untyped
from adjudge.formats.text import QUOTED, flatten, quote, show
from adjudge.hooks import logger
from adjudge.result import RuleResult
from adjudge.rules.document import fold, read_value
from adjudge.rules.json_objects import list_objects
from adjudge.rules.json_values import (
    Place,
    TooDeepError,
    describe_place,
    join_halves,
    list_readings,
    list_unambiguous_texts,
    may_hide_texts,
)
from adjudge.rules.rule_threads import hold_comparison_lock

Check = Callable[[Any], RuleResult]

Comparison = Callable[[Any, Any], RuleResult]

Fold = Callable[[str], str]


SIMILARITY_LIMIT = 20_000
"""Characters of content and of reference that ``similarity`` compares; two texts of this length take about 10 ms, for
which nothing else runs: no timeout can end it sooner."""


_UNITS = ("characters", "words", "lines")


_ANCHORS = ("^", "$", "\\A", "\\z")

# The tokens of a pattern: a quotation and a character class are one token each, since ^ and $ are no anchors in them.
_PATTERN_TOKEN = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|.", re.DOTALL)


def make_contains(
    *,
    text: str | list[str],
    any: bool = False,  # noqa: A002
    ignore_case: bool = False,
    as_written: bool = False,
) -> Check:
    """Make a check that all of the texts are in the content (with ``any`` one is enough)."""
    texts = _read_texts("contains", text)
    any_suffices, is_plain = check_flag("any", any), check_flag("as_written", as_written)
    fold = _choose_fold(ignore_case, plain=is_plain)

    def check(content: Any) -> RuleResult:
        searched = _write_text(content)
        missing = _find_missing(searched, texts, fold)
        if missing and not is_plain and may_hide_texts(searched):  # JSON may write a text with escapes
            for _, value in list_unambiguous_texts(searched):
                missing = _find_missing(value, missing, fold)
        passed = len(missing) < len(texts) if any_suffices else not missing
        present = [needle for needle in texts if needle not in missing]
        return (
            _make_pass(f"contains {_list_texts(present)}")
            if passed
            else _make_failure(f"does not contain {_list_texts(missing)}")
        )

    return check


def make_not_contains(
    *,
    text: str | list[str],
    all: bool = False,  # noqa: A002
    ignore_case: bool = False,
    as_written: bool = False,
) -> Check:
    """Make a check that none of the texts is in the content (with ``all``: at least one of them is not)."""
    refused, is_plain = _read_texts("not_contains", text), check_flag("as_written", as_written)
    needs_all, fold = check_flag("all", all), _choose_fold(ignore_case, plain=is_plain)
    find = _find_present if is_plain else _find_seen

    def check(content: Any) -> RuleResult:
        searched = _write_text(content)
        seen: list[str] = []

        def holds_all_seen(text: str) -> bool:
            return len(find(text, seen, fold)) == len(seen)

        for place, value in _list_searched_texts(searched, as_written=is_plain):
            present = find(value, refused, fold)
            # Texts found in different values count together, because a reader of the whole content sees all of them.
            seen += [needle for needle in present if needle not in seen]
            if len(seen) == len(refused) or (seen and not needs_all):
                if needs_all:
                    return _make_failure(f"contains {_list_texts(seen)}")
                if value is not searched:
                    return _make_failure(f"contains {_list_texts(seen)} in {_describe_place(place)}", place)
                return _make_failure(f"contains {_list_texts(seen)}", _find_place(searched, holds_all_seen))
        return _make_pass(f"does not contain {_list_texts([needle for needle in refused if needle not in seen])}")

    return check


def _list_searched_texts(text: str, *, as_written: bool) -> Iterator[tuple[Place, str]]:
    """Yield the text, then (unless ``as_written``) the names and values of the JSON in it, each with its place."""
    yield None, text
    if not as_written and may_hide_texts(text):
        yield from list_readings(text)


def _find_present(text: str, needles: list[str], fold: Fold) -> list[str]:
    """Return the needles that are in the text exactly as it is written, apart from case if ``fold`` ignores that."""
    missing = _find_missing(text, needles, fold)
    return [needle for needle in needles if needle not in missing]


def make_regex(*, pattern: str, absent: bool = False, ignore_case: bool = False, as_written: bool = False) -> Check:
    """Make a check that a pattern is anywhere in the content (with ``absent``: nowhere), in linear time."""
    unwanted, is_plain = check_flag("absent", absent), check_flag("as_written", as_written)
    compiled = _compile_pattern(pattern, ignore_case=check_flag("ignore_case", ignore_case))
    anchored, shown_pattern = is_anchored(pattern), quote(pattern)

    def check(content: Any) -> RuleResult:
        searched = _write_text(content)
        match = compiled.search(searched)
        if match is not None:
            message = f"{quote(match.group())} at character {match.start()} matches {shown_pattern}"
            if not unwanted:
                return _make_pass(message)
            return _make_failure(message, _find_place(searched, lambda text: compiled.search(join_halves(text))))
        values = () if is_plain else _list_values_to_search(searched, unwanted=unwanted, anchored=anchored)
        for place, value in values:
            match = compiled.search(join_halves(value))
            if match is not None:
                message = f"{quote(match.group())} in {_describe_place(place)} matches {shown_pattern}"
                return _make_failure(message, place) if unwanted else _make_pass(message)
        return _make_result(f"nothing matches {shown_pattern}", passed=unwanted)

    return check


def _list_values_to_search(text: str, *, unwanted: bool, anchored: bool) -> Iterable[tuple[Place, str]]:
    """List the names and values of a JSON text in which a pattern is searched, besides the text itself.

    A demanded pattern with an anchor is searched in the whole text alone. Otherwise the content's author could pass
    ``^yes$`` with a short value anywhere. An unwanted pattern is searched in every value.
    """
    if unwanted:
        return list_readings(text) if anchored or may_hide_texts(text) else ()
    return list_unambiguous_texts(text) if may_hide_texts(text) and not anchored else ()


def is_anchored(pattern: str) -> bool:
    """Return whether a valid pattern has one of the ``_ANCHORS`` (begin or end of a text or line) anywhere."""
    return any(match.group() in _ANCHORS for match in _PATTERN_TOKEN.finditer(pattern))


def make_equals(*, value: Any, absent: bool = False, ignore_case: bool = False) -> Check:
    """Make a check that the content is a value: a text exactly, others as JSON (with ``absent``: it is not)."""
    unwanted, fold = check_flag("absent", absent), _choose_fold(ignore_case)
    expected = _read_expected_value(value)
    expected_text = quote(expected if isinstance(expected, str) else json.dumps(expected, ensure_ascii=False))

    def check(content: Any) -> RuleResult:
        if isinstance(expected, str):
            equal = fold(_write_text(content)) == fold(expected)
        else:
            equal = _is_json_equal(content, expected, lenient=unwanted)
        return _make_result(f"{'equals' if equal else 'does not equal'} {expected_text}", passed=equal is not unwanted)

    return check


def _read_expected_value(value: Any) -> Any:
    """Return the value of the rule ``equals`` as plain JSON data. Raises ``UsageError``."""
    if value is None:
        raise UsageError("rule equals: the value is null; write the text, or json_schema: {type: 'null'}")
    try:
        return to_json_value(value)
    except ValueError as error:
        raise UsageError(f"rule equals: the value must be a text or another JSON value ({error})") from None


def _is_json_equal(content: Any, expected: Any, *, lenient: bool) -> bool:
    """Return whether the content is JSON that equals a value; ``lenient`` also reads what only some programs take."""
    try:
        value = _read_content_json(content, lenient=lenient)
    except ValueError:
        return False
    return _freeze_value(value) == _freeze_value(expected)


def _freeze_value(value: Any) -> Any:
    """Convert a JSON value to a form that compares as JSON does: 1 is 1.0, and is not true."""
    if isinstance(value, dict):
        return {key: _freeze_value(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_freeze_value(member) for member in value]
    return (value,) if isinstance(value, bool) else value


def make_starts_with(*, text: str, absent: bool = False, ignore_case: bool = False) -> Check:
    """Make a check that the content begins with a text (with ``absent``: it does not). Raises ``UsageError``."""
    if not isinstance(text, str) or not text:
        raise UsageError(f"rule starts_with: text must be a text that is not empty, got {show(text)}")
    unwanted, fold = check_flag("absent", absent), _choose_fold(ignore_case)
    beginning = fold(text)

    def check(content: Any) -> RuleResult:
        begins = fold(_write_text(content)).startswith(beginning)
        return _make_result(
            f"{'begins' if begins else 'does not begin'} with {quote(text)}", passed=begins is not unwanted
        )

    return check


def make_length(*, max: int | None = None, min: int | None = None, unit: str = "characters") -> Check:  # noqa: A002
    """Make a check that the content is ``min`` to ``max`` characters (code points), words or lines long.

    Both limits are included. Of a JSON value the words and lines are those of the values in it; its characters are
    counted as it is written. Raises ``UsageError``.
    """
    check_choice("unit", unit, _UNITS, where="rule length")
    if max is None and min is None:
        raise UsageError("rule length needs max or min; write {length: 4000} or {name: length, min: 1, max: 4000}")
    low, high = _check_count("min", min), _check_count("max", max)
    if low is not None and high is not None and low > high:
        raise UsageError(f"rule length: min {low} is above max {high}, so nothing could pass; swap them")

    def check(content: Any) -> RuleResult:
        count = _measure_content(content, unit)
        measure = f"is {count:,} {unit.removesuffix('s') if count == 1 else unit} long"
        if low is not None and count < low:
            return _make_failure(f"{measure}, below the minimum of {low:,}")
        if high is not None and count > high:
            return _make_failure(f"{measure}, above the maximum of {high:,}")
        return _make_pass(measure)

    return check


def make_json(*, absent: bool = False, within: bool = False) -> Check:
    """Make a check that the content is one JSON value without duplicate keys and ``NaN``.

    A content that is a JSON value already passes. With ``absent`` it must be none, and what only some readers take for
    JSON is JSON. With ``within`` a JSON object anywhere in the text is enough.
    """
    unwanted = check_flag("absent", absent)
    if _check_within("json", within, absent=unwanted):
        return lambda content: _check_objects(content, lambda _value: None, "holds a JSON object")

    def check(content: Any) -> RuleResult:
        try:
            _read_content_json(content, lenient=unwanted)
        except ValueError as error:
            return _make_result(f"is not JSON: {flatten(str(error), QUOTED)}", passed=unwanted)
        return _make_result("is JSON", passed=not unwanted)

    return check


def make_json_schema(*, schema: Mapping[str, Any] | bool, absent: bool = False, within: bool = False) -> Check:
    """Make a check that the content is JSON that fits a schema (draft 2020-12, or what its ``$schema`` names).

    With ``absent`` it must be no JSON, or not fit. JSON is then read leniently: what some reader takes for a value that
    fits is not absent. With ``within`` one JSON object anywhere in the text has to fit.
    """
    validator, absent = _compile_schema(schema), check_flag("absent", absent)
    if not absent:  # with ``absent``, a schema without a type refuses more content, so it needs no warning
        _warn_of_untyped(schema, within=within)

    def explain(value: Any) -> str | None:
        mismatch = validator.find_error(value)
        return None if mismatch is None else _describe_mismatch(mismatch)

    if _check_within("json_schema", within, absent=absent):
        return lambda content: _check_objects(content, explain, "holds a JSON object that fits the schema")

    def check(content: Any) -> RuleResult:
        try:
            value = _read_content_json(content, lenient=absent)
        except ValueError as error:
            return _make_result(f"is not JSON: {flatten(str(error), QUOTED)}", passed=absent)
        try:
            mismatch = validator.find_error(value)
        except TooManyStepsError as too_many:
            return _make_failure(str(too_many))  # with ``absent`` as well: it is not known whether it fits
        if mismatch is None:
            return _make_result("fits the schema", passed=not absent)
        message = _describe_mismatch(mismatch)
        return _make_pass(message) if absent else _make_failure(message, _describe_path(mismatch))

    return check


def _warn_of_untyped(schema: object, *, within: bool) -> None:
    """Log a warning if a schema lets values of another type pass, which few people expect of ``maximum: 100``."""
    # With ``within``, only objects are checked, so the root of the schema needs no type.
    untyped = list(find_untyped(schema, typed=within))
    if untyped:
        first = untyped[0]
        where = flatten(first.path, QUOTED) or "the schema"
        more = f" ({len(untyped)} parts of the schema have none, {where} first)" if len(untyped) > 1 else ""
        _warn_once(
            f"rule json_schema: {where} has {first.keyword} and no type, so every value that is no "
            f'{first.type} passes it; add "type": "{first.type}" beside {first.keyword}{more}'
        )


@lru_cache(maxsize=1024)
def _warn_once(message: str) -> None:
    """Log a warning once in a process: the same rule may be made for every row of a data set."""
    logger.warning("%s", message)


def _check_within(rule: str, within: bool, *, absent: bool) -> bool:  # noqa: FBT001 - a parameter of the rule
    """Return ``within`` if it is a boolean and not used with ``absent``. Raises ``UsageError``."""
    if check_flag("within", within) and absent:
        raise UsageError(f"rule {rule}: within looks for JSON and absent refuses it; leave one of them out")
    return within


def _check_objects(content: Any, explain: Callable[[Any], str | None], passing: str) -> RuleResult:
    """Pass if one JSON object in the content is accepted.

    ``explain`` returns why an object is not accepted, or ``None``. ``passing`` is the message of the passed result.
    """
    problem = "holds no JSON object"
    try:
        for value in list_objects(_write_text(content)):
            mismatch = explain(value)
            if mismatch is None:
                return _make_pass(passing)
            problem = f"holds no JSON object that fits; the last one: {mismatch}"
    except ValueError as error:  # the text could not be searched to its end, so it may hold any object
        return _make_failure(str(error))
    return _make_failure(problem)


def make_similarity(*, min: float = 0.8) -> Comparison:  # noqa: A002
    """Make a check of the similarity to the reference: ``min`` is from 0 (nothing in common) to 1 (equal).

    The measure is the normalised Indel similarity: twice the longest common subsequence over the summed lengths. It
    is symmetric, sees order, and needs no tokens, so it works in every language. Its cost grows with the product of
    the two lengths (64 characters a step), which is why both are capped.
    """
    needed = check_share("min", min, where="rule similarity")

    def check(content: Any, reference: Any) -> RuleResult:
        from rapidfuzz.distance import Indel

        content_text, reference_text = _write_text(content), _write_text(reference)
        for label, text in (("content", content_text), ("reference", reference_text)):
            if len(text) > SIMILARITY_LIMIT:
                return _make_failure(
                    f"the {label} is {len(text):,} characters long; at most {SIMILARITY_LIMIT:,} compare"
                )
        with hold_comparison_lock():
            score = float(Indel.normalized_similarity(content_text, reference_text))
        # Every threshold in this package has this tolerance: 0.8 must accept a score that is 0.8 but for rounding.
        passed = score >= needed - 1e-9
        message = "similarity to the reference is {}, needed {}".format(*format_distinct(score, needed))
        return RuleResult(name="", passed=passed, message=message, score=score, metadata={"similarity": score})

    return check


def make_python(*, function: str) -> Callable[..., Any]:
    """Import the function that ``package.module:function`` names."""
    return import_function(function, "rule python")


def import_function(spec: object, where: str) -> Callable[..., Any]:
    """Import the function that ``package.module:function`` names; raise ``UsageError``, which begins with ``where``."""
    from importlib import import_module

    module, colon, path = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if not (module and colon and path):
        raise UsageError(f"{where}: write package.module:function, got {show(spec)}")
    try:
        function: Any = import_module(module)
        for name in path.split("."):
            function = getattr(function, name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{where}: {spec!r} cannot be imported ({error}); check the module and name") from None
    if not callable(function):
        raise UsageError(f"{where}: {spec!r} is {type(function).__name__}, not a function")
    return function


def _make_result(message: str, *, passed: bool) -> RuleResult:
    return RuleResult(name="", passed=passed, message=message)


def _make_pass(message: str) -> RuleResult:
    return _make_result(message, passed=True)


def _make_failure(message: str, place: Place | str = None) -> RuleResult:
    """Make a failed result; ``place`` is the place of the value that failed, or its path as a text."""
    path = place if isinstance(place, str) else describe_place(place)
    return RuleResult(name="", passed=False, message=message, metadata={"place": path} if path else {})


def _find_place(text: str, is_found: Callable[[str], object]) -> Place:
    """Return the place of the first value of a JSON text that ``is_found`` accepts; ``None`` if there is none."""
    with suppress(TooDeepError):  # the check has failed already; its result then names no place
        return next((place for place, value in list_readings(text) if place is not None and is_found(value)), None)
    return None


def _write_text(content: Any) -> str:
    """Write the content as text: a text as it is, anything else as JSON."""
    from adjudge.content import content_text

    return content_text(content)


def _read_content_json(content: Any, *, lenient: bool = False) -> Any:
    """Read the content as a JSON value; ``lenient`` accepts all that some program would read as JSON.

    Rules that demand JSON read strictly, and rules that refuse JSON leniently. Raises ``ValueError``.
    """
    if isinstance(content, str):
        return _read_leniently(content) if lenient else read_json(content)
    if content is None or isinstance(content, bool | int | float | list | tuple | Mapping):
        return to_json_value(content)
    if isinstance(content, bytes | bytearray | set | frozenset):
        raise ValueError(f"{type(content).__name__} is not a JSON type")  # noqa: TRY004 - one error for all of JSON
    return _read_leniently(_write_text(content)) if lenient else read_json(_write_text(content))


def _read_leniently(text: str) -> Any:
    """Read JSON as most programs do: a repeated key has its last value, and ``NaN`` is allowed.

    Raises ``OverflowError`` for JSON that nests too deeply. It is no ``ValueError``, which would mean that the text is
    no JSON, so the rule fails.
    """
    stripped = text.strip("\ufeff \t\r\n")
    if nests_too_deeply(stripped):
        raise OverflowError(f"it nests more than {MOST_DEPTH} levels deep, so nobody can say whether it is JSON")
    # Python refuses to read a number of very many digits, but other programs do read it.
    return json.loads(stripped, parse_int=_read_number, parse_constant=lambda _name: None)


def _read_number(text: str) -> float:
    """Read a whole number of any length; a long one is rounded, because Python limits the digits of an ``int``."""
    return int(text) if len(text) < LONGEST_NUMBER else float(text)


LONGEST_NUMBER = 300
"""Digits of a whole number that is read exactly."""


def _read_texts(rule: str, value: Any) -> list[str]:
    """Read the ``text`` of a rule, one or a list, as a list. Raises ``UsageError``."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(item, str) and item for item in texts):
        raise UsageError(f"rule {rule}: text must be a text or a list of texts, none of them empty; got {show(value)}")
    return list(texts)


def _check_count(name: str, value: Any) -> int | None:
    return None if value is None else check_whole_number(name, value, least=0, where="rule length")


def _choose_fold(ignore_case: Any, *, plain: bool = False) -> Fold:
    """Return the function that both texts go through before they are compared; ``str`` changes nothing."""
    if not check_flag("ignore_case", ignore_case):
        return str
    return str.lower if plain else str.casefold  # casefold also makes SS and \u00df equal; few programs do that


def _find_missing(text: str, needles: list[str], fold: Fold) -> list[str]:
    """Return the needles that are not in the text, compared after ``fold``."""
    folded = fold(text)
    return [needle for needle in needles if fold(needle) not in folded]


def _find_seen(text: str, refused: list[str], fold: Fold) -> list[str]:
    """Return the refused texts that are in a text as it is written, or without its invisible characters."""
    missing = _find_missing(text, refused, fold)
    visible_text = drop_unseen(text) if missing else text
    if visible_text is not text:
        # A refused text of invisible characters alone is empty without them, so only the first search can find it.
        visible_needles = [(needle, drop_unseen(needle)) for needle in missing]
        still_missing = _find_missing(visible_text, [visible for _, visible in visible_needles if visible], fold)
        missing = [needle for needle, visible in visible_needles if not visible or visible in still_missing]
    return [needle for needle in refused if needle not in missing]


def _describe_place(place: Place) -> str:
    return describe_place(place) or "what it says unescaped"


def _list_texts(texts: list[str]) -> str:
    """Quote the first three texts for a message, and count the others."""
    listed = ", ".join(quote(text, QUOTED // 3) for text in texts[:3])
    return f"{listed} and {len(texts) - 3} more" if len(texts) > 3 else listed


def _measure_content(content: Any, unit: str) -> int:
    """Count the characters, words or lines of the content."""
    from adjudge.content import write_content

    text, is_json = write_content(content)
    if unit == "characters":
        return len(text)
    count = _count_words if unit == "words" else _count_lines
    # JSON writes a text of many lines on one line, and its keys and brackets are no words, so its values are counted.
    return sum(map(count, _list_values(read_json(text)))) if is_json else count(text)


def _count_words(text: str) -> int:
    return len(text.split())


def _count_lines(text: str) -> int:
    """Count the lines of a text; a line end at the end of the text begins no further line."""
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _compile_pattern(pattern: Any, *, ignore_case: bool) -> Any:
    """Compile a pattern with RE2. Raises ``UsageError`` for a pattern that RE2 does not accept."""
    import re2

    if not isinstance(pattern, str) or not pattern:
        raise UsageError(f"rule regex: the pattern must be a text that is not empty, got {show(pattern)}")
    options = re2.Options()
    options.log_errors = False  # RE2 would write to standard error
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(pattern, options=options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error, re2.error) else str(error)
        raise UsageError(
            f"rule regex: the pattern {quote(pattern)} cannot be compiled ({flatten(reason, QUOTED)}); it must be RE2 "
            "syntax, which has no look-around and no back-references, so that no content can make it slow"
        ) from None


def _compile_schema(schema: Any) -> CompiledSchema:
    """Compile the JSON Schema of the rule. Raises ``UsageError`` for one that cannot be used."""
    if not isinstance(schema, Mapping | bool):
        raise UsageError(f"rule json_schema: the schema must be an object, true or false; got {show(schema)}")
    try:
        return compile_schema(to_json_value(schema))
    except ValueError as error:
        reason = flatten(str(getattr(error, "message", error)), 300)
        raise UsageError(
            f"rule json_schema: the schema cannot be used ({reason}); references must stay inside the schema, patterns "
            "have no look-around or back-references, and large repetitions make them too large"
        ) from None


def _describe_mismatch(mismatch: Any) -> str:
    return f"{_describe_path(mismatch) or 'the value'}: {flatten(mismatch.message, QUOTED)}"


def _describe_path(mismatch: Any) -> str:
    """Write the path of the value that does not fit a schema, or of a missing property; empty for the whole value."""
    missing = [mismatch.kind.property] if mismatch.kind.name == "required" else []
    path = ""
    for part in [*mismatch.instance_path, *missing]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return flatten(path.removeprefix("."), QUOTED)


LONGEST_LABEL = 60
"""The most characters of a line that counts as a label if it ends with a colon."""


_BOILERPLATE = frozenset(
    {
        "answer", "an answer", "answer here", "assistant", "final answer", "output", "reasoning", "response", "result",
        "thinking", "thought", "thought process", "here is my answer", "here is the answer", "here is the result",
        "as an ai language model", "enter text here", "insert answer here", "insert text here", "text here",
        "your answer here", "your response here", "your text here", "lorem ipsum", "lorem ipsum dolor sit amet",
        "placeholder", "n a", "tba", "tbd", "to be announced", "to be determined", "todo",
        "none", "null", "nil", "nan", "undefined", "object object",
    }
)  # fmt: skip
"""Whole contents that are a placeholder and no answer, without case and punctuation."""


def make_substance() -> Callable[[Any], RuleResult]:
    """Make a check that the content holds more than punctuation, empty labels and placeholders."""

    def check(content: Any) -> RuleResult:
        if content is None:
            return RuleResult(name="", passed=False, message="is empty")
        reasons = [_explain_emptiness(text) for text in _list_values(read_value(content))]  # None: says something
        if None in reasons:
            return RuleResult(name="", passed=True, message="says something")
        return RuleResult(name="", passed=False, message=reasons[0] if reasons and reasons[0] else "is empty")

    return check


def _list_values(value: Any) -> Iterator[str]:
    """Yield texts, numbers and booleans of a value, without the keys they are under."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _list_values(member)
    elif value is not None:
        yield value if isinstance(value, str) else str(value)


def _explain_emptiness(text: str) -> str | None:
    """Explain why a text says nothing; ``None`` if it says something."""
    # A placeholder may have been wrapped in invisible characters, or written in letters that are only wider.
    folded = fold(text)
    if not any(map(_is_meaningful, folded)):
        return "holds no letter, digit or symbol" if text.strip() else "is empty"
    lines = [line.strip(" \t#>*_-`") for line in folded.splitlines()]
    meaningful_lines = [line for line in lines if any(map(_is_meaningful, line))]
    if all(_is_label(line) for line in meaningful_lines):
        return "holds a label with nothing after it"
    without_punctuation = "".join(char if char.isalnum() else " " for char in folded[:400])
    words = " ".join(without_punctuation.casefold().split())
    if len(folded.strip()) <= 400 and words in _BOILERPLATE:
        return "is a placeholder"
    return None


def _is_label(line: str) -> bool:
    """Return whether a line is a short one that ends with a colon."""
    return len(line) <= LONGEST_LABEL and line.endswith((":", "\N{FULLWIDTH COLON}"))


def _is_meaningful(char: str) -> bool:
    """Return whether a character is a letter, a digit or a symbol."""
    # "So" (other symbol): an answer may be a single sign, like a tick or an emoji.
    return char.isalnum() or unicodedata.category(char) == "So"
