"""Is a share at most what was promised? A test that may be looked at after every label. Pure.

It raises the alarm of a gate's monitor (``guards/monitor.py``). The limits of a rate that may be looked at after every
label are in ``confidence_sequence.py``, and which limits a gate on a corrected rate goes by is decided in
``measurement/gate_limit.py``.

Somebody bets on each label before it is seen that it is bad, at odds that are fair if a share ``promise`` of all is
bad. If the true share is at most the promise, their wealth is a nonnegative supermartingale that begins with 1, so it
ever reaches 20 with a probability of at most 1/20 (Ville's inequality), however often and whenever somebody looks, and
whatever made them stop. So wealth of 20 is evidence at 95 % that the promise is broken.

**Bets.** The wealth is split evenly among five bettors, who each stake a fixed share of what they have. The small
stakes find a share that is a little above the promise, after many labels, and the large ones find a large share at
once. A label ``x`` (1 is bad, 0 is good) multiplies a bettor's wealth by ``1 + stake / promise * (x - promise)``.

**Later beginnings.** A judge that was good for a thousand labels would leave the bettors with nothing, so that nobody
would notice when it turns bad. So not all of the wealth is bet at once. Of the part that is kept back, a little more
is given to the bettors before each label, and what has been given out before the ``n``-th label depends on ``n`` alone.
What is not yet given out does not change, so the sum is a supermartingale still.

Sources: I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024
(arXiv:2010.09686); J. Shin, A. Ramdas and A. Rinaldo, "E-detectors: a nonparametric framework for sequential change
detection", 2023 (arXiv:2203.03532), for mixtures over the beginning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

STAKES = (0.025, 0.05, 0.1, 0.2, 0.4)
"""The share of their wealth that each bettor loses, nearly, with a good label."""

KEPT_BACK = 0.3
"""The part of the wealth that is not bet on the first label, but given to the bettors later."""

MOST_WEALTH = 1e100
"""The most wealth of a bettor: more is no number one day, and giving some of it away keeps a supermartingale one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTest:
    """The test of one promise, after some labels; ``add`` returns the test after one more."""

    promise: float
    """The largest share of bad ones that is promised, above 0 and below 1."""
    labels: int = 0
    """Labels so far."""
    bad: int = 0
    """Those of them that are bad."""
    wealths: tuple[float, ...] = (0.0,) * len(STAKES)
    """The wealth of each bettor."""
    peak: float = 1.0
    """The largest wealth there was: what was evidence once stays evidence."""

    @property
    def wealth(self) -> float:
        """The wealth now: what the bettors have, and what is kept back."""
        return sum(self.wealths) + _compute_reserve(self.labels)

    def add(self, *, is_bad: bool) -> ShareTest:
        """Return the test after one more label.

        Args:
            is_bad: True if people found the case bad.
        """
        labels = self.labels + 1
        reserve = _compute_reserve(labels)
        released = (_compute_reserve(self.labels) - reserve) / len(STAKES)  # to each bettor
        gain = (is_bad - self.promise) / self.promise
        wealths = tuple(
            [
                min((wealth + released) * (1 + stake * gain), MOST_WEALTH)
                for wealth, stake in zip(self.wealths, STAKES, strict=True)
            ]
        )
        return ShareTest(
            promise=self.promise,
            labels=labels,
            bad=self.bad + is_bad,
            wealths=wealths,
            peak=max(self.peak, sum(wealths) + reserve),
        )

    def is_broken(self, confidence: float) -> bool:
        """Return whether the labels show, with this confidence, that the promise is broken, or showed it before.

        Args:
            confidence: The confidence, such as 0.95.
        """
        # If the promise is kept, the wealth ever reaches 1 / (1 - confidence) with a chance of at most 1 - confidence.
        return self.peak * (1 - confidence) >= 1


def _compute_reserve(labels: int) -> float:
    """Compute the part of the wealth that is not bet yet after this number of labels.

    It is all of it (1) before the first label, ``KEPT_BACK`` after that one, and then ever less.
    """
    return 1.0 if labels == 0 else KEPT_BACK / (1 + math.log(labels))
