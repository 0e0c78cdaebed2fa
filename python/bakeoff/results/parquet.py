"""What a Parquet file says that it unfolds to, read from its footer alone.

The footer is a structure of Thrift's compact protocol (parquet.thrift of apache/parquet-format). A file of less than a
megabyte may hold gigabytes, so that whoever has it from others asks first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO, Final

from bakeoff.errors import ResultsError

_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_DEEPEST: Final = 32
_LARGEST_FOOTER: Final = 16 << 20
"""Bytes. Ours have some hundred for each group of rows."""
_ROW_BYTES: Final = 64
"""In memory: two numbers, and three words as views of 16 bytes."""

Value = int | bytes | list["Value"] | dict[int, "Value"]


class NoParquetError(ResultsError):
    """The file has no footer that can be read."""


def unfolded(file: BinaryIO) -> int:
    """Bytes that the samples in the file take in memory, as far as its footer says. NoParquetError if it has none."""
    return _footer(file)[0]


def groups(file: BinaryIO) -> list[int]:
    """The rows of each row group, as far as the footer says. NoParquetError if it has none."""
    return _footer(file)[1]


def _footer(file: BinaryIO) -> tuple[int, list[int]]:
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 8, 0))
    tail = file.read(8)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != b"PAR1" or not 0 < size <= min(end - 8, _LARGEST_FOOTER):
        raise NoParquetError("it has no footer")
    file.seek(end - 8 - size)
    try:
        footer = _Reader(file.read(size)).struct(0)
        parts = [_struct(group) for group in _list(footer.get(4))]
        rows = [_number(part.get(3)) for part in parts]
        columns = [_struct(_struct(column).get(3)) for part in parts for column in _list(part.get(1))]
        held = max(sum(rows), _number(footer.get(3))) * _ROW_BYTES + sum(_number(column.get(6)) for column in columns)
    except IndexError:
        raise NoParquetError("its footer is truncated") from None
    return held, rows


def check(file: BinaryIO, path: Path, least: int, times: int) -> str | None:
    """What is wrong with the size that it unfolds to: more than `least` bytes and than `times` its own; else None."""
    most = max(least, times * os.fstat(file.fileno()).st_size)
    try:
        whole = unfolded(file)
    except NoParquetError as error:
        return f"{path}: cannot be read as Parquet: {error}"
    finally:
        file.seek(0)
    if whole <= most:
        return None
    return f"{path}: would unfold to {whole:,} bytes; at most {most:,} for a file of this size"


def _number(value: Value | None) -> int:
    if not isinstance(value, int) or value < 0:
        raise NoParquetError("its footer misses a number")
    return value


def _list(value: Value | None) -> list[Value]:
    if not isinstance(value, list):
        raise NoParquetError("its footer misses a list")
    return value


def _struct(value: Value | None) -> dict[int, Value]:
    if not isinstance(value, dict):
        raise NoParquetError("its footer misses a part")
    return value


class _Reader:
    """Values of Thrift's compact protocol; every byte is looked at once. IndexError at the end of the text."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def byte(self) -> int:
        self.at += 1
        return self.text[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise NoParquetError("its footer has a number of more than 64 bits")

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int) -> dict[int, Value]:
        """Fields by number."""
        fields: dict[int, Value] = {}
        number = 0
        while (head := self.byte()) & 0xF != _STOP:
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            kind = head & 0xF
            fields[number] = int(kind == _TRUE) if kind in (_TRUE, _FALSE) else self.value(kind, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Value:  # noqa: PLR0911 (a table of kinds)
        if depth > _DEEPEST:
            raise NoParquetError("its footer is too deep")
        match kind:
            case _ if kind in (_TRUE, _FALSE, _BYTE):
                return self.byte()
            case _ if kind < _DOUBLE:
                return self.zigzag()
            case _ if kind == _DOUBLE:
                return self.bytes(8)
            case _ if kind == _BINARY:
                return self.bytes(self.varint())
            case _ if kind in (_LIST, _SET):
                head = self.byte()
                count = self.varint() if head >> 4 == 15 else head >> 4
                return [self.value(head & 0xF, depth + 1) for _ in range(count)]
            case _ if kind == _MAP:
                count = self.varint()
                kinds = self.byte() if count else 0
                return [self.value(each, depth + 1) for _ in range(count) for each in (kinds >> 4, kinds & 0xF)]
            case _ if kind == _STRUCT:
                return self.struct(depth)
        raise NoParquetError("its footer has a value of unknown type")

    def bytes(self, count: int) -> bytes:
        if self.at + count > len(self.text):
            raise IndexError
        self.at += count
        return self.text[self.at - count : self.at]
