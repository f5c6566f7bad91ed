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
"""The types of assertions that a model scores by words, which become criteria."""

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
"""The reason for a type that is not in ``_REASONS``."""

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
        """Return words in place of a variable that say where the judge finds it, and not its value.

        The value may be anybody's words, so it must not become part of a criterion. If it is in no other part of the
        case, it is added to ``context``.
        """
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
    """The rubric that was made of the assertions of one test."""

    rubric: Rubric | None = None
    """``None`` where no assertion could be applied."""
    context: dict[str, Any] = field(default_factory=dict)
    """The variables that criteria name and that are in no other part of the case."""
    dropped: list[str] = field(default_factory=list)
    """The assertions that were not applied, each with the reason in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _WeighedAssertion:
    """An assertion with its weight among all of a test, and how it decides."""

    assertion: Mapping[str, Any]
    number: str
    """Its number among the assertions of the test, such as ``2``, or ``2.1`` in a set."""
    weight: float
    threshold: float | None
    """The score at which it passes, where its set says that; ``None``: its own threshold, or the default."""
    gates: bool
    """True if the test fails when it fails; otherwise it only counts in the mean."""


ReadFile = Callable[[str], Any]
"""Returns the text or the document in the file that an address names."""


def apply_assertions(
    test: Mapping[str, Any], assertions: Sequence[Any], names: Names, read_file: ReadFile, *, gold: object = None
) -> AppliedAssertions:
    """Make a rubric of the assertions of a test.

    Without a ``threshold`` of the test every assertion must pass, those of weight 0 excepted; with one the weighted
    mean of their scores must reach it. ``names`` are the variables that templates may name, ``read_file`` reads a
    ``file://`` in the suite's folder, and ``gold`` is the assertion whose value is the case's reference.
    """
    applied = AppliedAssertions()
    reason = _explain_inapplicable(test)
    if reason is not None:
        applied.dropped += [_describe_dropped(assertion, reason) for assertion in assertions]
        return applied
    weighed, passing_threshold = _weigh_all(test.get("threshold"), assertions, applied)
    criteria: list[Criterion] = []
    model_graded: list[Any] = []
    for entry in weighed:
        is_gold = entry.assertion is gold
        try:
            maker = _CriterionMaker(names=names, read_file=read_file, context=applied.context, is_gold=is_gold)
            criterion = maker.make(entry, [earlier.name for earlier in criteria])
            check_text(criterion.to_dict())  # JSON can hold half a character, which has no digest
            criteria.append(criterion)
            model_graded += [entry.assertion] if criterion.rule is None else []
        except UsageError as error:
            applied.dropped.append(_describe_dropped(entry.assertion, str(error)))
    if not any(criterion.weight for criterion in criteria):
        dropped = "assertion of weight 0 not applied: nothing else is, so it would decide nothing"
        applied.dropped += [dropped] * len(criteria)
        return applied
    if model_graded and any(map(_has_own_prompt, (test.get("options"), *model_graded))):
        applied.dropped.append("grading prompt (rubricPrompt) not used: the judge is asked in its own words")
    if passing_threshold is None:
        applied.rubric = make_gating_rubric("promptfoo", criteria)
    else:
        applied.rubric = Rubric(name="promptfoo", criteria=criteria, passing_threshold=passing_threshold)
    return applied


def _has_own_prompt(options: Any) -> bool:
    """Return whether the options of a test, or an assertion, have their own prompt for the grader."""
    return isinstance(options, Mapping) and bool(options.get("rubricPrompt"))


def _describe_dropped(assertion: Any, reason: str) -> str:
    """Write that an assertion is not applied, with the reason."""
    kind = assertion.get("type") if isinstance(assertion, Mapping) else None
    return f"assertion {show(kind)} not applied: {reason}"


def _explain_inapplicable(test: Mapping[str, Any]) -> str | None:
    """Explain why none of the assertions of a test can be applied; ``None`` where they can be."""
    options = test.get("options")
    options = options if isinstance(options, Mapping) else {}
    if test.get("assertScoringFunction"):
        return "the test's score is computed by code (assertScoringFunction)"
    # A result (it has a ``gradingResult``) has the output as the transform left it.
    if "gradingResult" not in test and any(options.get(key) for key in ("transform", "postprocess")):
        return "the test's output is changed by code (transform); run promptfoo with -o results.json and read that"
    return None


# ---------------------------------------------------------------- sets, weights, thresholds


def _weigh_all(
    threshold: Any, assertions: Sequence[Any], applied: AppliedAssertions
) -> tuple[list[_WeighedAssertion], float | None]:
    """List the assertions of a test, in place of sets those in them, with their weights among all.

    Also returns the weighted mean at which the test passes; ``None`` where every assertion must pass. Assertions that
    cannot be applied are added to those dropped in ``applied``. Raises ``UsageError``.
    """
    passing_threshold = read_threshold(threshold)
    numbered = list(_number_assertions(assertions, applied))
    sets = [entry for entry in numbered if entry.assertion.get("type") == "assert-set"]
    deciding = [entry for entry in numbered if entry.weight != 0 or entry in sets]
    if passing_threshold is None and len(sets) == len(deciding) == 1 and sets[0].weight > 0:
        # The set alone decides, so what it must reach is what the test must reach.
        passing_threshold = read_threshold(sets[0].assertion.get("threshold"))
    weighed: list[_WeighedAssertion] = []
    for number, assertion, weight in numbered:
        if assertion.get("type") == "assert-set":
            weighed += _expand_set(number, assertion, weight, passing_threshold, applied)
        else:
            gates = passing_threshold is None and weight != 0
            weighed.append(
                _WeighedAssertion(assertion=assertion, number=number, weight=weight, threshold=None, gates=gates)
            )
    if len(weighed) > MOST_ASSERTIONS:
        raise UsageError(f"the test has {len(weighed):,} assertions, and at most {MOST_ASSERTIONS} are read; split it")
    return weighed, passing_threshold


def read_threshold(value: Any) -> float | None:
    """Read the threshold of a test or a set; raises ``UsageError`` for one that is no share."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", value.strip()):
        value = float(value)  # from a table
    if value is None or (is_finite(value) and 0 <= value <= 1):
        return value
    raise UsageError(f"a threshold must be a number from 0 to 1, got {show(value)}; correct the suite")


