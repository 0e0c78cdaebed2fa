from pathlib import Path


def figure(result, kind="tcp_delivery_with_rtt"):
    from matplotlib.figure import Figure

    drawing = Figure()
    drawing.suptitle(f"{kind} of {result.resolved['run']}")
    return drawing


def draw(result, path: Path, kind="tcp_delivery_with_rtt") -> Path:
    path.write_text(f"{kind} of {result.resolved['run']} as {path.suffix}")
    return path


def bars(results, path: Path) -> list[Path]:
    place = path.with_name(f"{path.stem}-1{path.suffix}")
    place.write_text(f"bars of {len(results)} as {path.suffix}")
    return [place]
