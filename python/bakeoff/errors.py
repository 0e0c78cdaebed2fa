"""The one exception for what a user can put right."""


class BakeoffError(Exception):
    """A mistake in what the user gave, or something missing on this machine.

    The message names the place, the value and the expected form. The command line prints it without a traceback and
    exits with 2.
    """
