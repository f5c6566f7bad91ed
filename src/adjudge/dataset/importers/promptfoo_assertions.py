"""The assertions of a test of promptfoo as the criteria of a rubric.

Source: the assertion handlers of promptfoo 0.121.20 (``src/assertions``), whose verdicts on deterministic assertions
are compared with the rules here by ``research/promptfoo.py``. Nothing is executed: code, and templates that are more
than the names of variables, are not applied, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from adjudge.dataset.case import check_text
from adjudge.dataset.importers.ecmascript_regex import translate_regex
from adjudge.dataset.importers.promptfoo_code import find_rule
from adjudge.dataset.importers.template import fill_template, find_only_variable, is_template, parse_template
from adjudge.errors import UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.json import to_json_value
from adjudge.formats.json_schema import DRAFT_7
from adjudge.formats.text import flatten, show
from adjudge.rubric.rubric import DEFAULT_THRESHOLD, Criterion, Rubric, make_gating_rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import rule_from_spec

MOST_ASSERTIONS = 500
"""Assertions of one test, those in sets included."""

_WORDED = ("llm-rubric", "model-graded-closedqa", "g-eval", "factuality", "model-graded-factuality")

_CODE = "it runs code"

_REASONS: Mapping[str, str] = {
    **dict.fromkeys(("javascript", "python", "ruby", "webhook"), _CODE),
    **dict.fromkeys(("cost", "latency", "finish-reason"), "a recorded answer does not contain it"),
    **dict.fromkeys(("perplexity", "perplexity-score"), "a recorded answer does not contain it"),
    **dict.fromkeys(("similar", "similar:cosine", "similar:dot", "similar:euclidean"), "it needs embeddings"),
    **dict.fromkeys(("levenshtein", "rouge-n", "bleu", "gleu", "meteor"), "no rule here has its measure"),
    **dict.fromkeys(("select-best", "max-score"), "it compares the answers of several models; see adjudge run --pairs"),
    **dict.fromkeys(("agent-rubric", "search-rubric"), "its grader uses tools"),
    **dict.fromkeys(("moderation", "guardrails", "classifier", "pi"), "it asks a service of its own"),
}

_OTHER = "no rule here means the same"

_MEASURES = {"latency": "latency in ms", "cost": "cost in dollars"}
"""The assertions on what promptfoo records of a call, and what the number is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The variables that the templates of a test may name, and where the judge finds each."""

    variables: Mapping[str, Any]
    answer: str | None = None
    """The variable that is judged."""
    reference: str | None = None
    """The variable that is the reference."""
    task: Any = None
    """The task of the case: the value of its only variable, or several under their names."""
    task_names: frozenset[str] = frozenset()
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The values that promptfoo recorded of the call that made the answer, by the type of assertion: ``latency``,
    ``cost``."""

    def read(self, name: str) -> str:
        """Return the text of a variable, as promptfoo would write it into a template. Raises ``UsageError``."""
        if name == self.answer:
            raise UsageError(f"its template names the answer itself, {show(name)}")
        if name not in self.variables:
            raise UsageError(f"its template names {show(name)}, which is no variable of the test")
        text = write_value(self.variables[name])
        if is_template(text):
            raise UsageError(f"its variable {show(name)} is a template itself")
        return text

    def locate(self, name: str, context: dict[str, Any]) -> str:
        """Say where the judge finds a variable: its value may be anybody's words, so it is data and no criterion."""
        if name == self.answer:
            return "(the content)"
        text = self.read(name)
        if name == self.reference:
            return "(the reference)"
        if self.task_names == {name}:
            return "(the task)"
        if name in self.task_names:
            return f'("{name}" in the task)'
        context[name] = text
        return f'("{name}" in the context)'


