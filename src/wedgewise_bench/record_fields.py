"""Every field of a benchmark record: what it may hold. A record is checked whole before anything is made of it.

A check takes a value and the name of its field; it raises `WrongFieldError` or returns nothing. Checks of tables and
lists are made of checks of what these hold, so that `RECORD` below reads as the record does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any

from wedgewise.errors import InputError
from wedgewise.run.timeline import BatchSpan, Copy, DeviceUse, PlaceUse
from wedgewise.stages.labels import utf8
from wedgewise.stages.tasks import ESTIMATORS
from wedgewise_bench.words import DEVICES, ROWS, STAGES, STATUSES, parse_question

SCHEMA = 1
MAX_LINE_BYTES = 1 << 24
MAX_VALUES = 1 << 20
MAX_LETTERS = 1 << 16
LARGEST = 2**100
SMALLEST = 2.0**-100  # apart from zero: the quotient of two such numbers is a float
MAX_NAME = 100
NAME = re.compile(rf"\w{{1,{MAX_NAME}}}")
SETTING = re.compile(rf"[\w.-]{{1,{MAX_NAME}}}")
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+]00:00", re.ASCII)

Check = Callable[[Any, str], None]


class WrongFieldError(ValueError):
    """A field is missing, is not known, or holds what it cannot hold."""


def parse_line(line: bytes) -> dict[str, Any]:
    """The fields of one line of a results file, every one of them checked.

    Raises
    ------
    WrongFieldError : it is no record; the message names the field
    """
    values = sum(map(line.count, (b",", b"[", b"{")))
    if len(line) > MAX_LINE_BYTES or values > MAX_VALUES:
        raise WrongFieldError(f"longer than a record can be, {MAX_LINE_BYTES:,} bytes and {MAX_VALUES:,} values")
    try:
        found = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise WrongFieldError(f"no JSON: {error}") from error
    if isinstance(found, dict) and (type(found.get("schema")) is not int or found["schema"] != SCHEMA):
        raise WrongFieldError(f"schema {_shown(found.get('schema'))} instead of {SCHEMA}")
    RECORD(found, "")
    return dict(found)


def integer(least: int = 0) -> Check:
    """An integer."""

    def check(value: Any, name: str) -> None:
        if type(value) is not int or not least <= value <= LARGEST:
            raise _wrong(name, value, f"no integer from {least} to 2^100")

    return check


def number(least: float = 0.0) -> Check:
    """A number that is neither infinite nor too close to zero to be divided by."""

    def check(value: Any, name: str) -> None:
        is_number = type(value) in (int, float) and least <= value <= LARGEST
        if not is_number or 0 < abs(value) < SMALLEST:
            raise _wrong(name, value, f"no number from {least:g} to 2^100")

    return check


def text(value: Any, name: str) -> None:
    """A text of whole characters."""
    if utf8(value) is None or len(value) > MAX_LETTERS:
        raise _wrong(name, value, f"no text of at most {MAX_LETTERS:,} letters")


def anything(_value: Any, _name: str) -> None:
    """Whatever there is."""


def truth(value: Any, name: str) -> None:
    """True or false."""
    if type(value) is not bool:
        raise _wrong(name, value, "neither true nor false")


def of_form(pattern: re.Pattern[str], what: str) -> Check:
    """A text of a form."""

    def check(value: Any, name: str) -> None:
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise _wrong(name, value, f"no {what}")

    return check


def one_of(words: Collection[str]) -> Check:
    """One of some words."""

    def check(value: Any, name: str) -> None:
        if not isinstance(value, str) or value not in words:
            raise _wrong(name, value, f"none of {', '.join(words)}")

    return check


def either(*checks: Check) -> Check:
    """What one of several checks lets pass; the last one says what is wrong."""

    def check(value: Any, name: str) -> None:
        for attempt in checks[:-1]:
            try:
                return attempt(value, name)
            except WrongFieldError:
                continue
        return checks[-1](value, name)

    return check


def maybe(of: Check) -> Check:
    """Nothing, or what another check lets pass."""
    return lambda value, name: None if value is None else of(value, name)


def listed(of: Check, length: int | None = None) -> Check:
    """A list, of a known length where one is given."""

    def check(value: Any, name: str) -> None:
        if not isinstance(value, list) or length not in (None, len(value)):
            raise _wrong(name, value, "no list" if length is None else f"no list of {length}")
        for place, item in enumerate(value):
            of(item, f"{name}[{place}]")

    return check


def table(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """An object with these fields, and no others."""
    known = {**required, **(optional or {})}

    def check(value: Any, name: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(name, value, "no object")
        for field in (*required, *value):
            inner = f"{name}.{_short(field)}".removeprefix(".")
            if field not in value:
                raise WrongFieldError(f"{inner} is missing")
            if field not in known:
                raise WrongFieldError(f"{inner} is no field that a record has")
        for field, item in value.items():
            known[field](item, f"{name}.{field}".removeprefix("."))

    return check


def by_name(names: Check, of: Check, known: Mapping[str, Check] | None = None) -> Check:
    """An object whose fields have names of a kind; those of known names are checked by themselves."""

    def check(value: Any, name: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(name, value, "no object")
        for field, item in value.items():
            names(field, f"a name in {name}")
            (known or {}).get(field, of)(item, f"{name}.{_short(field)}")

    return check


def question(value: Any, name: str) -> None:
    """A question with its parameters."""
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise _wrong(name, value, f"no text of at most {MAX_NAME} letters")
    try:
        parse_question(value)
    except InputError as error:
        raise _wrong(name, value, f"no question ({error})") from error


def facts(value: Any, name: str) -> None:
    """What a system says of its work; blocks say all of `BLOCKS` or nothing of it."""
    by_name(text, PLAIN, {**FACTS, **BLOCKS, **SINCE})(value, name)
    if "cutting_seconds" in value:
        for field in BLOCKS:
            if field not in value:
                raise WrongFieldError(f"{name}.{field} is missing")


def together(value: Any, name: str) -> None:
    """All fields, each by itself; then those that go with each other."""
    FIELDS(value, name)
    if value["status"] == "ok" and (value["answer"] is None or not value["seconds"]["all"]):
        raise WrongFieldError("answer or seconds.all is missing where the status is ok")


def _wrong(name: str, value: Any, why: str) -> WrongFieldError:
    return WrongFieldError(f"{name or 'the line'} is {_shown(value)}, which is {why}")


def _shown(value: Any) -> str:
    """A value in few letters, without the work of writing a large one."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if type(value) is int and abs(value) > LARGEST:
        return "a larger integer"
    return _short(json.dumps(value))


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"


