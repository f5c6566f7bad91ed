"""Options that several commands share: their names, their headings, and what ``--help`` says about them.

How a set becomes the options of a command is in ``option_sets.py`` (``expand_sets``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Write one JSON document and nothing else.")]

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration.  [default: adjudge.toml, if it is here]")
]

Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SEC", help="Seconds for each judge.")]


# Arguments are described by their command's text: typer's own list of them shows Python's types.
Contents = Annotated[list[str] | None, typer.Argument(metavar="PATH|-", hidden=True)]

Rubrics = Annotated[list[str], typer.Argument(metavar="R", hidden=True)]


Rules = Annotated[
    list[str] | None, typer.Option("--rule", metavar="RULE", help="Rule to check first: a name, or '{regex: ^Dear}'.")
]

Reference = Annotated[Path | None, typer.Option("--reference", metavar="F", help="File with a known good answer.")]


Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the person who is asked has decided.")]

ShowPrompt = Annotated[bool, typer.Option("--show-prompt", help="Show what would be sent; ask nobody.")]

Concurrency = Annotated[int, typer.Option("--concurrency", metavar="N", help="How many are judged at once.")]


LabelMapText = Annotated[
    str | None, typer.Option("--label-map", metavar="MAP", help="What labels mean: yes=true,no=false,unsure=null.")
]


LabelName = Annotated[
    str | None, typer.Option("--label-name", metavar="N", help="The annotation or criterion that is the label.")
]

OnBadRow = Annotated[
    str, typer.Option("--on-bad-row", metavar="X", help="fail, or skip: leave bad rows out, and list them.")
]


DataPath = Annotated[str, typer.Argument(metavar="DATA|-", hidden=True)]


Retry = Annotated[
    list[str] | None,
    typer.Option(
        "--retry",
        metavar="REASON",
        help="With --resume: judge again cases undecided for this reason; broken is every one by which a judge breaks.",
    ),
]


FailUnder = Annotated[
    float | None, typer.Option("--fail-under", metavar="SHARE", help="The share that has to pass, from 0 to 1.")
]


# How labels are used to measure a judge.
LabelFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--labels", metavar="FILE", help="Labels of people; several count together.  [default: the run's own]"
    ),
]

ReportLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        "--label-file",
        metavar="FILE",
        help="Labels of people; several count together.  [default: those of the run's own queue]",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CriteriaOptions:
    """The criteria by which contents are judged."""

    heading: ClassVar[str] = "Criteria"
    rubric: Annotated[
        str | None,
        typer.Option(
            "--rubric", "-r", metavar="R", help="The rubric: a shipped name, a name of adjudge.toml, or a file."
        ),
    ] = None
    criteria: Annotated[
        list[str] | None,
        typer.Option(
            "--criteria",
            "-c",
            metavar="TEXT",
            help="What good means, in a sentence; give several for several criteria.",
        ),
    ] = None
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="T", help="The score to reach, from 0 to 1.")
    ] = None
    rules: Rules = None
    case_criteria: Annotated[
        bool, typer.Option("--case-criteria", help="Judge each case by its own criteria, rubric, rules, threshold.")
    ] = False
    criteria_field: Annotated[
        str | None, typer.Option("--criteria-field", metavar="F", help="The field with each case's own criteria.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterialOptions:
    """The files that belong to a content."""

    heading: ClassVar[str] = "Material"
    reference: Reference = None
    task: Annotated[Path | None, typer.Option("--task", metavar="F", help="File with what was asked for.")] = None
    context: Annotated[Path | None, typer.Option("--context", metavar="F", help="File with what may be relied on.")] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOptions:
    """The judges, what they come to together, and how their replies are read."""

    heading: ClassVar[str] = "Judges"
    judges: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            "-j",
            metavar="SPEC",
            help="Who judges: a model or a judge of adjudge.toml; give several for a chain.",
        ),
    ] = None
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy",
            metavar="S",
            help="How several judges decide: fallback, consensus, majority, quorum, hedged, cascade.",
        ),
    ] = None
    timeout: Timeout = None
    fail_open: Annotated[bool, typer.Option("--fail-open", help="Let an undecided chain pass; the result says so.")] = (
        False
    )
    quorum: Annotated[
        int | None, typer.Option("--quorum", metavar="N", help="How many must pass, for --strategy quorum.")
    ] = None
    hedge_after: Annotated[
        float | None,
        typer.Option(
            "--hedge-after", metavar="SEC", help="Seconds until the next judge is asked too, for --strategy hedged."
        ),
    ] = None
    escalate_below: Annotated[
        float | None,
        typer.Option(
            "--escalate-below", metavar="C", help="Ask the next judge below this confidence, for --strategy cascade."
        ),
    ] = None
    reader: Annotated[
        str | None, typer.Option("--reader", metavar="FORM", help="Another reply form, like 'Rating: [[7]]'.")
    ] = None
    reader_labels: Annotated[
        str | None,
        typer.Option("--reader-labels", metavar="A,B", help="The names that form uses: two places, or all labels."),
    ] = None
    reader_passes: Annotated[
        str | None,
        typer.Option("--reader-passes", metavar="A,B", help="Which of the labels pass, for a form of labels."),
    ] = None
    no_token: Annotated[bool, typer.Option("--no-token", help="For a model that cannot copy eight characters.")] = False
    record: Annotated[
        str | None, typer.Option("--record", metavar="FILE", help="Add requests and replies to FILE.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CostOptions:
    """The limit of cost, and the replies that need not be paid for again."""

    heading: ClassVar[str] = "Cost"
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="FILE", help="Keep replies in FILE, and reuse them.")
    ] = None
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="USD", help="Spend at most this; cases beyond it are undecided.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerOptions:
    """The ledger in which results and decisions are recorded."""

    heading: ClassVar[str] = "Ledger"
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="URL", help="Record to this ledger.  [default: that of adjudge.toml]"),
    ] = None
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Record to no ledger, even if adjudge.toml names one.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateOptions:
    """The certificate that a gate demands, over what its table in adjudge.toml says."""

    heading: ClassVar[str] = "Certificate"
    require_certificate: Annotated[
        Path | None,
        typer.Option(
            "--require-certificate", metavar="FILE", help="Ask a person unless this certificate speaks for the judge."
        ),
    ] = None
    max_age: Annotated[
        str | None, typer.Option("--max-age", metavar="TIME", help="The most time since it was measured, like 30d.")
    ] = None
    min_sensitivity: Annotated[
        float | None,
        typer.Option("--min-sensitivity", metavar="SHARE", help="The least lower limit of its sensitivity."),
    ] = None
    min_specificity: Annotated[
        float | None,
        typer.Option("--min-specificity", metavar="SHARE", help="The least lower limit of its specificity."),
    ] = None
    release_policy: Annotated[
        Path | None,
        typer.Option("--release-policy", metavar="FILE", help="Ask a person about passes below its score."),
    ] = None

    def make_settings(self) -> dict[str, Any]:
        """Return the options that were given as settings of a gate's table in adjudge.toml.

        Paths are made absolute, because those in the table are relative to its file, and these to the working
        directory.
        """
        values = {option.name: getattr(self, option.name) for option in fields(self)}
        return {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in values.items()
            if value is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """A data set: its format, and which of its fields is which part of a case."""

    heading: ClassVar[str] = "Data set"
    kind: Annotated[
        str | None,
        typer.Option("--from", metavar="KIND", help="jsonl, csv, ..., or a tool.  [default: from the file name]"),
    ] = None
    content: Annotated[str | None, typer.Option("--content", metavar="F", help="The field that is judged.")] = None
    reference: Annotated[str | None, typer.Option("--reference", metavar="F", help="The field with a good answer.")] = (
        None
    )
    task: Annotated[str | None, typer.Option("--task", metavar="F", help="The field with what was asked for.")] = None
    context: Annotated[str | None, typer.Option("--context", metavar="F", help="The field with what to rely on.")] = (
        None
    )
    label: Annotated[str | None, typer.Option("--label", metavar="F", help="The field with a person's decision.")] = (
        None
    )
    name: Annotated[str | None, typer.Option("--id", metavar="F", help="The field that names the case.")] = None
    group: Annotated[str | None, typer.Option("--group", metavar="F", help="The field with the case's group.")] = None
    other: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="PART=F", help="Map any part of a case: content.a=F, labels.ann=F, ..."),
    ] = None
    label_map: LabelMapText = None
    label_file: Annotated[
        str | None, typer.Option("--label-file", metavar="F", help="File of labels, one row for each rater and case.")
    ] = None
    label_name: LabelName = None
    on_bad_row: OnBadRow = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairOptions:
    """The comparison of pairs."""

    heading: ClassVar[str] = "Pairs"
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Each content is {a, b}: ask which is better, in both orders.")
    ] = False
    on_conflict: Annotated[
        str | None,
        typer.Option("--on-conflict", metavar="X", help="Orders that disagree: tie, or undecided.  [default: tie]"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A run: its folder, the cases that are judged, how often and where."""

    heading: ClassVar[str] = "Run"
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="RUN", help="Folder to keep the run in.  [default: runs/ and the time]"),
    ] = None
    concurrency: Concurrency = 16
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="Where cases are judged: local, or ray for a Ray cluster.")
    ] = "local"
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address", metavar="HOST:PORT", help="The Ray cluster, or auto.  [default: one is begun here]"
        ),
    ] = None
    ray_actors: Annotated[
        int | None,
        typer.Option("--ray-actors", metavar="N", help="Processes that share out --concurrency.  [default: one a CPU]"),
    ] = None
    repeat: Annotated[int, typer.Option("--repeat", metavar="K", help="How often each case is judged.")] = 1
    sample: Annotated[int | None, typer.Option("--sample", metavar="N", help="Judge N cases, drawn by --seed.")] = None
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Which N cases --sample draws.")] = 0
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run in RUN; nothing recorded is asked again.")
    ] = False
    retry: Retry = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchingOptions:
    """The providers' batches."""

    heading: ClassVar[str] = "Batches"
    batch: Annotated[
        bool, typer.Option("--batch", help="Ask by the providers' batches: mostly half the price, within a day or two.")
    ] = False
    batch_check: Annotated[
        int | None,
        typer.Option(
            "--batch-check", metavar="N", help="With --batch: judge the first N cases live, 0 for none.  [default: 20]"
        ),
    ] = None
    batch_then: Annotated[
        str | None,
        typer.Option(
            "--batch-then",
            metavar="HOW",
            help="With --batch: ask again what failed or cannot be read in the next batch, or live.",
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size", metavar="N", help="With --batch: the most cases that wait for batches.  [default: 20000]"
        ),
    ] = None
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            "--batch-tokens", metavar="N", help="With --batch: the most tokens your account may queue a model."
        ),
    ] = None
    batch_poll: Annotated[
        float | None,
        typer.Option(
            "--batch-poll", metavar="SEC", help="With --batch: seconds to the first look at a batch.  [default: 30]"
        ),
    ] = None
    pay_again: Annotated[
        bool,
        typer.Option("--pay-again", help="With --resume: send doubtful and overdue batches again; you may pay twice."),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateOptions:
    """The estimate of what a run would cost, with nobody asked."""

    heading: ClassVar[str] = "Estimate"
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what the run would ask and cost, live and by batch; ask nobody.")
    ] = False
    estimate_from: Annotated[
        Path | None,
        typer.Option(
            "--estimate-from", metavar="RUN", help="With --estimate: use the averages of this run, recording or cache."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """The labels of people with which a judge is measured."""

    heading: ClassVar[str] = "Labels of people"
    labels: Annotated[
        list[str] | None,
        typer.Option("--labels", metavar="FILE", help="Compare with these labels of people; several count together."),
    ] = None
    labels_are: Annotated[
        str | None,
        typer.Option("--labels-are", metavar="random", help="Say that the labels are a random sample of the run."),
    ] = None
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="run|system", help="The rate of these cases, or of all that the system produces."
        ),
    ] = "run"
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="NAME",
            help="Limits of the corrected rate: wilson, jeffreys or exact.  [default: wilson, near 0 and 1 exact]",
        ),
    ] = None
    measured_on: Annotated[
        Path | None,
        typer.Option(
            "--measured-on", metavar="RUN", help="A labelled run of the same judge: say what it got right there."
        ),
    ] = None
    fail_under_corrected: Annotated[
        float | None,
        typer.Option(
            "--fail-under-corrected",
            metavar="SHARE",
            help="The share that people would have to pass, from 0 to 1: the lower limit has to reach it.",
        ),
    ] = None
