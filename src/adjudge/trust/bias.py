"""Bias: does the judge's error follow the position, length, format or language of an answer?

The error (judge minus truth) is regressed on all effects at once, so that a language whose answers are longer is not
blamed for their length. Standard errors are robust (HC3), or follow the groups that items come in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.formats.text import clean, show
from adjudge.trust.extra import check_extra
from adjudge.trust.multiplicity import adjust_holm
from adjudge.trust.regression import fit_robustly
from adjudge.trust.resampling import number_groups
from adjudge.trust.scores import check_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

LEAST_ITEMS = 30
LEAST_PER_EFFECT = 10
"""Items for each effect that is estimated (F. E. Harrell, "Regression Modeling Strategies", 2001, section 4.4)."""
LEAST_PER_LEVEL = 5
LEAST_GROUPS = 10

ALPHA = 0.05

CLOSE = 1e-8
"""An effect of which less than this share is its own is told by the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How the judge's error changes with one property of an answer, all others being equal."""

    name: str
    """The property."""
    level: str | None
    """The value of the property that is compared; ``None`` for a number."""
    baseline: str | None
    """The value that it is compared with, the most frequent; ``None`` for a number."""
    effect: float
    """How much higher the error (judge minus truth) is: per unit of a number, or at the level than at the baseline."""
    low: float
    high: float
    """The 95 % interval of this effect alone: it may exclude 0 where ``adjusted`` says that chance explains it."""
    p_value: float
    adjusted: float
    """The p-value adjusted for the number of effects (Holm)."""
    words: str
    """The result in one sentence."""

    @property
    def is_shown(self) -> bool:
        """Whether the effect is more than chance at 5 %, all effects considered."""
        return self.adjusted < ALPHA

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return {name: getattr(self, name) for name in self.__slots__} | {"is_shown": self.is_shown}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """How the judge's error depends on properties of answers."""

    items: int
    groups: int | None
    effects: tuple[Effect, ...]
    refused: Mapping[str, str]
    """Properties whose effect cannot be estimated, each with the reason in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        shown: dict[str, Any] = {"items": self.items, "groups": self.groups, "refused": dict(self.refused)}
        return shown | {"effects": [effect.to_dict() for effect in self.effects]}


def make_bias(
    errors: Sequence[float],
    properties: Mapping[str, Sequence[bool | float | str]],
    *,
    groups: Sequence[Hashable] | None = None,
) -> Bias:
    """Regress a judge's errors on properties of what it judged, such as position, length, format and language.

    ``errors`` are judge minus truth: of scores, or of verdicts as 1 and 0. A property has one value for each item: true
    or false, numbers (a change per unit; give lengths as a logarithm to base 2 for a change per doubling), or texts,
    each compared with the most frequent. ``groups`` (one name for each item) makes the errors follow the groups.

    A property is refused, with the reason, if it does not vary, if it follows from those before it, or if a value has
    fewer than 5 items (or occurs in fewer than 5 groups). Raises ``UsageError`` for fewer than 30 items, fewer than 10
    items for each effect, fewer than 10 groups, errors that are all equal, and where no property remains.
    """
    check_extra()
    import numpy as np

    outcome = _read_errors(errors, properties)
    clusters = None if groups is None else number_groups(groups, len(outcome))
    if clusters is not None and clusters[1] < LEAST_GROUPS:
        raise UsageError(
            f"errors that follow groups need at least {LEAST_GROUPS} groups, got {clusters[1]}; label more"
        )
    kept: list[_Column] = []
    refused: dict[str, str] = {}
    for name, values in properties.items():
        columns = _read_property(name, values)
        why = _find_reason(columns, kept, values, clusters)
        if why:
            refused[name] = why
        else:
            kept += columns
    if not kept:
        reasons = "; ".join(f"{show(name)}: {why}" for name, why in refused.items()) or "none was given"
        raise UsageError(f"no property is left whose effect can be estimated ({reasons}); give one that varies")
    if len(outcome) < LEAST_PER_EFFECT * len(kept):
        raise UsageError(
            f"{len(kept)} effects need {LEAST_PER_EFFECT * len(kept)} items, got {len(outcome)}; "
            "leave properties out, or label more items"
        )
    design = np.column_stack(
        [np.ones(len(outcome)), *((column.values - column.centre) / column.unit for column in kept)]
    )
    fit = fit_robustly(design, outcome, clusters)
    p_values, (low, high) = fit.find_p_values()[1:], fit.find_limits()
    adjusted = adjust_holm([float(value) for value in p_values])
    effects = [
        _make_effect(
            column,
            (float(fit.values[at + 1]), float(low[at + 1]), float(high[at + 1])),
            (float(p_values[at]), adjusted[at]),
            len(kept),
        )
        for at, column in enumerate(kept)
    ]
    number = None if clusters is None else clusters[1]
    return Bias(items=len(outcome), groups=number, effects=tuple(effects), refused=refused)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column of the design, and what it compares."""

    name: str
    level: str | None
    baseline: str | None
    values: Floats
    centre: float = 0.0
    unit: float = 1.0
    """The column is divided by it, so that numbers of any size can be inverted; effects are divided back."""


