"""Advice on rubrics: what the seeds call good and bad practice."""

import pytest

from adjudge.rubric import Criterion, Rubric, load_rubric
from adjudge.rubric.lint import lint_rubric
from kit.rubrics import SHIPPED

GOOD = [
    Criterion(name="password-hashing", description="Uses bcrypt with salt rounds of at least ten."),
    Criterion(name="jwt-security", description="Tokens have an expiry and are signed with a private key."),
    Criterion(name="session-management", description="Sessions time out and can be ended by their user."),
]


def advise(*criteria: Criterion, passing_threshold: float = 0.7) -> list[tuple[str, str]]:
    rubric = Rubric(name="r", criteria=[*criteria, *GOOD][: max(3, len(criteria))], passing_threshold=passing_threshold)
    return [(item.code, item.where) for item in lint_rubric(rubric)]


def test_a_good_rubric_draws_no_advice():
    """Three specific criteria with an attainable threshold are fine."""
    assert advise() == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_rubrics_draw_no_advice(name):
    """What ships follows its own advice."""
    assert lint_rubric(load_rubric(name)) == ()


@pytest.mark.parametrize("name", ["test coverage", "ErrorHandling", "error_handling", "-x", "x--y", "größe"])
def test_names_are_kebab_case(name):
    """Spaces, capitals and underscores are advised against."""
    assert advise(Criterion(name=name, description=GOOD[0].description)) == [
        ("name-not-kebab-case", "criteria[0].name")
    ]


@pytest.mark.parametrize(
    ("name", "better"),
    [("ErrorHandling", "error-handling"), ("test coverage", "test-coverage"), ("error_handling", "error-handling")],
)
def test_a_better_name_is_offered(name, better):
    """The advice says what the name would be in kebab-case."""
    rubric = Rubric(name="r", criteria=[Criterion(name=name, description=GOOD[0].description), *GOOD[1:]])
    assert f'"{better}"' in lint_rubric(rubric)[0].message


def test_descriptions_stay_under_200_characters():
    """199 is fine, 200 is not."""
    assert advise(Criterion(name="a", description="one two three four " + "x" * 180)) == []
    assert advise(Criterion(name="a", description="one two three four " + "x" * 181)) == [
        ("description-too-long", "criteria[0].description")
    ]


def test_three_to_seven_criteria():
    """Two are too few and eight too many."""
    few = Rubric(name="r", criteria=GOOD[:2])
    assert [item.code for item in lint_rubric(few)] == ["too-few-criteria"]
    many = [Criterion(name=f"c{place}", description=GOOD[0].description) for place in range(8)]
    assert advise(*many[:7]) == []
    assert advise(*many) == [("too-many-criteria", "criteria")]


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("quality", "Code is good"),
        ("security", "Authentication is secure"),
        ("correctness", "The implementation does what it should do"),
        ("some-name", "Follows the style guide"),
    ],
)
def test_an_umbrella_is_vague(name, description):
    """A few words that nothing can be measured by are advised against, more so under an umbrella name."""
    assert advise(Criterion(name=name, description=description)) == [("vague-criterion", "criteria[0].description")]


@pytest.mark.parametrize(
    "criterion",
    [
        Criterion(name="latency", description="Responds within 100 ms"),
        Criterion(name="hashing", description="Uses bcrypt", rule={"regex": "bcrypt"}),
        Criterion(name="security", description="Is secure", levels={0: "plaintext", 1: "slow salted hash"}),
    ],
)
def test_a_number_a_rule_or_levels_make_a_short_description_measurable(criterion):
    """What says how it is measured is not vague, however short."""
    assert advise(criterion) == []


@pytest.mark.parametrize(
    ("threshold", "code"),
    [
        (0.95, "threshold-too-strict"),
        (1, "threshold-too-strict"),
        (0.5, "threshold-too-lenient"),
        (0, "threshold-too-lenient"),
    ],
)
def test_an_extreme_passing_threshold_is_advised_against(threshold, code):
    """0.95 and above is too strict for general use, 0.5 and below too lenient."""
    assert advise(passing_threshold=threshold) == [(code, "passing_threshold")]


@pytest.mark.parametrize("threshold", [0.51, 0.7, 0.94])
def test_an_attainable_threshold_is_fine(threshold):
    """Everything between is the author's choice."""
    assert advise(passing_threshold=threshold) == []


@pytest.mark.parametrize(
    "description", ["This must be perfect in every case.", "Critical: no secret stands in the source."]
)
def test_what_must_hold_needs_a_threshold(description):
    """A criterion that says must and cannot fail the rubric is advised to get a threshold; with one it is fine."""
    assert advise(Criterion(name="a", description=description)) == [("must-without-threshold", "criteria[0].threshold")]
    assert advise(Criterion(name="a", description=description, threshold=1.0)) == []


def test_advice_reads_as_a_sentence_about_what_was_found():
    """The message quotes the rubric's own words, shortened and printable."""
    rubric = Rubric(name="r", criteria=[Criterion(name="\x1b" + "x" * 500, description="Is\x1b good")])
    advice = lint_rubric(rubric)
    assert {item.code for item in advice} == {"too-few-criteria", "name-not-kebab-case", "vague-criterion"}
    assert all(item.message.isprintable() and len(item.message) < 300 for item in advice)
