"""The layers of the package."""

from __future__ import annotations

LAYERS = (
    "errors",
    "panic",  # what an extension written in Rust raises
    "class_help",
    "lazy",
    "formats",  # read strictly, shown safely
    "concurrency",
    "threads",
    "group_commit",
    "hooks",
    "sync",
    "trust",  # numbers in, numbers out
    "result",
    "agents",  # what an agent did, and how it is read; nothing of rules
    "content",
    "rules",
    "rubric",
    "models",  # knows requests and replies; neither rubrics nor questions
    "dataset",  # cases, by what each is judged, and where they come from; nothing of judges
    "ledger",  # knows results; nothing of judges
    "question",  # what is asked and how it is read: pure
    "judges",  # who answers
    "guards",
    "runs",
    "labels",  # what people say of a run
    "measurement",  # a judge compared with people: joins runs and labels
    "tools",
    "erasure",  # what is kept about somebody is deleted, wherever the parts above keep it
    "templates",  # how pages and reports look; knows no result
    "report",
    "harness",  # what coding agents send to a hook and take as its answer
    "mcp",  # tools of the Model Context Protocol, on their server and on its clients
    "client",  # a server's gates and judges, as the library has its own
    "integrations",
    "adjudge",  # the table of contents
    "config",
    "testing",
    "server",  # gates, approvals and labels over HTTP; knows the configuration
    "cli",
    "__main__",
)
"""Lowest first. A module imports from lower layers and from its own package; a new package is added here to be seen."""
