"""``similarity``: how alike vertices are."""

from __future__ import annotations

from typing import Annotated

import typer

from wedgewise.cli.options import Output, QuestionOptions, takes


@takes(QuestionOptions)
def similarity(
    options: QuestionOptions,
    output: Output = None,
    measure: Annotated[
        str, typer.Option(metavar="NAME", help="A measure, or with commas between them several.")
    ] = "jaccard",
    pairs: Annotated[
        str | None, typer.Option(metavar="FILE", help="Pairs of labels to compare, in place of the edges.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="K", help="The K best partners of every vertex, in place of the edges.")
    ] = None,
    exclude_neighbors: Annotated[
        bool, typer.Option("--exclude-neighbors", help="With --top: leave pairs out that are edges.")
    ] = False,
    start: Annotated[int, typer.Option(min=0, metavar="N", help="With --top: leave out the first N vertices.")] = 0,
    stop: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --top: end before vertex N; the first one is 0.")
    ] = None,
) -> None:
    """How similar the ends of every edge are, or of other pairs; or the best partners of every vertex.

    Measures are common_neighbors, jaccard, overlap, cosine, sorensen, adamic_adar, resource_allocation and
    preferential_attachment. With --top, all pairs with a common neighbour take part, whether they are edges or not.

    A terminal gets a summary: the pairs with the largest values. A pipe gets a line per pair, both labels and the
    values with tabs between. --output writes the columns u, v and one for each measure; .npz holds integers, which text
    labels are not, and .npy holds no pairs with values.

    The partners of vertices can be had in parts: --stop N into one file, --start N into another. An interrupted pipe
    says which --start continues it.
    """
    from wedgewise.cli import answers

    measures = measure.split(",")
    if top is None:
        if exclude_neighbors or start or stop is not None:
            raise typer.BadParameter("--exclude-neighbors, --start and --stop go with --top")
        answers.answer_rows("similarity", options, output, {"measure": measures, "pairs": pairs})
        return
    if pairs is not None:
        raise typer.BadParameter("--pairs and --top exclude each other: name one")
    details = {"measure": measures, "k": top, "exclude_neighbors": exclude_neighbors, "start": start, "stop": stop}
    if output is None and not options.as_json and not options.console().is_read_by_a_person:
        answers.print_partners(options, details)
    else:
        answers.answer_rows("top_similar", options, output, details)