class _NumberedAssertion(NamedTuple):
    """An assertion with its number, from 1, and its weight in one list of assertions."""

    number: str
    assertion: Mapping[str, Any]
    weight: float


def _number_assertions(assertions: Sequence[Any], applied: AppliedAssertions) -> Iterator[_NumberedAssertion]:
    """Yield the assertions whose weight is valid; add the others to those dropped in ``applied``, with the reason."""
    for number, assertion in enumerate(assertions, 1):
        if not isinstance(assertion, Mapping):
            applied.dropped.append(f"assertion {show(assertion)} not applied: it is no mapping")
            continue
        weight = assertion.get("weight", 1)
        if not is_finite(weight) or weight < 0:
            applied.dropped.append(_describe_dropped(assertion, f"its weight is {show(weight)}"))
            continue
        yield _NumberedAssertion(str(number), assertion, float(weight))


def _expand_set(
    number: str,
    assertion: Mapping[str, Any],
    weight: float,
    passing_threshold: float | None,
    applied: AppliedAssertions,
) -> Iterator[_WeighedAssertion]:
    """Yield the assertions of a set, which share its weight; those that cannot be applied are added to ``applied``.

    A set whose threshold is below 1 is yielded itself where every assertion of the test must pass
    (``passing_threshold`` is ``None``), because some of its own need not.
    """
    threshold = read_threshold(assertion.get("threshold"))
    inner = list(_number_assertions(assertion.get("assert") or (), applied))
    total = sum(entry.weight for entry in inner)
    if passing_threshold is None and threshold is not None and threshold < 1:
        yield _WeighedAssertion(assertion=assertion, number=number, weight=weight, threshold=None, gates=True)
        return
    if not total or any(entry.assertion.get("type") == "assert-set" for entry in inner):
        applied.dropped.append(_describe_dropped(assertion, "it is empty, holds a set, or its weights sum to 0"))
        return
    for inner_number, inner_assertion, inner_weight in inner:
        yield _WeighedAssertion(
            assertion=inner_assertion,
            number=f"{number}.{inner_number}",
            weight=weight * inner_weight / total,
            threshold=1.0 if threshold is not None and passing_threshold is None else None,
            gates=passing_threshold is None and inner_weight != 0,
        )


# ---------------------------------------------------------------- one assertion


