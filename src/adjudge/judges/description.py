"""Judges as plain data: every parameter that bears on their outcomes, and digests by which two judges are compared."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.plain_data import digest_description, to_plain
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import SeatRelease
from adjudge.judges.evaluate import prepare
from adjudge.judges.judge import Judge, asks_as
from adjudge.judges.part_questions import digest_wordings
from adjudge.models.model import Model, find_function
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule


def describe_rules(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Describe rules by name, severity and what they were made of."""
    return [{"name": rule.name, "severity": rule.severity, **rule.spec} for rule in rules]


MakeModel = Callable[[Mapping[str, Any], int], Model]
"""Makes a model from a described one, and from the number of seats before this one that have the same."""


_JUDGE_OPTIONS = ("timeout", "reask", "structured", "token", "scoring", "logprobs", "reader", "temperature", "seed",
                  "max_output_tokens")  # fmt: skip

_OPTIONAL_JUDGE_OPTIONS = ("reader_labels", "reader_passes")
"""Options of a judge that are described only where they are set, because older manifests do not have them."""

_CHAIN_OPTIONS = ("strategy", "timeout", "deadline", "fail_open", "quorum", "hedge_after", "escalate_below",
                  "abstain_below", "stop_early")  # fmt: skip


def describe_judge(judge: Any) -> dict[str, Any]:
    """Describe a judge with every parameter that bears on its outcomes, its seats included, in JSON's types.

    ``kind`` is ``judge``, ``chain`` or ``other``; of another kind of judge only its name and type are known.
    """
    name = str(getattr(judge, "name", type(judge).__name__))
    if asks_as(judge, JudgeChain):
        seats = [describe_judge(seat) | {"name": seat_name} for seat_name, seat in judge.seats]
        return {"kind": "chain", "name": name, **_read_options(judge, _CHAIN_OPTIONS), "seats": seats}
    if asks_as(judge, Judge):
        rubric = judge._get_default_rubric()  # noqa: SLF001 - as evaluate does
        described_rubric = None if rubric is None else rubric.to_dict()
        return {
            "kind": "judge",
            "name": name,
            "model": _describe_model(judge.model),
            **_read_options(judge, _JUDGE_OPTIONS),
            **_read_options(judge, tuple(name for name in _OPTIONAL_JUDGE_OPTIONS if getattr(judge, name))),
            "rubric": described_rubric,
        }
    return {"kind": "other", "name": name, "type": f"{type(judge).__module__}.{type(judge).__qualname__}"}


def name_functions(described: Any) -> frozenset[str]:
    """Return the names of a described judge and its seats if all of them are functions; none if one asks a model."""
    match described:
        case {"kind": "judge", "name": str(name), "model": {"function": _}}:
            return frozenset((name,))
        case {"kind": "chain", "name": str(name), "seats": list(seats)}:
            names = [name_functions(seat) for seat in seats]
            return frozenset((name,)).union(*names) if all(names) else frozenset()
    return frozenset()


