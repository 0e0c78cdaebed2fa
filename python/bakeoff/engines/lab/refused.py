"""What the lab cannot do."""

from bakeoff.errors import BakeoffError


class RefusedError(BakeoffError):
    """A run that the lab cannot do; the message begins with the place in the resolved run."""
