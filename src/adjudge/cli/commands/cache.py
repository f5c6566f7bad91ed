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
from adjudge.cli.error_messages import format_error
from adjudge.cli.input import list_inputs
from adjudge.cli.judge_output import name_item
from adjudge.cli.judging import choose_rubric, list_arguments, make_panel
from adjudge.cli.option_sets import Only
from adjudge.cli.output import add_row, complain, make_table, print_line, show_drawing, write_json
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
    reply_cache = None if cache is None else _open_cache(cache)
    session = Session(choice=chosen, arguments=arguments, inputs=list_inputs(paths), as_json=as_json)
    status, explanations = asyncio.run(_explain_all(session, reply_cache))
    if reply_cache is not None:
        reply_cache.close()
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
    with _open_cache(file) as cache:
        entries = list(cache.entries())
    if as_json:
        listed = [
            {"key": entry.key, "at": _format_time(entry.at), "model": entry.model, "bytes": entry.size}
            for entry in entries
        ]
        write_json({"schema": "adjudge/cached-replies/1", "replies": listed})
        return
    table = make_table("", ("key", "kept at", "model", "bytes"))
    for entry in entries:
        add_row(table, entry.key, _format_time(entry.at), entry.model, str(entry.size))
    show_drawing(table)


def stats(file: File, as_json: option.AsJson = False) -> None:
    """Count the replies in a cache, by model.

    $ adjudge cache stats replies.sqlite
    """
    with _open_cache(file) as cache:
        entries = list(cache.entries())
    models = Counter(entry.model for entry in entries)
    size = sum(entry.size for entry in entries)
    oldest, newest = [_format_time(entries[index].at) if entries else None for index in (0, -1)]
    if as_json:
        totals = {"replies": len(entries), "bytes": size, "oldest": oldest, "newest": newest}
        write_json({"schema": "adjudge/cache-stats/1", **totals, "models": dict(models)})
        return
    period = f", from {oldest} to {newest}" if entries else ""
    print_line(f"{len(entries)} replies, {size} bytes{period}")
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
    with _open_cache(file) as cache:
        print_line(f"dropped {cache.clear(model=model, older_than=older_than)} replies")


def _open_cache(path: Path) -> ReplyCache:
    """Open a cache; raises ``UsageError`` for a file that does not exist, so that a typo makes no empty cache."""
    try:
        exists = path.is_file()
    except OSError:  # a name that is too long
        exists = False
    if not exists:
        raise UsageError(f"there is no cache {str(path)!r}; name a file that --cache or adjudge.toml named")
    return ReplyCache(path).check()


async def _explain_all(session: Session, cache: ReplyCache | None) -> tuple[int, list[dict[str, Any]]]:
    """Explain the cache key of every request that the session would send.

    Returns the exit status, and an explanation for each request: its key, what the key is made of, and with a cache
    whether that has the reply.
    """
    from adjudge.judges.layers import wrap_models
    from adjudge.models.replies.cache import CachedModel
    from adjudge.models.replies.key import describe_call, make_call_key

    # Seats that have the same model are told apart by a number, which is part of the key. ``wrap_models`` calls the
    # function below with this number for each single judge; the function notes it, and wraps nothing.
    seats: dict[int, int] = {}  # by the position of a single judge in ``list_judges``

    def note_seat(model: Any, seat: int) -> Any:
        seats[len(seats)] = seat
        return model

    wrap_models(session.choice.judge, note_seat)
    explanations: list[dict[str, Any]] = []
    status = 0
    for item in session.inputs.items:
        try:
            question = await session.find_question(item)
            for position, leaf in enumerate(list_judges(session.choice.judge)):
                request, seat = leaf.preview(question), seats[position]
                ingredients = describe_call(leaf.model, request, seat=seat)
                explanation = name_item(item) | {"judge": leaf.name, "key": make_call_key(ingredients)}
                if cache is not None:
                    explanation["found"] = CachedModel(leaf.model, cache, seat=seat).explain(request)["found"]
                explanations.append(explanation | {"ingredients": ingredients})
        except UsageError as error:
            complain(format_error(error))
            status = 2
    return status, explanations


def _print_explanation(explanation: dict[str, Any]) -> None:
    """Print the explanation of a request's cache key, with one line for each ingredient of the key."""
    lookup = "" if "found" not in explanation else ", found" if explanation["found"] else ", not found"
    print_line(f"=== {explanation['judge']}: {explanation['input']}{lookup}")
    print_line(f"key\t{explanation['key']}")
    for name, value in _flatten(explanation["ingredients"]):
        print_line(f"{name}\t{' '.join(str(value).split())}")


def _flatten(data: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """List the values of nested mappings, each with its dotted name, such as ``request.user``."""
    named_values: list[tuple[str, Any]] = []
    for name, value in data.items():
        named_values += _flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return named_values


def _format_time(timestamp: float) -> str:
    return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")


cache_app = make_group(
    "cache",
    "See what a cache of replies holds, and empty it.",
    {"explain": explain, "list": list_replies, "stats": stats, "clear": clear},
)
