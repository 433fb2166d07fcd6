"""Files over HTTP: an interrupted transfer is resumed where it ended, and a file has its name when it is complete.

What has arrived lies in ``NAME.part``; ``NAME.part.json`` remembers which version of the file that is. The rest is
asked for by range, provided that the server still has this version; from a server without ranges, or with a newer
version, the file comes anew from its beginning.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.error import HTTPError
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from wedgewise.errors import DownloadError, WedgewiseError
from wedgewise.machine.files import atomic_write, partial_file, put_in_place
from wedgewise.machine.own_files import read_trusted
from wedgewise.machine.progress import Progress

SCHEMES = ("http", "https")
PIECE_BYTES = 1 << 18
TIMEOUT_SECONDS = 60.0
ATTEMPTS = 4  # in a row that bring nothing new, from a server that has answered before
PAUSE_SECONDS = 0.5
PASSING = {408, 425, 429, 500, 502, 503, 504}  # answers of a server that may do better a little later
LENGTH = re.compile(r"[0-9]{1,18}")
RANGE_GIVEN = re.compile(rf"bytes ({LENGTH.pattern})-{LENGTH.pattern}/({LENGTH.pattern})")
MARK = re.compile(r"[ -~]{1,1000}")  # what can be sent back to the server as it came
MAX_LETTERS = 200  # of what others say, in a message of ours
ELSEWHERE = "name another source with source= or --from"


@dataclass(frozen=True, slots=True)
class Version:
    """Which version of a file has begun to arrive, as far as the server says."""

    address: str
    bytes: int | None
    etag: str | None
    modified: str | None

    @property
    def mark(self) -> str | None:
        """What a server compares with its own version before it continues a file; weak tags do not serve."""
        return self.etag if self.etag is not None and not self.etag.startswith("W/") else self.modified


_Reply = tuple[HTTPResponse, int, Version]
"""The bytes of a file, from where on; the whole has ``version.bytes`` of them, if the server says so."""


class _CutError(Exception):
    """A connection ended early, or the server asks for patience."""


def fetch(address: str, path: Path, stage: str, progress: Progress | None, *, most_bytes: int) -> None:
    """Bring the file at an address to `path`, resuming where an earlier call was ended.

    Parameters
    ----------
    address : of http or https
    path : the final name, in a folder that exists
    stage, progress : the name of the stage, and the callable that gets the progress
    most_bytes : how long the file may be; a longer one is not fetched, or no further, whatever length was stated

    Raises
    ------
    DownloadError
        when there is no such file, no such server, or the connection was lost time and again; when the file is too long
    StorageError
        when the file cannot be written, or another process is fetching it
    """
    if not is_address(address):
        raise DownloadError(f"{address}: is not of http or https; {ELSEWHERE}")
    part, note = path.with_name(f"{path.name}.part"), path.with_name(f"{path.name}.part.json")
    try:
        with partial_file(part) as file:
            _Transfer(address, file, note, stage, progress, most_bytes, _opener()).finish()
    except DownloadError:
        if not has_begun(path):
            part.unlink()
            note.unlink(missing_ok=True)
        raise
    put_in_place(part, path)
    note.unlink(missing_ok=True)


def is_address(text: str) -> bool:
    """Whether a text is an address of http or https."""
    return text.partition(":")[0].lower() in SCHEMES


def has_begun(path: Path) -> bool:
    """Whether a part of the file that is to have this name has arrived."""
    part = path.with_name(f"{path.name}.part")
    return part.is_file() and part.stat().st_size > 0


@dataclass(slots=True)
class _Transfer:
    """One file on its way into a partial one, whose version is noted beside it."""

    address: str
    file: BinaryIO
    note: Path
    stage: str
    progress: Progress | None
    most_bytes: int
    opener: OpenerDirector
    has_answered: bool = False

    def finish(self) -> None:
        """Ask until everything is there; give up when several answers in a row brought nothing new."""
        most, fruitless = self._size(), 0
        while True:
            try:
                if self._go_on():
                    return
                reason = "the connection ended early"
            except _CutError as cut:
                reason = str(cut)
            arrived = self._size()
            fruitless = 0 if arrived > most else fruitless + 1
            most = max(most, arrived)
            if fruitless == ATTEMPTS or not self.has_answered:
                kept = f"{arrived:,} bytes are kept, and the same call goes on from there" if arrived else ELSEWHERE
                raise DownloadError(f"{self.address}: {reason}; {kept}")
            time.sleep(PAUSE_SECONDS * fruitless)

    def _go_on(self) -> bool:
        """Take one answer as far as it comes; whether the file is complete."""
        reply = self._ask(self._version())
        if reply is None:
            return True
        response, begin, version = reply
        with response:
            self._check_length(version.bytes or 0)
            if begin == 0:
                self._forget()
                with atomic_write(self.note, mode=0o600) as file:
                    file.write(json.dumps(asdict(version)).encode())
            self._take(response, begin, version.bytes)
        return version.bytes in (None, self._size())

    def _ask(self, version: Version | None) -> _Reply | None:
        """The server's answer for what is missing; None where nothing is."""
        have = self._size() if version is not None else 0
        try:
            response = self._open(_headers(version, have))
        except HTTPError as error:
            with closing(error):  # a redirection that leads in a circle is closed already
                if error.code != 416 or not have:
                    raise self._refusal(error) from error
                if error.headers.get("Content-Range") == f"bytes */{have}":
                    return None
            self._forget()
            return self._ask(None)
        found = self._version_of(response)
        if response.status != 206:
            return response, 0, found
        given = RANGE_GIVEN.fullmatch(response.headers.get("Content-Range", ""))
        known = None if version is None else version.bytes
        if given is None or int(given[1]) != have or known not in (None, int(given[2])):
            response.close()
            if not have:
                raise DownloadError(f"{self.address}: the server answers with a range nobody asked for; {ELSEWHERE}")
            self._forget()
            return self._ask(None)
        return response, have, replace(found, bytes=int(given[2]))

    def _open(self, headers: dict[str, str]) -> HTTPResponse:
        try:
            response: HTTPResponse = self.opener.open(Request(self.address, headers=headers), timeout=TIMEOUT_SECONDS)
        except HTTPError:
            self.has_answered = True
            raise
        except WedgewiseError:
            raise
        except (OSError, HTTPException) as error:
            raise _CutError(f"no answer ({_briefly(getattr(error, 'reason', error))})") from error
        except (ValueError, OverflowError) as error:  # what it was sent on to, perhaps: no host, no port
            reason = f"the address, or the one that it leads to, is not valid ({_briefly(error)})"
            raise DownloadError(f"{self.address}: {reason}; {ELSEWHERE}") from error
        self.has_answered = True
        return response

    def _version_of(self, response: HTTPResponse) -> Version:
        length = None if response.chunked else response.headers.get("Content-Length")
        if length is not None and LENGTH.fullmatch(length) is None:
            response.close()
            raise DownloadError(f"{self.address}: the server states a length that is not a number; {ELSEWHERE}")
        etag, modified = (_mark(response.headers.get(name)) for name in ("ETag", "Last-Modified"))
        return Version(self.address, None if length is None else int(length), etag, modified)

    def _check_length(self, found: int) -> None:
        """Refuse a file that is too long, and drop what has come of it."""
        if found > self.most_bytes:
            self._forget()
            raise DownloadError(
                f"{self.address}: sends over {self.most_bytes:,} bytes, which is more than this graph takes; fetch it "
                "yourself if you trust it, and name the file with source= or --from"
            )

    def _refusal(self, error: HTTPError) -> Exception:
        """What to raise for an answer that is not a file."""
        reason = f"the server answers {error.code} {_briefly(error.reason)}".rstrip()
        if error.code in PASSING:
            return _CutError(reason)
        return DownloadError(f"{self.address}: {reason}; {ELSEWHERE}")

    def _take(self, response: HTTPResponse, done: int, total: int | None) -> None:
        """Write what comes, as it comes, until the file is complete or the answer ends."""
        self.file.seek(done)
        self.file.truncate()
        while True:
            if self.progress is not None:
                self.progress(self.stage, done, total or 0)
            try:
                piece = response.read1(PIECE_BYTES) if total is None or done < total else b""
            except (OSError, HTTPException) as error:
                raise _CutError(f"the connection was lost ({_briefly(error) or type(error).__name__})") from error
            if not piece:
                return
            self._check_length(done + len(piece))
            self.file.write(piece)
            self.file.flush()
            done += len(piece)

    def _size(self) -> int:
        return self.file.seek(0, 2)

    def _version(self) -> Version | None:
        """The version that has begun to arrive; None where that is unknown, or of another address."""
        data = read_trusted(self.note)
        try:
            version = None if data is None else Version(**json.loads(data))
        except (ValueError, TypeError, RecursionError):
            return None
        if version is None or version.address != self.address or type(version.bytes) not in (int, type(None)):
            return None
        return replace(version, etag=_mark(version.etag), modified=_mark(version.modified))

    def _forget(self) -> None:
        """Begin anew: the note goes first, so that it never speaks of other bytes."""
        self.note.unlink(missing_ok=True)
        self.file.seek(0)
        self.file.truncate()


