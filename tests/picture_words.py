"""What is written in a picture."""


def words(picture):
    return [text.get_text() for one in (picture, *picture.axes) for text in one.texts]


def entries(picture):
    [legend] = picture.legends
    return [text.get_text() for text in legend.get_texts()]
