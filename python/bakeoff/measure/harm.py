"""What one flow does to another, against how that one fares alone."""

from bakeoff.measure.samples import MeasureError


def harm(together: float, solo: float) -> float:
    """(solo - together) / solo of a measure of which more is better, such as a rate; 1 is all lost, 0 none. No unit.

    Negative if the flow fares better together. Source: Ware, Mukerjee, Seshan, Sherry: Beyond Jain's Fairness Index,
    HotNets 2019. Raises MeasureError if the solo value is not above zero.
    """
    if not solo > 0:
        raise MeasureError(f"harm needs a value above zero of the flow alone, not {solo:g}")
    return (solo - together) / solo


def harm_less(together: float, solo: float) -> float:
    """(together - solo) / together of a measure of which less is better, such as a delay; 0 is no harm. No unit.

    Source: the same. Raises MeasureError if the value together is not above zero.
    """
    if not together > 0:
        raise MeasureError(f"harm needs a value above zero of the flows together, not {together:g}")
    return (together - solo) / together
