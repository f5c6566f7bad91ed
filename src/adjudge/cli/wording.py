"""The library's sentences in the words of the command line: options in place of the arguments of a Python function.

The library says what to write in Python, and is right to; who typed a command has no Python before them. This is the
one place that knows both. What no line here names is left as it is.
"""

from __future__ import annotations

import re

_BESIDE = re.compile(r"\b[a-z_]+=(?:True|False|'[^']{0,40}') \((--[^;()]+)(; [^()]*)?\)")
"""An argument with its option beside it: ``resume=True (--resume)``."""

_SAID: tuple[tuple[str, str], ...] = (
    (r"\(format=, or (--from)\)", r"(\1)"),
    (r"\((--content), or fields=\{'content': \.\.\.\} of open_dataset and Dataset\.of\)", r"(\1)"),
    (r"\(fields=\{'task': \.\.\.\}, or (--task)\)", r"(\1)"),
    (r"reader_labels=, or as (--reader-labels)", r"\1"),
    (r"give them as labels=", "give them with --reader-labels"),
    (r"\bas labels=; got", "with --reader-labels; got"),
    (r"say which pass with passes=lambda label: \.\.\.", "say which pass with --reader-passes"),
    (r"give a rubric, criteria='\.\.\.' or result_format=\.\.\.; a ready-made prompt goes to ask\(\)",
     "give --rubric or --criteria"),
    (r"give a rubric or criteria='\.\.\.'", "give --rubric or --criteria"),
    (r"for a sentence write criteria='\.\.\.', and for a gate, which has no criteria=, rubric=\{.*?\}\]\}",
     "a sentence is given with --criteria"),
    (r"for a sentence write criteria='\.\.\.'", "a sentence is given with --criteria"),
    (r"\bthreshold=(\S+) needs criteria or a rubric to apply to", r"--threshold \1 needs --criteria or --rubric"),
    (r"\bsample= needs a data set", "--sample needs a data set"),
    (r"\bhand in a list, a path or a Dataset", "name a file"),
    (r"can be read once only; hand in a file or a list", "can be read once only; name a file"),
    (r"it has (repeat|sample|seed)=(\S+), and", r"it has --\1 \2, and"),
    (r"has fail_open=True, which", "has --fail-open, which"),
    (r"; review\(\) can reinstate it as it is", "; adjudge review can reinstate it as it is"),
    (r"is named with by=", "is named with --by"),
    (r"; list\(\) shows those there are", "; adjudge tools list shows those there are"),
    (r"; (?:review|update)\(\) has it reviewed( again)?", r"; adjudge review has it reviewed\1"),
    (r"approves it: approved_by=", "approves it: --by"),
    (r"\bby=('[^']*'|\S+) names nobody", r"--by \1 names nobody"),
    (r"hand it in with result_format=", "redecide it in a program"),
    (r"; give judge=", "; name one with judge = in adjudge.toml"),
    (r"; give rubric=", "; name one with rubric = in adjudge.toml"),
    (r"; give approvals=", "; write [approvals] in adjudge.toml"),
    (r"\b(the strategy '[^']*') needs quorum\b", r"\1 needs --quorum"),
    (r"\b(the strategy '[^']*') needs hedge_after\b", r"\1 needs --hedge-after"),
    (r"\b(the strategy '[^']*') needs escalate_below\b", r"\1 needs --escalate-below"),
    (r"^quorum (must be|belongs)", r"--quorum \1"),
    (r"^hedge_after (must be|belongs)", r"--hedge-after \1"),
    (r"^escalate_below (must be|belongs)", r"--escalate-below \1"),
    (r"^per_case must be", "--per-case must be"),
    (r"^a rater is named by", "--rater is a name of"),
    (r"^seed must be a whole", "--seed must be a whole"),
    (r"which are good \(label_map=\)", "which are good (--label-map)"),
    (r"decode it with errors='replace' first", "convert it first"),
)  # fmt: skip

_PATTERNS = tuple((re.compile(pattern), said) for pattern, said in _SAID)


def name_options(text: str) -> str:
    """A sentence of the library as the command line says it."""
    text = _BESIDE.sub(lambda found: found[1] + (f" (or {found[2][2:]})" if found[2] else ""), text)
    for pattern, said in _PATTERNS:
        text = pattern.sub(said, text)
    return text
