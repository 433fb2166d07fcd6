"""The tables of `recorded/`: what each one says is read off the library and its command line anew."""

from __future__ import annotations

import inspect
import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

import wedgewise as ww
from wedgewise import datasets, errors, generate, interop, types

from .shell import Ended, run_all
from .stage import FAMILIES

RECORDED = Path(__file__).with_name("recorded")
ABOUT = "Renewed by: PYTHONPATH=src:tests python -m surface. What changes here changes for users: see CONTRIBUTING.md."
MODULES = {"wedgewise": ww, "interop": interop, "generate": generate, "datasets": datasets, "types": types}
UNDOCUMENTED = {  # which the reference leaves out
    "Algorithm": {
        *("on_cpu", "on_device", "settings", "triples_on_cpu", "triples_on_device"),
        *("truss_on_cpu", "truss_on_device", "whole_on_cpu", "whole_on_device"),
    },
    "Graph": {"adjacency", "device_forms", "device_seconds", "is_ranked", "take_device_seconds"},
    "Knob": {"parse"},
    "Limits": {"check", "check_memory", "with_values"},
    "Store": {
        *("array", "beside", "block", "check_file", "counts", "files", "is_read_only", "manifest", "opened"),
        *("location", "partition", "vertex_of", "work_folder"),
    },
    "TextLabels": {"count", "data", "of_arrow", "of_bytes", "offsets", "spans", "spell"},
}
MADE_BY_USERS = ("Graph", "Limits")  # objects of other classes are returned to them
DYNAMIC = ("knobs", "parameters", "figures", "versions", "compared_seconds")  # keys that are names of other things
NAMES_OF_THINGS = (*DYNAMIC, "packages", "extras")
COMPRESSIONS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}
OPTION = re.compile(r"^  (-\S.*?)(?:  +(.*))?$")
DEFAULT = re.compile(r"\[(?:.*; )?default: ([^\];]*)")
BOUNDS = re.compile(r"[\[;] ?([\d.<>=x-]*x[\d.<>=x-]*)\]")


def recorded(name: str) -> Any:
    """A table as it was recorded."""
    table = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    assert table.pop("about") == ABOUT
    return table


