"""The items of a run: one for each time a case was judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NotRequired, TypedDict

from adjudge.dataset.case import OWN_KEYS, Case, LabelValue
from adjudge.dataset.contents import ERASED, ErasedContent, digest_content
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_digest
from adjudge.formats.msgspec_types import read_typed, read_typed_json
from adjudge.formats.plain_data import encode, to_plain
from adjudge.judges.pair import PREFERENCES, PairResult, read_judged
from adjudge.result import JudgeResult, Severity, Usage
from adjudge.rubric.rubric import Rubric
from adjudge.runs.recorded_rubric import rebuild_rubric, rebuild_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """One case, judged once."""

    case: Case
    """The case that was judged."""
    place: int
    """The number of the case in the data set, from 0."""
    result: JudgeResult | PairResult
    """A ``PairResult`` where the case is a pair that was compared."""
    sample: int = 0
    """The number of the judgement among the repeated ones of this case, from 0."""
    subject: str = ""
    """SHA-256 of the whole case, by which a resumed run checks that its data are unchanged."""
    rubric: Rubric | None = None
    """The rubric that the case was judged by: its own, else the run's, with the threshold that applied. ``None`` if a
    result format is used instead of a rubric, and for an item that does not come from a ``Run``.
    """

    @property
    def erased(self) -> bool:
        """True if ``adjudge forget`` deleted the texts of the case and its result; ids, outcome and scores are left."""
        return isinstance(self.case.content, ErasedContent)


CASE_SCHEMA = "adjudge/case/1"

_CASE_HEAD = b'{"schema":"' + CASE_SCHEMA.encode() + b'",'


class KeptRule(TypedDict):
    """A rule of a case as it is kept; what is a function is named, and not read back."""

    name: str
    severity: Severity
    spec: dict[str, Any]


class KeptCase(TypedDict):
    """A case as it is kept."""

    content: Any
    id: str
    reference: Any
    task: Any
    context: Any
    label: LabelValue
    labels: dict[str, LabelValue]
    group: str | None
    metadata: dict[str, Any]
    criteria: NotRequired[str | list[str] | dict[str, str]]
    rubric: NotRequired[dict[str, Any]]
    rules: NotRequired[list[KeptRule]]
    threshold: NotRequired[float]
    erased: NotRequired[str]


_PLAIN_MEMBERS = tuple([name for name in KeptCase.__annotations__ if name not in (*OWN_KEYS, "erased")])

_SCALAR_TYPES, _TEXT_TYPES = frozenset((str, bool, type(None))), frozenset((str,))

_OPTIONAL_TEXT_TYPES = frozenset((str, type(None)))

_WHOLE_TYPES, _DOLLAR_TYPES = frozenset((int,)), frozenset((float, type(None)))


def encode_case(case: Case) -> bytes:
    """Encode a case as JSON, as a run keeps it. The SHA-256 of this is the ``subject`` of the case's items."""
    import msgspec

    if _is_plain(case):
        # The same bytes, five times as fast: the members of such a case are plain data already.
        with suppress(UnicodeEncodeError):
            return _CASE_HEAD + msgspec.json.encode({name: getattr(case, name) for name in _PLAIN_MEMBERS})[1:]
    members = {"schema": CASE_SCHEMA} | {name: to_plain(getattr(case, name)) for name in _PLAIN_MEMBERS}
    return encode(members | _describe_criteria(case))


def _describe_criteria(case: Case) -> dict[str, Any]:
    """Describe the criteria, rubric, rules and threshold of a case; a case without any has no further members."""
    rules = [{"name": rule.name, "severity": rule.severity, "spec": to_plain(rule.spec)} for rule in case.rules]
    rubric = to_plain(case.rubric.to_dict()) if case.rubric is not None else None
    members: dict[str, Any] = {
        "criteria": to_plain(case.criteria),
        "rubric": rubric,
        "rules": rules or None,
        "threshold": case.threshold,
    }
    if isinstance(case.content, ErasedContent):
        members["erased"] = case.content.digest
    return {name: value for name, value in members.items() if value is not None}


