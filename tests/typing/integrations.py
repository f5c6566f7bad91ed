"""The adapters for other packages, as a user writes them; checked for types and never run."""

from __future__ import annotations

from typing import Any, Literal, assert_type

from agents import Agent, RunState
from claude_agent_sdk import ClaudeAgentOptions
from inspect_ai import Task
from inspect_ai.approval import ApprovalPolicy, Approver
from inspect_ai.scorer import Scorer
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, Tool
from opentelemetry._logs import LoggerProvider
from opentelemetry.context import Context
from pydantic_evals import Case, Dataset

from adjudge import Gate, Judge, JudgeChain
from adjudge.guards import ToolCall, ToolGuard, UnfinishedCall
from adjudge.integrations.claude import guard_options
from adjudge.integrations.inspect_ai import ScoreValue, guard_approver, judge_scorer
from adjudge.integrations.mcp import (
    FindPrincipal,
    GateExtension,
    GateMiddleware,
    GuardedClient,
    IdentifyClient,
    Pins,
    read_pins,
)
from adjudge.integrations.openai_agents import FindRun, answer_interruptions, guard_agent
from adjudge.integrations.opentelemetry import EvaluationEmitter, EvaluatorType
from adjudge.integrations.pydantic_evals import JudgeEvaluator


def answer(prompt: str) -> str:
    """A function from string to string is a model."""
    return prompt


def score(value: ScoreValue) -> Task:
    """A task of Inspect."""
    assert_type(judge_scorer("openai:gpt-6.1-terra", rubric="security"), Scorer)
    judge_scorer(answer, criteria={"polite": "Is polite."}, threshold=0.8, rules=["secrets"])
    judge_scorer(JudgeChain([answer]), criteria="Is polite.", value="share")  # pyrefly: ignore[bad-argument-type]
    return Task(scorer=judge_scorer(Judge(answer), criteria="Is polite.", value=value, use_target=False))


def approve(guard: ToolGuard) -> Task:
    """A task of Inspect whose agent's calls a guard approves."""
    assert_type(guard_approver(guard), Approver)
    guard_approver()  # pyrefly: ignore[missing-argument]
    return Task(approval=[ApprovalPolicy(guard_approver(guard, wait=60), "*")])


def evaluate(policy: Literal["raise", "fail"]) -> None:
    """A data set of pydantic-evals."""
    evaluator = JudgeEvaluator(Judge(answer), criteria=["Is polite."], on_undecided=policy)
    JudgeEvaluator("rules", rubric="security", on_undecided="pass")  # pyrefly: ignore[bad-argument-type]
    Dataset(name="answers", cases=[Case(name="one", inputs="q")], evaluators=[evaluator])


def emit(kind: EvaluatorType, provider: LoggerProvider) -> None:
    """Results as events."""
    emitter = EvaluationEmitter("politeness", include_explanation=True, evaluator_type=kind, logger_provider=provider)
    EvaluationEmitter("politeness", evaluator_type="robot")  # pyrefly: ignore[bad-argument-type]
    Gate("door", rules=["secrets"], on_result=emitter)
    chain = JudgeChain([Judge(answer, on_result=emitter)], on_result=emitter)
    emitter.emit(chain.evaluate_sync("content", criteria="Is polite."), context=Context())


async def call_pinned_tools(client: Client, guard: ToolGuard) -> None:
    """A client of MCP."""
    assert_type(await read_pins(client), Pins)
    tools = GuardedClient(client, guard, pins=Pins.read("pins.json"), server="bank", run_id="run")
    assert_type(await tools.call_tool("pay", {"amount": 1}, call_id="1", task="Pay."), CallToolResult)
    assert_type(await tools.list_tools(), list[Tool])
    GuardedClient(client, guard, server="bank", run_id="run")  # pyrefly: ignore[missing-argument]


def guard_tools(guard: ToolGuard, identify: IdentifyClient, find_person: FindPrincipal) -> MCPServer:
    """A server of MCP."""
    MCPServer("files", middleware=[GateMiddleware(guard, identify=identify, principal=find_person)])
    GateExtension(Gate("door", rules=["secrets"]))  # pyrefly: ignore[bad-argument-type]
    return MCPServer("files", extensions=[GateExtension(guard, server="files", identify=identify, media=["photo"])])


async def guard_an_agent(agent: Agent, guard: ToolGuard, find_run: FindRun, state: RunState) -> None:
    """An agent of the OpenAI Agents SDK."""
    assert_type(guard_agent(agent, guard, run_id=find_run, media=["photo"], hosted=["web_search"]), Agent[Any])
    guard_agent(agent, guard, run_id="run", cwd="/srv")
    guard_agent(agent, guard)  # pyrefly: ignore[missing-argument]
    assert_type(await answer_interruptions(state), int)


def guard_a_session(guard: ToolGuard) -> ClaudeAgentOptions:
    """An agent of the Claude Agent SDK."""
    guard_options(ClaudeAgentOptions(setting_sources=[]))  # pyrefly: ignore[missing-argument]
    return guard_options(ClaudeAgentOptions(setting_sources=[]), guard, wait=60)


async def look_after_a_crash(guard: ToolGuard, call: ToolCall) -> list[tuple[str, str | None, int]]:
    """The approved calls that may not have run."""
    await guard.record_return(call)
    listed: tuple[UnfinishedCall, ...] = await guard.list_unfinished("run-1", at_work=0)
    return [(each.tool, each.call_id, each.seq) for each in listed]
