"""What providers say of the end of a judge's models, kept with a run; and Mistral's words, at its own address."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import open_run, run
from adjudge.models import Retirement, find_retirement
from adjudge.models.providers.catalog import OPENAI_COMPATIBLE
from kit import cli
from kit.cli import Line, Provider, serve
from kit.judges import names
from kit.patience import HANG

pytestmark = pytest.mark.timed


CARD = {
    "id": "small-latest",
    "object": "model",
    "created": 1_790_000_000,
    "owned_by": "mistralai",
    "capabilities": {"completion_chat": True, "function_calling": True, "completion_fim": False, "fine_tuning": False,
                     "vision": False, "classification": False},
    "name": "small-latest",
    "description": "A model.",
    "max_context_length": 32_768,
    "aliases": ["small-2603"],
    "deprecation": "2026-11-30T12:00:00Z",
    "deprecation_replacement_model": "medium-latest",
    "default_model_temperature": 0.3,
    "type": "base",
}  # fmt: skip
"""A model as Mistral describes it: the answer to ``GET /v1/models/{model_id}``."""

END = Retirement(model="mistral:small-latest", state="deprecated", on=date(2026, 11, 30), replacement="medium-latest")


@pytest.fixture(name="line")
def provide_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


@pytest.fixture(name="mistral")
def provide_mistral(line: Line, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Mistral, on this machine: no variable gives it another address, so the catalog does."""
    with serve(cards={"small-latest": CARD}) as provider:
        place = replace(OPENAI_COMPATIBLE["mistral"], base_url=provider.url)
        monkeypatch.setitem(OPENAI_COMPATIBLE, "mistral", place)  # type: ignore[arg-type]
        monkeypatch.setenv("MISTRAL_API_KEY", "sk-of-the-test")
        yield provider


def judge(provider: Provider, monkeypatch: pytest.MonkeyPatch, out: Path, **options: Any) -> Any:
    """A run by OpenAI's model ``small`` at a server, from Python."""
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    return run(["good", "fine"], "openai:small", criteria="Is good.", out=out, **options).finish_sync()


def test_a_run_from_python_keeps_when_its_models_are_retired(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Each model is asked about once, beside the cases; the folder of the run has the answer."""
    with serve(cards={"small": {"id": "small", "shutdown_date": "2026-12-11"}}) as provider:
        done = judge(provider, monkeypatch, tmp_path / "R")

        assert (len(provider.bodies), provider.described) == (2, ["small"])
    expected = (Retirement(model="openai:small", state="deprecated", on=date(2026, 12, 11)),)
    assert (done.status, done.retirements, open_run(tmp_path / "R").retirements) == ("finished", expected, expected)


@pytest.mark.parametrize("mode", ["answer", "hang card"])
def test_a_run_ends_as_it_would_where_nobody_says_when_models_are_retired(
    mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A provider that has no answer, or gives none in time, costs no result, and is not waited for as elsewhere."""
    monkeypatch.setattr("adjudge.runs.engine.RETIREMENT_PATIENCE", 0.1)
    assert find_retirement.__kwdefaults__ is not None
    monkeypatch.setitem(find_retirement.__kwdefaults__, "within", 2 * HANG)
    began = time.monotonic()
    with serve(mode=mode) as provider:
        done = judge(provider, monkeypatch, tmp_path / "R")

        assert provider.described == ["small"]
    assert (done.status, done.counts["passed"], done.retirements) == ("finished", 2, ())
    assert "retirements" not in done.manifest
    assert time.monotonic() - began < HANG


def test_a_manifest_that_was_changed_can_be_read_without_its_retirements(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Whatever is in their place, the run opens, and says that it knows of none."""
    with serve() as provider:
        judge(provider, monkeypatch, tmp_path / "R")
    path = tmp_path / "R" / "run.json"
    for value in ("soon", [{"model": "m"}], [{"model": "m", "state": "gone", "on": None, "replacement": None}], {}):
        path.write_text(json.dumps({**json.loads(path.read_text()), "retirements": value}), encoding="utf-8")

        assert open_run(tmp_path / "R").retirements == ()


def test_the_doctor_says_when_a_model_of_mistrals_is_retired(line: Line, mistral: Provider):
    """With the model that Mistral names in its place, also as JSON."""
    shown = line("doctor", "--judge", "mistral:small-latest")
    assert names(shown.out, "mistral:small-latest", "2026-11-30", "medium-latest", "adjudge replace-judge")

    [judge] = line("doctor", "--judge", "mistral:small-latest", "--json").document["judges"]
    assert judge["seats"][0]["retirement"] == END.to_dict()
    assert set(mistral.described) == {"small-latest"}


def test_a_run_warns_of_a_model_of_mistrals_that_is_retired(line: Line, mistral: Provider):
    """On standard error when the run is over, and in its folder."""
    Path("data.jsonl").write_text('{"content": "good"}\n', encoding="utf-8")
    done = line("run", "data.jsonl", "--criteria", "Is good.", "--judge", "mistral:small-latest", "--out", "R")

    assert done.status == 0
    assert names(done.err, "mistral:small-latest", "2026-11-30", "medium-latest", "adjudge replace-judge")
    assert open_run("R").retirements == (END,)
    assert mistral.described == ["small-latest"]


def test_mistrals_own_package_reads_the_card(require: Any):
    """The answer above is one of Mistral's, with the members that are read here."""
    require("the package mistralai", find_spec("mistralai"), "pip install mistralai")
    from mistralai.client import models

    read = models.BaseModelCard.model_validate(CARD)

    assert (str(read.deprecation), read.deprecation_replacement_model) == ("2026-11-30 12:00:00+00:00", "medium-latest")
