"""Data sets as files: one row in every format, and logs of Inspect."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

HEADER = "id,content,label\n"


FORMS = {
    "c.jsonl": '{"id": 1, "content": "x", "label": true}\n',
    "c.ndjson": '{"id": 1, "content": "x", "label": true}',
    "c.csv": HEADER + "1,x,true\n",
    "c.tsv": "id\tcontent\tlabel\n1\tx\ttrue\n",
    "c.json": '[{"id": 1, "content": "x", "label": true}]',
    "c.yaml": "- id: 1\n  content: x\n  label: true\n",
    "c.yml": "- {id: 1, content: x, label: true}\n",
    "C.JSONL": '{"id": 1, "content": "x", "label": true}\n',
}


def pack(*samples: dict[str, Any], names: list[str] | None = None) -> str:
    with zipfile.ZipFile("log.eval", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("_journal/start.json", "{}")
        for number, item in enumerate(samples):
            name = f"samples/{item['id']}_epoch_{item['epoch']}.json"
            packed.writestr(names[number] if names else name, json.dumps(item))
        packed.writestr("header.json", "{}")
    return "log.eval"


def compress_with_zstd(texts: dict[str, bytes]) -> bytes:
    """A zip whose members are compressed as Inspect does it, which Python 3.11 cannot write."""
    squeezed = {name: b"".join(squeeze(half) for half in (text[:50], text[50:])) for name, text in texts.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name, data in squeezed.items():
            packed.writestr(name, data)
        for item in packed.infolist():
            item.compress_type, item.file_size, item.CRC = (
                93,
                len(texts[item.filename]),
                zipfile.crc32(texts[item.filename]),
            )
    return file.getvalue()


def squeeze(data: bytes) -> bytes:
    import pyarrow as pa

    return pa.Codec("zstd").compress(data, asbytes=True)
