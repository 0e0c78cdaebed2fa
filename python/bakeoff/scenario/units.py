"""Quantities: strings with a unit (`50mbit`, `20ms`, `10MB`, `2%`), parsed here and nowhere else.

The words are tc's where tc has one, so that a rate of the scenario reads like the rate in a qdisc. tc's `bps`
family (bytes per second) is refused: it is too often meant as bits.

All functions raise ValueError with the value and the expected form.
"""

import re
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache

from bakeoff import tc
from bakeoff.scenario.error import quoted

# Rates and times are remembered, because the runs of a matrix say the same few again and again.

NANOSECOND = Fraction(1, 10**9)

RATES = {unit: bps for unit, bps in tc.RATES.items() if unit.endswith("bit")}
TIMES = {
    "ns": NANOSECOND,
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
}
SIZES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}

RATE_FORM = "a rate such as '50mbit' (bit, kbit, mbit, gbit)"
TIME_FORM = "a time such as '20ms' (ns, us, ms, s, min)"
STALL_FORM = "a length and a longer period such as '5ms every 1s'"
SIZE_FORM = "a size such as '1448B' (B, kB, MB, KiB, MiB)"
PERCENTAGE_FORM = "a percentage such as '2%'"
MOST_STALL = 1000
"""Seconds."""
LEAST_PERIOD = 1e-6
"""Seconds, from one stall to the next."""
MOST_RATE = 10 * 10**12
"""Bits per second."""
MOST_TIME = 10**9
"""Seconds."""
MOST_SIZE = 10**15
"""Bytes."""

DSCP_FORM = "a codepoint from 0 to 63 or a name such as 'EF', 'AF11', 'CS1'"

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
RATE_PATTERN = rf"^{NUMBER} ?(?:[kKmMgGtT][iI]?)?[bB][iI][tT]$"
TIME_PATTERN = rf"^{NUMBER} ?(?:{'|'.join(TIMES)})$"
STALL_PATTERN = rf"^{NUMBER} ?(?:{'|'.join(TIMES)}) every {NUMBER} ?(?:{'|'.join(TIMES)})$"
SIZE_PATTERN = rf"^{NUMBER} ?(?:[kKmMgG][iI]?)?[bB]$"
PERCENTAGE_PATTERN = rf"^{NUMBER} ?%$"
"""What the JSON Schema shows to editors: a regular expression of ECMA-262, so without a switch for upper case."""

DSCP_NAMES = {
    "BE": 0,
    "LE": 1,
    "VA": 44,
    "NQB": 45,
    "EF": 46,
    **{f"CS{n}": 8 * n for n in range(8)},
    **{f"AF{n}{m}": 8 * n + 2 * m for n in range(1, 5) for m in range(1, 4)},
}

_TIMES_MEANT = {
    word: unit
    for unit, words in {
        "s": "sec secs second seconds", "ms": "msec msecs millis millisecond milliseconds m",
        "us": "usec usecs microsecond microseconds u", "ns": "nsec nsecs nanosecond nanoseconds n",
        "min": "mins minute minutes", "h": "hr hour hours",
    }.items()
    for word in (unit, *words.split())
}  # fmt: skip
"""Other words for a unit, in lower case."""
_SIZES_MEANT = {"byte": "B", "bytes": "B", "k": "kB", "m": "MB", "g": "GB", "ki": "KiB", "mi": "MiB", "gi": "GiB"}

LONGEST = 100
"""Characters of a quantity."""

_NUMBER = re.compile(r"\s*([-+]?\s*(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?)\s*([A-Za-zµ%/]*)\s*")
"""With an exponent and a sign, as conditions and claims have numbers."""
_QUANTITY = re.compile(r"\s*([+-]?)\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµ%/]*)\s*")


def parse_rate(text: object) -> int:
    """`50mbit` -> 50_000_000 bit/s. Units in any case, as in tc; the result must be whole bits per second."""
    return _rate(_text(text, RATE_FORM))


@lru_cache(maxsize=4096)
def _rate(text: str) -> int:
    number, unit = _read(text, RATE_FORM)
    if unit.lower() in tc.RATES and unit.lower() not in RATES:
        meant = unit.lower().replace("bps", "bit")
        raise ValueError(f"'{text}' is ambiguous: tc's {unit} is bytes per second; expected bits, such as '50{meant}'")
    if unit.lower() not in RATES:
        raise _unknown(text, unit, _rate_meant(text.strip(), unit), RATE_FORM)
    return _whole(_bounded(number * RATES[unit.lower()], MOST_RATE, text, "10000gbit"), text, "bit per second")


