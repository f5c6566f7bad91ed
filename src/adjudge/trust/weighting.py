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
"""The coefficients that are estimated, in the order in which ``_estimate_coefficients`` computes them."""


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
    has_labels = labelled > 0
    # Where a stratum has no label, the others are no census, even if each of their cases has one.
    whole = whole and bool(has_labels.all() or (labelled[has_labels] < cases[has_labels]).any())
    counts, cases = counts[has_labels], cases[has_labels]
    shares = _list_shares(agreement)
    estimates: dict[str, Any] = {
        name: _estimate_share(getattr(agreement, name).note, counts, cases, cells, whole=whole)
        for name, cells in shares.items()
    }
    estimates |= _estimate_coefficients(agreement, counts, cases)
    weighted_table = (counts * (cases / counts.sum(axis=(1, 2)))[:, None, None]).sum(axis=0)
    truth_totals = zip(agreement.confusion.categories, weighted_table.sum(axis=1), strict=True)
    prevalence = {category: float(number / weighted_table.sum()) for category, number in truth_totals}
    items = agreement.confusion.items
    baselines = [
        replace(baseline, accuracy=Share(count=prevalence[baseline.category] * items, of=items))
        for baseline in agreement.baselines
    ]
    # With two categories weighted kappa is Cohen's, and with more it needs an order, which is not known here.
    weighted_kappa = estimates["cohen_kappa"]
    if len([category for category in agreement.confusion.categories if category is not None]) > 2:
        weighted_kappa = Estimate(value=None, of=items, note="left out: categories have no order here")
    kappas = {"linear_kappa": weighted_kappa, "quadratic_kappa": weighted_kappa}
    changed: dict[str, Any] = {**estimates, **kappas, "baselines": tuple(baselines)}
    return replace(agreement, **changed)


Cells = tuple["NDArray[np.bool_]", "NDArray[np.bool_]"]
"""The cells of a confusion table whose items a share counts, and the cells whose items it is a share of."""


def _list_shares(agreement: Agreement) -> dict[str, Cells]:
    """List for each share the cells that it counts, and the cells that it is a share of.

    A row of the table is a true category, a column a category of the judge.
    """
    import numpy as np

    categories = agreement.confusion.categories
    size = len(categories)
    all_cells, no_cells = np.ones((size, size), dtype=bool), np.zeros((size, size), dtype=bool)
    good = categories.index(agreement.positive)
    truly_good, judged_good, caught, truly_bad, both_good = (no_cells.copy() for _ in range(5))
    truly_good[good], judged_good[:, good], both_good[good, good] = True, True, True
    bad = find_bad(categories, agreement.positive)
    truly_bad[bad] = True
    caught[np.ix_(bad, bad)] = True
    return {
        "accuracy": (np.eye(size, dtype=bool), all_cells),
        "sensitivity": (both_good, truly_good),
        "specificity": (caught, truly_bad),
        "precision": (both_good, judged_good),
        "prevalence": (truly_good, all_cells),
        "judge_rate": (judged_good, all_cells),
    }