@dataclass(slots=True, kw_only=True)
class AppliedAssertions:
    """The rubric that the assertions of one test are."""

    rubric: Rubric | None = None
    """``None`` where nothing of them could be applied."""
    context: dict[str, Any] = field(default_factory=dict)
    """The variables that criteria speak of and that stand nowhere else."""
    dropped: list[str] = field(default_factory=list)
    """The assertions that were not applied, each with the reason in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """An assertion with its part in the whole."""

    assertion: Mapping[str, Any]
    place: str
    weight: float
    least: float | None
    """The score at which it passes, for one that must pass; ``None`` for one that only counts in the mean."""
    gates: bool


ReadFile = Callable[[str], Any]


def apply_assertions(
    test: Mapping[str, Any], assertions: Sequence[Any], names: Names, read_file: ReadFile, *, gold: object = None
) -> AppliedAssertions:
    """Make the rubric that the assertions of a test are.

    Without a ``threshold`` every assertion must pass, those of weight 0 excepted; with one the weighted mean of their
    scores must reach it. ``read_file`` gives what a ``file://`` in the suite's folder holds.
    """
    applied = AppliedAssertions()
    reason = _explain_inapplicable(test)
    if reason is not None:
        applied.dropped += [_describe_dropped(assertion, reason) for assertion in assertions]
        return applied
    entries, passing = _arrange_assertions(test.get("threshold"), assertions, applied)
    criteria: list[Criterion] = []
    judged: list[Any] = []
    for entry in entries:
        try:
            maker = _Maker(names=names, read_file=read_file, context=applied.context, is_gold=entry.assertion is gold)
            criterion = maker.make(entry, [assertion.name for assertion in criteria])
            check_text(criterion.to_dict())  # JSON can hold half a character, which has no digest
            criteria.append(criterion)
            judged += [entry.assertion] if criterion.rule is None else []
        except UsageError as error:
            applied.dropped.append(_describe_dropped(entry.assertion, str(error)))
    if not any(assertion.weight for assertion in criteria):
        applied.dropped += ["assertion of weight 0 not applied: nothing else is, so it would decide nothing"] * len(
            criteria
        )
        return applied
    if judged and any(map(_has_own_prompt, (test.get("options"), *judged))):
        applied.dropped.append("grading prompt (rubricPrompt) not used: the judge is asked in its own words")
    if passing is None:
        applied.rubric = make_gating_rubric("promptfoo", criteria)
    else:
        applied.rubric = Rubric(name="promptfoo", criteria=criteria, passing_threshold=passing)
    return applied


def _has_own_prompt(part: Any) -> bool:
    """Return whether the options of a test, or an assertion, say in which words the grader is asked."""
    return isinstance(part, Mapping) and bool(part.get("rubricPrompt"))


def _describe_dropped(assertion: Any, reason: str) -> str:
    kind = assertion.get("type") if isinstance(assertion, Mapping) else None
    return f"assertion {show(kind)} not applied: {reason}"


def _explain_inapplicable(test: Mapping[str, Any]) -> str | None:
    """Explain why none of the assertions of a test can be applied, if that is so."""
    options = test.get("options")
    options = options if isinstance(options, Mapping) else {}
    if test.get("assertScoringFunction"):
        return "the test's score is computed by code (assertScoringFunction)"
    # A result holds what came out of it, and says so by its ``response``.
    if "gradingResult" not in test and any(options.get(key) for key in ("transform", "postprocess")):
        return "the test's output is changed by code (transform); run promptfoo with -o results.json and read that"
    return None


# ---------------------------------------------------------------- sets, weights, thresholds


def _arrange_assertions(
    threshold: Any, assertions: Sequence[Any], applied: AppliedAssertions
) -> tuple[list[_Entry], float | None]:
    """Arrange the assertions of a test with their weights, and the mean at which it passes: ``None``, all must.

    Raises ``UsageError``.
    """
    passing = read_threshold(threshold)
    weighed = list(_weigh_assertions(assertions, applied))
    sets = [part for part in weighed if part.assertion.get("type") == "assert-set"]
    deciding = [part for part in weighed if part.weight != 0 or part in sets]
    if passing is None and len(sets) == len(deciding) == 1 and sets[0].weight > 0:
        # The set alone decides, so what it must reach is what the test must reach.
        passing = read_threshold(sets[0].assertion.get("threshold"))
    entries: list[_Entry] = []
    for place, assertion, weight in weighed:
        if assertion.get("type") == "assert-set":
            entries += _open_set(place, assertion, weight, passing, applied)
        else:
            gates = passing is None and weight != 0
            entries.append(_Entry(assertion=assertion, place=place, weight=weight, least=None, gates=gates))
    if len(entries) > MOST_ASSERTIONS:
        raise UsageError(f"the test has {len(entries):,} assertions, and at most {MOST_ASSERTIONS} are read; split it")
    return entries, passing


def read_threshold(value: Any) -> float | None:
    """Read the threshold of a test or a set; raises ``UsageError`` for one that is no share."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value.strip()):
        value = float(value)  # from a table
    if value is None or (is_finite(value) and 0 <= value <= 1):
        return value
    raise UsageError(f"a threshold must be a number from 0 to 1, got {show(value)}; correct the suite")


