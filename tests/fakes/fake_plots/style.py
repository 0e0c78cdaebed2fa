SUFFIXES = (".svg", ".png", ".pdf")


def save(figure, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(figure.get_suptitle())
    return path
