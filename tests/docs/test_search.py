"""What people type into the search of the site, and the page that comes first, ranked by the site's own program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

SEARCHES = {
    "hallucination": "rag",
    "hallucination check": "rag",
    "detect hallucinations": "rag",
    "groundedness": "rag",
    "faithfulness": "rag",
    "rag evaluation": "rag",
    "llm judge": "core-ideas",
    "llm as a judge": "core-ideas",
    "human in the loop": "approvals",
    "human review": "approvals",
    "approve": "approvals",
    "slack": "faq",
    "rate limit": "providers",
    "retry": "models",
    "retries": "models",
    "timeout": "judge",
    "golden set": "dataset",
    "csv": "dataset",
    "pandas": "dataset",
    "inter-annotator agreement": "agree",
    "cohen's kappa": "agree",
    "kappa": "agree",
    "confusion matrix": "agree",
    "sample size": "how-many-labels",
    "how many labels": "how-many-labels",
    "how many labels do I need": "how-many-labels",
    "annotation queue": "label",
    "audit log": "ledger",
    "audit report": "audit",
    "gdpr": "privacy",
    "delete personal data": "retention",
    "log": "ledger",
    "prompt injection": "token",
    "jailbreak": "token",
    "ci": "ci",
    "github actions": "ci",
    "fail ci when quality drops": "ci",
    "pytest": "pytest",
    "unit test": "pytest",
    "mock": "testing",
    "offline": "recordings",
    "batch API": "batch",
    "half price": "batch",
    "how much will it cost": "cost",
    "budget": "cost",
    "caching": "cache",
    "openai compatible gateway": "gateways",
    "gateway": "gateways",
    "litellm": "gateways",
    "bedrock": "gateways",
    "vertex ai": "gateways",
    "custom headers": "gateways",
    "reasoning effort": "gateways",
    "azure": "providers",
    "ollama": "local-server",
    "which model": "choose-a-model",
    "image": "faq",
    "multimodal": "faq",
    "streaming": "faq",
    "windows": "faq",
    "multi-turn": "conversations",
    "chat history": "conversations",
    "agent trace": "agent-runs",
    "trajectory": "agent-runs",
    "tool call approval": "agent-tools",
    "claude code": "hook",
    "guardrails": "gate",
    "fail closed": "why-fail-closed",
    "jury": "chain",
    "ensemble": "chain",
    "majority vote": "chain",
    "pairwise": "compare",
    "position bias": "compare",
    "a/b test": "compare",
    "compare two prompts": "compare-prompts",
    "compare models": "compare-prompts",
    "prompt template": "own-prompt",
    "custom prompt": "own-prompt",
    "few-shot": "write-a-rubric",
    "json schema": "own-prompt",
    "regex": "rules",
    "custom rule": "rules",
    "custom model": "gateways",
    "async": "quickstart",
    "migrate": "migrate",
    "migrate from promptfoo": "moving",
    "openai evals": "openai-evals",
    "oaieval": "openai-evals",
    "openai evals shutdown": "openai-evals",
    "langsmith": "migrate",
    "langfuse": "migrate",
    "ragas": "migrate",
    "deepeval": "moving",
    "opentelemetry": "integrations",
    "ray": "scale",
    "docker": "deploy",
    "rest api": "server",
    "upgrade": "COMPATIBILITY",
    "jupyter": "quickstart",
    "drift": "probes",
    "model deprecated": "replace-judge",
    "alternatives": "comparison",
    "what is sent to the provider": "privacy",
    "export to pandas": "runs",
    "other languages": "faq",
    "write a rule": "rules",
    "evaluate": "core-ideas",
    "redact": "judge",
    "delete data of a person": "retention",
    "llm-rubric": "moving",
    "assertions": "rules",
    "LLMTestCase": "moving",
    "answer relevancy": "rag",
    "evaluators": "core-ideas",
    "online evaluation": "monitor",
    "annotation queues": "label",
    "PII detection": "rules",
    "output guardrail": "gate",
    "block unsafe output": "gate",
    "tripwire": "openai-agents",
    "regression test": "nightly",
    "try another threshold": "redecide",
    "share results": "reports",
    "resume an interrupted run": "runs",
    "rerun failed": "runs",
    "judge accuracy": "measure-a-judge",
    "judge bias": "measure-a-judge",
    "telemetry": "privacy",
    "api key": "providers",
    "evaluate a chatbot": "conversations",
    "custom metric": "judge",
    "expected output": "dataset",
    "human approval for tool calls": "agent-tools",
    "pass rate confidence interval": "reports",
    "openai graders": "openai-evals",
    "JudgeChain": "reference/adjudge.judges",
    "passing_threshold": "rubric",
}
"""What is typed, and the page that must come first."""

ASK = """async ([program, index, queries]) => {
  const worker = new Worker(program);
  const answer = message => new Promise(resolve => {
    worker.onmessage = event => resolve(event.data);
    worker.postMessage(message);
  });
  await answer({type: 0, data: index});
  const filter = {input: {type: "operator", data: {operator: "and", operands: []}}, aggregation: {input: []}};
  const found = [];
  for (const query of queries) {
    const reply = await answer({type: 2, data: {input: query, filter}});
    found.push(reply.data.items.map(item => index.items[item.id].location));
  }
  worker.terminate();
  return found;
}"""
"""Asks the program that the page itself asks, with the index that it loads."""


@pytest.fixture(scope="module", name="found")
def provide_found(site: Path, address: str, browser: Any) -> dict[str, list[str]]:
    """The pages that each search leads to, in order, without the places in them."""
    [program] = (site / "assets" / "javascripts" / "workers").glob("search.*.js")
    index = json.loads((site / "search.json").read_text("utf-8"))
    page = browser.new_page()
    page.goto(address)
    queries = list(SEARCHES)
    locations = page.evaluate(ASK, [f"{address}{program.relative_to(site)}", index, queries])
    page.close()
    pages = [[item.partition("#")[0].strip("/") for item in items] for items in locations]
    return dict(zip(queries, pages, strict=True))


def test_the_words_people_use_lead_to_the_page(found: dict[str, list[str]]):
    """Each search has its page first, in whatever words of the field it is made."""
    first = {query: (pages or ["nothing"])[0] for query, pages in found.items()}

    assert {query: page for query, page in first.items() if page != SEARCHES[query]} == {}


def test_no_member_of_a_class_outranks_a_page(site: Path):
    """Fields and methods are named in the entry of their class, and have none of their own."""
    items = json.loads((site / "search.json").read_text("utf-8"))["items"]
    texts = {item["location"].partition("#")[2]: item["text"] for item in items if "reference/" in item["location"]}

    assert "<code>timeout</code>" in texts["adjudge.judges.Judge"]
    assert "adjudge.judges.Judge.timeout" not in texts
