"""Measures of the fake runs: the mean of all samples stands as the utilisation."""

from bakeoff.errors import BakeoffError
from bakeoff.results.summary import FORMAT, Summary


def summarise(result) -> Summary:
    run = result.run
    does = run.point.get("does")
    if does == "unmeasurable":
        raise BakeoffError("the run has no series")
    if does == "measure-bug":
        raise KeyError("cubic")
    return Summary(
        format=FORMAT,
        suite=run.suite,
        scenario=run.scenario,
        run=run.run,
        seed=run.seed,
        window_s=run.window_s,
        flows={},
        queues={},
        probes={},
        bottleneck=None,
        jain=None,
        ratio=None,
        utilisation=float(result.series["value"].mean()),
        checks=[],
        missing=[],
    )
