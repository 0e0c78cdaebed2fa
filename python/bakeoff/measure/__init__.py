"""Numbers from results: one definition per measure, with its formula, unit and source. Reads results, nothing else."""

from bakeoff.errors import MeasureError
from bakeoff.measure.applications import completion, video
from bakeoff.measure.bottleneck import bottleneck, path, payload_fraction
from bakeoff.measure.checks import checks
from bakeoff.measure.delays import distribution, histogram, jitter, lost_share
from bakeoff.measure.marks import drops, mark_fraction, marks, retransmissions, sce_marks
from bakeoff.measure.rates import goodput, jain, ratio, steady_state_rate, utilisation, window_of
from bakeoff.measure.repetitions import Interval, Mean, ends, interval, partly, repetitions
from bakeoff.measure.samples import Samples
from bakeoff.measure.summarise import summarise, summary_of

__all__ = [
    "Interval",
    "Mean",
    "MeasureError",
    "Samples",
    "bottleneck",
    "checks",
    "completion",
    "distribution",
    "drops",
    "ends",
    "goodput",
    "histogram",
    "interval",
    "jain",
    "jitter",
    "lost_share",
    "mark_fraction",
    "marks",
    "partly",
    "path",
    "payload_fraction",
    "ratio",
    "repetitions",
    "retransmissions",
    "sce_marks",
    "steady_state_rate",
    "summarise",
    "summary_of",
    "utilisation",
    "video",
    "window_of",
]
