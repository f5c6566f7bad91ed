"""Agreement from labels that were drawn with unequal probabilities: every count is weighed by what it stands for.

Labels of a plan come from strata, and more of one stratum than of another. Counted alike they mislead: where more of a
judge's fails are labelled than of its passes, it seems to catch more bad answers than it does (verification bias; C. B.
Begg and R. A. Greenes, "Assessment of diagnostic tests when disease verification is subject to selection bias", 1983).

Sources: W. G. Cochran, "Sampling techniques", 1977, section 6.11 (the combined ratio estimate and its variance); E. L.
Korn and B. I. Graubard, "Confidence intervals for proportions with small expected number of positive counts estimated
from survey data", 1998 (effective sample size); J. N. K. Rao and C. F. J. Wu, "Resampling inference with complex survey
data", 1988 (the bootstrap within strata).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adjudge.errors import UsageError
from adjudge.trust.agreement import Agreement
from adjudge.trust.coefficients import measure_alpha, measure_cohen, measure_gwet
from adjudge.trust.confusion import divide, find_bad, measure_macro
from adjudge.trust.extra import check_extra
from adjudge.trust.intervals import LEVEL, Estimate, Share, find_interval
from adjudge.trust.resampling import RESAMPLES, make_estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from adjudge.trust.extra import Floats

_COEFFICIENTS = ("macro_precision", "macro_recall", "macro_f1", "f1", "cohen_kappa", "gwet_ac1",
                 "krippendorff_alpha")  # fmt: skip


def weigh_agreement(
    agreement: Agreement, tables: Sequence[Sequence[Sequence[int]]], sizes: Sequence[int], *, whole: bool = True
) -> Agreement:
    """The same agreement, with estimates for the whole population that the strata are of.

    Strata without a label count for nothing. The confusion table stays as it was counted. Raises ``UsageError`` for
    tables that do not add up, and for a stratum with more labels than cases.

    Args:
        agreement: The agreement as it was counted.
        tables: A table for each stratum, in the categories of ``agreement.confusion`` (a row for each true category),
            that add up to it.
        sizes: How many cases each stratum has.
        whole: Whether the population is these cases and no more, of which what was labelled is known; otherwise the
            cases are a sample themselves.
    """
    check_extra()
    import numpy as np

    counts, cases = np.asarray(tables, dtype=float), np.asarray(sizes, dtype=float)
    if counts.ndim != 3 or counts.sum(axis=0).tolist() != [list(row) for row in agreement.confusion.counts]:
        raise UsageError("the tables of the strata must add up to the confusion table; count each label in one of them")
    labelled = counts.sum(axis=(1, 2))
    if len(cases) != len(counts) or bool((labelled > cases).any()):
        raise UsageError(f"each stratum needs its size, at least as large as its labels; got {list(sizes)}")
    held = labelled > 0
    # Without a stratum that nobody labelled, the others are no census, though each of their cases has a label.
    whole = whole and bool(held.all() or (labelled[held] < cases[held]).any())
    counts, cases = counts[held], cases[held]
    shares = _list_shares(agreement)
    estimates: dict[str, Any] = {
        name: _estimate_share(getattr(agreement, name).note, counts, cases, cells, whole=whole)
        for name, cells in shares.items()
    }
    estimates |= _estimate_coefficients(agreement, counts, cases)
    total = (counts * (cases / counts.sum(axis=(1, 2)))[:, None, None]).sum(axis=0)
    totals = zip(agreement.confusion.categories, total.sum(axis=1), strict=True)
    prevalence = {category: float(number / total.sum()) for category, number in totals}
    of = agreement.confusion.items
    baselines = [
        replace(baseline, accuracy=Share(count=prevalence[baseline.category] * of, of=of))
        for baseline in agreement.baselines
    ]
    nothing = Estimate(value=None, of=of, note="left out: categories have no order here")
    ordered = {"linear_kappa": estimates["cohen_kappa"], "quadratic_kappa": estimates["cohen_kappa"]}
    if len([baseline for baseline in agreement.confusion.categories if baseline is not None]) > 2:
        ordered = dict.fromkeys(ordered, nothing)
    changed: dict[str, Any] = {**estimates, **ordered, "baselines": tuple(baselines)}
    return replace(agreement, **changed)


Cells = tuple["NDArray[np.bool_]", "NDArray[np.bool_]"]
"""The cells of a table that a share counts, and those it is of; the first are among the second."""


def _list_shares(agreement: Agreement) -> dict[str, Cells]:
    """List the cells that each share counts, and those it is of."""
    import numpy as np

    categories = agreement.confusion.categories
    size = len(categories)
    every, none = np.ones((size, size), dtype=bool), np.zeros((size, size), dtype=bool)
    good = categories.index(agreement.positive)
    row, column, caught, wrong, hit = (none.copy() for _ in range(5))
    row[good], column[:, good], hit[good, good] = True, True, True
    bad = find_bad(categories, agreement.positive)
    wrong[bad] = True
    caught[np.ix_(bad, bad)] = True
    return {
        "accuracy": (np.eye(size, dtype=bool), every),
        "sensitivity": (hit, row),
        "specificity": (caught, wrong),
        "precision": (hit, column),
        "prevalence": (row, every),
        "judge_rate": (column, every),
    }


def _estimate_share(reason: str, counts: Floats, cases: Floats, cells: Cells, *, whole: bool) -> Estimate:
    x, y = (counts * cells[1]).sum(axis=(1, 2)), (counts * cells[0]).sum(axis=(1, 2))
    return estimate_weighted_share(y, x, counts.sum(axis=(1, 2)), cases, reason=reason, whole=whole)


def estimate_weighted_share(
    counts: Floats,
    of: Floats,
    labelled: Floats,
    cases: Floats,
    *,
    reason: str = "",
    whole: bool = True,
    level: float = LEVEL,
) -> Estimate:
    """Estimate a ratio of two weighted counts, with the Wilson interval of as many cases as it is worth.

    Each array has an entry for each stratum: of its ``cases``, ``labelled`` ones were drawn at random, of which ``of``
    are of the kind that the share is of, and ``counts`` among these are counted. No stratum is without a label.
    ``reason`` is the note of an estimate that nothing is of. ``whole``: the population is these cases and no more, so
    what was labelled of it is known (finite population correction); otherwise the cases are a sample themselves. Needs
    ``adjudge[trust]``.
    """
    import numpy as np

    y, x, weights = counts, of, cases / labelled
    items = int(x.sum())
    if not items:
        return Estimate(value=None, of=0, note=reason)
    rate = float((weights * y).sum() / (weights * x).sum())
    # Per case: what it adds to the count minus what it adds to the rate's share of those it is counted of. A stratum
    # in which nothing varied is not known to be all alike: without one more of each kind, large strata with a few rare
    # errors leave an interval of 95 % a coverage of 46 %.
    more, fewer, number = y + 1, x - y + 1, labelled + 2
    mean = (more * (1 - rate) - fewer * rate) / number
    spread = (more * (1 - rate) ** 2 + fewer * rate**2) / number - mean**2
    left = 1 - labelled / cases if whole else np.ones(len(cases))
    variance = float((cases**2 * left * spread / labelled).sum() / (weights * x).sum() ** 2)
    # Where nothing varied, the labels are worth fewer for being weighed unequally (Kish).
    plain = float((weights * x).sum() ** 2 / (weights**2 * x).sum())
    worth = rate * (1 - rate) / variance if 0 < rate < 1 and variance > 1e-15 else plain
    if whole and not left.any():
        return Estimate(value=rate, of=items, low=rate, high=rate, method="counted")
    worth = max(worth, 1e-6)
    low, high = find_interval(min(rate * worth, worth), worth, level)
    return Estimate(value=rate, of=items, low=low, high=high, level=level, method="Wilson, weighted by strata")


def _estimate_coefficients(agreement: Agreement, counts: Floats, cases: Floats) -> dict[str, Estimate]:
    """The coefficients of the weighted table, with limits of a bootstrap within the strata."""
    import numpy as np

    categories = agreement.confusion.categories
    size, good = len(categories), categories.index(agreement.positive)

    def measure(tables: Floats) -> Floats:
        either = tables + tables.transpose(0, 2, 1)
        f1 = divide(2 * tables[:, good, good], either[:, good].sum(axis=1), np.nan)
        alpha = measure_alpha(either.reshape(len(tables), -1), np.arange(size, dtype=float), "nominal")
        macro = measure_macro(tables, categories).T
        return np.stack([*macro, f1, measure_cohen(tables), measure_gwet(tables), alpha], axis=1)

    random = np.random.default_rng(agreement.seed)
    labelled = counts.sum(axis=(1, 2))
    # To scale: a coefficient is of as many items as were labelled, however many they stand for.
    scale = labelled.sum() / cases.sum()
    drawn = np.zeros((RESAMPLES, size, size))
    for table, number, of in zip(counts, labelled, cases, strict=True):
        # One fewer than there are, so that the variance within a stratum is the right one.
        times = max(int(number) - 1, 1)
        some = random.multinomial(times, table.ravel() / number, size=RESAMPLES).reshape(-1, size, size)
        drawn += some * (scale * of / times)
    values = measure((counts * (scale * cases / labelled)[:, None, None]).sum(axis=0)[None])[0]
    limits, of = measure(drawn), agreement.confusion.items
    return {
        name: make_estimate(
            float(values[at]), of, limits[:, at], of, "bootstrap within strata", reason=getattr(agreement, name).note
        )
        for at, name in enumerate(_COEFFICIENTS)
    }