_JSON_BOOLEANS = (b"false", b"true")

_RESULT_HEAD = b'{"schema":"' + JudgeResult.schema.encode() + b'",'


def encode_result(result: JudgeResult | PairResult) -> bytes:
    """Encode a result as JSON, as a run keeps it: the data of its ``to_dict``."""
    import msgspec

    if type(result) is JudgeResult and result.value is None and not result.rule_results and _is_flat(result.metadata):
        # Nearly all results are such, and this is six times as fast: their members are plain data already.
        with suppress(UnicodeEncodeError):
            tail = b',"passed":%b,"model_differs":%b}' % (
                _JSON_BOOLEANS[result.passed],
                _JSON_BOOLEANS[result.model_differs],
            )
            body = msgspec.json.encode(result)[1:-1]
            # ``to_dict`` leaves out empty parts. In a text, these quotation marks would have a backslash before them.
            return _RESULT_HEAD + (body if result.parts else body.replace(b',"parts":[]', b"", 1)) + tail
    return encode(result.to_dict())


def lacks_cost(result: JudgeResult | PairResult, functions: Collection[str] = ()) -> bool:
    """Return whether a provider may charge for a result and the amount is unknown, so that a sum of costs is too.

    A call that timed out has no usage, and may be charged all the same. The answers of judges in ``functions``, given
    by name, cost nothing, because they ask no model.
    """
    if result.usage is not None:
        return result.usage.cost_usd is None
    return (
        result.judge not in functions
        and result.decided_by != "rule"
        and result.undecided_because not in ("budget", "error")
    )


def check_kept(result: JudgeResult | PairResult, *, ours: bool) -> None:
    """Raise ``UsageError`` for a result that could not be read back from the file of a run.

    The usage from a provider, and the result of a user's own judge, may have values of any type. With one such result
    in the file, the run could not be read any more. ``ours`` says that a ``Judge`` made the result: then a quick check
    of the values from outside comes first.
    """
    import msgspec

    if ours and _is_surely_readable(result):
        return
    body = encode_result(result)
    if type(result) is JudgeResult:
        # Nearly always possible, and five times as fast. A text with half a surrogate pair, which has no UTF-8, is read
        # below.
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            read_typed_json(body, JudgeResult)
            return
    try:
        read_judged(json.loads(body))
    except UsageError as error:
        raise UsageError(f"the result cannot be kept: {error}") from None


def check_case(case: Case, body: bytes) -> None:
    """Raise ``UsageError`` for a case that could not be read back from ``body``, as ``encode_case`` wrote it."""
    import msgspec

    if _is_plain(case) and case.id.isascii():
        return
    if not isinstance(case.id, str):
        raise UsageError(f"the id is of the type {type(case.id).__name__}; give each case a text")
    if not case.id.isascii() and has_surrogate(case.id):
        raise UsageError("the id holds half of a surrogate pair, which is no character; give each case a text")
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):  # half a surrogate pair elsewhere is read below
        read_typed_json(body, KeptCase)
        return
    try:
        read_case(body)
    except ValueError as error:
        raise UsageError(f"it is no case that can be kept: {error}") from None


def read_case(body: bytes) -> Case:
    """Read a case as a run keeps it. Raises ``ValueError`` and similar errors for members of a wrong type."""
    members = json.loads(body)
    members.pop("schema", None)
    read_typed(members, KeptCase)  # checked only: the converted members would have 1.0 for a label that is 1
    erased_digest = members.pop("erased", None)
    if erased_digest is not None:
        members["content"] = ErasedContent(check_digest("erased", erased_digest))
    if "rubric" in members:
        members["rubric"] = replace(rebuild_rubric(members["rubric"]), model=members["rubric"].get("model"))
    if "rules" in members:
        members["rules"] = [rebuild_rule(**rule) for rule in members["rules"]]
    return Case(**members)


