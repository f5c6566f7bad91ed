"""The cases that are labelled: those of a run with their results, or those of a data set that no run judged."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from adjudge.dataset.case import Case
from adjudge.dataset.contents import ContentSet, ContentTally, digest_content
from adjudge.dataset.dataset import Dataset, open_dataset
from adjudge.dataset.formats import find_format
from adjudge.errors import Argument, UsageError
from adjudge.formats.files import open_regular
from adjudge.formats.text import show
from adjudge.judges.evaluate import resolve_rubric
from adjudge.judges.pair import PairResult
from adjudge.labels.store import LabelStore
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.runs.folder import Run, open_run
from adjudge.runs.item import encode_case, read_case

STORE_FILE = "labels.sqlite"

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCase:
    """A case to label, with its rubric and its results."""

    case: Case
    rubric: Rubric | None
    """The rubric it is judged by."""
    pair: bool
    """True if its content is two contents to choose between."""
    results: tuple[JudgeResult | PairResult, ...] = ()
    """The judge's results, one for each time it was judged."""


class LabelSource(Protocol):
    """A source of the cases that are labelled: a run, or a data set."""

    run: str | None
    """The id of the run, if it is one."""
    folder: Path | None
    """The folder of the run, if it is one."""

    def has_changed(self, store: LabelStore) -> bool:
        """Return whether there may be cases that the file of labels has not seen."""
        ...

    def list_cases(self) -> Iterator[tuple[str, str, bytes | None]]:
        """Yield the id, the digest and the body of each case; the body is ``None`` where a run keeps it."""
        ...

    def remember(self, store: LabelStore) -> None:
        """Note in the file of labels which cases it has now, so that ``has_changed`` can tell later."""
        ...

    def read(self, name: str, store: LabelStore) -> SourceCase:
        """Read the case with this id."""
        ...

    def find_contents(self, store: LabelStore) -> ContentSet | None:
        """Find the contents of all cases; ``None`` while a run is not finished, because its cases are not all there."""
        ...

    def find_subject(self, name: str, store: LabelStore) -> str | None:
        """Find the digest of the content of a case."""
        ...

    def find_plan_problem(self, drawn_from: ContentSet, contents: ContentSet | None) -> str | None:
        """Find why a plan cannot be followed for these cases; ``None`` if it can.

        ``drawn_from`` are the contents that the plan was drawn from, and ``contents`` those of the cases now.
        """
        ...

    def count_groups(self) -> int:
        """Count the groups that have several cases, after all cases were listed."""
        ...

    def count_verdicts(self) -> Mapping[str, int]:
        """Count the cases of each verdict of the judge; empty where there is none, or none that is good or bad."""
        ...

    def find_verdict(self, name: str) -> str | None:
        """Find the verdict of the judge on a case."""
        ...

    def close(self) -> None:
        """Close what was opened here."""
        ...