def _read_errors(errors: Sequence[float], properties: Mapping[str, Sequence[bool | float | str]]) -> Floats:
    import numpy as np

    for error in errors:
        check_score(error, what="an error", remedy="leave out items without one")
    if len(errors) < LEAST_ITEMS:
        raise UsageError(f"bias needs at least {LEAST_ITEMS} items, got {len(errors)}; label more")
    for name, values in properties.items():
        if len(values) != len(errors):
            raise UsageError(f"{show(name)} has {len(values):,} values of {len(errors):,} items; give one of each")
    outcome = np.array(errors, dtype=float)
    if np.ptp(outcome) == 0:
        raise UsageError(
            f"the judge's error is {outcome[0]:g} on every item, so nothing explains it; label other items"
        )
    return outcome


def _read_property(name: str, values: Sequence[bool | float | str]) -> list[_Column]:
    """The columns of one property: none where it does not vary, one for a number, else one for each further level."""
    import numpy as np

    if not any(isinstance(value, bool | str) for value in values):
        for value in values:
            check_score(value, what=show(name), remedy="use numbers, texts, or true and false")
        column = np.array(values, dtype=float)
        if np.ptp(column) <= 1e-12 * np.abs(column).max():
            return []
        centre, unit = float(column.mean()), float(column.std())
        return [_Column(name=name, level=None, baseline=None, values=column, centre=centre, unit=unit)]
    if len({type(value) for value in values}) > 1:
        raise UsageError(f"{show(name)} mixes texts, numbers or true and false; use one of them")
    levels = [str(value).lower() if isinstance(value, bool) else str(value) for value in values]
    (baseline, _), *others = sorted(Counter(levels).items(), key=lambda item: (-item[1], item[0]))
    array = np.array(levels, dtype=object)
    return [
        _Column(name=name, level=level, baseline=baseline, values=(array == level).astype(float)) for level, _ in others
    ]


def _find_reason(
    columns: Sequence[_Column],
    kept: Sequence[_Column],
    values: Sequence[bool | float | str],
    clusters: tuple[NDArray[np.int64], int] | None,
) -> str:
    """Why a property cannot be estimated; empty if it can."""
    import numpy as np

    if not columns:
        return f"every item has the value {show(values[0])}"
    for column in columns:
        if column.level is None:
            continue
        inside = column.values > 0
        for side, level in ((inside, column.level), (~inside, column.baseline)):
            if side.sum() < LEAST_PER_LEVEL:
                return f"the value {show(level)} has {int(side.sum())} items; at least {LEAST_PER_LEVEL} are needed"
            if clusters is not None and len(np.unique(clusters[0][side])) < LEAST_PER_LEVEL:
                return f"the value {show(level)} occurs in fewer than {LEAST_PER_LEVEL} groups"
    basis = np.column_stack([np.ones(len(values)), *((item.values - item.centre) / item.unit for item in kept)])
    for column in columns:
        centred = (column.values - column.centre) / column.unit
        rest = centred - basis @ np.linalg.lstsq(basis, centred, rcond=None)[0]
        if np.linalg.norm(rest) < CLOSE * np.linalg.norm(centred):
            return "it follows from the properties before it, so their effects cannot be told apart"
        basis = np.column_stack([basis, centred])
    return ""


def _make_effect(
    column: _Column, limits: tuple[float, float, float], p_values: tuple[float, float], number: int
) -> Effect:
    effect, low, high = (value / column.unit for value in limits)
    found = Effect(
        name=column.name,
        level=column.level,
        baseline=column.baseline,
        effect=effect,
        low=low,
        high=high,
        p_value=p_values[0],
        adjusted=p_values[1],
        words="",
    )
    return replace(found, words=_write_words(found, number))


def _write_words(effect: Effect, number: int) -> str:
    name = clean(effect.name, keep_lines=False)
    what = f"for each unit of {name}"
    if effect.level is not None and effect.baseline is not None:
        level, baseline = clean(effect.level, keep_lines=False), clean(effect.baseline, keep_lines=False)
        what = f"where {name} is {level} than where it is {baseline}"
    alone, together = (" of this effect alone", f" with all {number} effects considered") if number > 1 else ("", "")
    figures = f"95 % interval{alone} {effect.low:+.3g} to {effect.high:+.3g}; p = {effect.adjusted:.3g}{together}"
    direction = "higher" if effect.effect > 0 else "lower"
    size = f"The judge's error is {abs(effect.effect):.3g} {direction} {what}"
    if effect.is_shown:
        return f"{size} ({figures})."
    return f"No effect of {name} is shown: {size[0].lower()}{size[1:]}, which chance can explain ({figures})."
