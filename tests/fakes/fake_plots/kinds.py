from types import SimpleNamespace

from bakeoff.errors import BakeoffError

KINDS = tuple(
    SimpleNamespace(name=name, of=of, shows="", scales=name.startswith("tcp"), swept=name == "sweep")
    for name, of in (("tcp_delivery_with_rtt", "run"), ("cwnd", "run"), ("bars", "campaign"), ("sweep", "campaign"))
)


def kind(name):
    found = {kind.name: kind for kind in KINDS}
    if name not in found:
        raise BakeoffError(f"plot kind: unknown '{name}'; expected one of {', '.join(found)}")
    return found[name]
