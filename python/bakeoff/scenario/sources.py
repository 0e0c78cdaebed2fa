"""What applications offer, with every value filled in."""

from bakeoff.scenario import run as resolved
from bakeoff.scenario import short
from bakeoff.scenario.language import Source


def source(spec: Source, seed: int, name: str) -> resolved.Source:
    """The source of the flow `name`, whose objects and gaps are drawn from the seed."""
    if spec.bytes is not None:
        return resolved.Bytes(bytes=spec.bytes)
    if spec.rate is not None:
        return resolved.ConstantRate(rate_bps=spec.rate, size=spec.size)
    if spec.periodic is not None:
        burst = spec.periodic
        return resolved.Periodic(size=burst.size, count=burst.count, every_s=burst.every)
    if spec.short is not None:
        return resolved.Short(objects=short.objects(seed, name, spec.short))
    if spec.video is not None:
        video = spec.video
        return resolved.Video(rates_bps=sorted(video.rates), segment_s=video.segment, buffer_s=video.buffer)
    return resolved.Bulk()
