"""The labels that are a random sample of the contents that were judged: by whom they were drawn, and from what.

Nothing is drawn here: the cases that people label are drawn in ``labels/plan.py`` (``_draw_phase``). Which labelled
cases count for a rate is decided in ``rate.py`` (``find_sampling``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from adjudge.dataset.contents import ContentSet
from adjudge.dataset.label import LabelDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan that is known to be one of the contents that were judged."""

    plan: str
    """The plan's id, which the labels name."""
    sizes: Mapping[str, int]
    """The number of cases of each stratum, drawn or not."""
    designs: Mapping[str, LabelDesign] = field(default_factory=dict)
    """The design of each labelled case that counts, by the case's id."""

    def find(self, designs: Iterable[LabelDesign]) -> LabelDesign | None:
        """Find how this plan drew a case; ``None`` where it did not."""
        return next((design for design in designs if design.plan == self.plan and design.stratum in self.sizes), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The contents that were judged, and the draws that lack one of their cases, as far as they are known."""

    contents: ContentSet | None = None
    """The contents; ``None`` is unknown, and then no draw is one from them."""
    planned: Planned | None = None
    """The plan in the run's folder, if it is one of these contents."""
    problem: str = ""
    """The reason why a plan that is in the run's folder is not relied on."""
    distrusted: str | None = None
    """The id of that plan: what labels say of it themselves is not relied on either."""
    broken: frozenset[LabelDesign] = frozenset()
    """Draws of which a label is of another content, or of a case that is not here."""

    def holds(self, design: LabelDesign | None) -> bool:
        """Return whether a case was drawn from these contents, by a draw all of whose cases are here."""
        if design is None or self.contents is None or design.drawn_from != self.contents:
            return False
        if design.plan == self.distrusted:
            return False
        return all(design.plan != other.plan or other.drawn_from != self.contents for other in self.broken)


def find_planned(designs: Iterable[LabelDesign], labelled: Mapping[str, int], origin: Origin) -> Planned | None:
    """Find the plan of labels that were drawn from the same contents for another run, as they describe it.

    ``labelled`` is how many cases of each stratum they are of. ``None`` where they do not name every stratum with its
    size, differ about one, or are of more cases than a stratum has.
    """
    every = list(designs)
    sizes = {design.stratum: design.size for design in every}
    stated_sizes = {name: size for name, size in sizes.items() if size is not None}
    differ = any(sizes[design.stratum] != design.size for design in every)
    if (
        origin.contents is None
        or differ
        or len(stated_sizes) < len(sizes)
        or sum(stated_sizes.values()) != origin.contents.cases
    ):
        return None
    if any(number > stated_sizes[stratum] for stratum, number in labelled.items()):
        return None
    return Planned(plan=every[0].plan, sizes=stated_sizes)
