"""What ``-h`` prints: options in groups, the common ones first, and examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType

ALGORITHM, READING, DISK, CLUSTER = "Algorithm", "Reading FILE", "Working from disk", "Stores, clusters, several GPUs"
GROUPS = ("Arguments", "Options", DISK, CLUSTER, ALGORITHM, READING)
EXAMPLES = {
    "count": ("count email-Enron", "count graph.txt.gz --memory 1GB --verify"),
    "partition": ("partition edges.txt store --memory 1GB", "partition edges.txt store --scheme hashed --workers 4"),
    "triangles": ("triangles email-Enron", "triangles graph.txt.gz -o triangles.csv"),
    "support": ("support email-Enron", "support graph.txt.gz -o support.parquet"),
    "similarity": ("similarity email-Enron --top 10", "similarity graph.txt.gz --measure jaccard,cosine -o pairs.csv"),
    "truss": ("truss email-Enron --max", "truss graph.txt.gz --k 4 -o truss.csv"),
    "list": ("list email-Enron --stop 10", "list graph.txt.gz -o triangles.parquet"),
    "clustering": ("clustering email-Enron", "clustering payments.csv --weight amount --combine sum"),
    "transitivity": ("transitivity email-Enron", "transitivity graph.txt.gz --device cuda"),
    "info": ("info email-Enron", "info table.csv --source from --target to"),
    "explain": ("explain email-Enron", "explain graph.txt.gz --question k_truss --k 4"),
    "convert": ("convert graph.txt graph.npz", "convert graph.txt graph.mtx --clean"),
    "algorithms": ("algorithms", "algorithms --json"),
    "doctor": ("doctor", "doctor --warm"),
    "demo": ("demo", "demo --json"),
    "bench": ("bench", "bench smoke --output R.jsonl"),
    "report": ("report R.jsonl", "report --graph email-Enron --output email.html"),
    "generate": ("generate", "generate kronecker --scale 16 --seed 1 graph.bel"),
    "datasets": ("datasets list", "datasets get soc-LiveJournal1"),
    "datasets list": ("datasets list", "datasets list --paper trust"),
    "datasets info": ("datasets info email-Enron", "datasets info soc-LiveJournal1 --json"),
    "datasets get": ("datasets get soc-LiveJournal1", "datasets get ca-GrQc --from graphs/"),
    "datasets verify": ("datasets verify", "datasets verify email-Enron --trusses"),
}
"""Two command lines for each command."""


class HelpfulCommand(TyperCommand):
    """A command whose help groups its options and ends with examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for title, parameters in grouped(self.get_params(ctx)).items():
            rows = [row for parameter in parameters if (row := parameter.get_help_record(ctx)) is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        examples = EXAMPLES.get(" ".join(ctx.command_path.split()[1:]), ())
        if examples:
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"{'':{formatter.current_indent}}wedgewise {example}\n")


class App(typer.Typer):
    """Commands with such a help, unless they have a class of their own."""

    def command(
        self, name: str | None = None, *, cls: type[TyperCommand] | None = HelpfulCommand, **more: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, cls=cls, **more)


def grouped(parameters: list[Any]) -> dict[str, list[Any]]:
    """Parameters by the group that help shows them in."""
    groups: dict[str, list[Any]] = {title: [] for title in GROUPS}
    for parameter in parameters:
        is_argument = parameter.param_type_name == "argument"
        groups["Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"].append(
            parameter
        )
    return groups
