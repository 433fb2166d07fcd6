"""``wedgewise generate NAME [parameters] OUT``: one command per family of the registry."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import wedgewise
from wedgewise.cli.console import Console
from wedgewise.cli.help import App
from wedgewise.cli.options import AsJson, Threads, Verbose

if TYPE_CHECKING:
    from wedgewise.generate import Generator, Parameter

Output = Annotated[
    str, typer.Argument(metavar="OUT", help="File to write; its suffixes choose format and compression.")
]
To = Annotated[str | None, typer.Option(metavar="NAME", help="Format to write. Default: chosen by the suffix of OUT.")]


class Families(TyperGroup):
    """The families of graphs as commands; the registry is imported only when one of them is wanted."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(wedgewise.generate.GENERATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        generator = wedgewise.generate.GENERATORS.get(cmd_name)
        return None if generator is None else _command(generator)


app = typer.Typer(cls=Families, invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def generate(context: typer.Context, as_json: AsJson = False) -> None:
    """Generate a graph.

    Without NAME, lists the families and their parameters. `generate NAME -h` explains the parameters of one family.
    """
    if context.invoked_subcommand is None:
        families = wedgewise.generate.GENERATORS.values()
        record = {
            "generators": [
                {"name": item.name, "summary": item.summary, "parameters": list(map(asdict, item.parameters))}
                for item in families
            ]
        }
        typed = (f"{item.name} {parameters_text(item)}".rstrip() + f"\n    {item.summary}" for item in families)
        Console(as_json).show(record, lambda: "\n".join(typed))


def parameters_text(generator: Generator) -> str:
    """The parameters of a family as options; those that have a default stand in brackets."""
    return " ".join(
        f"--{item.name} {item.kind.upper()}" if item.required else f"[--{item.name} {_default_text(item)}]"
        for item in generator.parameters
    )


def _default_text(parameter: Parameter) -> str:
    """A default as it is typed on the command line."""
    value = parameter.default
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _command(generator: Generator) -> Any:
    """The command of one family: its parameters are options, required or with the family's defaults."""

    def write(
        output: str, to: str | None, threads: int | None, as_json: bool, verbose: bool, **texts: str | None
    ) -> None:
        from wedgewise.write.edges import write_stream

        stream = generator(
            **{
                parameter.name: parameter.parse(given)
                for parameter in generator.parameters
                if (given := texts[parameter.name]) is not None
            }
        )
        console = Console(as_json, verbose=verbose)
        with console.stages() as progress:
            pairs = write_stream(stream, output, "generate", progress, format=to, threads=threads)
        record = {
            "name": stream.name,
            "parameters": dict(stream.parameters),
            "n": stream.n,
            "pairs": pairs,
            "expected_triangles": stream.expected_triangles,
            "output": output,
        }
        console.show(record, lambda: f"{record['pairs']:,} pairs of {record['name']} written to {output}")

    options = [  # those of the family first, then those of every family
        _keyword("output", Output),
        *map(_option, generator.parameters),
        _keyword("to", To, None),
        _keyword("threads", Threads, None),
        _keyword("as_json", AsJson, False),
        _keyword("verbose", Verbose, False),
    ]
    write.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    write.__annotations__ = {item.name: item.annotation for item in options}
    single = App(add_completion=False, rich_markup_mode=None)
    single.command(generator.name, help=f"{generator.summary}.")(write)
    return typer.main.get_command(single)


def _option(parameter: Parameter) -> inspect.Parameter:
    """A parameter of a family as an option whose text `Parameter.parse` reads."""
    meaning = parameter.help if parameter.required else f"{parameter.help}; {_default_text(parameter)} by default"
    option: Any = typer.Option(f"--{parameter.name}", metavar=parameter.kind.upper(), help=meaning)
    if parameter.required:
        return _keyword(parameter.name, Annotated[str, option])
    return _keyword(parameter.name, Annotated[str | None, option], None)


def _keyword(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """What typer makes an option of."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
