"""The options of commands that judge, turned into a panel of judges, a rubric and the arguments of ``evaluate``.

Which judges are asked is decided in ``config/judges.py`` (``choose``).
"""

from __future__ import annotations

from typing import Any

from adjudge.cli.input import read_rule
from adjudge.cli.options import CostOptions, CriteriaOptions, JudgeOptions
from adjudge.config.file import Config, ConfiguredRubrics
from adjudge.config.judges import Panel
from adjudge.dataset.case_criteria import CaseCriteria
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.rubric.rubric import Rubric, make_rubric


def make_panel(options: JudgeOptions) -> Panel:
    """Make the panel of judges from the options about judges; options of a chain that were not given are left out."""
    chain_options = {
        "strategy": options.strategy,
        "quorum": options.quorum,
        "hedge_after": options.hedge_after,
        "escalate_below": options.escalate_below,
        "fail_open": options.fail_open or None,
    }
    return Panel(
        judges=tuple(options.judges or ()),
        timeout=options.timeout,
        chain=tuple((name, value) for name, value in chain_options.items() if value is not None),
        reader=options.reader,
        labels=options.reader_labels,
        passes=options.reader_passes,
        token=not options.no_token,
        record=options.record,
    )


def make_case_criteria(options: CriteriaOptions, config: Config) -> CaseCriteria:
    """Make the rules on which criteria the cases of a data set may bring, from ``--case-criteria`` and the like.

    A case may name the rubrics of the configuration. Raises ``UsageError`` for a field without a name.
    """
    if options.criteria_field == "":
        raise UsageError("--criteria-field must name a field")
    rubrics = ConfiguredRubrics(config)
    return CaseCriteria(members=options.case_criteria, criteria_field=options.criteria_field, rubrics=rubrics)


def choose_rubric(options: CriteriaOptions, config: Config, *, needed: bool = True) -> Rubric | None:
    """Find the rubric that ``--rubric`` or the configuration names, or make one of the sentences of ``--criteria``.

    Returns ``None`` if there is none and it is not ``needed``, because cases bring their own. Raises ``UsageError`` if
    both options are given, and if there is no rubric although one is needed.
    """
    if options.threshold is not None:
        check_share("threshold", options.threshold)
    if options.rubric is not None and options.criteria:
        raise UsageError("give --rubric or --criteria, not both")
    if options.criteria:
        if not all(sentence.strip() for sentence in options.criteria):
            raise UsageError("--criteria is empty; say in a sentence what is good")
        return make_rubric(options.criteria)
    rubric = config.find_default_rubric() if options.rubric is None else config.find_rubric(options.rubric)
    if rubric is None and needed:
        advice = "; --threshold alone says nothing about what is good" if options.threshold is not None else ""
        advice += "; to check by rules alone, use adjudge rules check" if options.rules else ""
        raise UsageError(f"nothing says what good means: give --rubric NAME or --criteria TEXT{advice}")
    return rubric


def list_arguments(options: CriteriaOptions) -> dict[str, Any]:
    """Make the arguments of ``evaluate`` that ``--threshold`` and ``--rule`` give; those not given are left out."""
    arguments: dict[str, Any] = {"threshold": options.threshold}
    arguments["rules"] = [read_rule(text) for text in options.rules or ()] or None
    return {name: value for name, value in arguments.items() if value is not None}


def check_cost(judging: JudgeOptions, cost: CostOptions) -> None:
    """Raise ``UsageError`` for ``--record`` with ``--cache``: a reply from the cache is not asked for, nor recorded."""
    if cost.cache is not None and judging.record is not None:
        raise UsageError("--record keeps what is asked, and --cache keeps it from being asked; give one of them")
