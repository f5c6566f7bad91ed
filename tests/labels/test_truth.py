"""The truth of a case: adjudicated, else what most people say, else open; and nothing is dropped on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Case, Dataset, UsageError
from adjudge.dataset import Label
from adjudge.labels import find_truths, tabulate_truths

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)

values = st.sampled_from([True, False, "cannot_tell", 0.5, 1])


def say(*answers: Any, **more: Any) -> list[Label]:
    """Labels of the case ``a``, each by another person."""
    return [Label(case="a", rater=f"r{number}", value=value, **more) for number, value in enumerate(answers)]


def adjudicate(value: Any, rater: str = "zoe", **more: Any) -> Label:
    """A label that settles the case ``a``."""
    return Label(case="a", rater=rater, value=value, kind="adjudication", **more)


@pytest.mark.parametrize(
    ("answers", "value", "heap", "by"),
    [
        ([True], True, "good", "majority"),
        ([True, True, False], True, "good", "majority"),
        ([False, False, "cannot_tell"], False, "bad", "majority"),
        ([True, False], None, "unresolved", None),
        ([True, "cannot_tell"], None, "unresolved", None),
        ([True, True, False, "cannot_tell"], None, "unresolved", None),
        (["cannot_tell"], "cannot_tell", "cannot_tell", "majority"),
        (["cannot_tell", "cannot_tell", True], "cannot_tell", "cannot_tell", "majority"),
        (["first", "first", "tie"], "first", "first", "majority"),
        ([0.5, 0.5], 0.5, "number", "majority"),
        ([True, 1], None, "unresolved", None),
    ],
)
def test_more_than_half_of_the_people_decide(answers, value, heap, by):
    """Whoever cannot tell has looked and counts; true is not the number 1."""
    truth = find_truths(say(*answers))["a"]

    assert (truth.value, truth.heap, truth.settled_by) == (value, heap, by)


def test_an_adjudication_decides_over_everybody():
    """However many said otherwise; the labels of the others stay."""
    truth = find_truths([*say(True, True, True), adjudicate(False)])["a"]

    assert (truth.value, truth.settled_by, truth.differs) == (False, "adjudication", False)
    assert [label.rater for label in truth.labels] == ["r0", "r1", "r2"]
    assert truth.adjudication == adjudicate(False)


def test_an_adjudication_may_say_that_nobody_can_tell():
    """Then the case is settled, and in the heap of those that cannot be told."""
    truth = find_truths([*say(True, False), adjudicate("cannot_tell")])["a"]

    assert (truth.heap, truth.settled_by) == ("cannot_tell", "adjudication")


def test_the_later_adjudication_counts_whoever_gave_it():
    """By its time, in whatever order they are read."""
    early, late = adjudicate(True, "ann", at=AT), adjudicate(False, "bob", at=AT + timedelta(hours=1))

    for labels in ([early, late], [late, early]):
        assert find_truths(labels)["a"].adjudication == late


def test_an_override_is_no_vote_beside_people():
    """It is listed; the truth goes by who looked for themselves."""
    override = Label(case="a", rater="ann", value=True, kind="override")
    truth = find_truths([override, *say(False)])["a"]

    assert (truth.value, truth.settled_by, truth.overrides) == (False, "majority", (override,))


def test_a_case_with_overrides_alone_says_so():
    """It has a truth, and every rate can tell it from one that people gave who did not know the verdict."""
    truth = find_truths([Label(case="a", rater="ann", value=True, kind="override")])["a"]

    assert (truth.value, truth.settled_by) == (True, "override")


def test_labels_of_models_are_no_truth():
    """A case that only models labelled has none."""
    assert find_truths([Label(case="a", rater="gpt", value=True, kind="model")]) == {}


def test_each_criterion_has_a_truth_of_its_own():
    """And the whole case another."""
    labels = [*say(True), *say(False, criterion="polite")]

    assert find_truths(labels)["a"].value is True
    assert find_truths(labels, criterion="polite")["a"].value is False
    assert find_truths(labels, criterion="polite")["a"].criterion == "polite"


def test_what_is_no_label_is_refused():
    """A dict of a file is to be read first, and the error says with what."""
    with pytest.raises(UsageError) as caught:
        find_truths([{"case": "a"}])  # type: ignore[list-item] - what the error is about

    assert "load_labels" in str(caught.value)


@given(st.lists(values, min_size=1, max_size=7))
def test_one_more_voice_for_the_truth_keeps_it(answers):
    """And the order in which people are read changes nothing."""
    truth = find_truths(say(*answers))["a"]
    turned = find_truths(say(*reversed(answers)))["a"]

    assert (truth.heap, truth.settled_by) == (turned.heap, turned.settled_by)
    if truth.value is not None:
        assert find_truths(say(*answers, truth.value))["a"].heap == truth.heap


def test_truth_as_plain_data():
    """With its labels, for whoever shows it."""
    shown = find_truths([*say(True, False), adjudicate(True)])["a"].to_dict()

    assert shown["schema"] == "adjudge/truth/1"
    assert (shown["value"], shown["heap"], shown["settled_by"], shown["differs"]) == (
        True,
        "good",
        "adjudication",
        True,
    )
    assert [label["rater"] for label in shown["labels"]] == ["r0", "r1"]


# ---------------------------------------------------------------- with a data set


def test_a_case_gets_the_adjudicated_label():
    """Who settled it is no rater of it: they saw what the others said."""
    (case,) = Dataset.of([Case(id="a", content="x")]).with_labels([*say(True, True), adjudicate(False)])

    assert (case.label, case.labels) == (False, {"r0": True, "r1": True})


def test_a_case_goes_by_people_where_there_are_overrides_too():
    """An override counts where nobody looked for themselves."""
    override = Label(case="a", rater="ann", value=True, kind="override")
    dataset = Dataset.of([Case(id="a", content="x")])
    (mixed,), (alone,) = dataset.with_labels([override, *say(False)]), dataset.with_labels([override])

    assert (mixed.label, mixed.labels) == (False, {"ann": True, "r0": False})
    assert alone.label is True


# ---------------------------------------------------------------- against a judge


def label_many(*pairs: tuple[str, Any]) -> list[Label]:
    return [Label(case=case, rater="ann", value=value) for case, value in pairs]


def test_a_table_has_a_place_for_every_labelled_case():
    """Undecided verdicts, cases that cannot be told and cases people differ on included."""
    labels = label_many(("a", True), ("b", False), ("c", True), ("d", "cannot_tell"), ("e", True), ("f", True))
    labels += [Label(case="e", rater="bob", value=False), Label(case="g", rater="bob", value=True, kind="override")]
    verdicts: Any = {"a": "passed", "b": "passed", "c": "undecided", "d": "failed", "e": "passed", "g": "failed"}
    table = tabulate_truths(find_truths(labels), verdicts | {"unlabelled": "passed"})

    assert table.counts == {
        ("passed", "good"): 1,
        ("passed", "bad"): 1,
        ("passed", "unresolved"): 1,
        ("undecided", "good"): 1,
        ("failed", "cannot_tell"): 1,
    }
    assert (table.without_verdict, table.overrides) == (1, 1)
    assert table.count("passed") == 3
    assert table.to_dict()["counts"]["undecided"] == {"good": 1}


def test_what_is_open_is_counted_both_ways():
    """As bad for the lower bound, as good for the upper one."""
    labels = label_many(("a", True), ("b", "cannot_tell"), ("c", True), ("d", False))
    labels.append(Label(case="c", rater="bob", value=False))
    table = tabulate_truths(find_truths(labels), dict.fromkeys("abcd", "passed"))

    assert table.bounds("passed") == (1, 3)
    assert table.bounds("passed", "bad") == (1, 3)
    assert table.bounds("failed") == (0, 0)


def test_a_table_refuses_words_that_are_no_verdict():
    """A typing error would otherwise count 0."""
    table = tabulate_truths({}, {})
    wrong: Any = "pased"
    with pytest.raises(UsageError) as caught:
        table.count(wrong)
    assert "did you mean 'passed'" in str(caught.value)

    with pytest.raises(UsageError) as caught:
        tabulate_truths(find_truths(say(True)), {"a": wrong})
    assert "'pased'" in str(caught.value)
