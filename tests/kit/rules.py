"""A rule checked at once."""

from __future__ import annotations

import asyncio
from typing import Any

from adjudge import RuleResult
from adjudge.rules import as_rule


def check(rule: Any, content: Any) -> RuleResult:
    return asyncio.run(as_rule(rule).check(content))
