"""What tests of dataset formats share."""

from __future__ import annotations

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
