"""Bias: whether a judge's error follows position, length, format or language."""

from __future__ import annotations

import json
import random

import pytest

from adjudge.errors import UsageError
from adjudge.trust import make_bias
from trust_support import need_statistics


@pytest.fixture(autouse=True)
def statistics(require):
    need_statistics(require)


def draw_items(items: int = 200, seed: int = 1) -> tuple[list[float], dict[str, list]]:
    """Errors that follow length alone; answers in German are longer."""
    chance = random.Random(seed)
    languages = [chance.choice(["English", "English", "German"]) for _ in range(items)]
    lengths = [chance.gauss(8, 1) + 2 * (language == "German") for language in languages]
    first = [chance.random() < 0.5 for _ in range(items)]
    errors = [0.2 * (length - 8) + chance.gauss(0, 0.5) for length in lengths]
    return errors, {"shown first": first, "length": lengths, "language": languages}


def test_an_effect_has_a_size_an_interval_and_words():
    """The judge prefers long answers, and the sentence says by how much."""
    errors, properties = draw_items()
    found = make_bias(errors, properties)
    length = next(effect for effect in found.effects if effect.name == "length")

    assert length.low < 0.2 < length.high
    assert length.is_shown
    assert length.words.startswith("The judge's error is 0.")
    assert "higher for each unit of length" in length.words
    assert "with all 3 effects considered" in length.words
    json.dumps(found.to_dict(), allow_nan=False)


def test_one_property_is_not_blamed_for_another():
    """German answers are longer. Alone, the language looks biased; beside the length it does not."""
    errors, properties = draw_items()
    alone = make_bias(errors, {"language": properties["language"]}).effects[0]
    beside = make_bias(errors, properties).effects[-1]

    assert (alone.level, alone.baseline) == ("German", "English")
    assert alone.is_shown
    assert not beside.is_shown
    assert beside.words.startswith("No effect of language is shown")


def test_p_values_are_adjusted_for_the_number_of_effects():
    """Twenty properties that do nothing: adjusted, at most one set in ten has one that is shown (5 %, and chance)."""
    chance = random.Random(3)
    shown = 0
    for _ in range(60):
        errors = [chance.gauss(0, 1) for _ in range(250)]
        properties = {f"property {at}": [chance.gauss(0, 1) for _ in range(250)] for at in range(20)}
        effects = make_bias(errors, properties).effects
        shown += any(effect.is_shown for effect in effects)
        assert all(effect.adjusted >= effect.p_value for effect in effects)

    assert shown <= 9


@pytest.mark.parametrize(("rare", "right"), [(5, 0.9), (10, 0.95), (10, 0.7)])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_rare_value_without_an_error_proves_nothing(rare, right, grouped):
    """A judge that is wrong equally often in both languages is blamed in at most 10 of 100 draws (5 %, and chance).

    None of five items happens to be wrong in six of ten draws. Robust errors see no variance there, and would call
    that an effect; the error is therefore never below the one that holds if errors vary alike everywhere.
    """
    chance, shown, held = random.Random(5), 0, 0
    size = 2 if grouped else 1
    languages = ["fr"] * rare * size + ["en"] * 100 * size
    for _ in range(100):
        errors = [0.0 if chance.random() < right else -1.0 for _ in languages]
        if len(set(errors)) < 2:
            continue
        groups = [at // 2 for at in range(len(languages))] if grouped else None
        effect = make_bias(errors, {"language": languages}, groups=groups).effects[0]
        shown += effect.is_shown
        held += effect.low <= 0 <= effect.high

    assert shown <= 10
    assert held >= 90


def test_groups_make_the_interval_honest():
    """A property of the question, with errors that questions share, is no news eight times over."""
    chance = random.Random(4)
    groups = [at // 8 for at in range(320)]
    kinds = ["hard" if group % 2 else "easy" for group in groups]
    shared = [chance.gauss(0, 1) for _ in range(40)]
    errors = [shared[group] + chance.gauss(0, 0.3) for group in groups]
    alone, grouped = (make_bias(errors, {"kind": kinds}, groups=given).effects[0] for given in (None, groups))

    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)
    assert grouped.effect == alone.effect


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["md"] * 200, "every item has the value 'md'"),
        ([7.0] * 200, "every item has the value 7.0"),
        (["md"] * 198 + ["html"] * 2, "'html' has 2 items"),
        (draw_items()[1]["length"], "cannot be told apart"),
        ([1.5 * length + 4 for length in draw_items()[1]["length"]], "cannot be told apart"),
    ],
)
def test_a_property_that_cannot_be_estimated_is_refused(values, why):
    """It is listed with the reason, and the others are estimated without it."""
    errors, properties = draw_items()
    found = make_bias(errors, {**properties, "format": values})

    assert why in found.refused["format"]
    assert {effect.name for effect in found.effects} == {"shown first", "length", "language"}


