"""Commands that read many results say on a terminal what they do, once it has taken a while."""

import io
import sys
import threading

import pytest

from bakeoff.cli.progress import patience


class Terminal(io.StringIO):
    def isatty(self):
        return True


class AtOnce(threading.Timer):
    """The two seconds have passed before the block begins."""

    def start(self):
        self.function()

    def join(self, timeout=None):
        pass


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(threading, "Timer", AtOnce)


def test_a_line_tells_what_goes_on_and_is_taken_away_again(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with patience("reading") as tell:
        assert "reading …" in terminal.getvalue()
        tell(4321)
    last = terminal.getvalue().rpartition("\r\x1b[2K\x1b[2m")[2]
    # The line, then the cursor again, and up one line to erase it.
    assert last == "reading: 4321 runs so far\x1b[0m\n\x1b[?25h\r\x1b[1A\x1b[2K"


def test_the_cursor_shows_again_after_ctrl_c(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(KeyboardInterrupt), patience("reading"):
        raise KeyboardInterrupt
    assert terminal.getvalue().rpartition("\x1b[?25")[2].startswith("h")


def test_what_is_done_before_says_nothing(monkeypatch):
    monkeypatch.setattr(AtOnce, "start", lambda _: None)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with patience("reading") as tell:
        tell(1)
    assert terminal.getvalue() == ""


def test_what_is_piped_says_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", piped := io.StringIO())
    with patience("reading") as tell:
        tell(1)
    assert piped.getvalue() == ""
