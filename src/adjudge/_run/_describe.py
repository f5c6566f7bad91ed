"""Who judges, as plain data: what a run writes down, and what a judge that only re-reads replies is made from.

No key, no address with a password and no code is in it: models are told by name, host and what they can do.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge._judge import Judge
from adjudge._plain import to_plain
from adjudge.chain import JudgeChain
from adjudge.errors import UsageError
from adjudge.models import Model
from adjudge.result import JudgeResult

MakeModel = Callable[[Mapping[str, Any], int], Model]
"""From what is said of a model, and how many seats before this one have the same, to what stands in its place."""

_JUDGE = ("timeout", "reask", "structured", "token", "scoring", "logprobs", "reader", "temperature", "seed",
          "max_output_tokens")  # fmt: skip
_IF_GIVEN = ("reader_labels", "reader_passes")
"""Told only where they are given: a judge without them is described, and its run goes on, as before there were any."""
_CHAIN = ("strategy", "timeout", "deadline", "fail_open", "quorum", "hedge_after", "escalate_below", "abstain_below",
          "stop_early")  # fmt: skip


def describe_judge(judge: Any) -> dict[str, Any]:
    """A judge with every parameter that bears on its outcomes, its seats included, in JSON's types.

    ``kind`` is ``judge``, ``chain`` or ``other``; of another kind of judge only its name and type are known.
    """
    name = str(getattr(judge, "name", type(judge).__name__))
    if isinstance(judge, JudgeChain) and type(judge).ask is JudgeChain.ask:
        seats = [describe_judge(seat) | {"name": seat_name} for seat_name, seat in judge.judges]
        return {"kind": "chain", "name": name, **_read(judge, _CHAIN), "seats": seats}
    if isinstance(judge, Judge) and type(judge).ask is Judge.ask:
        rubric = judge.rubric.to_dict() if judge.rubric is not None else None
        return {
            "kind": "judge",
            "name": name,
            "model": _describe_model(judge.model),
            **_read(judge, _JUDGE),
            **_read(judge, tuple(name for name in _IF_GIVEN if getattr(judge, name))),
            "rubric": rubric,
        }
    return {"kind": "other", "name": name, "type": f"{type(judge).__module__}.{type(judge).__qualname__}"}


def digest_judge(described: Mapping[str, Any]) -> str:
    """SHA-256 of what ``describe_judge`` says, in hexadecimal."""
    import msgspec

    plain = to_plain(described)
    try:
        written = msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:  # a name with half of a surrogate pair
        written = json.dumps(plain, sort_keys=True).encode()
    return hashlib.sha256(written).hexdigest()


def rebuild_judge(described: Mapping[str, Any], make_model: MakeModel) -> Any:
    """The judge that ``describe_judge`` told of, on the models that ``make_model`` makes.

    Nothing the description names is opened or imported, so one from a stranger's file is safe to rebuild. A judge of
    another kind comes back as an object of its name that cannot be asked. Raises ``UsageError`` for what is no
    description, and for parameters that make no judge.
    """
    try:
        return _rebuild(described, make_model, Counter())
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise UsageError(f"this does not describe a judge ({said}); name a folder of `adjudge run`") from None


def _rebuild(described: Mapping[str, Any], make_model: MakeModel, met: Counter[str]) -> Any:
    if described["kind"] == "chain":
        # Each seat is given the name it had, so that it is known again among the results.
        seats = [_rebuild(seat, make_model, met) for seat in described["seats"]]
        return JudgeChain(seats, name=described["name"], **_pick(described, _CHAIN))
    if described["kind"] == "judge":
        name = str(described["model"]["name"])
        met[name] += 1
        model = make_model(described["model"], met[name] - 1)
        given = {"name": described["name"], "rubric": described.get("rubric")}
        return Judge(model, **given, **_pick(described, (*_JUDGE, *_IF_GIVEN)))
    if described["kind"] == "other":
        return UnknownJudge(name=str(described["name"]), type=str(described.get("type", "")))
    raise UsageError(f"a judge is of the kind judge, chain or other, not {described['kind']!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownJudge:
    """In the place of somebody's own judge, of which only the name is known."""

    name: str
    type: str = ""

    async def ask(self, _question: Any, /) -> JudgeResult:
        """Raise ``UsageError``."""
        raise UsageError(f"{self.name!r} is a judge of your own ({self.type}), which a description cannot bring back")


def _pick(described: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: described[name] for name in names if name in described}


def _describe_model(model: Any) -> dict[str, Any]:
    return {
        "name": str(model.name),
        "hosts": [str(host) for host in getattr(model, "hosts", ())],
        # Whether the form was sent, and so what replies look like.
        "structured": bool(getattr(model, "structured", False)),
        "max_input_characters": getattr(model, "max_input_characters", None),
    }


def _read(judge: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: to_plain(getattr(judge, name)) for name in names}
