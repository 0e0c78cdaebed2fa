"""The exceptions for what a user can put right."""


class BakeoffError(Exception):
    """A mistake in what the user gave, or something missing on this machine.

    The message names the place, the value and the expected form. The command line prints it without a traceback and
    exits with 2.
    """


class UserCodeError(BakeoffError):
    """The user's own code raised: the message ends in the traceback of their lines, and ours are not worth keeping."""


def printable(text: str) -> str:
    """The text with every character that a terminal would act on, and not show, as an escape; lines stay.

    Names come from files, and files from anybody: an escape code in one could repaint the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else ascii(c)[1:-1] for c in text)