class _Weighed(NamedTuple):
    """An assertion with its place and its weight among those beside it."""

    place: str
    assertion: Mapping[str, Any]
    weight: float


def _weigh_assertions(assertions: Sequence[Any], applied: AppliedAssertions) -> Iterator[_Weighed]:
    """Yield the assertions that have a weight; add the others to those dropped in ``applied``, with the reason."""
    for place, assertion in enumerate(assertions, 1):
        if not isinstance(assertion, Mapping):
            applied.dropped.append(f"assertion {show(assertion)} not applied: it is no mapping")
            continue
        weight = assertion.get("weight", 1)
        if not is_finite(weight) or weight < 0:
            applied.dropped.append(_describe_dropped(assertion, f"its weight is {show(weight)}"))
            continue
        yield _Weighed(str(place), assertion, float(weight))


def _open_set(
    place: str, assertion: Mapping[str, Any], weight: float, passing: float | None, applied: AppliedAssertions
) -> Iterator[_Entry]:
    """Yield the assertions of a set, which share its weight; those that cannot be applied are added to ``applied``."""
    threshold = read_threshold(assertion.get("threshold"))
    inner = list(_weigh_assertions(assertion.get("assert") or (), applied))
    total = sum(part.weight for part in inner)
    if passing is None and threshold is not None and threshold < 1:
        yield _Entry(assertion=assertion, place=place, weight=weight, least=None, gates=True)
        return
    if not total or any(part.assertion.get("type") == "assert-set" for part in inner):
        applied.dropped.append(_describe_dropped(assertion, "it is empty, holds a set, or its weights sum to 0"))
        return
    for number, part, share in inner:
        gates = passing is None and share != 0
        yield _Entry(
            assertion=part,
            place=f"{place}.{number}",
            weight=weight * share / total,
            least=1.0 if threshold is not None and passing is None else None,
            gates=gates,
        )


# ---------------------------------------------------------------- one assertion


