"""Another policy for the same answers: another rubric to read them by, other judges or another strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_share
from adjudge.formats.plain import to_plain
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import Strategy
from adjudge.judges.description import UnknownJudge, rebuild_judge
from adjudge.judges.evaluate import RubricSource
from adjudge.judges.judge import Judge
from adjudge.models.model import FunctionIdentity, Reply, Request
from adjudge.rubric.file import load_rubric
from adjudge.runs.recorded_rubric import rebuild_rubric
from adjudge.runs.redecision.question import Reading, make_reading

_NEEDED = ("id", "asked", "judge", "rubric", "digests", "dataset", "options")

_OF_STRATEGIES = ("quorum", "hedge_after", "escalate_below", "abstain_below")


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
        """The values that are to change, by their names."""
        values = {member.name: getattr(self, member.name) for member in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def keeps_judges(self) -> bool:
        """Return whether the judges decide as they did."""
        return not self.changes.keys() & {*_OF_STRATEGIES, "strategy", "fail_open", "judges"}


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
        """Raise ``UsageError``: nothing here may ever ask."""
        raise UsageError(f"{self.name} is not here; redeciding asks nobody")


def _read_function(members: Mapping[str, Any] | None) -> FunctionIdentity | None:
    if members is None:
        return None
    identity = FunctionIdentity(module=members["module"], qualname=members["qualname"], code=members["code"])
    if not all(isinstance(text, str) for text in (identity.module, identity.qualname, identity.code)):
        raise TypeError("a function is described by three texts")
    return identity


def read_policy(manifest: Mapping[str, Any], policy: RedecisionPolicy) -> tuple[Any, Reading]:
    """Read who decides, and by which rubric, from a manifest; raises ``UsageError`` for what cannot be."""
    if policy.all_cases and policy.rubric is None and policy.threshold is None:
        raise UsageError(
            "all_cases says which cases a rubric or a threshold is for; give one of them", argument="all_cases"
        )
    if policy.threshold is not None:
        check_share("threshold", policy.threshold)
    if policy.strategy is not None:
        check_choice("strategy", policy.strategy, get_args(Strategy))
    missing = [name for name in _NEEDED if name not in manifest]
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
    """Every single judge in a judge, at any depth."""
    if isinstance(judge, JudgeChain):
        return [leaf for _, seat in judge.seats for leaf in list_leaves(seat)]
    return [judge] if isinstance(judge, Judge) else []


def change_judge(judge: Any, policy: RedecisionPolicy) -> Any:
    """Change a judge's strategy, or leave out some of its seats. Raises ``UsageError``."""
    chain_options = {*_OF_STRATEGIES, "strategy", "fail_open"}
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
        # What belongs to the strategy it had goes with it.
        options = {**dict.fromkeys(_OF_STRATEGIES), **options}
    seats = _pick_seats(judge, policy.judges)
    usual = f"{judge.strategy}({', '.join(judge.names)})"
    return judge.replace(judges=seats, name="" if judge.name == usual else judge.name, **options)


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
    """Make the reading of recorded replies under another policy; raise ``UsageError`` for one that cannot be."""
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
    # Without a result format, each case brought its own.
    changes_weights = policy.rubric is not None or policy.threshold is not None
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
    """Copy a described judge without the rubrics of its seats: the run's own is settled, and those may name code."""
    plain: dict[str, Any] = {**to_plain(described), "rubric": None}
    return plain | ({"seats": [_drop_rubrics(seat) for seat in plain["seats"]]} if "seats" in plain else {})