def _of_class(kind: type, checks: Mapping[type, Check], since: Collection[str] = (), **own: Check) -> Check:
    """The fields of a dataclass as `asdict` writes them, by the checks of their types; earlier versions lack some."""
    types = {"int": int, "float": float, "str": str, "bool": bool}
    of = {item.name: own.get(item.name) or checks[types[str(item.type)]] for item in fields(kind)}
    optional = {name: of.pop(name) for name in since}
    return table(of, optional)


COUNT = integer()
SECONDS = number()
MEASURED = number(SMALLEST)  # by a clock, between a beginning and an end
ANY_NUMBER = number(-float(LARGEST))
NAMED = of_form(NAME, "name")
PLAIN = either(maybe(ANY_NUMBER), truth, text)
BY_TYPE: Mapping[type, Check] = {int: COUNT, float: SECONDS, str: text, bool: truth}
COPY = _of_class(Copy, BY_TYPE, filled=listed(SECONDS, length=2))
SPAN = _of_class(BatchSpan, BY_TYPE, since=("tasks",), estimate=ANY_NUMBER, copies=listed(COPY))

FACTS: Mapping[str, Check] = {
    **dict.fromkeys(("chosen", "program", "version", "pairs", "clock"), text),
    **dict.fromkeys(("vertices", "triangles", "wedges_tested", "out_degree_most", "device_peak_bytes"), maybe(COUNT)),
    **dict.fromkeys(("limit_seconds", "out_degree_mean", "out_degree_median", "bytes_moved"), maybe(SECONDS)),
    "counters": by_name(text, ANY_NUMBER),
    "timeline": table(
        {
            "seconds": SECONDS,
            "places": listed(_of_class(PlaceUse, BY_TYPE)),
            "devices": listed(_of_class(DeviceUse, BY_TYPE)),
            "spans": listed(SPAN),
        }
    ),
}
BY_ORDER, MAYBE_BY_ORDER = (table(dict.fromkeys((*ESTIMATORS, "number"), of)) for of in (SECONDS, maybe(SECONDS)))
BLOCKS: Mapping[str, Check] = {
    **dict.fromkeys(("parts", "blocks", "tasks", "timed", "long_tasks"), COUNT),
    **dict.fromkeys(("cutting_seconds", "total", "longest", "arcs_per_task"), SECONDS),
    **dict.fromkeys(("load_imbalance", "space_ratio", "time_ratio", "long_time_ratio"), maybe(SECONDS)),
    "foresight": table(dict.fromkeys(ESTIMATORS, table({"rank_correlation": ANY_NUMBER, "list_share": SECONDS}))),
    "makespans": listed(
        table(
            {
                "workers": integer(1),
                "least": SECONDS,
                "seconds": BY_ORDER,
                **dict.fromkeys(("speedup", "efficiency"), MAYBE_BY_ORDER),
            },
            dict.fromkeys(("time_ratio", "teps"), MAYBE_BY_ORDER),
        )
    ),
}
SINCE: Mapping[str, Check] = {"edges": COUNT, "unpartitioned": maybe(SECONDS)}  # earlier versions recorded neither
FIELDS = table(
    {
        "schema": integer(SCHEMA),
        "date": of_form(DATE, "date and time in UTC"),
        "revision": maybe(text),
        "command": text,
        "cell": table(
            {"system": text, "algorithm": NAMED, "graph": text, "row": one_of(ROWS), "threads": COUNT},
            {
                "knobs": by_name(NAMED, either(integer(-LARGEST), of_form(SETTING, "setting"))),
                "question": question,
                "device": one_of(DEVICES),
            },
        ),
        "status": one_of(STATUSES),
        "message": text,
        "stage": text,
        "answer": maybe(COUNT),
        "expected": maybe(COUNT),
        "seconds": table(
            {"all": listed(MEASURED)}, {"median": maybe(SECONDS), "min": maybe(SECONDS), "spread": maybe(SECONDS)}
        ),
        "peak_bytes": maybe(COUNT),
        "pairs": COUNT,
        "limits": table({"seconds": SECONDS, "memory_bytes": SECONDS}, {"repeats": maybe(COUNT)}),
        "load": SECONDS,
        "machine": table(
            {"processor": text, "system": text},
            {"threads": COUNT, "memory_bytes": COUNT, "gpu": text, "gpu_memory_bytes": COUNT},
        ),
        "versions": by_name(text, text),
    },
    {
        "digest": text,
        "details": by_name(text, COUNT),
        "edges": maybe(COUNT),
        "facts": facts,
        "stages": table({}, dict.fromkeys(STAGES, listed(SECONDS))),
    },
)
RECORD: Check = together