@dataclass(slots=True, kw_only=True)
class _Maker:
    """Makes the criterion of an assertion."""

    names: Names
    read_file: ReadFile
    context: dict[str, Any]
    is_gold: bool

    def make(self, entry: _Entry, used_names: list[str]) -> Criterion:
        """Make the criterion of an entry; raises ``UsageError`` with why there is none."""
        assertion = entry.assertion
        stated = assertion.get("type")
        if not isinstance(stated, str):
            raise UsageError("it has no type")
        kind = stated.removeprefix("not-")
        if assertion.get("transform"):
            raise UsageError("it looks at what code makes of the output (transform)")
        name = self._name_criterion(assertion, entry.place, used_names)
        if kind in _WORDED:
            if kind != stated:
                raise UsageError("it means the opposite of its words; write the opposite as words")
            return self._make_worded(kind, name, entry)
        if kind == "assert-set":
            return self._make_set(name, entry)
        rule = _share_rule(json.dumps(self._make_rule(assertion)))
        return Criterion(
            name=name,
            description=f"{stated} of promptfoo.",
            rule=rule,
            weight=entry.weight,
            threshold=1.0 if entry.gates else None,
        )

    def _make_rule(self, assertion: Mapping[str, Any]) -> dict[str, Any]:
        """Make the rule for an assertion, as data; raise ``UsageError`` with the reason for one that is not applied."""
        stated = str(assertion.get("type"))
        kind = stated.removeprefix("not-")
        if stated in _MEASURES and stated in self.names.recorded:
            return self._make_recorded(stated, assertion)
        if kind not in _RULES:
            raise UsageError(
                "a model would score it" if kind in _WORDED else _explain_kind(stated, assertion.get("value"))
            )
        if assertion.get("transform"):
            raise UsageError("it looks at what code makes of the output (transform)")
        value = assertion.get("value")
        if _is_code(value):
            raise UsageError(_CODE)
        return _RULES[kind](self._render_value(value), stated != kind)

    def _make_recorded(self, kind: str, assertion: Mapping[str, Any]) -> dict[str, Any]:
        """Make the rule of a number that promptfoo recorded and a threshold of it. Raises ``UsageError``."""
        threshold: Any = assertion.get("threshold")
        value = self.names.recorded[kind]
        if not is_finite(threshold) or threshold < 0:
            raise UsageError(f"its threshold is {show(threshold)}, and a number of at least 0 is needed")
        if not is_finite(value) or value < 0:
            raise UsageError(f"what was recorded is {show(value)}, which is no number of at least 0")
        return {"recorded": value, "max": threshold, "measure": _MEASURES[kind]}

    def _make_set(self, name: str, entry: _Entry) -> Criterion:
        """Make one rule of a set of which not all need hold; what a model would have to say cannot be part of it.

        Raises ``UsageError``.
        """
        parts = [part for part in entry.assertion.get("assert") or () if isinstance(part, Mapping)]
        weights: list[Any] = [part.get("weight", 1) for part in parts]
        try:
            rules = [self._make_rule(part) for part in parts]
        except UsageError as error:
            raise UsageError(f"not all of it need hold, and one part of it cannot be applied: {error}") from None
        share = read_threshold(entry.assertion.get("threshold"))
        rule = {"some_of": rules, "share": share} | (
            {"weights": weights} if any(weight != 1 for weight in weights) else {}
        )
        return Criterion(
            name=name, description="assert-set of promptfoo.", rule=rule, weight=entry.weight, threshold=1.0
        )

    def _name_criterion(self, assertion: Mapping[str, Any], place: str, used_names: list[str]) -> str:
        metric = assertion.get("metric")
        plain = isinstance(metric, str) and metric.strip() and not is_template(metric)
        name = flatten(metric, 100).strip() if plain else f"{assertion['type']} {place}"
        return name if name not in used_names else f"{name} {place}"

    def _render_value(self, value: Any) -> Any:
        """Render a value with its variables, as promptfoo writes them: texts and lists of texts are templates."""
        if isinstance(value, str):
            if value.startswith("file://"):
                return self.read_file(value)
            return fill_template(parse_template(value), self.names.read)
        if isinstance(value, list):
            return [self._render_value(part) if isinstance(part, str) else part for part in value]
        return value

    def _make_worded(self, kind: str, name: str, entry: _Entry) -> Criterion:
        """Make the criterion for an assertion that a model scores. Raises ``UsageError``."""
        least = entry.least
        if least is None:
            least = read_threshold(entry.assertion.get("threshold"))
        least = DEFAULT_THRESHOLD if least is None else least
        if kind in {"llm-rubric", "g-eval"}:
            words = self._read_words(entry.assertion.get("value"), several=kind == "g-eval")
            return Criterion(
                name=name, weight=entry.weight, description=words, threshold=least if entry.gates else None
            )
        if kind == "model-graded-closedqa":
            words, levels = self._read_words(entry.assertion.get("value")), {0.0: "does not meet it", 1.0: "meets it"}
        elif self.is_gold or self._names_reference(entry.assertion.get("value")):
            words = "States nothing that disagrees with the reference; saying more or less than it is no matter."
            levels = {0.0: "disagrees with the reference", 1.0: "does not disagree with it"}
        else:
            raise UsageError("its answer is not the reference of the case")
        return Criterion(
            name=name,
            weight=entry.weight,
            description=words,
            levels=levels,
            threshold=1.0 if entry.gates else None,
        )

    def _names_reference(self, value: Any) -> bool:
        named = find_only_variable(parse_template(value)) if isinstance(value, str) else None
        return named is not None and named == self.names.reference

    def _read_words(self, value: Any, *, several: bool = False) -> str:
        texts = value if several and isinstance(value, list) else [value]
        words = "\n".join(self._read_sentence(text) for text in texts).strip()
        if not words:
            raise UsageError("it has no words")
        return words

    def _read_sentence(self, value: Any) -> str:
        """Read the sentence of an assertion, from a file or with its variables filled in. Raises ``UsageError``."""
        if _is_code(value):
            raise UsageError(_CODE)
        from_file = isinstance(value, str) and value.startswith("file://")
        text = self.read_file(value) if from_file else value
        if not isinstance(text, str):
            raise UsageError("its value is no text")
        if from_file:
            return text  # promptfoo fills in nothing there
        parts = parse_template(text)
        only = find_only_variable(parts)
        if only is not None:
            # A suite whose criteria stand in a column of a table: here the variable is the criterion.
            return self.names.read(only)
        return fill_template(parts, lambda name: self.names.locate(name, self.context))


