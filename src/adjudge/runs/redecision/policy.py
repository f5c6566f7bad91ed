"""The policy of a redecision: another rubric or threshold, other seats, or another strategy for the same replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_share
from adjudge.formats.plain_data import to_plain
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import Strategy
from adjudge.judges.description import UnknownJudge, rebuild_judge
from adjudge.judges.evaluate import RubricSource
from adjudge.judges.judge import Judge
from adjudge.models.model import FunctionIdentity, Reply, Request
from adjudge.rubric.file import load_rubric
from adjudge.runs.recorded_rubric import rebuild_rubric
from adjudge.runs.redecision.question import Reading, make_reading

_NEEDED_MEMBERS = ("id", "asked", "judge", "rubric", "digests", "dataset", "options")

_STRATEGY_OPTIONS = ("quorum", "hedge_after", "escalate_below", "abstain_below")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedecisionPolicy:
    """The changes of a policy; ``None`` stays as it was."""

    rubric: RubricSource | None = None
    threshold: float | None = None
    all_cases: bool | None = None
    strategy: Strategy | None = None
    quorum: int | None = None
    escalate_below: float | Sequence[float] | None = None
    abstain_below: float | None = None
    fail_open: bool | None = None
    judges: Sequence[str] | None = None
    result_format: type[Any] | None = None
    passes: Callable[[Any], bool] | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The options that differ from the run, by name."""
        values = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def keeps_judges(self) -> bool:
        """Return whether the chain keeps its seats, its strategy and the options of that."""
        return not self.changes.keys() & {*_STRATEGY_OPTIONS, "strategy", "fail_open", "judges"}


class AbsentModel:
    """A stand-in for a model of a run: it has the model's name and is never asked."""

    def __init__(self, described: Mapping[str, Any], seat: int) -> None:
        self.name = str(described["name"])
        self.seat = seat
        """The number of seats before this one that have the same model."""
        self.hosts = tuple(described.get("hosts") or ())
        self.structured = bool(described.get("structured"))
        self.max_input_characters = described.get("max_input_characters")
        self.function_identity = _read_function(described.get("function"))
        """The identity of the judge in code; ``None`` for a model, whose replies then need their token."""

    async def complete(self, _request: Request, /) -> Reply:
        """Raise ``UsageError``, because a redecision never asks a model."""
        raise UsageError(f"{self.name} is not here; redeciding asks nobody")


def _read_function(members: Mapping[str, Any] | None) -> FunctionIdentity | None:
    """Read the identity of a judge in code from its description. Raises ``TypeError`` unless it has three texts."""
    if members is None:
        return None
    identity = FunctionIdentity(module=members["module"], qualname=members["qualname"], code=members["code"])
    if not all(isinstance(text, str) for text in (identity.module, identity.qualname, identity.code)):
        raise TypeError("a function is described by three texts")
    return identity


def read_policy(manifest: Mapping[str, Any], policy: RedecisionPolicy) -> tuple[Any, Reading]:
    """Return the judge of a run's manifest, changed by a policy, and the reading of its replies by the new rubric.

    Raises ``UsageError`` for a policy that does not fit the run, and for a manifest that cannot be read.
    """
    if policy.all_cases and policy.rubric is None and policy.threshold is None:
        raise UsageError(
            "all_cases says which cases a rubric or a threshold is for; give one of them", argument="all_cases"
        )
    if policy.threshold is not None:
        check_share("threshold", policy.threshold)
    if policy.strategy is not None:
        check_choice("strategy", policy.strategy, get_args(Strategy))
    missing = [name for name in _NEEDED_MEMBERS if name not in manifest]
    if missing:
        raise UsageError(f"the run's manifest has no {', '.join(missing)}; name a folder of `adjudge run`")
    try:
        if "redecided" in manifest:
            source = str(manifest["redecided"]["run"])
            raise UsageError(
                f"the run {manifest['id']} was itself redecided, and nobody was asked in it; redecide the run {source}"
            )
        question, rubric, described = manifest["asked"], manifest["rubric"], manifest["judge"]
        reading = _make_reading(question, rubric, policy)
        judge = change_judge(rebuild_judge(_drop_rubrics(described), AbsentModel), policy)
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"the run's manifest cannot be read ({type(error).__name__}: {error})"[:300]) from None
    if isinstance(judge, UnknownJudge):
        raise UsageError(f"the run asked {judge.name}, a judge of your own ({judge.type}), whose replies it has not")
    if reading.rubric is not None or reading.value_type is not None:
        for leaf in list_leaves(judge):
            reading.check(leaf)
    return judge, reading


