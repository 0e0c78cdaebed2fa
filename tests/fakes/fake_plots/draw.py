def figure(result, kind="tcp_delivery_with_rtt", *, scale="auto"):
    return overlay([result], kind)


def overlay(results, kind, *, scale="auto"):
    from matplotlib.figure import Figure

    drawing = Figure()
    drawing.suptitle(f"{kind} of {', '.join(result.run.run for result in results)}")
    return drawing


def compared(results, kind, *, scale="auto"):
    return [(result, overlay([result], kind)) for result in results]


def campaign(results, kind, *, measure=None, x=None, y=None, lines=None, panels=None):
    drawing = overlay(results, kind)
    drawing.suptitle(f"bars of {len(results)}")
    return {"first": drawing}


def default_kind(results, *, overlay=False):
    return "bars" if len(results) > 1 and not overlay else "tcp_delivery_with_rtt"