def _explain_kind(stated: str, value: object) -> str:
    """Explain why an assertion is not applied; of code, with the rule that says the same."""
    reason = _REASONS.get(stated.removeprefix("not-"), _OTHER)
    rule = find_rule(value) if stated in ("javascript", "python") else None
    return reason if rule is None else f"{reason}; the rule {flatten(rule, 200)} says the same"


@lru_cache(maxsize=256)
def _share_rule(spec: str) -> Rule:
    """Make the rule of a spec in JSON: what a default asserts is the same in every test, and made once."""
    return rule_from_spec(json.loads(spec))


def _is_code(value: Any) -> bool:
    """Return whether a value is the address of code, like ``file://check.py:name`` or ``package:...``."""
    if not isinstance(value, str):
        return False
    path = re.split(r"[:#]", value.removeprefix("file://"), maxsplit=1)[0]
    return value.startswith("package:") or (
        value.startswith("file://")
        and path.lower().endswith((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb"))
    )


def write_value(value: Any) -> str:
    """Write a value as JavaScript does into a text; raises ``UsageError`` for one that is written in another way."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 2**53:
        return str(value)
    if isinstance(value, float) and value == 0:
        return "0"
    if isinstance(value, float) and 1e-4 <= abs(value) < 1e16:
        return str(int(value)) if value.is_integer() else repr(value)
    raise UsageError(f"its value {show(value)} is no plain text or number")


# ---------------------------------------------------------------- the rules that mean the same


def _read_text(value: Any) -> str:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        text = write_value(value)
        if text:
            return text
    raise UsageError("its value is no text, or an empty one")


def _read_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        value = split_fields(value)
    texts = [write_value(part) for part in value] if isinstance(value, list) else []
    if not texts or not all(texts):
        raise UsageError("its value is no list of texts, or has an empty one")
    return texts


_FIELD = re.compile(r'[\s,]*(?:"((?:[^"\\]|\\.|"")*)"\s*(?:,|\Z)|([^",\s][^,]*)|\Z)', re.DOTALL)


def split_fields(value: str) -> list[str]:
    """Split a value at its commas; texts may be in quotation marks. Raises ``UsageError`` for a broken one."""
    fields: list[str] = []
    at = 0
    while at < len(value):
        match = _FIELD.match(value, at)
        if match is None:
            raise UsageError("its value has a quotation mark too many or too few")
        quoted, plain = match.groups()
        if quoted is not None:
            fields.append(re.sub(r'\\(["\\])|""', lambda part: part[1] or '"', quoted))
        elif plain is not None:
            fields.append(plain.strip())
        at = max(match.end(), at + 1)
    return fields


def _make_contains(value: Any, inverse: bool, *, several: str | None = None, fold: bool = False) -> dict[str, Any]:  # noqa: FBT001
    text: Any = _read_text(value) if several is None else _read_texts(value)
    more = {"as_written": True} | ({"ignore_case": True} if fold else {})
    if inverse:
        return {"not_contains": text} | more | ({"all": True} if several == "all" else {})
    return {"contains": text} | more | ({"any": True} if several == "any" else {})


def _make_equals(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    if value is None:
        raise UsageError("it has no value")
    wanted = to_json_value(value) if isinstance(value, dict | list) else write_value(value)
    return {"equals": wanted} | ({"absent": True} if inverse else {})


def _make_start(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    if not isinstance(value, str) or not value:
        raise UsageError("its value is no text, or an empty one")
    return {"starts_with": value} | ({"absent": True} if inverse else {})


def _make_regex(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    if not isinstance(value, str) or not value:
        raise UsageError("its value is no text, or an empty one")
    return {"regex": translate_regex(value), "as_written": True} | ({"absent": True} if inverse else {})


def _make_json(value: Any, inverse: bool, *, within: bool = False) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``is-json``, or with ``within`` of ``contains-json``; a value is the schema to meet.

    Raises ``UsageError`` for a value that is no schema, and for the inverse of ``contains-json``.
    """
    if within and inverse:
        raise UsageError("promptfoo refuses lenient YAML in braces too; use not-is-json, or a rule of your own")
    more = {"absent": True} if inverse else {"within": True} if within else {}
    if value is None or value == "":
        return {"json": True} | more
    schema = _read_schema(value) if isinstance(value, str) else value
    if not isinstance(schema, dict):
        raise UsageError("its value is no JSON Schema")
    # promptfoo's validator reads draft 7 where a schema does not say.
    return {"json_schema": {"$schema": DRAFT_7, **schema}} | more


def _read_schema(text: str) -> Any:
    from adjudge.formats.yaml import read_yaml

    try:
        return to_json_value(read_yaml(text, few_words=True)[0])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"its JSON Schema cannot be read ({flatten(str(error))[:200]})") from None


def _make_words(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``word-count``: exactly as many words as the value says, or as its ``min`` and ``max`` allow.

    Raises ``UsageError`` for any other value, and for the inverse, which no rule here means.
    """
    if inverse:
        raise UsageError(_OTHER)
    if isinstance(value, dict):
        limits = {key: value[key] for key in ("min", "max") if value.get(key) is not None}
    else:
        text = _read_text(value).strip()
        limits = {"min": int(text), "max": int(text)} if text.isascii() and text.isdigit() else {}
    if not limits or not all(isinstance(limit, int) and not isinstance(limit, bool) for limit in limits.values()):
        raise UsageError("its value is no whole number of words")
    return {"name": "length", "unit": "words", **limits}


_RULES: Mapping[str, Callable[[Any, bool], dict[str, Any]]] = {
    "contains": _make_contains,
    "icontains": lambda value, inverse: _make_contains(value, inverse, fold=True),
    "contains-any": lambda value, inverse: _make_contains(value, inverse, several="any"),
    "icontains-any": lambda value, inverse: _make_contains(value, inverse, several="any", fold=True),
    "contains-all": lambda value, inverse: _make_contains(value, inverse, several="all"),
    "icontains-all": lambda value, inverse: _make_contains(value, inverse, several="all", fold=True),
    "equals": _make_equals,
    "starts-with": _make_start,
    "regex": _make_regex,
    "is-json": _make_json,
    "contains-json": lambda value, inverse: _make_json(value, inverse, within=True),
    "word-count": _make_words,
}
