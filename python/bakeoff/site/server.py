"""The server of `bakeoff serve`: to this machine only, to be read only, and nothing beside the site.

A page of the web could make a browser on this machine ask here. It cannot read the answer, because no answer permits
another origin; and a name of its own that it lets lead to 127.0.0.1 is refused, because the header Host has to name
this machine. Addresses are looked up among what the site has, and never joined to a path of the results.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final
from urllib.parse import unquote, urlsplit

from bakeoff import files
from bakeoff.errors import BakeoffError, SiteError

if TYPE_CHECKING:
    from bakeoff.site.live import Live

ADDRESS: Final = "127.0.0.1"
_NAMES: Final = (ADDRESS, "localhost")
_HTTP_PORT: Final = 80
_TIMEOUT_S: Final = 30.0
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".log": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_OTHER: Final = "application/octet-stream"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class Server(ThreadingHTTPServer):
    """Serves one site on this machine."""

    daemon_threads = True
    request_queue_size = 128
    """Connections that wait to be accepted. A browser opens several at a time, and one too many waits a second."""

    def __init__(self, live: Live, port: int) -> None:
        """BakeoffError if the port is taken, or is one that only root may have."""
        self.live = live
        try:
            super().__init__((ADDRESS, port), Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise SiteError(f"--port: cannot listen on {port}: {why}; expected a free port, or 0 for any") from None

    @property
    def port(self) -> int:
        """The port that it got."""
        return int(self.server_address[1])

    @property
    def hosts(self) -> set[str]:
        """What the header Host may say: this machine, with the port, which may be left out where it is HTTP's own."""
        ports = [f":{self.port}"] + [""] * (self.port == _HTTP_PORT)
        return {f"{name}{port}" for name in _NAMES for port in ports}

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        return f"http://{ADDRESS}:{self.port}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that went away, or an answer that could not be made: the next one is served all the same."""


class Handler(BaseHTTPRequestHandler):
    """One request: GET or HEAD of something that the site has."""

    server: Server
    server_version = "bakeoff"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_S

    def do_GET(self) -> None:
        """What the address shows."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """The same without its content."""
        self._answer(body=False)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library answers by itself: a request that it cannot read, or a method that has no `do_…` here."""
        refused = code == HTTPStatus.NOT_IMPLEMENTED
        status = HTTPStatus.METHOD_NOT_ALLOWED if refused else HTTPStatus(code)
        text = "This server can be read from, and nothing else." if refused else explain or message or status.phrase
        self._say(status, text, body=self.command != "HEAD", allow=refused)

    def _answer(self, *, body: bool) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in self.server.hosts:
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "This server answers to its own address only.", body=body)
            return
        parts = parts_of(self.path)
        if parts is None:
            self._say(HTTPStatus.NOT_FOUND, "There is no such page.", body=body)
            return
        try:
            found = self.server.live.content(parts)
            if found is None:
                self._say(HTTPStatus.NOT_FOUND, "There is no such page, or its run has vanished.", body=body)
            elif isinstance(found, bytes):
                self._head(
                    HTTPStatus.OK, _TYPES.get(Path(parts[-1] if parts else ".html").suffix, _TYPES[".html"]), len(found)
                )
                if body:
                    self.wfile.write(found)
            else:
                self._send(found, body=body)
        except (BakeoffError, OSError) as error:
            # A run that is half written, or that vanished while its page was made.
            if not isinstance(error, ConnectionError | TimeoutError):
                self._say(HTTPStatus.SERVICE_UNAVAILABLE, f"This cannot be shown at the moment: {error}", body=body)

    def _send(self, path: Path, *, body: bool) -> None:
        with files.opened(path) as file:
            self._head(HTTPStatus.OK, _TYPES.get(path.suffix, _OTHER), _size(file))
            if body:
                shutil.copyfileobj(file, self.wfile)

    def _say(self, status: HTTPStatus, text: str, *, body: bool = True, allow: bool = False) -> None:
        message = f"{text}\n".encode(errors="backslashreplace")
        # What the request may hold besides is not read: the connection ends.
        self.close_connection = True
        self._head(status, "text/plain; charset=utf-8", len(message), allow=allow)
        if body:
            self.wfile.write(message)

    def _head(self, status: HTTPStatus, kind: str, length: int, *, allow: bool = False) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(length))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if allow:
            self.send_header("Allow", "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the library's name)
        """Nothing: who serves a campaign wants to see the campaign."""


def parts_of(address: str) -> tuple[str, ...] | None:
    """The parts of an address's path, decoded once; None if one of them leads elsewhere."""
    path = address
    with suppress(ValueError):
        path = urlsplit(address).path
    if not path.startswith("/"):
        return None
    try:
        parts = [unquote(part, errors="strict") for part in path[1:].split("/")]
    except UnicodeDecodeError:
        return None
    if parts == [""]:
        return ()
    for part in parts:
        if part in ("", ".", "..") or not part.isprintable() or "/" in part or "\\" in part:
            return None
    return tuple(parts)


def _size(file: BinaryIO) -> int:
    size = file.seek(0, 2)
    file.seek(0)
    return size
