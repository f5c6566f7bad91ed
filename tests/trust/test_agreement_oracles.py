"""Every statistic equals that of scipy, statsmodels, scikit-learn or krippendorff, or says why it is undefined."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from adjudge.errors import UsageError
from adjudge.trust import (
    adjust_holm,
    compute_accuracy,
    compute_cohen_kappa,
    compute_f1,
    compute_gwet_ac1,
    compute_kendall,
    compute_krippendorff_alpha,
    compute_macro,
    compute_pearson,
    compute_precision,
    compute_sensitivity,
    compute_spearman,
    compute_specificity,
    make_agreement,
    make_bias,
    make_confusion,
    make_correlation,
    make_error_parts,
    make_order_flips,
    make_slices,
)
from kit.environment import require
from kit.oracles import ask, draw_pairs, is_near, need_oracles

# Importing the oracles takes long on a busy machine, and their checks of arguments longer than our statistics.

FEW = settings(max_examples=50)

SCORES = st.sampled_from([1, 2, 3, 4, 5])

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


def number(labels: list) -> list[int]:
    """Labels as numbers, which oracles of another origin all take: 0 bad, 1 good, 2 undecided."""
    return [2 if label is None else int(label) for label in labels]


def try_to(compute, *given_, **options) -> float | None:
    """The value, or ``None`` where it is refused as undefined: anything else fails the test."""
    try:
        value = compute(*given_, **options)
    except UsageError as error:
        if "not defined" not in str(error):
            raise
        return None
    assert math.isfinite(value)
    return value


def agree(ours: float | None, theirs: float) -> bool:
    """Equal to 1e-9, or undefined on both sides."""
    return not math.isfinite(theirs) if ours is None else is_near(ours, theirs)


@given(draw_pairs())
@example([(True, True)])
@example([(None, None)])
@settings(max_examples=50)
def test_shares_equal_those_of_scikit_learn(pairs):
    """Accuracy, recall of either class, precision and F1, undecided being one more class."""
    need_oracles(require, "sklearn")
    from sklearn import metrics

    judged, truth = zip(*pairs, strict=True)
    table, predicted, true = make_confusion(judged, truth, categories=(False, True)), number(judged), number(truth)
    theirs = ask(
        metrics.precision_recall_fscore_support, true, predicted, labels=[0, 1], average=None, zero_division=math.nan
    )

    assert is_near(compute_accuracy(table), sum(map(int.__eq__, predicted, true)) / len(true))
    assert agree(try_to(compute_sensitivity, table), theirs[1][1])
    assert agree(try_to(compute_specificity, table), theirs[1][0])
    assert agree(try_to(compute_precision, table), theirs[0][1])
    assert agree(try_to(compute_f1, table), theirs[2][1])


@given(draw_pairs(st.sampled_from(["a", "b", "c", None])))
@FEW
def test_macro_means_equal_those_of_scikit_learn(pairs):
    """Over the decided categories that occur; a division by 0 counts as 0 on both sides."""
    need_oracles(require, "sklearn")
    from sklearn.metrics import precision_recall_fscore_support

    judged, truth = ([label or "-" for label in side] for side in zip(*pairs, strict=True))
    labels = sorted({*judged, *truth} - {"-"})
    assume(labels)
    theirs = ask(precision_recall_fscore_support, truth, judged, labels=labels, average="macro", zero_division=0)
    ours = compute_macro(make_confusion(*zip(*pairs, strict=True)))

    assert all(map(is_near, ours, theirs[:3]))


@given(draw_pairs(st.sampled_from(["a", "b", "c", None])))
@example([("a", "a")])
@example([("a", "b")])
@FEW
def test_cohens_kappa_equals_that_of_scikit_learn(pairs):
    """Undecided is a category of its own; one category alone is undefined."""
    need_oracles(require, "sklearn")
    from sklearn.metrics import cohen_kappa_score

    judged, truth = zip(*pairs, strict=True)
    theirs = ask(cohen_kappa_score, [str(x) for x in judged], [str(x) for x in truth])

    assert agree(try_to(compute_cohen_kappa, make_confusion(judged, truth)), theirs)


@given(draw_pairs(SCORES), st.sampled_from(["linear", "quadratic"]))
@FEW
def test_weighted_kappa_equals_those_of_scikit_learn_and_statsmodels(pairs, weights):
    """Both weigh by places in the order of all categories, whether an item has them or not."""
    need_oracles(require, "sklearn", "statsmodels")
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    judged, truth = zip(*pairs, strict=True)
    table = make_confusion(judged, truth, categories=(1, 2, 3, 4, 5))
    ours = try_to(compute_cohen_kappa, table, weights=weights)

    assert agree(ours, ask(cohen_kappa_score, judged, truth, labels=[1, 2, 3, 4, 5], weights=weights))
    if ours is not None:
        assert is_near(ours, ask(cohens_kappa, table.counts, wt=weights, return_results=False))


@given(draw_pairs(st.sampled_from(["a", "b", "c"])))
@FEW
def test_gwets_ac1_follows_its_definition(pairs):
    """No oracle has it, so it is written down again: chance agrees if one of the two ratings is random."""
    need_oracles(require)
    judged, truth = zip(*pairs, strict=True)
    seen = sum(j == t for j, t in pairs) / len(pairs)
    shares = [Counter(judged + truth)[label] / (2 * len(pairs)) for label in "abc"]
    chance = sum(share * (1 - share) for share in shares) / 2
    ours = compute_gwet_ac1(make_confusion(judged, truth, categories=("a", "b", "c")))

    assert is_near(ours, (seen - chance) / (1 - chance))


@given(
    st.lists(st.lists(st.one_of(st.none(), SCORES), min_size=3, max_size=3), min_size=1, max_size=15),
    st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
)
@example([[None, None, None]], "nominal")
@example([[1, None, None], [None, 2, None]], "interval")
@example([[3, 3, 3]], "ordinal")
@settings(max_examples=300)
def test_krippendorffs_alpha_equals_that_of_krippendorff(rows, scale):
    """On every scale, with ratings missing anywhere; where it is undefined it says so."""
    need_oracles(require, "krippendorff")
    import krippendorff
    import numpy as np

    ratings = [{str(at): label for at, label in enumerate(row)} for row in rows]
    table = np.array([[np.nan if label is None else label for label in row] for row in rows], dtype=float).T
    try:
        theirs = ask(krippendorff.alpha, table, level_of_measurement=scale)
    except ValueError:  # no ratings, or one value alone
        theirs = math.nan

    ours = try_to(compute_krippendorff_alpha, ratings, scale=scale)
    if ours is None:
        paired = [row for row in rows if sum(label is not None for label in row) > 1]
        assert len({label for row in paired for label in row if label is not None}) < 2
    else:
        assert is_near(ours, theirs)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=30))
@example([(1.0, 1.0)])
@example([(1.0, 1.0), (1.0, 2.0)])
@example([(1e300, -1e300), (-1e300, 1e300), (0.0, 1.0)])
@settings(max_examples=300)
def test_correlations_equal_those_of_scipy(pairs):
    """Pearson, Spearman and Kendall's tau-b; a side with one value, or one item, is refused."""
    need_oracles(require)
    from scipy import stats

    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    oracles = (
        (compute_pearson, stats.pearsonr),
        (compute_spearman, stats.spearmanr),
        (compute_kendall, stats.kendalltau),
    )
    for compute, oracle in oracles:
        try:
            ours = compute(one, other)
        except UsageError:
            spread = [max(map(abs, side)) * 1e-12 for side in (one, other) if side]
            constant = [max(side) - min(side) <= least for side, least in zip((one, other), spread, strict=False)]
            assert len(pairs) < 2 or any(constant)
            continue
        theirs = ask(oracle, one, other).statistic
        assert not math.isfinite(theirs) or is_near(ours, theirs)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=40))