def test_a_value_of_few_groups_is_refused():
    """Errors that follow the groups come out much too small where one group decides."""
    errors, properties = draw_items()
    kinds = ["rare" if at < 20 else "common" for at in range(200)]
    found = make_bias(errors, {**properties, "kind": kinds}, groups=[at // 10 for at in range(200)])

    assert "fewer than 5 groups" in found.refused["kind"]


@pytest.mark.parametrize(
    ("errors", "properties", "groups", "named"),
    [
        ([0.1] * 10, {"a": [1.0] * 10}, None, "at least 30 items, got 10"),
        ([0.5] * 40, {"a": list(range(40))}, None, "on every item"),
        ([0.1 * at for at in range(40)], {"a": ["x"] * 40}, None, "no property is left"),
        ([0.1 * at for at in range(40)], {}, None, "none was given"),
        ([0.1 * at for at in range(40)], {"a": [1.0]}, None, "1 values of 40"),
        ([0.1 * at for at in range(40)], {"a": [1.0, float("nan")] * 20}, None, "nan"),
        ([0.1 * at for at in range(40)], {"a": [1.0, "x"] * 20}, None, "mixes"),
        ([float("inf")] * 40, {"a": list(range(40))}, None, "inf"),
        ([0.1 * at for at in range(40)], {"a": list(range(40))}, [0, 1] * 20, "10 groups, got 2"),
        ([0.1 * (at % 7) for at in range(40)], {"a": list("abcdefgh") * 5}, None, "7 effects need 70 items"),
    ],
)
def test_too_little_is_refused(errors, properties, groups, named):
    """What cannot be known is not estimated; the message says what is missing."""
    with pytest.raises(UsageError, match=named):
        make_bias(errors, properties, groups=groups)


def test_one_item_that_decides_alone_is_refused():
    """A length a million times that of all others determines the slope, and its own error cannot be known."""
    errors = [0.1 * (at % 7) for at in range(40)]
    with pytest.raises(UsageError, match="one item alone"):
        make_bias(errors, {"length": [1e30] + [float(at % 5) * 1e-9 for at in range(39)]})


def test_names_in_a_sentence_are_harmless():
    """Names of properties are other people's text; a terminal must not obey them."""
    errors, properties = draw_items()
    effect = make_bias(errors, {"le\x1b[31mngth\n": properties["length"]}).effects[0]

    assert "\x1b" not in effect.words
    assert "\n" not in effect.words


@pytest.mark.parametrize("grouped", [False, True])
def test_an_exact_fit_is_not_certain(grouped: bool):
    """Where the judge errs on all marked-up answers and no other, no error is left; chance is not ruled out."""
    marked = [number % 8 == 0 for number in range(40)]
    found = make_bias(
        [float(item) for item in marked], {"format": marked}, groups=[n // 2 for n in range(40)] if grouped else None
    )

    (effect,) = found.effects
    assert effect.effect == pytest.approx(1)
    assert 0 < effect.p_value < 0.001
    assert effect.low < 1 < effect.high