def digest_judge(described: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of a described judge, in hexadecimal."""
    import msgspec

    plain = to_plain(described)
    try:
        encoded = msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:  # a name with half of a surrogate pair
        encoded = json.dumps(plain, sort_keys=True).encode()
    return hashlib.sha256(encoded).hexdigest()


def rebuild_judge(described: Mapping[str, Any], make_model: MakeModel) -> Any:
    """Rebuild the judge that ``describe_judge`` described, on the models that ``make_model`` makes.

    Nothing the description names is opened or imported, so one from a stranger's file is safe to rebuild. A judge of
    another kind comes back as an object of its name that cannot be asked. Raises ``UsageError`` for what is no
    description, and for parameters that make no judge.
    """
    try:
        return _rebuild_seat(described, make_model, Counter())
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"[:200]
        raise UsageError(f"this does not describe a judge ({problem}); name a folder of `adjudge run`") from None


def _rebuild_seat(described: Mapping[str, Any], make_model: MakeModel, model_counts: Counter[str]) -> Any:
    """Rebuild a judge or chain; ``model_counts`` has the number of models of each name that were made before.

    Raises ``UsageError``.
    """
    if described["kind"] == "chain":
        # Each seat keeps its name, so that it can be found among the recorded results.
        seats = [_rebuild_seat(seat, make_model, model_counts) for seat in described["seats"]]
        options = _select_members(described, _CHAIN_OPTIONS)
        if options.get("escalate_below") is not None:
            options["escalate_below"] = [_rebuild_bound(bound) for bound in options["escalate_below"]]
        return JudgeChain(seats, name=described["name"], **options)
    if described["kind"] == "judge":
        name = str(described["model"]["name"])
        model_counts[name] += 1
        model = make_model(described["model"], model_counts[name] - 1)
        options = {"name": described["name"], "rubric": described.get("rubric")}
        return Judge(model, **options, **_select_members(described, (*_JUDGE_OPTIONS, *_OPTIONAL_JUDGE_OPTIONS)))
    if described["kind"] == "other":
        return UnknownJudge(name=str(described["name"]), type=str(described.get("type", "")))
    raise UsageError(f"a judge is of the kind judge, chain or other, not {described['kind']!r}")


def _rebuild_bound(bound: Any) -> Any:
    """Rebuild a bound of ``escalate_below``: a release policy's, which is described by an object, or a number."""
    return SeatRelease(**bound) if isinstance(bound, dict) else bound


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownJudge:
    """A stand-in for a judge of somebody's own, of which only the name is known."""

    name: str
    type: str = ""

    async def ask(self, _question: Any, /) -> JudgeResult:
        """Raise ``UsageError``."""
        raise UsageError(f"{self.name!r} is a judge of your own ({self.type}), which a description cannot bring back")


def _select_members(described: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the members with these names, as far as the description has them."""
    return {name: described[name] for name in names if name in described}


def _describe_model(model: Any) -> dict[str, Any]:
    """Describe a model by everything that affects its replies; only a judge in code has the member ``function``."""
    function = find_function(model)
    # Left out for a model: runs of versions of adjudge that had no judges in code can then be resumed.
    judge_code = {} if function is None else {"function": function.to_dict()}
    return {
        "name": str(model.name),
        "hosts": [str(host) for host in getattr(model, "hosts", ())],
        # True if the JSON Schema of the reply is sent, on which the form of replies depends.
        "structured": bool(getattr(model, "structured", False)),
        "max_input_characters": getattr(model, "max_input_characters", None),
        **judge_code,
    }


def _read_options(judge: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Read the attributes with these names, as plain data."""
    return {name: to_plain(getattr(judge, name)) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """The digests by which a judge, and what it is asked, are compared with those of a run. SHA-256 in hexadecimal."""

    judge: str
    """Digest of the judge: model, reader, sampling, and the same of each seat."""
    rubric: str | None
    """Digest of the rubric with its scale and thresholds."""
    prompt: str
    """Digest of the words that every content is put to the judge with."""
    rules: tuple[str, ...] = ()
    """Digests of the rules that go before the judge."""


async def identify_judge(judge: Judge | JudgeChain, rubric: Rubric | None, rules: Iterable[Rule] = ()) -> JudgeIdentity:
    """Compute the identity of a judge that is asked about contents by a rubric, or by its own one.

    Args:
        judge: The judge or chain.
        rubric: What it is asked about; ``None`` for its own rubric.
        rules: The rules that go before the judge.
    """
    question = await prepare("-", rubric, judge._get_default_rubric(), {"rules": ()}, stand_in=True)  # noqa: SLF001 - as evaluate does
    described = None if question.rubric is None else question.rubric.to_dict()
    return JudgeIdentity(
        judge=digest_judge(describe_judge(judge)),
        rubric=digest_description(described),
        prompt=digest_wordings(question),
        rules=digest_rules(describe_rules(rules)),
    )


def digest_rules(described: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Compute a digest for each described rule."""
    return tuple(digest_judge(rule) for rule in described)