@FEW
def test_correlations_with_many_ties_equal_those_of_scipy(pairs):
    """Scores from 1 to 5 are mostly ties."""
    need_oracles(require)
    from scipy import stats

    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    assume(len(set(one)) > 1 and len(set(other)) > 1)

    assert is_near(compute_spearman(one, other), stats.spearmanr(one, other).statistic)
    assert is_near(compute_kendall(one, other), stats.kendalltau(one, other).statistic)


def test_intervals_of_correlations_equal_scipys():
    """Fisher's interval is scipy's; the others differ from it by their published variance alone."""
    need_oracles(require)
    from scipy import stats

    chance = random.Random(3)
    one = [chance.gauss(0, 1) for _ in range(60)]
    other = [value + chance.gauss(0, 1) for value in one]
    ours = make_correlation(one, other).per_item.pearson
    theirs = stats.pearsonr(one, other).confidence_interval(0.95)

    assert is_near(ours.low, theirs.low)
    assert is_near(ours.high, theirs.high)


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), max_size=12))
@example([0.05, 0.05, 0.05])
@settings(max_examples=25)
def test_adjusted_p_values_equal_those_of_statsmodels(p_values):
    """Holm's, in the order given."""
    need_oracles(require, "statsmodels")
    from statsmodels.stats.multitest import multipletests

    theirs = ask(multipletests, p_values, method="holm")[1] if p_values else []
    assert all(map(is_near, adjust_holm(p_values), theirs))
    assert len(adjust_holm(p_values)) == len(p_values)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, None, "0.5"])
def test_what_is_no_p_value_is_refused(wrong):
    """A p-value that is none would move all the others."""
    with pytest.raises(UsageError, match="p-value"):
        adjust_holm([0.5, wrong])


