"""The plan that drew the labelled cases at random, and the contents that it drew them from.

A plan draws cases for people to label, so many of each stratum (a group of alike cases). A label records how its case
was drawn (``LabelDesign``: the plan, the stratum and the contents). Here such records are compared with the contents
that were judged.

Nothing is drawn here: the cases that people label are drawn in ``labels/plan.py`` (``_draw_phase``). Which labelled
cases count for a rate is decided in ``sampled_rate.py`` (``find_sampling``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from adjudge.dataset.contents import ContentSet
from adjudge.dataset.label import LabelDesign


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPlan:
    """A plan that drew cases from exactly the contents that were judged, with the sizes of its strata."""

    plan: str
    """The plan's id, which the labels name."""
    sizes: Mapping[str, int]
    """The number of cases of each stratum, drawn or not."""
    designs: Mapping[str, LabelDesign] = field(default_factory=dict)
    """The design of each labelled case that counts, by the case's id."""

    def find_design(self, designs: Iterable[LabelDesign]) -> LabelDesign | None:
        """Find the first of a case's designs that is of this plan, which names the stratum; ``None`` without one."""
        for design in designs:
            if design.plan == self.plan and design.stratum in self.sizes:
                return design
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelOrigin:
    """The contents that were judged, and which draws of labelled cases are known to be random samples of them."""

    contents: ContentSet | None = None
    """The contents; ``None`` is unknown, and then no draw is one from them."""
    known_plan: KnownPlan | None = None
    """The plan in the run's folder, if it is one of these contents."""
    problem: str = ""
    """The reason why a plan that is in the run's folder is not relied on."""
    distrusted_plan: str | None = None
    """The id of that plan: what labels say of it themselves is not relied on either."""
    incomplete_draws: frozenset[LabelDesign] = frozenset()
    """Draws of which a label is of another content, or of a case that is not here."""

    def is_trusted_draw(self, design: LabelDesign | None) -> bool:
        """Return whether a case was drawn from these contents, by a draw all of whose cases are here."""
        if design is None or self.contents is None or design.drawn_from != self.contents:
            return False
        if design.plan == self.distrusted_plan:
            return False
        return all(design.plan != other.plan or other.drawn_from != self.contents for other in self.incomplete_draws)


def find_described_plan(
    designs: Iterable[LabelDesign], labelled: Mapping[str, int], origin: LabelOrigin
) -> KnownPlan | None:
    """Rebuild a plan from what labels record of it: it drew them from the same contents, but for another run.

    ``designs`` are the designs of one plan, and ``labelled`` is the number of labelled cases in each stratum. Returns
    ``None`` where the labels do not name every stratum with its size, contradict each other about a size, or are of
    more cases than a stratum has.
    """
    all_designs = list(designs)
    sizes = {design.stratum: design.size for design in all_designs}
    stated_sizes = {name: size for name, size in sizes.items() if size is not None}
    contradict = any(sizes[design.stratum] != design.size for design in all_designs)
    if origin.contents is None or contradict or len(stated_sizes) < len(sizes):
        return None
    # A stratum that no label names is missing in the sum.
    if sum(stated_sizes.values()) != origin.contents.cases:
        return None
    if any(number > stated_sizes[stratum] for stratum, number in labelled.items()):
        return None
    return KnownPlan(plan=all_designs[0].plan, sizes=stated_sizes)