@dataclass(slots=True, kw_only=True)
class _CriterionMaker:
    """Makes the criterion of an assertion."""

    names: Names
    read_file: ReadFile
    context: dict[str, Any]
    """Gets the variables that the criterion names."""
    is_gold: bool
    """True if the value of the assertion is the case's reference."""

    def make(self, entry: _WeighedAssertion, used_names: list[str]) -> Criterion:
        """Make the criterion of an assertion; raise ``UsageError`` with the reason where there is none."""
        assertion = entry.assertion
        stated = assertion.get("type")
        if not isinstance(stated, str):
            raise UsageError("it has no type")
        kind = stated.removeprefix("not-")
        if assertion.get("transform"):
            raise UsageError("it looks at what code makes of the output (transform)")
        name = self._name_criterion(assertion, entry.number, used_names)
        if kind in _WORDED:
            if kind != stated:
                raise UsageError("it means the opposite of its words; write the opposite as words")
            return self._make_worded(kind, name, entry)
        if kind == "assert-set":
            return self._make_set(name, entry)
        rule = _parse_rule(json.dumps(self._make_rule(assertion)))
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
        """Make the rule for an assertion that the recorded cost or time is at most its threshold.

        Raises ``UsageError``.
        """
        threshold: Any = assertion.get("threshold")
        value = self.names.recorded[kind]
        if not is_finite(threshold) or threshold < 0:
            raise UsageError(f"its threshold is {show(threshold)}, and a number of at least 0 is needed")
        if not is_finite(value) or value < 0:
            raise UsageError(f"what was recorded is {show(value)}, which is no number of at least 0")
        return {"recorded": value, "max": threshold, "measure": _MEASURES[kind]}

    def _make_set(self, name: str, entry: _WeighedAssertion) -> Criterion:
        """Make a criterion with one rule of a set whose assertions need not all hold.

        Raises ``UsageError`` if one of them is not applied, also because a model would have to score it.
        """
        inner = [assertion for assertion in entry.assertion.get("assert") or () if isinstance(assertion, Mapping)]
        weights: list[Any] = [assertion.get("weight", 1) for assertion in inner]
        try:
            rules = [self._make_rule(assertion) for assertion in inner]
        except UsageError as error:
            raise UsageError(f"not all of it need hold, and one part of it cannot be applied: {error}") from None
        share = read_threshold(entry.assertion.get("threshold"))
        rule: dict[str, Any] = {"some_of": rules, "share": share}
        if any(weight != 1 for weight in weights):
            rule["weights"] = weights
        return Criterion(
            name=name, description="assert-set of promptfoo.", rule=rule, weight=entry.weight, threshold=1.0
        )

    def _name_criterion(self, assertion: Mapping[str, Any], number: str, used_names: list[str]) -> str:
        """Return a name that no other criterion has: the assertion's metric, else its type with its number."""
        metric = assertion.get("metric")
        has_name = isinstance(metric, str) and metric.strip() and not is_template(metric)
        name = flatten(metric, 100).strip() if has_name else f"{assertion['type']} {number}"
        return name if name not in used_names else f"{name} {number}"

    def _render_value(self, value: Any) -> Any:
        """Return the value of an assertion as promptfoo uses it: the file that it names, or its variables filled in.

        Texts and lists of texts are templates; any other value is returned as it is.
        """
        if isinstance(value, str):
            if value.startswith("file://"):
                return self.read_file(value)
            return fill_template(parse_template(value), self.names.read)
        if isinstance(value, list):
            return [self._render_value(part) if isinstance(part, str) else part for part in value]
        return value

    def _make_worded(self, kind: str, name: str, entry: _WeighedAssertion) -> Criterion:
        """Make the criterion for an assertion that a model scores. Raises ``UsageError``."""
        threshold = entry.threshold
        if threshold is None:
            threshold = read_threshold(entry.assertion.get("threshold"))
        threshold = DEFAULT_THRESHOLD if threshold is None else threshold
        if kind in {"llm-rubric", "g-eval"}:
            words = self._read_words(entry.assertion.get("value"), several=kind == "g-eval")
            return Criterion(
                name=name, weight=entry.weight, description=words, threshold=threshold if entry.gates else None
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
        """Return whether a value is just the variable that is the reference."""
        named = find_only_variable(parse_template(value)) if isinstance(value, str) else None
        return named is not None and named == self.names.reference

    def _read_words(self, value: Any, *, several: bool = False) -> str:
        """Read the words of an assertion as a criterion's description.

        With ``several`` the value may be a list of texts. Raises ``UsageError``.
        """
        texts = value if several and isinstance(value, list) else [value]
        words = "\n".join(self._read_sentence(text) for text in texts).strip()
        if not words:
            raise UsageError("it has no words")
        return words

    def _read_sentence(self, value: Any) -> str:
        """Read one text of an assertion, or the text of the file that it names. Raises ``UsageError``.

        In place of its variables, the text says where the judge finds them.
        """
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
            # In a suite whose criteria are a column of a table, the value of the variable is the criterion itself.
            return self.names.read(only)
        return fill_template(parts, lambda name: self.names.locate(name, self.context))


def _explain_kind(stated: str, value: object) -> str:
    """Explain why an assertion of a type is not applied; for a line of code, name a rule that means the same."""
    reason = _REASONS.get(stated.removeprefix("not-"), _OTHER)
    rule = find_rule(value) if stated in ("javascript", "python") else None
    return reason if rule is None else f"{reason}; the rule {flatten(rule, 200)} says the same"


@lru_cache(maxsize=256)
def _parse_rule(spec: str) -> Rule:
    """Make a rule from its spec in JSON; cached, because assertions of ``defaultTest`` are the same in every test."""
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
    """Write a value as text as JavaScript does; raise ``UsageError`` for one that Python may write otherwise."""
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
    """Read the value of an assertion as a text, also a number; raise ``UsageError`` for an empty one, or no text."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        text = write_value(value)
        if text:
            return text
    raise UsageError("its value is no text, or an empty one")


def _read_texts(value: Any) -> list[str]:
    """Read the value of an assertion as a list of texts, which may be one text with commas. Raises ``UsageError``."""
    if isinstance(value, str):
        value = split_fields(value)
    texts = [write_value(part) for part in value] if isinstance(value, list) else []
    if not texts or not all(texts):
        raise UsageError("its value is no list of texts, or has an empty one")
    return texts


_FIELD = re.compile(r'[\s,]*(?:"((?:[^"\\]|\\.|"")*)"\s*(?:,|\Z)|([^",\s][^,]*)|\Z)', re.DOTALL)
"""One text of a list with commas: in quotation marks (the first group), or plain (the second)."""


def split_fields(value: str) -> list[str]:
    """Split a value at its commas; texts may be in quotation marks. Raises ``UsageError`` for a broken one."""
    fields: list[str] = []
    position = 0
    while position < len(value):
        match = _FIELD.match(value, position)
        if match is None:
            raise UsageError("its value has a quotation mark too many or too few")
        quoted, plain = match.groups()
        if quoted is not None:
            fields.append(re.sub(r'\\(["\\])|""', lambda escape: escape[1] or '"', quoted))
        elif plain is not None:
            fields.append(plain.strip())
        position = max(match.end(), position + 1)
    return fields


def _make_contains(value: Any, inverse: bool, *, several: str | None = None, fold: bool = False) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``contains`` and its like, inverse for ``not-contains``.

    ``several`` is ``any`` or ``all`` for a list of texts of which any or all must be there; ``fold`` ignores case.
    """
    text: Any = _read_text(value) if several is None else _read_texts(value)
    more = {"as_written": True} | ({"ignore_case": True} if fold else {})
    if inverse:
        return {"not_contains": text} | more | ({"all": True} if several == "all" else {})
    return {"contains": text} | more | ({"any": True} if several == "any" else {})


def _make_equals(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``equals``, inverse for ``not-equals``. Raises ``UsageError``."""
    if value is None:
        raise UsageError("it has no value")
    wanted = to_json_value(value) if isinstance(value, dict | list) else write_value(value)
    return {"equals": wanted} | ({"absent": True} if inverse else {})


def _make_start(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``starts-with``, inverse for ``not-starts-with``. Raises ``UsageError``."""
    if not isinstance(value, str) or not value:
        raise UsageError("its value is no text, or an empty one")
    return {"starts_with": value} | ({"absent": True} if inverse else {})


def _make_regex(value: Any, inverse: bool) -> dict[str, Any]:  # noqa: FBT001
    """Make the rule of ``regex``, inverse for ``not-regex``. Raises ``UsageError`` for a pattern that RE2 lacks."""
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
    """Read a JSON Schema from a text, in YAML as promptfoo does. Raises ``UsageError``."""
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
"""The functions that make a rule of an assertion's value, by its type; the second argument is true for ``not-...``."""
