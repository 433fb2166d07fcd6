"""The documentation pages that are made from the code: ``python tools/pages.py [folder]``.

They are kept in the repository, so that they can be read and linked to without building the site; a test compares them
with what the code makes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from textwrap import dedent
from typing import Any

from notebooks import notebook_of

from wedgewise.algorithms import registry
from wedgewise.algorithms._contract import Algorithm, DeviceTrussAnswer, TrussAnswer
from wedgewise.cli.generators import parameters_text
from wedgewise.cli.help import EXAMPLES as EXAMPLES_OF_COMMANDS
from wedgewise.cli.help import grouped
from wedgewise.errors import StorageError
from wedgewise.machine.files import atomic_write

ALGORITHMS = """\
# Algorithms

This page is made by `make docs` from what each algorithm declares; edit the algorithm, not the page.
`wedgewise algorithms` prints the same facts, `wedgewise algorithms --json` for programs.

| name | device | unit | answers | compiled | paper |
|---|---|---|---|---|---|
"""
ALGORITHMS_CONTENTS = """
Two families of published methods are out of scope: subgraph matching, and matrix products such as the LL and LU
products of KokkosKernels. What is here intersects neighbour lists.

```{toctree}
:hidden:
:glob:

algorithms/*
```
"""
BENCHMARKS = """\
# Benchmarks

[How the comparisons are run](benchmarks/how.md): `wedgewise bench` lists them, `wedgewise bench SUITE` runs one again.
[When not to use wedgewise](when-not.md) has the cases in which other programs are better.

"""
BENCHMARKS_CONTENTS = """
```{toctree}
:hidden:
:glob:

benchmarks/how
benchmarks/*
```
"""
COMMANDS = """\
# Command line

This page is made by `make docs` from the commands; `wedgewise COMMAND --help` prints the same.

"""
RESULTS = sorted((Path(__file__).parents[1] / "benchmarks" / "results").glob("*.md"))
EXAMPLES = [
    path for path in sorted((Path(__file__).parents[1] / "docs" / "examples").glob("*.md")) if path.stem != "index"
]
COMMON = ("Arguments", "Options")  # the groups of options in help that need no name
FIELDS = re.compile(
    r"(?:^|(?<=\. ))(What|Paper|Who does what(?:, [^:]+)?|Input|Output|Memory|Differs from the authors' code in): ?",
    re.MULTILINE,
)
DECISION = re.compile(r"docs/decisions/([\w-]+)\.md")


def make_pages() -> dict[str, str]:
    """Every generated page by its path below the documentation's folder."""
    pages = {"algorithms.md": algorithms_page(), "reference/commands.md": commands_page(), **benchmark_pages()}
    pages |= {f"examples/{path.stem}.ipynb": notebook_of(path.read_text(encoding="utf-8")) for path in EXAMPLES}
    return pages | {_page_name(algorithm): algorithm_page(algorithm) for algorithm in registry().values()}


def algorithms_page() -> str:
    """Every registered algorithm in one table."""
    rows = (
        _row(
            f"[{algorithm.name}]({_page_name(algorithm)})",
            algorithm.device,
            algorithm.unit,
            ", ".join(algorithm.answers),
            "yes" if algorithm.compiled else "no",
            algorithm.paper,
        )
        for algorithm in registry().values()
    )
    return ALGORITHMS + "".join(rows) + ALGORITHMS_CONTENTS


def benchmark_pages() -> dict[str, str]:
    """A page for each page of results, whose text the site shows there, and the list of them."""
    headings = {path: path.read_text(encoding="utf-8").partition("\n")[0][2:] for path in RESULTS}
    links = [f"- [{heading}](benchmarks/{path.name})\n" for path, heading in headings.items()]
    pages = {"benchmarks.md": BENCHMARKS + "".join(links) + BENCHMARKS_CONTENTS}
    shown = {"how": ("Benchmarks", "README.md")} | {
        path.stem: (heading, f"results/{path.name}") for path, heading in headings.items()
    }
    for name, (heading, text) in shown.items():
        pages[f"benchmarks/{name}.md"] = f"# {heading}\n\nThe site shows [{text}](../../benchmarks/{text}) here.\n"
    return pages


