"""Checks of arguments: each refusal names the argument, the value and what it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge.errors import UsageError
from adjudge.formats.arguments import (
    check_above_zero,
    check_choice,
    check_flag,
    check_seconds,
    check_share,
    check_timeout,
    check_whole_number,
)
from kit.judges import names


class Speechless:
    """Somebody's value that has no text, and says that it equals everything."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")


WORDS = ("tie", "undecided")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: check_whole_number("n", 0, least=1), "n … whole number … at least 1 … got 0"),
        (lambda: check_whole_number("n", True, least=1), "n … whole number … at least 1 … got True"),
        (lambda: check_whole_number("n", 2.0, least=1), "n … whole number … at least 1 … got 2.0"),
        (lambda: check_whole_number("n", "2"), "n … whole number … '2'"),
        (lambda: check_whole_number("n", 6, least=0, most=5), "n … whole number … from 0 to 5 … got 6"),
        (lambda: check_whole_number("n", 6, most=5), "n … whole number … at most 5 … got 6"),
        (
            lambda: check_whole_number("n", 0, least=1, of=" of bytes"),
            "n … whole number of bytes … at least 1 … got 0",
        ),
        (
            lambda: check_whole_number("n", 3, least=1, most=2, note="the number of judges"),
            "n … whole number … from 1 to 2, the number of judges … got 3",
        ),
        (lambda: check_share("s", 70), "s … between 0 and 1 … got 70 … write 0.7"),
        (lambda: check_share("s", 80.0), "s … between 0 and 1 … got 80 … write 0.8"),
        (lambda: check_share("s", -1), "s … between 0 and 1 … got -1"),
        (lambda: check_share("s", -1.0000001), "s … between 0 and 1 … got -1.0000001"),
        (lambda: check_share("s", float("nan")), "s … a number … between 0 and 1 … got nan"),
        (lambda: check_share("s", True), "s … a number … between 0 and 1 … got True"),
        (lambda: check_share("s", "0.5"), "s … a number … between 0 and 1 … got '0.5'"),
        (
            lambda: check_timeout("t", 0),
            "t … finite … seconds … above 0 … None for no limit … got 0",
        ),
        (lambda: check_seconds("t", None), "t … finite … seconds … above 0 … got None"),
        (lambda: check_seconds("t", 301, most=300), "t … seconds … above 0 and up to 300 … got 301"),
        (lambda: check_above_zero("r", float("inf")), "r … finite … above 0 … got inf"),
        (lambda: check_flag("f", "no"), "f … true or false … 'no'"),
        (lambda: check_flag("f", 1), "f … true or false … 1"),
        (lambda: check_choice("c", "ties", WORDS), "c … one of tie, undecided … got 'ties' … did you mean 'tie'?"),
        (lambda: check_choice("c", 7, WORDS), "c … one of tie, undecided … got 7"),
        (lambda: check_choice("c", ["tie"], WORDS), "c … one of tie, undecided … got ['tie']"),
    ],
)
def test_a_refusal_names_argument_value_and_remedy(check: Callable[[], object], message: str):
    """Each kind of argument has one sentence, whoever takes it."""
    with pytest.raises(UsageError) as caught:
        check()

    assert names(caught.value, *message.split(" … "))


CHECKS: tuple[Callable[[Any], object], ...] = (
    lambda value: check_whole_number("it", value, least=1, most=9),
    lambda value: check_share("it", value),
    lambda value: check_timeout("it", value),
    lambda value: check_seconds("it", value, most=9),
    lambda value: check_flag("it", value),
    lambda value: check_choice("it", value, WORDS),
)


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), 10**5000, Speechless(), "x" * 10_000, object(), [], {}],
    ids=["large", "small", "no text", "speechless", "long", "object", "list", "dict"],
)
@pytest.mark.parametrize("check", CHECKS, ids=["whole", "share", "timeout", "seconds", "flag", "choice"])
def test_no_value_breaks_its_refusal(check: Callable[[Any], object], value: object):
    """A number too large for a float or for a text, and a value that raises, are refused like any other, and short."""
    with pytest.raises(UsageError) as caught:
        check(value)

    assert str(caught.value).startswith("it must be ")
    assert len(str(caught.value)) < 300


@given(st.integers(-5, 15), st.integers(0, 5), st.integers(6, 10))
def test_a_whole_number_is_taken_exactly_within_its_bounds(value: int, least: int, most: int):
    """Both bounds are included, and the value comes back as it is."""
    try:
        taken = check_whole_number("n", value, least=least, most=most)
    except UsageError:
        taken = None

    assert taken == (value if least <= value <= most else None)


@given(st.one_of(st.floats(), st.integers()))
def test_a_share_is_taken_exactly_from_0_to_1(value: float):
    """What is taken comes back as a float, and minus zero as zero."""
    try:
        taken = str(check_share("s", value))
    except UsageError:
        taken = None

    assert taken == (str(abs(float(value))) if 0 <= value <= 1 else None)
