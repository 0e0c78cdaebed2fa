def bars(results, path, *, suffix=".svg"):
    path.mkdir(parents=True, exist_ok=True)
    place = path / f"first{suffix}"
    place.write_text(f"bars of {len(results)}")
    return [place]
