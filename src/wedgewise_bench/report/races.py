"""Contests → times side by side, speed-ups, performance profiles, and time against size."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from wedgewise.algorithms import ENGINE
from wedgewise.errors import UnknownNameError
from wedgewise.report import charts
from wedgewise.report.charts import Axis
from wedgewise.report.page import Value
from wedgewise.report.text import plural
from wedgewise_bench.record import Record
from wedgewise_bench.report.contests import Contest, among_systems, among_ways, is_ours, seconds_of
from wedgewise_bench.report.parts import Heading, Item, Part, Picture, Table
from wedgewise_bench.table import ratio_text, time_text

MIN_GRAPHS = 3  # of a curve over graphs
MAX_BARS = 60
RATIO = Axis("times as fast", "×", is_log=True)

Speedups = Mapping[tuple[str, str], float]
"""How many times as fast as the base, by graph and contender."""


def times_part(records: Sequence[Record]) -> Part:
    """A table for each contest: a line per graph, a column per contender."""
    items = [item for contest in _distinct(records) for item in (Heading(contest.title), times_table(contest))]
    return Part("Times side by side", tuple(items))


def speedups_part(records: Sequence[Record], base: str | None) -> Part | None:
    """How many times as fast: ourselves over the fastest peer, or everybody over a base."""
    items: list[Item] = []
    for contest in _distinct(records):
        items += _speedup_items(contest, base)
    names = dict.fromkeys(name for contest in _distinct(records) for name in contest.names)
    if base is not None and base not in names:
        raise UnknownNameError(f"no contender named {base!r}; there are: {', '.join(names)}")
    return Part("Speed-ups", tuple(items)) if items else None


def profiles_part(records: Sequence[Record]) -> Part | None:
    """Performance profiles: the share of graphs on which a contender is within a factor of the fastest."""
    items = [item for contest in _distinct(records) for item in _profile_items(contest)]
    about = "The further up and left, the better: at 1× is the share of graphs on which a contender is the fastest."
    return Part("Performance profiles", (about, *items)) if items else None


def sizes_part(records: Sequence[Record]) -> Part | None:
    """Time against the size of the graph."""
    items = [item for contest in _distinct(records) for item in _size_items(contest)]
    return Part("Time against size", tuple(items)) if items else None


def times_table(contest: Contest) -> Table:
    """The median of every contender on every graph, or what happened instead; who wins before them, ours first."""
    several = len(contest.names) > 1
    verdict = "fastest peer / ours" if contest.has_peers else "fastest"
    sizes = contest.sizes
    names = sorted(contest.names, key=lambda name: not (is_ours(name) or name.partition("[")[0] == ENGINE))
    rows: list[tuple[Value, ...]] = []
    for graph in contest.graphs:
        found = [contest.records.get((graph, name)) for name in names]
        verdicts = [_verdict(contest, graph)] if several else []
        times = [(time_text(record), seconds_of(record)) for record in found]
        rows.append((graph, (f"{sizes[graph]:,}", sizes[graph]), *verdicts, *times))
    header = ("graph", contest.measure, *([verdict] if several else []), *names)
    return Table("Medians of the repeats.", header, tuple(rows))


def over_base(contest: Contest, base: str) -> Speedups:
    """The base's time divided by each contender's, where both answered rightly."""
    found = {}
    for graph in contest.graphs:
        reference = contest.seconds(graph, base)
        for name in contest.names:
            seconds = contest.seconds(graph, name)
            if name != base and reference is not None and seconds:
                found[graph, name] = reference / seconds
    return found


def over_fastest_peer(contest: Contest) -> dict[str, float]:
    """By graph, the fastest peer's time divided by ours."""
    found = {}
    for graph in contest.graphs:
        peers = [contest.seconds(graph, name) for name in contest.names if not is_ours(name)]
        ours = [contest.seconds(graph, name) for name in contest.names if is_ours(name)]
        best_peer, best = (min((value for value in values if value), default=None) for values in (peers, ours))
        if best_peer is not None and best is not None:
            found[graph] = best_peer / best
    return found


def profile_of(contest: Contest) -> tuple[dict[str, list[tuple[float, float]]], list[str]]:
    """By contender, the factors at which its share of graphs rises, and the graphs that count.

    Contenders are those that were asked about the most graphs, graphs those that all of them were asked about and one
    answered. Who gave no right answer is within no factor.
    """
    most = max(len(contest.asked(name)) for name in contest.names)
    names = [name for name in contest.names if len(contest.asked(name)) == most]
    common = set.intersection(*(contest.asked(name) for name in names))
    best = {
        graph: min(times)
        for graph in contest.graphs
        if graph in common and (times := [time for name in names if (time := contest.seconds(graph, name))])
    }
    curves: dict[str, list[tuple[float, float]]] = {}
    for name in names:
        factors = sorted(time / best[graph] for graph in best if (time := contest.seconds(graph, name)))
        shares = {factor: number / len(best) for number, factor in enumerate(factors, start=1)}
        curves[name] = list(({1.0: 0.0} | shares).items())
    return curves, list(best)


def _distinct(records: Sequence[Record]) -> list[Contest]:
    """Systems against each other and our own ways; of one contender alone, only where nobody else was asked."""
    by_system = among_systems(records)
    if len({record.cell.system for record in records}) < 2:
        return by_system
    ways = [_named_ours(contest) for contest in among_ways(records) if len(contest.names) > 1]
    asked = {contest.stem for contest in ways}
    kept = [contest for contest in by_system if len(contest.names) > 1 or f"{contest.stem}-ways" not in asked]
    return kept + ways


def _named_ours(contest: Contest) -> Contest:
    return replace(contest, title=f"{contest.title}: our own ways", stem=f"{contest.stem}-ways")


