"""Fake runs execute no files."""

PREFIX = "python:"


def permitted(run, *, allow_code=False):
    return run


def executed(runs) -> list:
    return []


def split(cc: str) -> None:
    return None
