"""The description of the server, asked by a fuzzer: every answer is one that the description has, and none a crash."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kit.server import CONFIG, run_server

pytestmark = pytest.mark.timed


schemathesis = pytest.importorskip("schemathesis")
conformance = pytest.importorskip("schemathesis.specs.openapi.checks")

EXAMPLES = 80 if os.environ.get("ADJUDGE_FULL") == "1" else 2
"""Requests to each address."""

CHECKS = [
    schemathesis.checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    (folder / "runs").mkdir()
    with run_server(folder, CONFIG + '\n[server]\nruns = "runs"\ndeadline = 20\n') as running:
        yield running


def fuzz(operation: Any, **headers: str) -> int:
    """Ask one address with whatever its description allows, and return how many answers fitted the description."""
    fitted = 0

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        nonlocal fitted
        case.validate_response(case.call(headers=headers), checks=CHECKS)
        fitted += 1

    ask()
    return fitted


@pytest.mark.parametrize("caller", ["with every scope", "without a key"])
def test_every_answer_is_one_that_the_description_has(server, caller):
    """Its status, its content type and its form; and nothing that is sent makes the server fail."""
    key = server.make_key(approver="Ana", rater="Ana")
    headers = {"Authorization": f"Bearer {key}"} if caller == "with every scope" else {}
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    fitted = {operation.ok().label: fuzz(operation.ok(), **headers) for operation in schema.get_all_operations()}

    assert len(fitted) > 25
    assert all(fitted.values())
