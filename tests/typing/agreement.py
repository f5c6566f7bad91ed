"""The types of what statistics of agreement take and give; checked, and never run."""

from typing import assert_type

from adjudge.trust import (
    Agreement,
    AlternativeTest,
    AnnotatorTest,
    Baseline,
    Bias,
    BiasKind,
    Ceiling,
    Coefficients,
    Confusion,
    Correlation,
    ErrorParts,
    Estimate,
    OrderFlips,
    RaterPair,
    Repeatability,
    Share,
    Slice,
    Slices,
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
    find_bootstrap_interval,
    make_agreement,
    make_alternative_test,
    make_bias,
    make_ceiling,
    make_confusion,
    make_correlation,
    make_error_parts,
    make_order_flips,
    make_repeatability,
    make_slices,
)

table = make_confusion([True, None], [True, False])
assert_type(table, Confusion)
assert_type(compute_accuracy(table), float)
assert_type(compute_sensitivity(table, positive="good"), float)
assert_type(compute_specificity(table), float)
assert_type(compute_precision(table), float)
assert_type(compute_f1(table), float)
assert_type(compute_macro(table), tuple[float, float, float])
assert_type(compute_cohen_kappa(table, weights="linear"), float)
compute_cohen_kappa(table, weights="cubic")  # pyrefly: ignore[bad-argument-type]
assert_type(compute_gwet_ac1(table), float)

found = make_agreement([1, 2], [1, None], groups=["a", "b"], categories=(1, 2, 3))
assert_type(found, Agreement)
assert_type(found.cohen_kappa, Estimate)
assert_type(found.cohen_kappa.interval, tuple[float, float] | None)
assert_type(found.estimates, dict[str, Estimate])
assert_type(found.baselines, tuple[Baseline, ...])

ratings = [{"ann": 1, "bob": None}]
assert_type(compute_krippendorff_alpha(ratings, scale="ordinal"), float)
assert_type(make_ceiling(ratings), Ceiling)
assert_type(make_ceiling(ratings).pairs, tuple[RaterPair, ...])

tested = make_alternative_test(["x"], [{"ann": "x"}], epsilon=0.2)
assert_type(tested, AlternativeTest)
assert_type(tested.annotators, tuple[AnnotatorTest, ...])

assert_type(compute_pearson([1, 2], [2.5, 1]), float)
assert_type(compute_spearman([1, 2], [2.5, 1]), float)
assert_type(compute_kendall([1, 2], [2.5, 1]), float)
assert_type(make_correlation([1, None], [2.5, 1]), Correlation)
assert_type(make_correlation([1], [1]).over_groups, Coefficients | None)

assert_type(make_repeatability([[True, None]]), Repeatability)
assert_type(make_error_parts([[True, False]], [True]), ErrorParts)
assert_type(make_order_flips(["first"], [None]), OrderFlips)
assert_type(make_order_flips(["first"], [None]).flips, Share)
make_order_flips(["A"], ["B"])  # pyrefly: ignore[bad-argument-type]

assert_type(make_bias([1.0], [0.0], {"length": [1.0], "language": ["en"]}), Bias)
assert_type(make_bias([1.0], [0.0], {"first": [True]}).kinds, tuple[BiasKind, ...])
assert_type(make_slices([True], [True], ["en"]), Slices)
assert_type(make_slices([True], [True], ["en"]).worst, Slice | None)
assert_type(find_bootstrap_interval([1.0, 2.0]), tuple[float, float])
