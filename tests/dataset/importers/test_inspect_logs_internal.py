"""How much of a log of Inspect is unpacked."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from adjudge.dataset import import_inspect
from kit import cli
from kit.datasets import compress_with_zstd, pack


@pytest.fixture(name="folder", autouse=True)
def work_here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(number: object = 1, *, epoch: int = 1, **more: object) -> dict[str, Any]:
    message = {"id": "random", "content": "Paris", "source": "generate", "role": "assistant"}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}], "completion": "Paris"}
    return {"id": number, "epoch": epoch, "input": "Q", "target": "T", "output": output, "scores": {}, **more}


def write_json(*samples: object) -> str:
    Path("log.json").write_text(json.dumps({"version": 2, "status": "success", "samples": samples}), "utf-8")
    return "log.json"


def refuse(path: str) -> str:
    with pytest.raises(UsageError) as caught:
        list(import_inspect(path))
    return str(caught.value)


def test_no_more_is_unpacked_than_a_sample_may_be(monkeypatch, require):
    """Neither what says that it is large, nor what says that it is small and is not."""
    require("pyarrow", cli.find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    monkeypatch.setattr("adjudge.dataset.importers.inspect.LARGEST_JSON", 10_000)
    path = pack(sample(1, input="A" * 20_000), sample(2))
    assert "the sample 'samples/1_epoch_1.json' is larger than" in refuse(path)

    data = compress_with_zstd({"samples/1_epoch_1.json": json.dumps(sample(1, input="A" * 20_000)).encode()})
    lying = io.BytesIO(data)
    with zipfile.ZipFile(lying, "a") as packed:
        packed.infolist()[0].file_size = 300
        packed.comment = b"x"
    Path("log.eval").write_bytes(lying.getvalue())
    assert "cannot be read (its size or its checksum is another); copy the log again" in refuse("log.eval")


def test_a_large_log_is_to_be_packed(monkeypatch):
    """As JSON it would be in memory at once."""
    monkeypatch.setattr("adjudge.dataset.importers.inspect.LARGEST_JSON", 100)

    assert "`inspect log convert LOG --to eval --output-dir DIR`, which are read one" in refuse(write_json(sample()))