def parse_time(text: object) -> float:
    """`20ms` -> 0.02 s. A plain 0 is taken as it is; the result is the nearest double to the written value."""
    if text == 0 and not isinstance(text, bool):
        return 0.0
    return _time(_text(text, TIME_FORM))


@lru_cache(maxsize=4096)
def _time(text: str) -> float:
    number, unit = _read(text, TIME_FORM)
    unit = unit.replace("µ", "u")
    if unit not in TIMES:
        raise _unknown(text, unit, _with(text, unit, _TIMES_MEANT.get(unit.lower())), TIME_FORM)
    return float(_bounded(number * TIMES[unit], MOST_TIME, text, "1000000000s"))


def parse_stall(text: object) -> tuple[float, float]:
    """`5ms every 1s` -> length 0.005 s, period 1 s."""
    length, every, period = str(text).partition(" every ")
    if not every:
        raise ValueError(f"{quoted(text)}: invalid stall; expected {STALL_FORM}")
    found = parse_time(length), parse_time(period)
    if not 0 < found[0] < found[1]:
        raise ValueError(f"{quoted(text)}: the stall takes nothing or the whole period; expected {STALL_FORM}")
    if found[0] > MOST_STALL:
        raise ValueError(f"{quoted(text)}: expected a length of at most 1000s")
    if found[1] < LEAST_PERIOD:
        raise ValueError(f"{quoted(text)}: expected a period of at least 1us")
    return found


def parse_size(text: object) -> int:
    """`1448B` -> 1448 bytes; kB is 1000, KiB is 1024."""
    number, unit = _read(_text(text, SIZE_FORM), SIZE_FORM)
    if unit.lower() not in SIZES:
        raise _unknown(str(text), unit, _with(str(text), unit, _SIZES_MEANT.get(unit.lower())), SIZE_FORM)
    return _whole(_bounded(number * SIZES[unit.lower()], MOST_SIZE, text, "1000000GB"), text, "byte")


def parse_percentage(text: object) -> float:
    """`2%` -> 0.02; from 0% to 100%."""
    number, unit = _read(_text(text, PERCENTAGE_FORM), PERCENTAGE_FORM)
    if unit != "%":
        raise ValueError(f"'{text}' has an unknown unit '{unit}'; expected {PERCENTAGE_FORM}")
    if number > 100:
        raise ValueError(f"'{text}' is above 100%; expected {PERCENTAGE_FORM}")
    return float(number / 100)


def parse_dscp(value: object) -> int:
    """19, `0x13` or `EF` -> the codepoint."""
    if isinstance(value, str):
        name = value.strip().upper()
        if name in DSCP_NAMES:
            return DSCP_NAMES[name]
        try:
            value = int(name, 0)
        except ValueError:
            raise ValueError(f"'{value}' is not a DSCP; expected {DSCP_FORM}") from None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 63:
        raise ValueError(f"{quoted(value)} is not a DSCP; expected {DSCP_FORM}")
    return value


def format_rate(bps: int) -> str:
    """50_000_000 -> `50mbit`: the largest decimal unit that stays whole."""
    for unit in ("gbit", "mbit", "kbit"):
        if bps and bps % RATES[unit] == 0:
            return f"{bps // RATES[unit]}{unit}"
    return f"{bps}bit"


@lru_cache(maxsize=4096)
def format_time(seconds: float) -> str:
    """0.01 -> `10ms`: the largest unit that stays whole, to the nanosecond; 0 is `0ms`, which tc accepts too."""
    nanoseconds = round(Fraction(seconds) / NANOSECOND)
    for unit in ("s", "ms", "us"):
        per_unit = int(TIMES[unit] / NANOSECOND)
        if nanoseconds and nanoseconds % per_unit == 0:
            return f"{nanoseconds // per_unit}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0ms"


def _rate_meant(text: str, unit: str) -> str | None:
    """`50mbit` of `50Mbit/s`, `50mbits` or `50m`; of `50MB/s`, which are bytes, also `400mbit`."""
    number = text[: -len(unit)].strip()
    word = re.sub(r"(?:/s|/sec|(?<=bit)s)$", "", unit.lower())
    several = (word, f"{word}bit", *([f"{word[:-1]}bit"] if word.endswith("b") else []))
    bits = next((known for known in several if known in RATES), None)
    if bits is None:
        return None
    in_bytes = f"' or, of bytes, '{float(number) * 8:g}{bits}" if word.endswith("b") else ""
    return f"{number}{bits}{in_bytes}"


