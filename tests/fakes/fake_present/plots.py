def kinds():
    return ["tcp_delivery_with_rtt", "cwnd"]


def figure(result, kind="tcp_delivery_with_rtt"):
    from matplotlib.figure import Figure

    drawing = Figure()
    drawing.suptitle(f"{kind} of {result.resolved['run']}")
    return drawing


def draw(result, path, kind="tcp_delivery_with_rtt"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{kind} of {result.resolved['run']}")
    return path