def list_leaves(judge: Any) -> list[Judge]:
    """List every ``Judge`` in a judge or chain, at any depth."""
    if isinstance(judge, JudgeChain):
        return [leaf for _, seat in judge.seats for leaf in list_leaves(seat)]
    return [judge] if isinstance(judge, Judge) else []


def change_judge(judge: Any, policy: RedecisionPolicy) -> Any:
    """Return a judge with the strategy, the options and the seats of a policy.

    Raises ``UsageError`` for a policy about chains with a single judge, and for one that cannot be computed.
    """
    chain_options = {*_STRATEGY_OPTIONS, "strategy", "fail_open"}
    options: dict[str, Any] = {name: value for name, value in policy.changes.items() if name in chain_options}
    if not options and policy.judges is None:
        return judge
    if not isinstance(judge, JudgeChain):
        names = ", ".join([*options, *(["judges"] if policy.judges is not None else [])])
        raise UsageError(
            f"{names} is about several judges, and this run asked one, {judge.name}; leave it out",
            argument=next(iter(options), "judges"),
        )
    if policy.strategy not in (None, judge.strategy):
        if policy.strategy == "hedged":
            raise UsageError(
                "what 'hedged' would have come to depends on who would have been asked when, which nobody knows; "
                "choose another strategy"
            )
        # The options of the old strategy are removed.
        options = {**dict.fromkeys(_STRATEGY_OPTIONS), **options}
    seats = _pick_seats(judge, policy.judges)
    default_name = f"{judge.strategy}({', '.join(judge.names)})"
    return judge.replace(judges=seats, name="" if judge.name == default_name else judge.name, **options)


def _pick_seats(chain: JudgeChain, names: Sequence[str] | None) -> list[Any]:
    """Return the seats of these names, in the chain's order; ``None`` is all. Raises ``UsageError`` for other names."""
    if names is None:
        return [seat for _, seat in chain.seats]
    if isinstance(names, str) or not names:
        raise UsageError(
            f"judges must be a list of seats' names, got {names!r}; the run has {', '.join(chain.names)}",
            argument="judges",
        )
    for name in names:
        if name not in chain.names:
            raise UsageError(f"the run has no judge {name!r}; it has {', '.join(chain.names)}", argument="judges")
    return [seat for name, seat in chain.seats if name in names]


def _make_reading(question: Mapping[str, Any], rubric: Mapping[str, Any] | None, policy: RedecisionPolicy) -> Reading:
    """Make the reading of a run's replies under a policy. Raises ``UsageError`` for a policy that does not fit."""
    result_format = question.get("result_format")
    if result_format and policy.result_format is None:
        raise UsageError(
            f"the run asked for a result_format of yours, {result_format}; hand it in as ",
            Argument("result_format"),
            argument="result_format",
        )
    if policy.result_format is not None and not result_format:
        raise UsageError(
            "the run asked for no result_format, so its replies have none; leave it out", argument="result_format"
        )
    changes_weights = policy.rubric is not None or policy.threshold is not None
    # A run without a rubric and a result format is one in which each case brought its own rubric.
    if result_format and rubric is None and changes_weights:
        raise UsageError("the run asked by no rubric, so there are no scores that another one could weigh")
    new_rubric = load_rubric(policy.rubric) if policy.rubric is not None else None
    if new_rubric is None and rubric is not None:
        new_rubric = rebuild_rubric(rubric)
    if new_rubric is not None and policy.threshold is not None:
        new_rubric = replace(new_rubric, passing_threshold=policy.threshold)
    return make_reading(
        rubric,
        new_rubric,
        reference=question.get("reference"),
        value_type=policy.result_format,
        passes=policy.passes,
    )


def _drop_rubrics(described: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a described judge without the rubrics of its seats.

    They are not needed, because the manifest has the rubric of the run, and they may name functions of the user.
    """
    plain: dict[str, Any] = {**to_plain(described), "rubric": None}
    if "seats" in plain:
        plain["seats"] = [_drop_rubrics(seat) for seat in plain["seats"]]
    return plain
