"""Sentences about the difference of two systems or two judges, the same on a terminal, on a page and in a comment."""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.formats.numbers import count_digits, format_decimal, format_points
from adjudge.measurement.gate_limit import LimitKind
from adjudge.measurement.judge_difference import JudgeDifference, ShareDifference
from adjudge.measurement.preference_difference import PreferenceDifference
from adjudge.measurement.run_difference import SystemDifference
from adjudge.templates.figures import format_count
from adjudge.trust.rate_difference import RateDifference

_MOST_DIGITS = 6
"""Digits after the point that a limit in points gets at most, so that it is not shown as 0."""


def describe_systems(difference: SystemDifference, earlier: str, later: str, *, margin: float | None = None) -> str:
    """Describe which of two systems people would pass more often: one sentence.

    ``earlier`` and ``later`` are the names of the runs, and ``margin`` is how much worse the later one may be, as a
    share.
    """
    rate = difference.rate
    if rate is None:
        return f"Whether people would pass {later} more often than {earlier} is not known: {difference.because}."
    not_worse = _describe_margin(rate.low, margin)
    if rate.is_shown:
        addition = f": {not_worse}" if not_worse else ""
        return f"People would pass {later} {_describe_limits(rate.low, rate.high)} often than {earlier}{addition}."
    if not_worse:
        between = f"between {_describe_limit(rate.low)} and {_describe_limit(rate.high)}"
        return f"By people's labels {later} is {not_worse} than {earlier}: the difference is {between}."
    if _is_counted(rate, difference.limit) and not rate.value:
        return f"People would pass {later} exactly as often as {earlier}."
    sentence = f"These labels cannot tell whether people would pass {later} more often than {earlier}: "
    sentence += f"the difference is between {_describe_limit(rate.low)} and {_describe_limit(rate.high)}"
    more = _describe_more(rate.more, "labelled question", difference.limit)
    new_plan = ""
    if rate.more is not None and difference.left == 0:
        new_plan = ", in a new plan: delete plan.json of both runs, then adjudge plan --against with a smaller --within"
    return f"{sentence}{more}{new_plan}."


def list_system_facts(difference: SystemDifference) -> Iterator[tuple[str, str]]:
    """Yield the figures behind the sentence, each with its name."""
    rate = difference.rate
    if rate is None:
        yield "labelled", format_count(difference.questions, "question")
        return
    yield "difference", _format_difference(rate, difference.limit)
    yield "by the judge alone", f"{format_points(rate.judged, sign=True)} points"
    unresolved = f", {rate.unresolved:,} of them unresolved" if rate.unresolved else ""
    yield "labelled", f"both answers of {rate.labels:,} of {format_count(rate.questions, 'question')}{unresolved}"
    if difference.limit == "one look" and not rate.unresolved:
        yield "worth", f"as much as {format_count(rate.worth, 'labelled question')} without a judge"
    yield "limits", difference.because


def describe_preference(difference: PreferenceDifference) -> str:
    """Describe which of the two contents of pairs people would prefer more often: one sentence."""
    rate = difference.rate
    if rate is None:
        return f"Which of the two people would prefer more often is not known: {difference.because}."
    if _is_counted(rate, difference.limit) and not rate.value:
        return "People would prefer both equally often."
    if not rate.is_shown:
        limits = f"between {_describe_limit(rate.low)} and {_describe_limit(rate.high)} than for the first"
        sentence = "These labels cannot tell which of the two people would prefer more often: for the second it is "
        return f"{sentence}{limits}{_describe_more(rate.more, 'labelled pair', difference.limit)}."
    better, worse = ("second", "first") if rate.low > 0 else ("first", "second")
    low, high = sorted((abs(rate.low), abs(rate.high)))
    verb = "prefer" if _is_counted(rate, difference.limit) else "would prefer"
    return f"People {verb} the {better} {_describe_limits(low, high)} often than the {worse}."


def list_preference_facts(difference: PreferenceDifference) -> Iterator[tuple[str, str]]:
    """Yield the figures behind the sentence about pairs, each with its name."""
    rate = difference.rate
    if rate is None:
        return
    yield "second less first", _format_difference(rate, difference.limit)
    yield "by the judge alone", f"{format_points(rate.judged, sign=True)} points"
    if difference.limit == "one look" and not rate.unresolved:
        yield "worth", f"as much as {format_count(rate.worth, 'labelled pair')} without a judge"


def describe_judges(difference: JudgeDifference, earlier: str, later: str, *, margin: float | None = None) -> str:
    """Describe which of two judges decides as people do more often: one sentence.

    ``earlier`` and ``later`` are the names of the judges, and ``margin`` is how much less often the later one may agree
    with people to be called not worse, as a share.
    """
    share = difference.agreement
    if share.low is None or share.high is None:
        counts = (
            f"{earlier} agrees with people on {share.before:,} and {later} on {share.after:,} of {share.of:,} cases"
        )
        return f"{counts}; what that says of the other cases is not known: {difference.because}."
    not_worse = _describe_margin(share.low, margin)
    if share.low > 0 or share.high < 0:
        addition = f": {not_worse}" if not_worse else ""
        return f"{later} agrees with people {_describe_limits(share.low, share.high)} often than {earlier}{addition}."
    if not_worse:
        between = f"between {_describe_limit(share.low)} and {_describe_limit(share.high)}"
        return f"By people's labels {later} is {not_worse} than {earlier}: its agreement differs by {between}."
    # If all cases are counted, both limits are 0 for equal judges, unless people did not settle some cases.
    if difference.limit == "count" and not share.low and not share.high:
        return f"{later} agrees with people exactly as often as {earlier}."
    sentence = f"These labels cannot tell which judge agrees with people more often: for {later} it is between "
    limits = f"{_describe_limit(share.low)} and {_describe_limit(share.high)} than for {earlier}"
    return f"{sentence}{limits}{_describe_more_cases(difference)}."