def _estimate_share(reason: str, counts: Floats, cases: Floats, cells: Cells, *, whole: bool) -> Estimate:
    """Estimate the weighted share of the items in the second ``cells`` that are in the first.

    ``counts`` has a confusion table for each stratum, and ``cases`` the strata's sizes.
    """
    counted_cells, base_cells = cells
    base, counted = (counts * base_cells).sum(axis=(1, 2)), (counts * counted_cells).sum(axis=(1, 2))
    return estimate_weighted_share(counted, base, counts.sum(axis=(1, 2)), cases, reason=reason, whole=whole)


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
    """Estimate a ratio of two weighted counts, with the Wilson interval of its effective number of cases.

    Each array has an entry for each stratum. Of its ``cases``, ``labelled`` ones were drawn at random; of these,
    ``of`` are of the kind that the share is of, and ``counts`` of them count. Each stratum has a label. Where all
    ``of`` are 0 there is no value, and ``reason`` is the note. With ``whole`` the population is these cases and no
    more, so the labelled part of it is known (finite population correction); otherwise the cases are a sample
    themselves. Needs ``adjudge[trust]``.
    """
    import numpy as np

    weights = cases / labelled
    items = int(of.sum())
    if not items:
        return Estimate(value=None, of=0, note=reason)
    weighted_total = (weights * of).sum()
    rate = float((weights * counts).sum() / weighted_total)
    # A case that counts differs from the rate by 1 - rate, one of the same kind that does not by -rate, and any other
    # by 0. A stratum in which nothing varied is not known to be all alike: without one case more that counts and one
    # that does not, large strata with a few rare errors leave an interval of 95 % a coverage of 46 %.
    counting, not_counting, total = counts + 1, of - counts + 1, labelled + 2
    mean = (counting * (1 - rate) - not_counting * rate) / total
    case_variance = (counting * (1 - rate) ** 2 + not_counting * rate**2) / total - mean**2
    unlabelled_share = 1 - labelled / cases if whole else np.ones(len(cases))
    variance = float((cases**2 * unlabelled_share * case_variance / labelled).sum() / weighted_total**2)
    # Where nothing varied, only the unequal weights make the labels worth fewer (Kish).
    effective_size = float(weighted_total**2 / (weights**2 * of).sum())
    if 0 < rate < 1 and variance > 1e-15:
        effective_size = rate * (1 - rate) / variance
    if whole and not unlabelled_share.any():
        return Estimate(value=rate, of=items, low=rate, high=rate, method="counted")
    effective_size = max(effective_size, 1e-6)
    low, high = find_interval(min(rate * effective_size, effective_size), effective_size, level)
    return Estimate(value=rate, of=items, low=low, high=high, level=level, method="Wilson, weighted by strata")


def _estimate_coefficients(agreement: Agreement, counts: Floats, cases: Floats) -> dict[str, Estimate]:
    """Estimate the coefficients of the weighted table, with limits of a bootstrap within the strata.

    ``counts`` has a confusion table for each stratum, and ``cases`` the strata's sizes.
    """
    import numpy as np

    categories = agreement.confusion.categories
    size, good = len(categories), categories.index(agreement.positive)

    def measure(tables: Floats) -> Floats:
        """Compute every coefficient of each table, one column for each, in the order of ``_COEFFICIENTS``."""
        # Each pair of labels counted in both orders, so that judge and truth are two raters alike.
        symmetric = tables + tables.transpose(0, 2, 1)
        f1 = divide(2 * tables[:, good, good], symmetric[:, good].sum(axis=1), np.nan)
        alpha = measure_alpha(symmetric.reshape(len(tables), -1), np.arange(size, dtype=float), "nominal")
        macro = measure_macro(tables, categories).T
        return np.stack([*macro, f1, measure_cohen(tables), measure_gwet(tables), alpha], axis=1)

    random = np.random.default_rng(agreement.seed)
    labelled = counts.sum(axis=(1, 2))
    # The weighted tables are scaled to as many items as were labelled: alpha depends on their number.
    scale = labelled.sum() / cases.sum()
    resampled_tables = np.zeros((RESAMPLES, size, size))
    for table, label_count, stratum_cases in zip(counts, labelled, cases, strict=True):
        # One draw fewer than there are labels, so that the variance within a stratum is the right one.
        draws = max(int(label_count) - 1, 1)
        tables = random.multinomial(draws, table.ravel() / label_count, size=RESAMPLES).reshape(-1, size, size)
        resampled_tables += tables * (scale * stratum_cases / draws)
    values = measure((counts * (scale * cases / labelled)[:, None, None]).sum(axis=0)[None])[0]
    resampled, items = measure(resampled_tables), agreement.confusion.items
    return {
        name: make_estimate(
            float(values[column]),
            items,
            resampled[:, column],
            items,
            "bootstrap within strata",
            reason=getattr(agreement, name).note,
        )
        for column, name in enumerate(_COEFFICIENTS)
    }
