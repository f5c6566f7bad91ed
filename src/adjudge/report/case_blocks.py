"""The blocks of a case that a page shows when it is opened: its judgements and its texts."""

from __future__ import annotations

from collections.abc import Iterator

from adjudge.report.cases import ShownCase, cut
from adjudge.report.document import Block, Excerpt, Heading, Judgement, Paragraph, Words

TEXTS = ("task", "content", "reference", "context")
"""The names of a case's texts, in the order in which they are read."""

_LONGEST = 160
"""Characters of a text in a table."""


def describe_case(task: str, content: str) -> Words:
    """Describe a case in a table by the first words of its task, or of its content where it has no task."""
    return Words(text=cut(task or content, _LONGEST), kind="quoted")


def name_sort(sort: str) -> str:
    """Name the sort of a disagreement (such as ``judge wrong``) as one word, for the filter of the page's script."""
    return sort.replace(" ", "-")


def list_judgements(case: ShownCase) -> Iterator[Block]:
    """Yield every judgement of a case that a page shows, with headings and a count where there are several."""
    for number, result in enumerate(case.results, 1):
        if case.judgements > 1:
            yield Heading(text=f"Judgement {number} of {case.judgements}")
        yield Judgement(result=result)
    if case.judgements > len(case.results):
        yield Paragraph(text=f"{len(case.results)} of {case.judgements} judgements, the worst first.", quiet=True)


def list_texts(case: ShownCase) -> Iterator[Block]:
    """Yield every text of a case that is not empty, under its name."""
    for name in TEXTS:
        text = getattr(case, name)
        if text:
            yield Excerpt(title=name.capitalize(), text=text)