def _verdict(contest: Contest, graph: str) -> Value:
    """The ratio to the fastest peer where we compete with others, else who is the fastest."""
    if contest.has_peers:
        ratio = over_fastest_peer(contest).get(graph)
        return ratio_text(ratio), ratio
    times = {name: seconds for name in contest.names if (seconds := contest.seconds(graph, name)) is not None}
    return min(times, key=times.__getitem__, default="–")


def _speedup_items(contest: Contest, base: str | None) -> Iterator[Item]:
    if base is None and contest.has_peers:
        yield from _peer_items(contest)
    elif len(contest.names) > 1 and (base is None or base in contest.names):
        yield from _base_items(contest, base or contest.names[0])


def _peer_items(contest: Contest) -> Iterator[Item]:
    """Ourselves over the fastest peer."""
    found = over_fastest_peer(contest)
    if not found:
        return
    mean = statistics.geometric_mean(found.values())
    least = min(found, key=found.__getitem__)
    yield Heading(contest.title)
    yield (
        f"The fastest peer takes {ratio_text(mean)} our time in the geometric mean of {plural(len(found), 'graph')}, "
        f"at least {ratio_text(found[least])}, on {least}."
    )
    yield Picture(
        f"speedup-{contest.stem}",
        charts.bars(list(found), {"over the fastest peer": list(found.values())}, RATIO, 1.0),
        "Time of the fastest peer divided by ours; right of the line we are the faster one.",
        _told(found),
    )


def _base_items(contest: Contest, base: str) -> Iterator[Item]:
    """Every contender over the base: on each graph where these are few, else in the geometric mean."""
    found = over_base(contest, base)
    names = [name for name in contest.names if any(key[1] == name for key in found)]
    if not names:
        return
    means = {name: statistics.geometric_mean([found[key] for key in found if key[1] == name]) for name in names}
    graphs = [graph for graph in contest.graphs if any(key[0] == graph for key in found)]
    yield Heading(contest.title)
    if len(graphs) > 1 and len(names) == 1:
        mean = ratio_text(means[names[0]])
        yield f"{names[0]} is {mean} as fast as {base} in the geometric mean of {len(graphs)} graphs."
    elif len(graphs) > 1:
        yield _ratios(
            f"speedup-mean-{contest.stem}",
            means,
            f"Time of {base} divided by that of each contender, geometric mean of the graphs that both answered.",
        )
    if len(graphs) == 1:
        yield _ratios(
            f"speedup-{contest.stem}", means, f"Time of {base} divided by that of each contender on {graphs[0]}."
        )
    elif len(graphs) * len(names) <= MAX_BARS:
        series = {name: [found.get((graph, name)) for graph in graphs] for name in names}
        yield Picture(
            f"speedup-{contest.stem}",
            charts.bars(graphs, series, RATIO, 1.0),
            f"Time of {base} divided by that of each contender on each graph.",
            _told({f"{name} on {graph}": ratio for (graph, name), ratio in found.items()}),
        )


def _ratios(stem: str, found: Mapping[str, float], caption: str) -> Picture:
    """A bar for each name, which stands above it, the longest first."""
    ordered = sorted(found, key=found.__getitem__, reverse=True)
    return Picture(
        stem, charts.bars(ordered, {"": [found[name] for name in ordered]}, RATIO, 1.0), caption, _told(found)
    )


def _profile_items(contest: Contest) -> Iterator[Item]:
    if len(contest.names) < 2:
        return
    curves, graphs = profile_of(contest)
    if len(curves) < 2 or len(graphs) < MIN_GRAPHS:
        return
    furthest = max(factor for steps in curves.values() for factor, _ in steps) * 1.1
    drawn = {name: [*steps, (furthest, steps[-1][1])] for name, steps in curves.items()}
    wins = {name: dict(steps)[1.0] for name, steps in curves.items()}
    yield Heading(contest.title)
    yield Picture(
        f"profile-{contest.stem}",
        charts.profile(drawn, Axis("factor of the fastest time", "×", is_log=True), Axis("share of graphs", "%")),
        f"Share of {len(graphs)} graphs on which a contender takes at most so many times the fastest time.",
        "Fastest on: " + ", ".join(f"{name} {share:.0%}" for name, share in wins.items()) + ".",
    )
    yield _profile_table(curves)


def _profile_table(curves: Mapping[str, Sequence[tuple[float, float]]]) -> Table:
    factors = (1.0, 2.0, 5.0, 10.0)
    rows: list[tuple[Value, ...]] = []
    for name, steps in curves.items():
        shares = [max((share for factor, share in steps if factor <= bound), default=0.0) for bound in factors]
        rows.append((name, *((f"{share:.0%}", share) for share in shares)))
    header = ("contender", "fastest", *(f"within {factor:g}×" for factor in factors[1:]))
    return Table("Shares of the graphs.", header, tuple(rows))


def _size_items(contest: Contest) -> Iterator[Item]:
    points: dict[str, list[tuple[float, float]]] = {}
    sizes = contest.sizes
    for graph, name in contest.records:
        seconds = contest.seconds(graph, name)
        if seconds:
            points.setdefault(name, []).append((float(sizes[graph]), seconds))
    if max(map(len, points.values()), default=0) < MIN_GRAPHS:
        return
    yield Heading(contest.title)
    yield Picture(
        f"size-{contest.stem}",
        charts.scatter(points, Axis(contest.measure, is_log=True), Axis("time", "s", is_log=True)),
        "Median time of each contender against the size of the graph.",
        "; ".join(f"{name}: {plural(len(found), 'graph')}" for name, found in points.items()) + ".",
    )


def _told(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio_text(ratio)}" for name, ratio in ratios.items()) + "."