def _describe_more_cases(difference: JudgeDifference) -> str:
    """Describe how many more labelled cases would tell two judges apart, and how to draw them."""
    more = difference.agreement.more
    if more is None:
        return ""
    number = _describe_more(more, "labelled case", difference.limit)
    if difference.draw is not None and difference.draw.planned:
        return (
            f"{number}, in a new plan: delete plan.json, then adjudge plan RUN --against RUN2 with a smaller --within"
        )
    return f"{number}: label on, or draw them (adjudge plan RUN --against RUN2)"


def describe_verdicts(share: ShareDifference, earlier: str, later: str, *, margin: float | None = None) -> str:
    """Describe which of two runs a judge passes more often: one sentence, which says that people were not asked.

    ``earlier`` and ``later`` are the names of the runs, and ``margin`` is how much less often the judge may pass the
    later one to call it not worse, as a share.
    """
    low, high = share.low or 0.0, share.high or 0.0
    not_worse = _describe_margin(low, margin)
    if low > 0 or high < 0:
        addition = f": {not_worse}" if not_worse else ""
        return f"{later} passes {_describe_limits(low, high)} often than {earlier}, by the judge alone{addition}."
    if not_worse:
        between = f"between {_describe_limit(low)} and {_describe_limit(high)}"
        return f"By the judge alone {later} is {not_worse} than {earlier}: the difference is {between}."
    sentence = (
        f"The judge's verdicts on {format_count(share.of, 'case')} cannot tell whether {later} passes more often "
    )
    return f"{sentence}than {earlier}: the difference is between {_describe_limit(low)} and {_describe_limit(high)}."


def list_verdict_facts(share: ShareDifference) -> Iterator[tuple[str, str]]:
    """Yield the figures behind the sentence about verdicts, each with its name."""
    yield "by the judge alone", _format_share(share, "cases")
    yield "limits", "for other cases like these; the judge's errors are not in them, which only people's labels show"


def list_judge_facts(difference: JudgeDifference) -> Iterator[tuple[str, str]]:
    """Yield the differences of agreement and errors, each with its name."""
    for name, share in list_shares(difference):
        yield name, _format_share(share)
    if difference.limit is not None:
        yield "limits", difference.because


def list_shares(difference: JudgeDifference) -> Iterator[tuple[str, ShareDifference]]:
    """Yield the three shares by which judges are compared, each with its name."""
    yield "agreement", difference.agreement
    yield "wrong passes", difference.wrong_passes
    yield "wrong fails", difference.wrong_fails


def _is_counted(rate: RateDifference, limit: LimitKind | None) -> bool:
    """Return whether a difference is a count and no estimate: everything is labelled, and people settled it all."""
    return limit == "count" and not rate.unresolved


def _format_difference(rate: RateDifference, limit: LimitKind | None) -> str:
    """Format a difference of rates in points, with its limits unless it is a count."""
    limits = "" if _is_counted(rate, limit) else f" ({format_points_between(rate.low, rate.high)})"
    return f"{format_points(rate.value, sign=True)} points{limits}"


def _format_share(share: ShareDifference, unit: str = "labelled") -> str:
    """Format a difference of shares in points with its limits, if it has some, and the counts that it follows from."""
    counts = f"{share.before:,} before, {share.after:,} after, of {share.of:,} {unit}"
    if share.value is None or share.low is None or share.high is None:
        return counts
    between = format_points_between(share.low, share.high)
    return f"{format_points(share.value, sign=True)} points ({between}); {counts}"


def format_points_between(low: float, high: float) -> str:
    """Format the limits of a difference in points, each with its sign."""
    return f"{format_points(low, sign=True)} to {format_points(high, sign=True)}"


def _describe_limits(low: float, high: float) -> str:
    """Describe two limits that are both above 0, or both below: ``2 to 5 points more``.

    The limit nearer to 0 comes first, and both get so many digits that they can be told apart.
    """
    least, most = sorted((abs(low), abs(high)))
    digits = max(count_digits(least, most, digits=2) - 2, 0)
    # A limit shown as 0 would say that there may be no difference.
    while digits < _MOST_DIGITS and float(format_decimal(100 * least, digits)) == 0:
        digits += 1
    ends = dict.fromkeys(format_points(share, digits=digits) for share in (least, most))  # one if both look the same
    points = f"{' to '.join(ends)} points"
    return f"{points} {'more' if low > 0 else 'less'}"


def _describe_margin(low: float, margin: float | None) -> str:
    """Describe that a run is not worse by more than a margin, if its lower limit is below 0 and within the margin.

    Empty otherwise: without a margin, with a lower limit of 0 or more, and with one beyond the margin.
    """
    if not margin or not -margin <= low < 0:
        return ""
    return f"not more than {format_decimal(margin * 100, 1).removesuffix('.0')} points worse"


def _describe_limit(share: float) -> str:
    """Describe a limit of a difference: ``2.0 points more``."""
    number = format_decimal(abs(share) * 100, 1)
    return f"{number} points {'less' if share < 0 else 'more'}"


def _describe_more(more: int | None, unit: str, limit: LimitKind | None) -> str:
    """Describe how many more labels would show a difference, and by which limits; empty where that is not known.

    After the one look further labels are a further look, for which the limits are wider.
    """
    if more is None:
        return ""
    later_limits = (
        "the wider limits for every look" if limit == "one look" else "these limits, which hold at every look"
    )
    return f"; about {more:,} more {unit}{'s' * (more != 1)} would, by {later_limits}"
