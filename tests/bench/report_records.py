"""Hand-made records whose ratios can be seen, and a set of them that fills every part of a report."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from wedgewise_bench.record import Cell, Outcome, Record, RunSetting

CELL_FIELDS = {item.name for item in fields(Cell)}
MACHINE = {"processor": "Processor", "threads": 2, "memory_bytes": 8 * 10**9, "system": "Linux x86_64"}
SIZES = {"small": 1_000, "middle": 20_000, "large": 300_000, "huge": 4_000_000}
COMMAND = "wedgewise bench mine"


def made(system: str, seconds: float | None, **changes: Any) -> Record:
    """A record of three repeats around a median, or of another status; `changes` go to the cell or the outcome."""
    cell: dict[str, Any] = {"algorithm": "auto", "graph": "small", "row": "count", "threads": 2}
    cell |= {name: changes.pop(name) for name in list(changes) if name in CELL_FIELDS}
    machine, command = changes.pop("machine", MACHINE), changes.pop("command", COMMAND)
    load, date = changes.pop("load", 1.0), changes.pop("date", "2030-01-02T03:04:05+00:00")
    repeats = () if seconds is None else (seconds, seconds * 0.9, seconds * 1.2)
    size = SIZES.get(str(cell["graph"]), 500)
    outcome = Outcome(**({"status": "ok", "seconds": repeats, "answer": 45, "edges": size} | changes))
    setting = RunSetting(machine, {"python": "3.11", "wedgewise": "1.0"}, "abc123", command)
    limits = {"seconds": 60.0, "memory_bytes": 1e9}
    return Record(Cell(system, **cell), outcome, setting, date, 2 * size, 45, limits, load)


def against_peers() -> list[Record]:
    """Ourselves and two peers: the faster one takes 2, 4, 8 times our time, and half of it on the last graph."""
    records = []
    for graph, factor in zip(SIZES, (2.0, 4.0, 8.0, 0.5), strict=True):
        records += [
            made("wedgewise", 0.01, graph=graph),
            made("igraph", 0.01 * factor, graph=graph, algorithm="default"),
            made("networkit", 0.01 * factor * 3, graph=graph, algorithm="default"),
        ]
    return records


def timeline() -> dict[str, Any]:
    """A stream and a thread, as `Timeline.to_dict` tells them."""
    copy = {"begin": 0.0, "end": 0.01, "nbytes": 1000, "filled": (0.0, 0.004)}
    span = {"task": 0, "estimate": 1.0, "copies": [], "helps": False}
    return {
        "seconds": 0.05,
        "places": [
            {"place": "GPU stream 0", "device": "GPU", "tasks": 1, "busy_seconds": 0.04, "busy_share": 0.8,
             "idle_tail_seconds": 0.0},
            {"place": "thread 0", "device": "cpu", "tasks": 1, "busy_seconds": 0.03, "busy_share": 0.6,
             "idle_tail_seconds": 0.02},
        ],
        "devices": [],
        "spans": [
            span | {"device": "GPU", "place": "GPU stream 0", "begin": 0.01, "end": 0.05, "copies": [copy]},
            span | {"device": "cpu", "place": "thread 0", "begin": 0.0, "end": 0.03, "helps": True},
        ],
    }  # fmt: skip


def every_kind() -> list[Record]:
    """Records for every part of a report."""
    records = against_peers()
    for number, graph in enumerate(SIZES, start=1):
        for algorithm, factor in {"keystone": 0.9, "forward": 3.0, "trust": 2.0}.items():
            records.append(made("wedgewise", 0.01 * factor, graph=graph, algorithm=algorithm))
        for length, factor in {1024: 3.0, 4096: 1.5, 16384: 1.0}.items():
            knobs, seconds = {"matrix_length": length}, 0.002 * factor * number
            facts = {"wedges_tested": 10**6 * number, "limit_seconds": 0.0005 * number, "bytes_moved": 10**6,
                     "counters": {"lts__t_sector_hit_rate.pct": 71.5}}  # fmt: skip
            parts = {"prepare": 0.001, "copy": 0.002, "kernel": seconds, "whole": seconds + 0.003}
            stages = {name: (value, value, value) for name, value in parts.items()}
            where = {"graph": graph, "algorithm": "wetric", "device": "cuda", "knobs": knobs}
            records.append(made("wedgewise", seconds, **where, facts=facts, stages=stages))
        for granularity, factor in {"coarse": 4.0, "fine": 1.0}.items():
            where = {"graph": graph, "algorithm": "eager", "knobs": {"granularity": granularity}}
            records.append(made("wedgewise", 0.01 * factor, question="k_truss[k=3]", **where))
    records.append(
        made("wedgewise", 0.05, graph="huge", algorithm="bbtc", device="hybrid", facts={"timeline": timeline()})
    )
    records.append(made("networkx", None, algorithm="default", status="timeout", stage="answer"))
    records.append(made("dummy", None, algorithm="default", status="wrong", message="46 instead of 45"))
    return records
