"""``adjudge cache``: the replies in a cache, the reason why a request is found in it or not, and emptying it."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.judge import Session
from adjudge.cli.input import list_inputs
from adjudge.cli.judging import choose_rubric, list_arguments, make_panel
from adjudge.cli.option_sets import Only
from adjudge.cli.output import add_row, complain, make_table, print_line, show_drawing, write_json
from adjudge.cli.results import name_item
from adjudge.cli.spelling import spell
from adjudge.config.file import read_config
from adjudge.config.judges import choose
from adjudge.errors import UsageError
from adjudge.judges.chain import list_judges
from adjudge.models.replies.cache_file import ReplyCache

File = Annotated[Path, typer.Argument(metavar="CACHE", hidden=True)]


def explain(
    criteria: Annotated[option.CriteriaOptions, Only("rubric", "criteria", "threshold")],
    judging: Annotated[option.JudgeOptions, Only("judges")],
    paths: option.Contents = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="FILE", help="Say whether FILE has the reply.")
    ] = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Show the cache key for a content, and everything the key is made of. No model is asked.

    $ adjudge cache explain answer.txt --rubric security --cache replies.sqlite

    PATH, the rubric and the judges are as for `adjudge judge`. With --cache, the command also says whether that file
    has a reply under the key. Compare two explanations to see why a reply was not found.
    """
    configuration = read_config(config)
    rubric = choose_rubric(criteria, configuration)
    arguments = list_arguments(criteria)
    chosen = choose(make_panel(judging), configuration, rubric)
    opened = None if cache is None else _open(cache)
    session = Session(choice=chosen, arguments=arguments, inputs=list_inputs(paths), as_json=as_json)
    status, explanations = asyncio.run(_explain_all(session, opened))
    if opened is not None:
        opened.close()
    if as_json and explanations:
        write_json({"schema": "adjudge/cache-explanations/1", "explanations": explanations})
    elif not as_json:
        for explanation in explanations:
            _print_explanation(explanation)
    return status


def list_replies(file: File, as_json: option.AsJson = False) -> None:
    """List the replies in a cache, oldest first: key, time, model and size, without any content.

    $ adjudge cache list replies.sqlite
    """
    with _open(file) as opened:
        entries = list(opened.entries())
    if as_json:
        listed = [
            {"key": entry.key, "at": _show_time(entry.at), "model": entry.model, "bytes": entry.size}
            for entry in entries
        ]
        write_json({"schema": "adjudge/cached-replies/1", "replies": listed})
        return
    table = make_table("", ("key", "kept at", "model", "bytes"))
    for entry in entries:
        add_row(table, entry.key, _show_time(entry.at), entry.model, str(entry.size))
    show_drawing(table)


def stats(file: File, as_json: option.AsJson = False) -> None:
    """Count the replies in a cache, by model.

    $ adjudge cache stats replies.sqlite
    """
    with _open(file) as opened:
        entries = list(opened.entries())
    models = Counter(entry.model for entry in entries)
    size = sum(entry.size for entry in entries)
    oldest, newest = [_show_time(entries[at].at) if entries else None for at in (0, -1)]
    if as_json:
        about = {"replies": len(entries), "bytes": size, "oldest": oldest, "newest": newest}
        write_json({"schema": "adjudge/cache-stats/1", **about, "models": dict(models)})
        return
    since = f", from {oldest} to {newest}" if entries else ""
    print_line(f"{len(entries)} replies, {size} bytes{since}")
    for name, count in models.most_common():
        print_line(f"{count}\t{' '.join(name.split())}")


def clear(
    file: File,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Only replies of this model, by its name in full.")
    ] = None,
    older_than: Annotated[
        float | None, typer.Option("--older-than", metavar="SEC", help="Only replies older than so many seconds.")
    ] = None,
) -> None:
    """Delete replies from a cache, all or some.

    $ adjudge cache clear replies.sqlite
    """
    if older_than is not None and not 0 <= older_than < float("inf"):
        raise UsageError(f"--older-than must be a finite number of seconds, 0 or more, got {older_than:g}")
    with _open(file) as opened:
        print_line(f"dropped {opened.clear(model=model, older_than=older_than)} replies")


def _open(path: Path) -> ReplyCache:
    """A cache that is there: a mistyped path must not begin an empty one. Raises ``UsageError``."""
    try:
        there = path.is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise UsageError(f"there is no cache {str(path)!r}; name a file that --cache or adjudge.toml named")
    return ReplyCache(path).check()


async def _explain_all(session: Session, cache: ReplyCache | None) -> tuple[int, list[dict[str, Any]]]:
    """Explain the key of every request; return the exit status, and an explanation for each request."""
    from adjudge.judges.layers import wrap_models
    from adjudge.models.replies.cache import CachedModel
    from adjudge.models.replies.key import describe_call, make_call_key

    seats: dict[int, int] = {}

    def number(model: Any, seat: int) -> Any:
        seats[len(seats)] = seat
        return model

    wrap_models(session.choice.judge, number)
    explained: list[dict[str, Any]] = []
    status = 0
    for item in session.inputs.items:
        try:
            question = await session.find_question(item)
            for place, leaf in enumerate(list_judges(session.choice.judge)):
                request = leaf.preview(question)
                described = describe_call(leaf.model, request, seat=seats[place])
                key, known = make_call_key(described), {}
                if cache is not None:
                    known["found"] = CachedModel(leaf.model, cache, seat=seats[place]).explain(request)["found"]
                explained.append(name_item(item) | {"judge": leaf.name, "key": key, **known, "ingredients": described})
        except UsageError as error:
            complain(spell(error))
            status = 2
    return status, explained


def _print_explanation(explanation: dict[str, Any]) -> None:
    lookup = "" if "found" not in explanation else ", found" if explanation["found"] else ", not found"
    print_line(f"=== {explanation['judge']}: {explanation['input']}{lookup}")
    print_line(f"key\t{explanation['key']}")
    for name, value in _flatten(explanation["ingredients"]):
        print_line(f"{name}\t{' '.join(str(value).split())}")


def _flatten(data: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    lines: list[tuple[str, Any]] = []
    for name, value in data.items():
        lines += _flatten(value, f"{before}{name}.") if isinstance(value, dict) else [(before + name, value)]
    return lines


def _show_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


cache_app = make_group(
    "cache",
    "See what a cache of replies holds, and empty it.",
    {"explain": explain, "list": list_replies, "stats": stats, "clear": clear},
)