class RunCases:
    """The cases of a run."""

    def __init__(self, run: Run, *, owned: bool, rubric: Rubric | None = None) -> None:
        self._run, self._owned, self._rubric = run, owned, rubric
        self._verdicts: Mapping[str, int] | None = None
        self.run: str | None = run.id
        self.folder: Path | None = run.folder

    def has_changed(self, store: LabelStore) -> bool:
        """Return whether the run has more cases than the file of labels.

        Raises ``UsageError`` for a file with the labels of another run.
        """
        recorded_run = store.find_fact("run")
        if recorded_run is not None and recorded_run != self.run:
            raise UsageError(
                f"{store.path} holds labels of the run {show(recorded_run)}, and this is {show(self.run)}; name "
                "another file with ",
                Argument("store"),
                argument="store",
            )
        return recorded_run is None or store.find_fact("cases") != str(self._run.store.count_cases())

    def list_cases(self) -> Iterator[tuple[str, str, bytes | None]]:
        """Yield the id and the digest of each case, and ``None``, because the run keeps the bodies."""
        for name, subject in self._run.store.list_subjects():
            yield name, subject, None

    def remember(self, store: LabelStore) -> None:
        """Note which run it is, and how many cases it had."""
        store.set_fact("run", str(self.run))
        store.set_fact("cases", str(self._run.store.count_cases()))

    def read(self, name: str, store: LabelStore) -> SourceCase:
        """Read a case of the run, with the rubric that it was judged by and its results. Raises ``UsageError``."""
        del store
        items = self._run.read_case(name)
        if not items:
            raise UsageError(f"the run {self._run.folder} holds no result of the case {show(name)}; resume it")
        first = items[0]
        results = tuple(item.result for item in items)
        return SourceCase(
            case=first.case,
            rubric=self._rubric or first.rubric,
            pair=self._run.compares,
            results=results,
        )

    def find_contents(self, store: LabelStore) -> ContentSet | None:
        """Find the contents that the run recorded; ``None`` for a run that is not finished."""
        del store
        return self._run.contents

    def find_subject(self, name: str, store: LabelStore) -> str | None:
        """Find the digest of the content of a case of the run."""
        del store
        return self._run.store.find_subject(name)

    def find_plan_problem(self, drawn_from: ContentSet, contents: ContentSet | None) -> str | None:
        """Find why the plan in the run's folder cannot be followed; ``None`` if it can."""
        from adjudge.labels.plan import describe_other_contents, find_plan_problem

        if contents is None or drawn_from != contents:
            return describe_other_contents(drawn_from, contents)
        return find_plan_problem(self._run)

    def count_groups(self) -> int:
        """Count the groups that have several cases of the run."""
        return self._run.store.count_groups()

    def count_verdicts(self) -> Mapping[str, int]:
        """Count the cases of each outcome; empty for a run of pairs. Once the run is finished, the counts are kept."""
        if self._verdicts is None or self._run.status != "finished":
            # Kept, because a rate is shown after every label, and counting a million cases takes a second.
            self._verdicts = {} if self._run.compares else self._run.store.count_first()
        return self._verdicts

    def find_verdict(self, name: str) -> str | None:
        """Find the judge's outcome for a case."""
        return self._run.store.find_outcome(name)

    def close(self) -> None:
        """Close the run, if it was opened here."""
        if self._owned:
            self._run.close()


