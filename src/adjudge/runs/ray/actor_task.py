"""The task of the actors of a run on Ray: the judge and the question. It is packed once, and has no key in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.errors import Argument, UsageError
from adjudge.judges.chain import list_leaves
from adjudge.judges.judge import Judge, asks_as
from adjudge.judges.layers import Wrap
from adjudge.models.model import Model
from adjudge.models.price import Prices
from adjudge.models.providers.base import HttpModel
from adjudge.models.providers.http import Transport
from adjudge.models.replies.recording import RecordingModel
from adjudge.models.replies.replay import ReplayModel
from adjudge.models.wrapper import WrapperModel
from adjudge.runs.judging import Assignment
from adjudge.runs.options import Plan
from adjudge.runs.ray.cluster import shorten_error
from adjudge.runs.ray.relay import pack
from adjudge.runs.schedule import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorTask:
    """The task of every actor of a run."""

    assignment: Assignment
    """The question and the judge as it was handed in: each actor puts its own layers around the models."""
    wrap: Wrap | None
    prices: Prices | None
    budget_usd: float | None
    """The whole run's budget; the driver keeps it."""
    concurrency: int
    """Cases that this actor judges at once."""
    actors: int
    versions: Mapping[str, str]
    """Those of the driver."""


def pack_task(task: ActorTask) -> bytes:
    """Pack the task for the actors. Raises ``UsageError`` for a judge that cannot be sent to another process."""
    try:
        return pack(task)
    except Exception as error:  # noqa: BLE001 - a user's own judge may hold anything, and raise anything
        raise UsageError(
            f"the judge cannot be sent to Ray's actors ({shorten_error(error)}); leave out what belongs to this "
            "process, such as an open connection or a lock"
        ) from None


def check_plan(plan: Plan, judge: Any) -> None:
    """Raise ``UsageError`` for options and judges that a run on Ray does not support."""
    if plan.cache is not None:
        raise UsageError(
            "a run with ",
            Argument("engine", "'ray'"),
            " cannot use a cache: its file has one machine's locks. Leave it out; the run keeps its own replies, and ",
            Argument("resume", "True"),
            " asks for none of them again",
            argument="cache",
        )
    if getattr(plan.limit, "most", None) is None:
        raise UsageError(
            "a run with ",
            Argument("engine", "'ray'"),
            " needs a number as its concurrency, which is shared out among actors",
            argument="concurrency",
        )
    for leaf in list_leaves(judge):
        if getattr(leaf, "on_result", None) is not None:
            raise UsageError(
                f"judge {getattr(leaf, 'name', leaf)!r} has on_result, which ",
                Argument("engine", "'ray'"),
                " would call in other processes than this; leave it out, and iterate over the run instead",
                argument="on_result",
            )
        if asks_as(leaf, Judge):
            _check_model(leaf.model)


def list_transports(judge: Any) -> list[Transport]:
    """List the connections of a judge's models, each once, because several seats may share one with its limits."""
    transports: dict[int, Transport] = {}
    for leaf in list_leaves(judge):
        for model in _list_layers(leaf.model) if asks_as(leaf, Judge) else ():
            if isinstance(model, HttpModel):
                transports[id(model.transport)] = model.transport
    return list(transports.values())


def _check_model(model: Model) -> None:
    """Raise ``UsageError`` for a model that reads or writes a recording, which several processes cannot share."""
    for layer in _list_layers(model):
        if isinstance(layer, ReplayModel):
            raise UsageError(
                f"{layer.name} is a recording, whose replies are used up in order by one process; leave out ",
                Argument("engine", "'ray'"),
                ", which has nothing to speed up here",
                argument="engine",
            )
        if isinstance(layer, RecordingModel):
            raise UsageError(
                "a recording is written by one process, and ",
                Argument("engine", "'ray'"),
                " has several; leave out ",
                Argument("record"),
                ": the run keeps every reply in its folder",
                argument="engine",
            )


def _list_layers(model: Model) -> list[Any]:
    """List a model and the models that it wraps, from the outermost to the innermost."""
    layers: list[Any] = [model]
    while isinstance(layers[-1], WrapperModel):
        layers.append(layers[-1].model)
    return layers


def pack_unit(unit: Unit) -> bytes:
    """Pack a unit for an actor. Raises ``UsageError`` for a case that cannot be sent to another process."""
    try:
        # Without the encoded case: the driver encodes it again when it writes the result.
        return pack(replace(unit, body=b""))
    except Exception as error:  # noqa: BLE001 - whatever the content of a case is
        raise UsageError(
            f"case {unit.place} of the data set cannot be sent to Ray's actors ({shorten_error(error)}); give it "
            "plain data"
        ) from None
