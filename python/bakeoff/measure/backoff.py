"""What a flow gives up when another one joins."""


def under_utilisation(together_bps: float, baseline_bps: float) -> float:
    """Goodput [bit/s] of the flow in the baseline run, without the other, less its goodput with it.

    Also called backoff. It says nothing of who got the difference: where the other flow needs less than that, the
    rest of it is capacity that nobody used. Source: l4s-tests, its table of goodputs beside a call.
    """
    return baseline_bps - together_bps