def algorithm_page(algorithm: Algorithm) -> str:
    """One algorithm: the headers of its modules and what it declares."""
    facts = [
        f"- Answers: {', '.join(algorithm.answers)}.",
        f"- Unit: {algorithm.unit}.",
        f"- Orders, the default first: {', '.join(algorithm.orders)}.",
        f"- Ids by, the default first: {', '.join(algorithm.relabellings)}.",
        f"- Limits: {algorithm.limits}.",
        f"- Compiled: {'yes' if algorithm.compiled else 'no'}.",
        *_knobs(algorithm),
    ]
    parts = [
        f"# {algorithm.name} on {algorithm.device}",
        algorithm.summary,
        "This page is made by `make docs` from the headers of the algorithm's modules and what it declares.",
        *_headers(algorithm),
        "## What it declares",
        "\n".join(facts),
    ]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """Every command with its arguments and options."""
    from typer.main import get_command

    from wedgewise.cli.app import app

    group: Any = get_command(app)
    commands = {name: group.get_command(None, name) for name in group.list_commands(None)}
    sections = (
        _families(command) if name == "generate" else _section(f"wedgewise {name}", command)
        for name, command in commands.items()
    )
    return COMMANDS + "\n".join(sections) + f"\n{group.epilog}\n"


def write_pages(folder: Path) -> list[Path]:
    """Write every generated page into `folder` and say which ones."""
    written = []
    for name, text in make_pages().items():
        path = folder / name
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror}); name an existing folder") from error
        with atomic_write(path) as file:
            file.write(text.encode())
        written.append(path)
    return written


def _page_name(algorithm: Algorithm) -> str:
    return f"algorithms/{algorithm.name}-{algorithm.device}.md"


def _headers(algorithm: Algorithm) -> list[str]:
    """The header of the module that registers an algorithm, then those of modules that prepare further answers."""
    home = _module_of(algorithm)
    answered: dict[str, list[str]] = {home: []}
    for name, answer in algorithm.answers.items():
        works = answer.find if isinstance(answer, TrussAnswer | DeviceTrussAnswer) else answer.prepare
        answered.setdefault(works.__module__, []).append(name)
    blocks = []
    for module, names in answered.items():
        if module != home:
            blocks.append(f"## {', '.join(names)}")
        blocks += _header_blocks(_header(module))
    return blocks


def _header(module: str) -> str:
    """The header of a module, or of the kernels that stand beside it under the same stem."""
    home = sys.modules[module]
    kernels = Path(str(home.__file__)).with_suffix(".cu")
    if not kernels.exists():
        return inspect.getdoc(home) or ""
    comment = takewhile(lambda line: line.startswith("//"), kernels.read_text(encoding="utf-8").splitlines())
    return "\n".join(line.removeprefix("//").strip() for line in comment)


def _module_of(algorithm: Algorithm) -> str:
    """The name of the module that registered an algorithm."""
    inside = f"{Algorithm.__module__.rpartition('.')[0]}."
    return next(
        name
        for name, module in sys.modules.items()
        if name.startswith(inside) and getattr(module, "ALGORITHM", None) is algorithm
    )


def _header_blocks(header: str) -> list[str]:
    """A module's header as Markdown: fields in bold, one a paragraph; what is indented as it stands."""
    blocks = []
    for block in re.split(r"\n{2,}", header.strip("\n")):
        if block.startswith("    "):
            blocks.append(f"```text\n{dedent(block)}\n```")
        else:
            fields = re.sub(r"\s*\n\n\s*", r"\n\n", FIELDS.sub(r"\n\n**\1**: ", block)).strip()
            blocks.append(DECISION.sub(r"[\1](../decisions/\1.md)", fields))
    return blocks


