"""``wedgewise partition``: a graph file as a store, and how even its tasks are."""

from __future__ import annotations

from dataclasses import asdict
from math import isinf
from typing import Any

from wedgewise.cli.options import ReadingOptions
from wedgewise.report.objects import Object
from wedgewise.report.text import cleaned_text, facts_text, plural
from wedgewise.run.balance import Balance
from wedgewise.stages import CleanReport
from wedgewise.store.build import write_store
from wedgewise.store.open import Store


def partition_file(options: ReadingOptions, folder: str, **how: Any) -> Object:
    """Write a store, and describe it; `how` are further keywords of `write_store`."""
    console, source = options.console(), options.graph_file()
    with console.stages() as progress:
        store = write_store(
            source.path,
            folder,
            **how,
            threads=source.threads,
            labels=source.labels,
            format=source.format,
            limits=source.limits,
            columns=source.columns,
            progress=progress,
            say=console.say,
        )
    console.note(store.manifest.cleaned.notes)
    return store_object(store, options.file) | {"output": folder}


def store_object(store: Store, source: str) -> Object:
    """What can be said of a store without reading its blocks."""
    manifest = store.manifest
    arcs = [record.arcs for record in manifest.blocks.values()]
    even = Balance.of(store.counts, store.partition)
    return {
        "source": source,
        "output": str(store.folder),
        "n": manifest.n,
        "m": manifest.m,
        "parts": store.partition.parts,
        "scheme": manifest.partition.to_dict()["kind"],
        "blocks": len(arcs),
        "heaviest_block": max(arcs),
        "load_imbalance": even.load_imbalance,
        "space_ratio": None if isinf(even.space_ratio) else even.space_ratio,
        "wedges": manifest.wedges,
        "fingerprint": manifest.fingerprint,
        "cleaned": asdict(manifest.cleaned),
    }


def store_text(store: Object) -> str:
    """The same for people."""
    ratio = "infinite" if store["space_ratio"] is None else f"{store['space_ratio']:.3f}"
    facts = [
        ("vertices", f"{store['n']:,}"),
        ("edges", f"{store['m']:,}"),
        ("parts", f"{store['parts']:,}, {store['scheme']}"),
        ("blocks", f"{store['blocks']:,}, the heaviest with {plural(store['heaviest_block'], 'arc')}"),
        ("balance", f"λ {store['load_imbalance']:.3f}, space IR {ratio}"),
        ("cleaned", cleaned_text(CleanReport(**store["cleaned"]))),
    ]
    return f"{store['output']}\n\n{facts_text(facts)}"