_QUOTING_MEMBERS = frozenset(("detail", "raw_response", "earlier_responses", "reasoning", "suggestions", "evidence",
                              "message", "metadata"))  # fmt: skip
"""The members of a result, at any depth, that can quote what was judged."""


def erase_case(body: bytes, *, hide_group: Callable[[str], str | None]) -> bytes:
    """Return a kept case without its texts; its id, its labels and the digest of its content stay.

    ``hide_group`` returns another name for a group that names what is forgotten, and ``None`` for any other group.
    """
    members = json.loads(body)
    group = members.get("group")
    erased = {"schema": CASE_SCHEMA, "content": ERASED, "id": members["id"], "reference": None, "task": None}
    erased |= {"context": None, "label": members.get("label"), "labels": members.get("labels") or {}}
    erased |= {"group": (hide_group(group) or group) if isinstance(group, str) else None, "metadata": {}}
    if "threshold" in members:
        erased["threshold"] = members["threshold"]
    return encode(erased | {"erased": find_erased(members) or digest_content(members["content"])})


def find_erased(members: Mapping[str, Any]) -> str | None:
    """Return the digest of the content of an erased case; ``None`` for a case that is not erased."""
    digest = members.get("erased")
    return digest if isinstance(digest, str) else None


def erase_result(body: bytes) -> bytes:
    """Return a kept result without the members that can quote the content; outcome, scores, names and costs stay."""
    return encode(_erase_texts(json.loads(body)))


def _erase_texts(node: Any) -> Any:
    """Return a value in which the members that can quote the content are empty, at any depth."""
    if isinstance(node, list):
        return [_erase_texts(item) for item in node]
    if not isinstance(node, dict):
        return node
    erased = {name: _erase_texts(item) for name, item in node.items()}
    for name in _QUOTING_MEMBERS & erased.keys():
        erased[name] = {str: "", list: [], dict: {}}.get(type(erased[name]), erased[name])
    # The value of a comparison is the name of the better place, and no text of the content.
    if "value" in erased and not isinstance(erased["value"], bool | int | float) and erased["value"] not in PREFERENCES:
        erased["value"] = None
    return erased


def _is_plain(case: Case) -> bool:
    """Return whether a case has only simple types, so that it is sure to be written and read back unchanged."""
    values = (case.content, case.reference, case.task, case.context, case.label)
    if (
        type(case) is not Case
        or case.brings_own
        or not _SCALAR_TYPES.issuperset(map(type, values))
        or type(case.group) not in _OPTIONAL_TEXT_TYPES
    ):
        return False
    return type(case.id) is str and _is_flat(case.labels) and _is_flat(case.metadata)


def _is_surely_readable(result: JudgeResult | PairResult) -> bool:
    """Return whether a result of a ``Judge`` is sure to be read back unchanged, without encoding it to find out.

    Only what a ``Judge`` copies from a reply is checked. For a result with further values this returns false, because
    checking them would take as long as encoding them.
    """
    if type(result) is not JudgeResult or result.rule_results or result.earlier_responses or result.value is not None:
        return False
    if result.parts:
        return False
    usage, model_names = result.usage, (result.model, result.model_requested, result.model_expected)
    texts = (*model_names, result.raw_response, result.finish_reason)
    if not _OPTIONAL_TEXT_TYPES.issuperset(map(type, texts)):
        return False
    if type(usage) is not Usage:
        return usage is None
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.written_tokens, usage.calls)
    return _WHOLE_TYPES.issuperset(map(type, numbers)) and type(usage.cost_usd) in _DOLLAR_TYPES


def _is_flat(members: Mapping[str, Any]) -> bool:
    """Return whether a mapping is a dictionary of texts, truth values and ``None`` by text."""
    return (
        type(members) is dict
        and _TEXT_TYPES.issuperset(map(type, members))
        and _SCALAR_TYPES.issuperset(map(type, members.values()))
    )


def has_surrogate(text: str) -> bool:
    """Return whether a text holds half of a surrogate pair, which has no UTF-8."""
    return any("\ud800" <= character <= "\udfff" for character in text)