def _knobs(algorithm: Algorithm) -> list[str]:
    if not algorithm.knobs:
        return ["- Knobs: none."]
    table = ["", "| knob | default | allowed | meaning |", "|---|---|---|---|"]
    for knob in algorithm.knobs:
        allowed = ", ".join(knob.choices) or f"integers from {knob.least}"
        allowed += "" if knob.most is None else f" to {knob.most}"
        table.append(_row(f"`{knob.name}`", str(knob.default), allowed, knob.meaning).rstrip())
    return table


def _section(name: str, command: Any) -> str:
    """A command, or each command of a group."""
    if not hasattr(command, "list_commands"):
        return _command(name, command)
    parts = command.list_commands(None)
    return "\n".join(_section(f"{name} {part}", command.get_command(None, part)) for part in parts)


def _command(name: str, command: Any) -> str:
    """A command: how it is typed, what it does, its arguments and options."""
    arguments = [item for item in command.params if item.param_type_name == "argument"]
    typed = " ".join([name, *(item.metavar for item in arguments), "[OPTIONS]"])
    tables = "\n".join(
        ("" if title in COMMON else f"{title}:\n\n") + _parameters(parameters)
        for title, parameters in _tables(command.params).items()
    )
    examples = "\n".join(f"wedgewise {example}" for example in EXAMPLES_OF_COMMANDS[name.partition(" ")[2]])
    return f"## {name}\n\n```text\n{typed}\n```\n\n{command.help}\n\n{tables}\n```sh\n{examples}\n```\n"


def _tables(parameters: list[Any]) -> dict[str, list[Any]]:
    """The groups of help that have parameters; arguments and common options make one."""
    groups = grouped(parameters)
    common = [item for title in COMMON for item in groups.pop(title)]
    return {title: items for title, items in ({COMMON[0]: common} | groups).items() if items}


def _families(group: Any) -> str:
    """The command that has one command per family of graphs: the families, then the options that all of them take."""
    from wedgewise.generate import GENERATORS

    rows = (
        _row(f"`{' '.join([family.name, *parameters_text(family).split(), 'OUT'])}`", family.summary)
        for family in GENERATORS.values()
    )
    name = next(iter(GENERATORS))
    own = {parameter.name for parameter in GENERATORS[name].parameters}
    shared = [item for item in group.get_command(None, name).params if item.name not in own]
    typed = "```text\nwedgewise generate NAME [PARAMETERS] OUT [OPTIONS]\n```"
    families = f"| name and parameters | what it is |\n|---|---|\n{''.join(rows)}"
    return f"## wedgewise generate\n\n{typed}\n\n{group.help}\n\n{families}\n{_parameters(shared)}"


def _parameters(parameters: Iterable[Any]) -> str:
    """Arguments and options with their meaning and default."""
    head = "| argument or option | meaning | default |\n|---|---|---|\n"
    return head + "".join(map(_parameter_row, parameters))


def _parameter_row(parameter: Any) -> str:
    metavar = "" if parameter.metavar is None else parameter.metavar
    if parameter.param_type_name == "argument":
        return _row(f"`{metavar}`", parameter.help, "required" if parameter.required else "")
    typed = ", ".join(f"`{' '.join(filter(None, (option, metavar)))}`" for option in parameter.opts)
    default = "required" if parameter.required else _default(parameter.default)
    return _row(typed, parameter.help, default)


def _default(value: Any) -> str:
    """A default as it is typed; nothing for what is off or absent unless it is given."""
    is_absent = value is None or value is False or value in ([], (), "")
    return "" if is_absent else f"`{getattr(value, 'value', value)}`"


def _row(*cells: str) -> str:
    """A row of a table; bars inside a cell are escaped."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


if __name__ == "__main__":
    for path in write_pages(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")):
        print(path)
