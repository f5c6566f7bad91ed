"""What a model prepares before it is asked."""

from __future__ import annotations

import pytest

from adjudge import open_model

KEY = "sk-live-1234567890abcdefghijklmnop"


def test_what_is_prepared_does_not_show_the_key(monkeypatch: pytest.MonkeyPatch):
    """The address and headers of a model that is ready hold the key, and their representation does not."""
    monkeypatch.setenv("MY_KEY", KEY)
    model = open_model("http://127.0.0.1:9/v1?key_env=MY_KEY#m")
    model.check()  # type: ignore[attr-defined]

    assert KEY not in repr(model._access)
