"""``docs/openapi.json`` is what the server says of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

import adjudge.server as serving
from kit.house import ROOT

fastapi = pytest.importorskip("fastapi")
pydantic = pytest.importorskip("pydantic")
for needed in ("argon2", "multipart", "prometheus_client", "uvicorn"):
    pytest.importorskip(needed)


def read_file() -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "openapi.json").read_text("utf-8"))


def list_operations(document: dict) -> set[tuple[str, str, tuple[str, ...]]]:
    """Every address with its method and the names of its parameters."""
    return {
        (path, method, tuple(sorted(parameter["name"] for parameter in operation.get("parameters", ()))))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_the_file_has_every_address_and_schema():
    """By their names, whichever version of the framework wrote the rest."""
    written, served = read_file(), serving.make_app().openapi()

    assert list_operations(written) == list_operations(served)
    members = [
        {name: sorted(schema.get("properties", ())) for name, schema in document["components"]["schemas"].items()}
        for document in (written, served)
    ]
    assert members[0] == members[1]
    assert ("/v1/tools/check", "post", ()) in list_operations(written)


def test_the_file_is_what_the_server_says():
    """Word for word, by the framework that it was written with."""
    written = read_file()
    versions = written.pop("x-written-with")
    if versions != {"fastapi": fastapi.__version__, "pydantic": pydantic.VERSION}:
        pytest.skip(f"the file was written with {versions}; to compare it word for word, install these")

    assert written == serving.make_app().openapi()