class DatasetCases:
    """The cases of a data set; the file of labels keeps them, so that a case is found without reading all."""

    def __init__(self, dataset: Dataset, *, path: Path | None, pairs: bool, rubric: Rubric | None) -> None:
        self._dataset, self._path, self._pairs, self._rubric = dataset, path, pairs, rubric
        self._digest = None if path is None else _digest_file(path)
        self._groups: Counter[str] = Counter()
        self._contents: ContentSet | None = None
        self.run: str | None = None
        self.folder: Path | None = None

    def has_changed(self, store: LabelStore) -> bool:
        """Return whether the data set's file changed since it was last read; true where there is no such file.

        Raises ``UsageError`` for a file with the labels of a run.
        """
        if store.find_fact("run") is not None:
            raise UsageError(
                f"{store.path} holds labels of a run; name another file with ", Argument("store"), argument="store"
            )
        return self._digest is None or store.find_fact("data") != self._digest

    def list_cases(self) -> Iterator[tuple[str, str, bytes | None]]:
        """Yield the id, digest and body of each case; both leave labels out, so that a relabelled case is the same.

        Groups and contents are counted meanwhile, for ``count_groups`` and ``find_contents``.
        """
        self._groups.clear()
        contents = ContentTally()
        for case in self._dataset:
            contents.add(digest_content(case.content))
            if case.group is not None:
                self._groups[case.group] += 1
            if self._pairs:
                _check_pair(case)
            body = encode_case(_strip_labels(case))
            yield case.id, hashlib.sha256(body).hexdigest(), body
        self._contents = contents.finish()

    def remember(self, store: LabelStore) -> None:
        """Note in the file of labels the digest of the data set's file."""
        if self._digest is not None:
            store.set_fact("data", self._digest)

    def read(self, name: str, store: LabelStore) -> SourceCase:
        """Read a case from the file of labels. Raises ``UsageError``."""
        body = store.find_body(name)
        if body is None:
            raise UsageError(f"{store.path} has no case {show(name)}; label a case of the data set")
        try:
            case = read_case(body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise UsageError(f"{store.path}: the case {show(name)} cannot be read; restore the file") from None
        return SourceCase(case=case, rubric=_find_rubric(case, self._rubric), pair=self._pairs)

    def find_contents(self, store: LabelStore) -> ContentSet | None:
        """Return the contents of the cases that were listed, else those that the file of labels has."""
        return self._contents or store.find_contents()

    def find_subject(self, name: str, store: LabelStore) -> str | None:
        """Compute the digest of the content of a case in the file of labels."""
        return digest_content(self.read(name, store).case.content)

    def find_plan_problem(self, drawn_from: ContentSet, contents: ContentSet | None) -> str | None:
        """Return nothing: a data set has no plan."""
        del drawn_from, contents

    def count_groups(self) -> int:
        """Count the groups that have several cases of the data set."""
        return sum(count > 1 for count in self._groups.values())

    def count_verdicts(self) -> Mapping[str, int]:
        """Return nothing: nobody judged the cases."""
        return {}

    def find_verdict(self, name: str) -> str | None:
        """Return nothing: nobody judged the case."""
        del name

    def close(self) -> None:
        """Do nothing: no file is open."""


def _digest_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal.

    Raises ``UsageError`` for a file that cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with open_regular(path) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a data set or the folder of a run") from None
    return digest.hexdigest()


def _strip_labels(case: Case) -> Case:
    """Return the case without labels, group and metadata: they may say what others think of it."""
    return replace(case, label=None, labels={}, group=None, metadata={})


def _find_rubric(case: Case, rubric: Rubric | None) -> Rubric | None:
    """Return the case's own rubric, or one of its criteria; else ``rubric``."""
    if case.criteria is None and case.rubric is None:
        return rubric
    return resolve_rubric(case.rubric, None, {"criteria": case.criteria, "threshold": case.threshold})


def _check_pair(case: Case) -> None:
    """Raise ``UsageError`` for a case whose content is no pair."""
    if not isinstance(case.content, dict) or set(case.content) != {"a", "b"}:
        raise UsageError(f'the case {show(case.id)} is no pair; a pair has the content {{"a": ..., "b": ...}}')


def open_source(
    source: Run | Dataset | str | os.PathLike[str], *, rubric: Rubric | None, pairs: bool
) -> tuple[LabelSource, Path | None]:
    """Open the source of cases, and find the path at which their labels are kept by default; raises ``UsageError``.

    ``pairs`` says whether the contents of a data set are pairs. A ``Dataset`` has no default path.
    """
    if isinstance(source, Run):
        return RunCases(source, owned=False, rubric=rubric), find_store(source.folder)
    if isinstance(source, Dataset):
        return DatasetCases(source, path=None, pairs=pairs, rubric=rubric), None
    path = Path(source)
    if os.fspath(source) == "-":
        raise UsageError("the data set must be a file, because answers come from standard input; name it")
    if path.is_dir():
        return RunCases(open_run(path), owned=True, rubric=rubric), find_store(path)
    _check_file_name(path)
    return DatasetCases(open_dataset(path), path=path, pairs=pairs, rubric=rubric), find_store(path)


def _check_file_name(path: Path) -> None:
    """Raise ``UsageError`` for a file whose name does not end as that of a data set does."""
    try:
        find_format(os.fspath(path), None)  # raises for a name that is of no format
    except UsageError:
        raise UsageError(
            f"{path} is no folder of a run, and no data set by its name; name a folder of `adjudge run`, or a .jsonl, "
            ".csv or other file that `adjudge dataset convert` writes"
        ) from None


def find_store(source: str | os.PathLike[str]) -> Path:
    """Return the path of the file of labels by default: in the folder of a run, or beside the file of a data set."""
    path = Path(source)
    return path / STORE_FILE if path.is_dir() else path.with_name(f"{path.name}.{STORE_FILE}")
