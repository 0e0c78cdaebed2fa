"""Advice for a line, as people and programs read it: text for a terminal, a page to pass on, JSON."""

from bakeoff.present.advice.page import page
from bakeoff.present.advice.records import record
from bakeoff.present.advice.text import text

__all__ = ["page", "record", "text"]
