"""The stylesheet, the scripts and the icon. They are listed by name, so that no path leads to another file."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from adjudge.server.problem import Problem
from adjudge.templates.environment import read_style

router = APIRouter()

_MEDIA_TYPES = {
    "style.css": "text/css; charset=utf-8",
    "browser_key.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "keys.js": "text/javascript; charset=utf-8",
    "times.js": "text/javascript; charset=utf-8",
    "waiting.js": "text/javascript; charset=utf-8",
    "decide.js": "text/javascript; charset=utf-8",
    "report.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}

# A year, because the address changes with the files.
_CACHE_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}


@cache
def read_files() -> dict[str, bytes]:
    """Read every file, by its name."""
    folder = files("adjudge.server.pages").joinpath("static")
    # Two files are elsewhere in the package; all others are in the folder.
    others = {
        "style.css": read_style().encode(),
        "report.js": files("adjudge.report").joinpath("page.js").read_bytes(),
    }
    return {name: others[name] if name in others else folder.joinpath(name).read_bytes() for name in _MEDIA_TYPES}


@cache
def compress_file(name: str) -> bytes:
    """Compress a file with gzip; the result is cached."""
    return gzip.compress(read_files()[name], mtime=0)


@cache
def find_static() -> str:
    """Return the path of the folder in addresses. It has a digest of all files, so a browser never uses an old file."""
    digest = sha256()
    for name, content in read_files().items():
        digest.update(name.encode() + content)
    return f"/static/{digest.hexdigest()[:12]}"


def is_static(path: str) -> bool:
    """Return whether a path is that of one of the files."""
    folder, _, name = path.rpartition("/")
    return name in _MEDIA_TYPES and folder == find_static()


@router.get("/static/{version}/{name}", include_in_schema=False)
async def send_file(version: str, name: str, request: Request) -> Response:
    """Send a file, to anybody: nothing in it is about this server.

    These alone are compressed. A page has the session's token and what was judged beside texts that somebody else
    chose, such as a search in its address: from the length of its compressed form, whoever sees the network could guess
    the rest letter by letter (BREACH).
    """
    if name not in _MEDIA_TYPES:
        raise Problem(404, "there is no such file")
    headers = {**(_CACHE_FOREVER if find_static().endswith(f"/{version}") else {"cache-control": "no-cache"})}
    headers |= {"content-type": _MEDIA_TYPES[name], "vary": "Accept-Encoding"}
    offered = request.headers.get("accept-encoding", "").split(",")
    if "gzip" not in [coding.strip() for coding in offered]:  # "gzip;q=0" among them
        return Response(read_files()[name], headers=headers)
    return Response(compress_file(name), headers={**headers, "content-encoding": "gzip"})
