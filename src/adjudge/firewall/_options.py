"""What the options of a firewall must be."""

from __future__ import annotations

from adjudge.errors import UsageError


def check_label(what: str, value: object) -> None:
    """Raise ``UsageError`` unless a name is a printable text: it stands in events, errors and logs."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise UsageError(f"{what} must be a printable text that is not empty, got {value!r}")


def check_hook(hook: object) -> None:
    """Raise ``UsageError`` unless ``on_event`` is a function, or none."""
    if hook is not None and not callable(hook):
        raise UsageError(f"on_event must be a function, got {type(hook).__name__}")