@given(st.lists(st.lists(SCORES, min_size=4, max_size=4), min_size=2, max_size=20))
@FEW
def test_the_intraclass_correlation_follows_scipys_analysis_of_variance(rows):
    """ICC(1) = (F - 1) / (F - 1 + repeats), with the F of a one-way analysis of variance."""
    need_oracles(require)
    from scipy.stats import f_oneway

    ours = make_error_parts(rows, [3.0] * len(rows), resamples=100).intraclass.value
    ratio = ask(f_oneway, *rows).statistic
    if math.isnan(ratio):
        assert ours is None
    elif math.isinf(ratio):
        assert is_near(ours, 1.0)
    else:
        assert is_near(ours, (ratio - 1) / (ratio + 3))


@given(st.lists(st.tuples(*[st.sampled_from(["first", "second", "tie", None])] * 2), min_size=1, max_size=30))
@FEW
def test_the_test_of_order_equals_scipys(pairs):
    """Conflicts that favour either place, by the exact binomial test."""
    need_oracles(require)
    from scipy.stats import binomtest

    flips = make_order_flips(*zip(*pairs, strict=True))
    assert flips.conflicts == flips.favouring_first + flips.favouring_second
    if flips.conflicts:
        assert is_near(flips.p_value, binomtest(flips.favouring_first, flips.conflicts).pvalue)
    else:
        assert flips.p_value is None


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_difference_of_kinds_equals_that_of_statsmodels(grouped, seed):
    """The p-value of a difference is that of a regression on the kind: robust (HC3), or clustered, with Student's t.

    An error that comes out below the one that holds if errors vary alike everywhere is that one instead.
    """
    need_oracles(require, "statsmodels")
    import numpy as np
    import statsmodels.api as sm
    from scipy.stats import t

    chance = random.Random(seed)
    items = 120
    places = [chance.choice([True, False]) for _ in range(items)]
    errors = [0.3 * place + chance.gauss(0, 1 + place) for place in places]
    groups = [at // 6 for at in range(items)] if grouped else None
    kinds = make_bias(errors, [0.0] * items, {"first": places}, groups=groups).kinds

    design = sm.add_constant(np.array([[str(place).lower() == kinds[0].name for place in places]], dtype=float).T)
    options = {"cov_type": "cluster", "cov_kwds": {"groups": np.array(groups)}} if grouped else {"cov_type": "HC3"}
    fit = ask(sm.OLS(errors, design).fit, use_t=True, **options)
    codes = np.array(groups) if grouped else np.arange(items)
    same = codes[:, None] == codes[None, :]
    products = np.outer(fit.resid, fit.resid)
    variance = fit.resid @ fit.resid / (items - design.shape[1])
    likeness = products[same & ~np.eye(items, dtype=bool)].sum() / (same.sum() - items) / variance if grouped else 0.0
    covariance = variance * np.where(same, np.clip(likeness, 0, 1), 0.0)
    np.fill_diagonal(covariance, variance)
    influence = np.linalg.pinv(design)
    alike = np.sqrt(np.diag(influence @ covariance @ influence.T))

    error = max(fit.bse[1], alike[1])
    assert kinds[0].p_value == kinds[1].p_value
    freedom = 19 if grouped else items - 2
    assert math.isclose(kinds[0].p_value, 2 * t.sf(abs(fit.params[1]) / error, freedom), rel_tol=1e-5)
    assert math.isclose(kinds[0].difference - kinds[1].difference, fit.params[1], rel_tol=1e-6)


def test_kinds_without_any_error_are_alike():
    """Where every answer is right, nothing tells the kinds apart, in groups or not; rounding is no difference."""
    need_oracles(require)
    for groups in (None, list(range(40))):
        sliced = make_slices([True] * 40, [True] * 40, ["a", "b"] * 20, groups=groups)
        assert [item.p_value for item in sliced.slices] == [1.0, 1.0]


def test_kinds_are_compared_by_fishers_exact_test():
    """The p-value of a kind is scipy's, for the table of right and wrong, inside and outside."""
    need_oracles(require)
    from scipy.stats import fisher_exact

    judged = [True] * 12 + [False] * 8 + [True] * 37 + [False] * 3
    sliced = make_slices(judged, [True] * 60, ["a"] * 20 + ["b"] * 40)

    assert is_near(sliced.worst.p_value, fisher_exact([[12, 8], [37, 3]])[1])


@given(draw_pairs(st.sampled_from(["a", "b", None])))
@FEW
def test_agreement_gathers_what_the_functions_compute(pairs):
    """One call has the same values as each function alone."""
    need_oracles(require)
    judged, truth = zip(*pairs, strict=True)
    agreement, table = make_agreement(judged, truth, positive="a", resamples=100), make_confusion(judged, truth)
    assert agreement.confusion == table
    assert agreement.cohen_kappa.value == try_to(compute_cohen_kappa, table)
    ratings = [{"j": j or "-", "t": t or "-"} for j, t in pairs]
    alpha = try_to(compute_krippendorff_alpha, ratings)
    ours = agreement.krippendorff_alpha.value
    assert (ours is None) == (alpha is None)
    assert ours is None or is_near(ours, alpha)