def _unknown(text: str, unit: str, meant: str | None, form: str) -> ValueError:
    """What is wrong with a unit, and what was probably meant."""
    hint = f"; did you mean '{meant}'?" if meant else ""
    return ValueError(f"'{text}' has an unknown unit '{unit}'; expected {form}{hint}")


def _with(text: str, unit: str, meant: str | None) -> str | None:
    return None if meant is None else f"{text.strip()[: -len(unit)].strip()}{meant}"


def _bounded(value: Fraction, most: int, text: object, shortly: str) -> Fraction:
    if value > most:
        raise ValueError(f"'{text}' is too large; expected at most {shortly}")
    return value


def _text(text: object, form: str) -> str:
    if isinstance(text, bool) or not isinstance(text, (str, int, float)):
        raise ValueError(f"{quoted(text)}: invalid quantity; expected {form}")  # noqa: TRY004 (pydantic wants ValueError)
    return str(text)


@lru_cache(maxsize=4096)
def _read(text: str, form: str) -> tuple[Fraction, str]:
    match = _QUANTITY.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError(f"'{text}': invalid quantity; expected {form}")
    sign, number, unit = match.groups()
    if not unit:
        raise ValueError(f"'{text}' has no unit; expected {form}")
    if sign == "-" and Fraction(number):
        raise ValueError(f"'{text}' is negative; expected {form}")
    return Fraction(number), unit


def _whole(value: Fraction, text: object, unit: str) -> int:
    if value.denominator != 1:
        raise ValueError(f"'{text}' is not an integer number of {unit}s")
    return int(value)


@cache
def unit_of(word: str) -> tuple[Fraction, str] | None:
    """A unit as a factor and its base unit: `(1/1000, "s")` of `ms`, `(10**6, "bit/s")` of `mbit` and `Mbit/s`.

    Base units are `s`, `bit/s`, `B`, `packet`, `1/s` and `1` (of `%`). None if it is no unit.
    """
    time, low = word.replace("µ", "u"), word.lower()
    if time in TIMES:
        return TIMES[time], "s"
    if (rate := low.removesuffix("/s")) in RATES:
        return Fraction(RATES[rate]), "bit/s"
    if low in SIZES:
        return Fraction(SIZES[low]), "B"
    return _OTHER.get(low)


_OTHER = {
    "%": (Fraction(1, 100), "1"),
    "packet": (Fraction(1), "packet"),
    "packets": (Fraction(1), "packet"),
    "/s": (Fraction(1), "1/s"),
}


def si(text: object) -> tuple[float, str] | None:
    """A number with its base unit (`unit_of`): `(0.04, "s")` of `40ms`, `(5e7, "bit/s")` of `50mbit`.

    Without a unit it is a plain number, `(64.0, "")`. None if it is no quantity.
    """
    match = _NUMBER.fullmatch(str(text)) if len(str(text)) <= LONGEST and not isinstance(text, bool) else None
    if match is None:
        return None
    number, word = match.groups()
    if not word:
        return float(number.replace(" ", "")), ""
    found = unit_of(word)
    return None if found is None else (float(Fraction(number.replace(" ", "")) * found[0]), found[1])


def written(value: float, unit: str) -> str:
    """A number in a unit of `si` as a scenario writes it, with four digits that count: `1.619ms`, `12.34mbit`.

    Rates and sizes are whole numbers of bits and bytes.
    """
    prefixes: dict[str, tuple[tuple[float, str], ...]] = {
        "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
        "bit/s": ((1e9, "gbit"), (1e6, "mbit"), (1e3, "kbit"), (1.0, "bit")),
        "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
        "1": ((0.01, "%"),),
        "packet": ((1.0, "packets"),),
        "1/s": ((1.0, "/s"),),
        "": ((1.0, ""),),
    }
    rounded = float(f"{value:.4g}")
    if unit in ("bit/s", "B"):
        rounded = float(round(rounded))
    scale, name = next((pair for pair in prefixes[unit] if abs(rounded) >= pair[0]), prefixes[unit][-1])
    # Through whole multiples of the smallest unit: 0.0016 s / 1 ms is not 1.6 in binary.
    exact = Fraction(repr(rounded)) / Fraction(repr(scale))
    return f"{_decimal(exact)}{name}"


def _decimal(number: Fraction) -> str:
    """A number that ends, without an exponent."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
