"""The exceptions for what a user can put right."""


class BakeoffError(Exception):
    """A mistake in what the user gave, or something missing on this machine.

    The message names the place, the value and the expected form. The command line prints it without a traceback and
    exits with 2.
    """


class UserCodeError(BakeoffError):
    """The user's own code raised: the message ends in the traceback of their lines, and ours are not worth keeping."""
