"""Other implementations of statistics: whether an oracle is installed, its answer, and random labels."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from hypothesis import strategies as st

ORACLES = {"sklearn": "scikit-learn", "statsmodels": "statsmodels", "krippendorff": "krippendorff"}

LABELS = st.sampled_from([True, False, None])


def need_statistics(require: Callable[..., None]) -> None:
    """Skip a test where numpy and scipy are absent."""
    require("numpy and scipy", find_spec("numpy") and find_spec("scipy"), "pip install 'adjudge[trust]'")


def need_oracles(require: Callable[..., None], *modules: str) -> None:
    """Skip a test where another implementation to compare with is absent."""
    need_statistics(require)
    for module in modules:
        require(ORACLES[module], find_spec(module), f"pip install {ORACLES[module]}")


def ask(oracle: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """An oracle's answer; what it has to say beside it is not a failure of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oracle(*arguments, **options)


def is_near(one: float, other: float) -> bool:
    """Return True if two numbers are equal to 1e-9."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


def draw_pairs(labels: st.SearchStrategy[Any] = LABELS, most: int = 40) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    """Pairs (judge, truth) of at least one item; many are degenerate, since few labels are drawn from."""
    return st.lists(st.tuples(labels, labels), min_size=1, max_size=most)
