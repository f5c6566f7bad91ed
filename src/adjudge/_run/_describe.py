"""Who judges, as plain data: what a run writes down, and what a judge that only re-reads replies is made from.

No key, no address with a password and no code is in it: models are told by name, host and what they can do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from adjudge._judge import Judge
from adjudge._plain import to_plain
from adjudge.chain import JudgeChain

_JUDGE = ("timeout", "reask", "structured", "token", "scoring", "logprobs", "reader", "temperature", "seed",
          "max_output_tokens")  # fmt: skip
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
            "rubric": rubric,
        }
    return {"kind": "other", "name": name, "type": f"{type(judge).__module__}.{type(judge).__qualname__}"}


def digest_judge(described: Mapping[str, Any]) -> str:
    """SHA-256 of what ``describe_judge`` says, in hexadecimal."""
    import msgspec

    return hashlib.sha256(msgspec.json.encode(to_plain(described), order="sorted")).hexdigest()


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
