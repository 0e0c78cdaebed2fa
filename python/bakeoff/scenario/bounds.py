"""What a scenario may grow to before memory is spent on it: runs of a matrix, flows of a run, aliases written out."""

from typing import Final

from bakeoff.errors import ScenarioError

MOST_RUNS: Final = 100_000
"""Runs of one selection, unless the user says that so many are meant."""
MOST_FLOWS: Final = 1_000_000
"""Flows and objects of short flows, in one run and in all runs of a selection together."""
MOST_SEED: Final = 2**63 - 1
"""Of a first repetition, which leaves room for the seeds of the others."""
MOST_TEXT: Final = 10_000_000
"""Characters of a scenario whose aliases and placeholders are written out."""
DEEPEST: Final = 64
"""Levels of mappings and lists inside each other."""

TOO_DEEP: Final = f"has more than {DEEPEST} levels of mappings and lists inside each other"
_UNLESS: Final = "without --yes (in Python: yes=True)"


def check_seed(seed: int) -> None:
    """ScenarioError unless repetitions can begin with this seed."""
    if not 1 <= seed <= MOST_SEED:
        raise ScenarioError(f"seed: {seed}; expected at least 1, and less than 2^63")


def too_many_runs(runs: int, how: str = "") -> str | None:
    """What is wrong with so many runs, where `how` says what makes them; None if there are few enough."""
    if runs <= MOST_RUNS:
        return None
    return f"{how}{runs:,} runs; at most {MOST_RUNS:,} {_UNLESS}"


def too_many_flows(flows: int, *, within: str) -> str | None:
    """What is wrong with so many flows and objects `within` something; None if there are few enough."""
    if flows <= MOST_FLOWS:
        return None
    return f"{flows:,} flows and objects of short flows in {within}; at most {MOST_FLOWS:,}"


def too_much_text(data: object) -> str | None:
    """What is wrong with the size or the depth of plain data whose parts may be shared; None if all is well.

    Each part is looked at once, however often it stands there, so that the answer costs as little as the file.
    """
    sizes: dict[int, int] = {}
    open_: set[int] = set()

    def size(part: object, depth: int) -> int:
        if not isinstance(part, (dict, list)):
            return len(part) + 1 if isinstance(part, str) else 1
        if id(part) in open_:
            raise _TooMuch("contains itself through an alias")
        if depth > DEEPEST:
            raise _TooMuch(TOO_DEEP)
        if id(part) not in sizes:
            open_.add(id(part))
            total = 1
            for each in (*part.keys(), *part.values()) if isinstance(part, dict) else part:
                # Texts and numbers are most of what there is.
                total += len(each) + 1 if isinstance(each, str) else size(each, depth + 1)
            sizes[id(part)] = total
            open_.remove(id(part))
        return sizes[id(part)]

    try:
        whole = size(data, 0)
    except _TooMuch as found:
        return str(found)
    if whole <= MOST_TEXT:
        return None
    return f"is about {whole:,} characters with its aliases and placeholders written out; at most {MOST_TEXT:,}"


class _TooMuch(Exception):  # noqa: N818 (ends the walk)
    pass
