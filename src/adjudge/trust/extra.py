"""The extra ``[trust]``: numpy and scipy, imported only where a statistic is computed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from adjudge.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def has_extra() -> bool:
    """Return whether numpy and scipy are installed."""
    return not _list_missing()


def check_extra() -> None:
    """Raise ``UsageError`` unless numpy and scipy are installed."""
    if missing := _list_missing():
        raise UsageError(f"statistics about judges need {' and '.join(missing)}; pip install 'adjudge[trust]'")


def _list_missing() -> list[str]:
    """List which of numpy and scipy are not installed."""
    return [name for name in ("numpy", "scipy") if find_spec(name) is None]