class _Redirections(HTTPRedirectHandler):
    """Follows to http and https alone, and reads nothing of an answer that leads elsewhere."""

    def redirect_request(self, req: Request, *about: Any) -> Request | None:
        if not is_address(str(about[-1])):
            raise DownloadError(
                f"{req.full_url}: the server redirects to {_briefly(about[-1])}, which is not of http or https; "
                f"{ELSEWHERE}"
            )
        new = super().redirect_request(req, *about)
        about[0].close()  # or all that comes with the redirection would be read
        return new

    def http_error_302(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (ValueError, DownloadError):  # nobody reads this answer any more
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _opener() -> OpenerDirector:
    """Opens http and https and nothing else, follows redirections, refuses loops of them."""
    opener = OpenerDirector()
    for transport in (ProxyHandler, HTTPHandler, HTTPSHandler):
        opener.add_handler(transport())
    for answer in (_Redirections, HTTPDefaultErrorHandler, HTTPErrorProcessor):
        opener.add_handler(answer())
    return opener


def _headers(version: Version | None, have: int) -> dict[str, str]:
    headers = {"User-Agent": "wedgewise", "Accept-Encoding": "identity"}
    if version is not None and have:
        headers["Range"] = f"bytes={have}-"
        if version.mark is not None:
            headers["If-Range"] = version.mark
    return headers


def _mark(value: object) -> str | None:
    """What names a version of a file, if it can be sent back."""
    return value if isinstance(value, str) and MARK.fullmatch(value) else None


def _briefly(said: object) -> str:
    """The first line of what somebody else says, in few letters."""
    line = next(iter(str(said).strip().splitlines()), "")
    return line if len(line) <= MAX_LETTERS else f"{line[:MAX_LETTERS]}…"
