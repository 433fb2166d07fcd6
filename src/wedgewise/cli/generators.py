"""``wedgewise generate NAME [parameters] OUT``: one command per family of the registry."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from wedgewise.cli.console import Console
from wedgewise.cli.options import AsJson, Threads, Verbose

if TYPE_CHECKING:
    from wedgewise.generate import Generator, Parameter

Output = Annotated[str, typer.Argument(metavar="OUT", help="Its suffixes name format and compression.")]
To = Annotated[str | None, typer.Option(metavar="NAME", help="The format, when the suffix should not decide.")]


class Families(TyperGroup):
    """The families of graphs as commands; the registry is imported only when one of them is wanted."""

    def list_commands(self, ctx: Any) -> list[str]:
        from wedgewise.generate import GENERATORS

        return list(GENERATORS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from wedgewise.generate import GENERATORS

        return _command(GENERATORS[cmd_name]) if cmd_name in GENERATORS else None


app = typer.Typer(cls=Families, invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def generate(context: typer.Context, as_json: AsJson = False) -> None:
    """Write a generated graph.

    Without a NAME, lists the families and their parameters; NAME --help explains the parameters of one.
    """
    if context.invoked_subcommand is None:
        from wedgewise.generate import GENERATORS
        from wedgewise.report import objects, text

        found = list(GENERATORS.values())
        Console(as_json).show(objects.generators_object(found), lambda: text.generators_text(found))


def _command(generator: Generator) -> Any:
    """The command of one family: its parameters are options, required or with the family's defaults."""

    def write(
        output: str, to: str | None, threads: int | None, as_json: bool, verbose: bool, **texts: str | None
    ) -> None:
        from wedgewise.api import SCHEMA
        from wedgewise.write.edges import write_stream

        stream = generator(
            **{
                parameter.name: parameter.parse(text)
                for parameter in generator.parameters
                if (text := texts[parameter.name]) is not None
            }
        )
        console = Console(as_json, verbose=verbose)
        with console.stages() as progress:
            pairs = write_stream(stream, output, "generate", progress, format=to, threads=threads)
        record = {
            "schema": SCHEMA,
            "name": stream.name,
            "parameters": dict(stream.parameters),
            "n": stream.n,
            "pairs": pairs,
            "expected_triangles": stream.expected_triangles,
            "output": output,
        }
        console.show(record, lambda: f"{record['pairs']:,} pairs of {record['name']} written to {output}")

    signature = _signature(generator.parameters)
    write.__signature__ = signature  # type: ignore[attr-defined]
    write.__annotations__ = {name: item.annotation for name, item in signature.parameters.items()}
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(generator.name, help=f"{generator.summary}.")(write)
    return typer.main.get_command(single)


def _signature(parameters: Iterable[Parameter]) -> inspect.Signature:
    """What typer makes the options of: those of the family first, then those of every family."""
    common = (
        ("to", To, None),
        ("threads", Threads, None),
        ("as_json", AsJson, False),
        ("verbose", Verbose, False),
    )
    return inspect.Signature(
        [
            inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, annotation=Output),
            *map(_option, parameters),
            *(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
                for name, kind, default in common
            ),
        ]
    )


def _option(parameter: Parameter) -> inspect.Parameter:
    """A parameter of a family as an option whose text `Parameter.parse` reads."""
    from wedgewise.report.text import default_text

    meaning = (
        parameter.help if parameter.required else f"{parameter.help}; {default_text(parameter.default)} by default"
    )
    option: Any = typer.Option(f"--{parameter.name}", metavar=parameter.kind.upper(), help=meaning)
    return inspect.Parameter(
        parameter.name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[str if parameter.required else str | None, option],
        default=inspect.Parameter.empty if parameter.required else None,
    )