def record(name: str, table: dict[str, Any]) -> None:
    """Write a table down."""
    text = json.dumps({"about": ABOUT, **table}, indent=1, ensure_ascii=False)
    (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------------ Python names


def names_table() -> dict[str, Any]:
    """Every documented name: the signature of a function, what a class has, the bases of an error."""
    table: dict[str, Any] = {
        name: {public: _described(getattr(module, public)) for public in sorted(module.__all__)}
        for name, module in MODULES.items()
    }
    table["errors"] = {
        name: " ".join(base.__name__ for base in value.__mro__[1:-2])
        for name, value in sorted(vars(errors).items())
        if isinstance(value, type) and issubclass(value, errors.WedgewiseError)
    }
    table["returned"] = {name: _parts(value) for name, value in sorted(_returned().items())}
    return table


def _returned() -> dict[str, Any]:
    """Objects of documented classes that have no public name: only what returns them has one."""
    graph = ww.Graph([("a", "b"), ("b", "c"), ("c", "a")])
    return {
        "Graph.cleaned": graph.cleaned,
        "Graph.labels": graph.labels,
        "Graph.oriented()": graph.oriented(),
        "generalized_degree()": ww.generalized_degree(graph),
        "interop.edges_from()": interop.edges_from([(0, 1)]),
        "datasets.verify()": (verification := datasets.verify("Theory-3-4-5-B1k")),
        "datasets.verify().findings[0]": verification.findings[0],
    }


def _described(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        made = {"()": _signature(value)} if value.__name__ in MADE_BY_USERS else {}
        return {**made, **_members(value)}
    return _signature(value) if callable(value) else type(value).__name__


def _parts(value: Any) -> Any:
    """The fields of a record; of another object, what its class has."""
    return ", ".join(part.name for part in fields(value)) if is_dataclass(value) else _members(type(value))


def _members(kind: type) -> dict[str, str]:
    """The public members of a class: its fields and properties, and its methods with their signatures."""
    public = sorted(name for name in dir(kind) if not name.startswith("_"))
    if is_dataclass(kind):
        public = sorted({*public, *(part.name for part in fields(kind))})
    public = [name for name in public if name not in UNDOCUMENTED.get(kind.__name__, ())]
    methods = {name: getattr(kind, name) for name in public if callable(getattr(kind, name, None))}
    held = ", ".join(name for name in public if name not in methods)
    return {"holds": held, **{name: _signature(method) for name, method in methods.items()}}


def _signature(function: Callable[..., Any]) -> str:
    """Names, kinds and defaults of the parameters; not their types, which are the type checker's."""
    found = inspect.signature(function)
    parameters = [
        part.replace(annotation=part.empty, default=_default(part.default)) for part in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def _default(value: Any) -> Any:
    """A default of Python's own types; an ellipsis for an object of ours."""
    if value is inspect.Parameter.empty:
        return value
    try:
        return literal_eval(repr(value))
    except (SyntaxError, ValueError):
        return ...


def algorithms_table(record: Any) -> dict[str, Any]:
    """Every algorithm: what it answers and how it can be set, out of the object of ``algorithms --json``."""
    return {
        f"{found['name']} on {found['device']}": {
            **{name: " ".join(found[name]) for name in ("answers", "orders", "relabellings")},
            **{f"knob {knob['name']} = {knob['default']}": _values(knob) for knob in found["knobs"]},
        }
        for found in record["algorithms"]
    }


def generated_table() -> dict[str, str]:
    """Every family of graphs: name, vertices, pairs, triangles by formula, and a hash of the pairs."""
    streams = {name: generate.generate(name, **parameters) for name, parameters in FAMILIES.items()}
    return {
        name: f"{stream.name}: n {stream.n}, pairs {stream.pairs_count} {stream.dtype}, triangles "
        f"{stream.expected_triangles}, hash {sha256(stream.pairs().astype('<i8').tobytes()).hexdigest()[:16]}"
        for name, stream in streams.items()
    }


def _values(knob: Any) -> str:
    integers = f"{knob['least']} or more" if knob["most"] is None else f"{knob['least']} to {knob['most']}"
    return " ".join(knob["choices"]) or integers


# --------------------------------------------------------------------------------------------------- the command line


def commands_table(folder: Path) -> dict[str, Any]:
    """Every command with its arguments and options, out of what --help prints."""
    table: dict[str, Any] = {}
    names = [""]
    while names:
        found = run_all((f"{name} --help" for name in names), folder)
        names = []
        for line, ended in found.items():
            assert (ended.code, ended.stderr) == (0, ""), line
            name = line.removesuffix("--help").strip()
            sections = _sections(ended.stdout)
            table[f"wedgewise {name}".strip()] = {
                "arguments": [_argument(entry) for entry in _entries(sections.get("Arguments", []))],
                "options": sorted(
                    _option(entry)
                    for title, lines in sections.items()
                    if title not in ("Arguments", "Commands", "Examples")
                    for entry in _entries(lines)
                ),
            }
            names += [f"{name} {entry.split()[0]}".strip() for entry in _entries(sections.get("Commands", []))]
    return table


def _sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading of a help text, up to the next empty line."""
    found: dict[str, list[str]] = {}
    for block in text.split("\n\n"):
        heading, *lines = block.strip("\n").splitlines()
        if re.fullmatch(r"[A-Z][\w, ]+:", heading):
            found[heading[:-1]] = lines
    return found


def _entries(lines: Iterable[str]) -> list[str]:
    """Entries of a section, each on one line: what goes on is indented further."""
    found: list[str] = []
    for line in lines:
        if line.startswith("   "):
            found[-1] += f" {line.strip()}"
        else:
            found.append(line)
    return found


def _argument(entry: str) -> str:
    return entry.split()[0] + (" (required)" if "[required]" in entry else "")


def _option(entry: str) -> str:
    """The names and the value of an option, its bounds and its default."""
    match = OPTION.match(entry)
    assert match is not None, entry
    names, prose = match[1], match[2] or ""
    bounds, default = BOUNDS.search(prose), DEFAULT.search(prose)
    words = [names, bounds and bounds[1], "(required)" if "[required]" in prose else None]
    return " ".join(filter(None, [*words, default and f"= {default[1]}"]))


def shape(record: Any) -> dict[str, str]:
    """What a JSON object is made of: the types at every path; of a schema its number."""
    found: dict[str, set[str]] = {}
    _collect("", record, found)
    return {path: "|".join(sorted(types)) for path, types in sorted(found.items())}


def _collect(path: str, value: Any, found: dict[str, set[str]]) -> None:
    """Add the types of a value and of what it holds."""
    name = path.rpartition(".")[2]
    if name == "schema":
        kind = f"= {value}"
    elif name in NAMES_OF_THINGS and isinstance(value, dict):
        kind = "dict" if name in DYNAMIC else f"dict of {' '.join(sorted(value))}"
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            _collect(f"{path}.{key}" if path else key, item, found)
        return
    else:
        kind = "null" if value is None else type(value).__name__
        for item in value if isinstance(value, list) else ():
            _collect(f"{path}[]", item, found)
    found.setdefault(path, set()).add(kind)


def objects_table(ended: dict[str, Ended]) -> dict[str, Any]:
    """The shape of what every command prints with --json."""
    return {line: by_type(shape(found.record)) for line, found in ended.items()}


def by_type(shape: dict[str, str]) -> dict[str, str]:
    """A shape as it is recorded: the paths of each type."""
    grouped: dict[str, list[str]] = {}
    for path, kind in shape.items():
        grouped.setdefault(kind, []).append(path)
    return {kind: ", ".join(paths) for kind, paths in sorted(grouped.items())}


def text_table(ended: dict[str, Ended]) -> dict[str, Any]:
    """What commands print in a pipe, by line; the exit code alone of those that fail."""
    return {line: found.code or found.stdout.splitlines() for line, found in ended.items()}


def files_table(folder: Path, written: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """What commands write: the rows, out of the .csv, and the columns and types of each format."""
    table: dict[str, Any] = {}
    for command, file in written.values():
        kept, suffix = table.setdefault(command, {}), file.partition(".")[2]
        if suffix == "csv":
            kept["rows"] = (folder / file).read_text(encoding="utf-8").splitlines()
        kept[suffix] = types_in(folder / file)
    return table


def types_in(path: Path) -> str:
    """The columns and types of a file of answers."""
    arrays = arrays_in(path)
    if isinstance(arrays, np.ndarray):
        return f"{arrays.dtype} {arrays.shape}"
    return ", ".join(f"{name} {getattr(column, 'type', None) or column.dtype}" for name, column in arrays.items())


def arrays_in(path: Path) -> Any:
    """A file of answers as an array, or as columns by name."""
    suffix = path.name.partition(".")[2]
    if suffix == "npy":
        return np.load(path)
    if suffix == "npz":
        return dict(np.load(path))
    if suffix == "parquet":
        table = pyarrow.parquet.read_table(path)
    elif suffix == "arrow":
        table = pyarrow.feather.read_table(path)
    else:
        separator = "\t" if suffix.startswith("tsv") else ","
        with pyarrow.input_stream(str(path), compression=COMPRESSIONS.get(suffix.partition(".")[2])) as file:
            table = pyarrow.csv.read_csv(file, parse_options=pyarrow.csv.ParseOptions(delimiter=separator))
    return dict(zip(table.column_names, table.columns, strict=True))
