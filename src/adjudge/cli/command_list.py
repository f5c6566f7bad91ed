"""The commands of ``adjudge`` in the order of its help text, so that the text is written without importing them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCommand:
    """A command, or a group of commands, with its help sentence and the place where it is defined."""

    name: str
    location: str
    """Its module in ``adjudge.cli.commands`` and its name there: a function, or a group of ``make_group``."""
    sentence: str
    """The first sentence of its own help text."""


COMMANDS: dict[str, tuple[ListedCommand, ...]] = {
    "Everyday": (
        ListedCommand(
            name="judge", location="judge:judge", sentence="Judge one or more texts against a rubric or a sentence."
        ),
        ListedCommand(
            name="run",
            location="run:run_data",
            sentence="Judge a data set by a rubric or a sentence, and keep every case, result and reply in a folder.",
        ),
        ListedCommand(
            name="batch", location="batch:batch_app", sentence="List, collect and cancel the batches of a run."
        ),
        ListedCommand(
            name="report",
            location="report:report",
            sentence="Summarise a run, or show everything about one case of it.",
        ),
        ListedCommand(
            name="diff",
            location="diff:diff_runs",
            sentence="Show what changed from RUN1 to RUN2, by case and criterion.",
        ),
        ListedCommand(
            name="view",
            location="view:view_runs",
            sentence="Look at runs in a browser: figures, cases, comparisons; read only, on this machine.",
        ),
        ListedCommand(
            name="redecide",
            location="redecide:redecide_run",
            sentence="Compute the results of a run under another policy, from its stored replies.",
        ),
    ),
    "Measure": (
        ListedCommand(
            name="plan",
            location="plan:plan_labels",
            sentence="Choose which cases of a run people label, and say how many labels it takes.",
        ),
        ListedCommand(
            name="label",
            location="label:label",
            sentence="Label the cases of a run or a data set with single keystrokes.",
        ),
        ListedCommand(
            name="agree",
            location="agree:agree",
            sentence="Measure a judge against people: what it catches, what it keeps, and what people would pass.",
        ),
        ListedCommand(
            name="certify",
            location="certify:certify_run",
            sentence="Certify what was measured about the judge of a run: one file, which a gate can demand.",
        ),
        ListedCommand(
            name="certificate",
            location="certificate:certificate_app",
            sentence="Verify what was certified about a judge.",
        ),
        ListedCommand(
            name="calibrate",
            location="calibrate:calibrate",
            sentence="Find from which score on the judge of a run may decide alone, so that a promise is kept.",
        ),
        ListedCommand(
            name="replace-judge",
            location="replace_judge:replace_judge",
            sentence="Compare candidate judges with the judge that they may replace, on its labelled cases.",
        ),
    ),
    "Guard": (
        ListedCommand(name="gate", location="gate:gate_app", sentence="List gates, and put contents through one."),
        ListedCommand(
            name="hook",
            location="hook:hook_app",
            sentence="Put gates in front of the tools of Claude Code and Codex.",
        ),
        ListedCommand(
            name="calls",
            location="calls:calls_app",
            sentence="Collect calls of tools that an agent wanted to make, and see who lets what through.",
        ),
        ListedCommand(
            name="approvals",
            location="approvals:approvals_app",
            sentence="List requests for approval, and decide them.",
        ),
        ListedCommand(
            name="monitor",
            location="monitor:monitor",
            sentence="Say whether gates with an audit still let through what they promise.",
        ),
        ListedCommand(
            name="rules",
            location="rules:rules_app",
            sentence="List the rules that ship, and check contents by rules alone.",
        ),
        ListedCommand(
            name="mcp",
            location="mcp:mcp_app",
            sentence="Serve gates to agents over MCP, and pin what a server offers.",
        ),
        ListedCommand(
            name="probe", location="probe:probe", sentence="Compare a tool's outputs today with its baselines."
        ),
        ListedCommand(
            name="tools",
            location="tools:tools_app",
            sentence="Review forged tools and check their outputs; list, show, promote and demote them.",
        ),
    ),
    "Prove": (
        ListedCommand(
            name="ledger", location="ledger:ledger_app", sentence="List, verify, export and report on a ledger."
        ),
        ListedCommand(
            name="forget",
            location="forget:forget_all",
            sentence="Delete the texts that are kept about one content, or about whom metadata name, and list what "
            "is left for you.",
        ),
    ),
    "Serve": (
        ListedCommand(
            name="serve",
            location="serve:serve",
            sentence="Serve the gates of adjudge.toml, its approvals and its labels over HTTP.",
        ),
        ListedCommand(
            name="keys", location="keys:keys_app", sentence="Make and revoke the keys of programs that ask the server."
        ),
        ListedCommand(
            name="accounts",
            location="accounts:accounts_app",
            sentence="Add the people who sign in to the server, and set their passwords.",
        ),
    ),
    "Set up": (
        ListedCommand(
            name="init",
            location="init:init",
            sentence="Write a configuration, a rubric, a test and a workflow to begin with.",
        ),
        ListedCommand(
            name="demo",
            location="demo:demo",
            sentence="Judge ten example answers by rules, then by three judges, and write a report: no key, no "
            "network.",
        ),
        ListedCommand(
            name="doctor", location="doctor:doctor", sentence="Check judges, keys, hosts and the reading of replies."
        ),
        ListedCommand(name="rubric", location="rubric:rubric_app", sentence="List, show and check rubrics."),
        ListedCommand(
            name="dataset",
            location="dataset:dataset_app",
            sentence="Check a data set, write it in another format, or write labels of one.",
        ),
        ListedCommand(
            name="cache", location="cache:cache_app", sentence="See what a cache of replies holds, and empty it."
        ),
        ListedCommand(
            name="completion",
            location="completion:print_completion",
            sentence="Write the completion script of a shell.",
        ),
    ),
}
"""The headings of ``adjudge --help``, and the commands under each."""
