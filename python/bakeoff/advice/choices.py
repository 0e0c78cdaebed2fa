"""What the queues that one can choose are, in words for readers who know none of their names."""

from typing import Final, Literal, NamedTuple

Where = Literal["nowhere", "line", "router"]
"""Who has to change something: nobody, who runs the two ends of the line, or the household."""


class Words(NamedTuple):
    """A choice in plain words."""

    head: str
    """For a table."""
    sentence: str
    """What it does, to go on after a colon."""
    where: Where
    cost: str
    """What it takes to have it, as a sentence."""


_LINE: Final = "Both ends of the line have to be changed: the modem, and the equipment of the provider."

KNOWN: Final[dict[str, Words]] = {
    "fifo": Words(
        "one long queue",
        "nothing is managed, and all packets wait in one long queue, first come, first served",
        "nowhere",
        "Nothing has to be changed.",
    ),
    "pie": Words(
        "one queue, kept short",
        "all packets wait in one queue, which drops packets early to stay short",
        "line",
        _LINE,
    ),
    "fq_codel": Words(
        "a queue for each flow",
        "each flow has a queue of its own that is kept short, so that a call never waits behind a download",
        "line",
        _LINE,
    ),
    "dualpi2": Words(
        "a lane for L4S",
        "what speaks L4S has a very short queue, and all others have one queue that is kept short",
        "line",
        _LINE,
    ),
    "cake": Words(
        "a router that shapes",
        "the home router sends and takes a tenth less than the line could, so that packets wait in the router, "
        "where each flow has a queue of its own",
        "router",
        "A tenth of the line's rate is given up, and the router has to be able to do it. The provider changes nothing.",
    ),
}
"""By the label of the scenario's axis `queue`."""


def words(label: str, *, own: bool = False) -> Words:
    """The words of a choice; of one that is somebody's `own` its label."""
    if label in KNOWN and not own:
        return KNOWN[label]
    return Words(label, "the queue of this name, as the scenario has it", "line", "The scenario does not say.")
