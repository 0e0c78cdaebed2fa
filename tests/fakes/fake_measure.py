"""Measures of the fake runs: the mean of all samples."""

from bakeoff.errors import BakeoffError


def summarise(result) -> dict:
    does = result.resolved["point"].get("does")
    if does == "unmeasurable":
        raise BakeoffError("no samples of flow 'cubic'")
    if does == "measure-bug":
        raise KeyError("cubic")
    return {"mean": float(result.series["value"].mean())}
