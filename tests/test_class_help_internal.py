"""The help of a class whose source is not there."""

from __future__ import annotations

from adjudge.class_help import add_help


def test_without_its_source_a_class_has_its_docstring():
    """As where a program was packed without sources."""
    made = type("Made", (), {"__module__": "adjudge.made", "__doc__": "Made at run time."})
    add_help(made)

    assert made.__doc__ == "Made at run time."
