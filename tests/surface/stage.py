"""The folder that commands run in: its files, and every command line whose output is recorded."""

from __future__ import annotations

import lzma
from pathlib import Path
from typing import Any

import networkx as nx

FILES = {
    # two triangles and a leaf, with a loop, copies, a reversed copy and a third column
    "small.txt": "0 1 9\n1 0 9\n1 2 9\n2 0 9\n2 0 9\n2 2 9\n3 1 9\n3 2 9\n3 7 9\n",
    "names.csv": "source,target,amount\nada,bob,4\nbob,cy,2\ncy,ada,1\ncy,di,3\ndi,ada,8\ndi,eve,5\n",
    "no-edges.txt": "# nothing\n",
    "bad.txt": "0 1\n1 2\n2 1.5\n",
    "karate.txt": "".join(f"{u}\t{v}\n" for u, v in nx.karate_club_graph().edges()),
}
RECORDS = "records.jsonl"  # what the first of BENCH writes, and `report` reads

MAKING = (  # in this order
    "partition karate.txt store --parts 2 --json",
    "partition names.csv named --parts 2 --scheme hashed --json",
    f"bench smoke --graphs kronecker-8-seed1 --questions count --algorithms reference --output {RECORDS} --json",
)
OBJECTS = (
    "count karate.txt --json",
    "count karate.txt --verify --json",
    "count store --json",
    "count store --balance --json",
    "triangles karate.txt --json",
    "triangles karate.txt --output out.csv --json",
    "triangles store --output out.csv --json",
    "support karate.txt --json",
    "support store --output out.csv --json",
    "truss karate.txt --json",
    "truss karate.txt --k 4 --json",
    "truss karate.txt --max --json",
    "similarity karate.txt --measure jaccard,common_neighbors --json",
    "similarity karate.txt --top 2 --json",
    "truss store --k 4 --output out.csv --json",
    "list karate.txt --json",
    "list karate.txt --start 5 --stop 9 --output out.csv --json",
    "clustering karate.txt --json",
    "clustering names.csv --weight amount --directed --json",
    "transitivity karate.txt --json",
    "info karate.txt --json",
    "explain karate.txt --json",
    "explain karate.txt --question k_truss --k 3 --json",
    "explain store --json",
    "convert karate.txt out.npy --json",
    "convert karate.txt out.mtx --clean --json",
    "algorithms --json",
    "doctor --json",
    "demo --json",
    "bench --json",
    f"bench --compare {RECORDS} {RECORDS} --json",
    f"report {RECORDS} --output out.html --json",
    "report --graph karate.txt --json",
    "generate --json",
    "generate complete --n 5 out.txt --json",
)
DATASETS = (
    "datasets list --json",
    "datasets info email-Enron --json",
    "datasets get Theory-3-4-5-B1k --json",
    "datasets verify Theory-3-4-5-B1k --trusses --json",
)
TEXT = (  # in a pipe; exit codes 0
    "--version",
    *(
        f"{command} {file}"
        for file in ("small.txt", "names.csv", "no-edges.txt")
        for command in ("count", "triangles", "support", "truss", "truss --k 3", "truss --max", "list")
    ),
    "truss --all small.txt",
    "similarity small.txt --measure cosine,resource_allocation",
    "similarity small.txt --top 2 --exclude-neighbors",
    "similarity small.txt --top 2 --start 1 --stop 3",
    *(f"{command} {file}" for file in ("small.txt", "names.csv") for command in ("clustering", "transitivity")),
    "clustering small.txt --undefined nan",
    "clustering names.csv --directed",
    "clustering names.csv --weight amount",
    "transitivity no-edges.txt --undefined nan",
    "count small.txt --drop-leaves",
    "count names.csv --quiet",
    "count small.txt --source 0 --target 2",
    "triangles names.csv --header no --source 0 --target 1",
    "list small.txt --start 1",
    "list small.txt --stop 1 --batch 1",
    "list names.csv --algorithm keystone",
    "count store",
    "count store --algorithm bbtc --threads 1 --verify",
    "count store --workers 2",
    "triangles named",
    "support named",
    "truss named --k 3",
    "truss named --k 4",
    "truss named",
    "clustering named",
    "transitivity named",
    "count named --shares 2",
    "triangles named --workers 2",
    "convert small.txt out.csv",
    "convert names.csv out.csv.gz --clean",
    "generate book --pages 4 out.txt",
)
FAILING = (  # exit codes 1 and 2
    "",
    "count",
    "count nowhere.txt",
    "count bad.txt",
    "count bad.txt --labels int",
    "count karate.txt --nix",
    "count karate.txt --threads 0",
    "count karate.txt --memory lots",
    "count karate.txt --memory 1kB",
    "count karate.txt --knob threshold",
    "count karate.txt --knob nix=1",
    "count karate.txt --limit =3",
    "count karate.txt --limit vertices=9",
    "count karate.txt --algorithm nix",
    "count karate.txt --device nix",
    "count karate.txt --order nix",
    "count karate.txt --relabel nix",
    "count karate.txt --format nix",
    "count karate.txt --header nix",
    "count karate.txt --balance",
    "count karate.txt --workers 2",
    "count karate.txt --timeline out.json",
    "count store --device cuda",
    "count store --order core",
    "triangles karate.txt --output out.nix",
    "triangles names.csv --output out.npz",
    "triangles store --json",
    "support names.csv --output out.npy",
    "truss karate.txt --k 1",
    "similarity karate.txt --measure near",
    "similarity karate.txt --top 2 --pairs small.txt",
    "similarity karate.txt --start 2",
    "similarity karate.txt --output out.npy",
    "similarity store",
    "truss karate.txt --k 3 --max",
    "list karate.txt --start 46",
    "list karate.txt --output out.npz",
    "truss store --max",
    "list store",
    "count karate.txt --shares 2",
    "count store --shares 0",
    "clustering karate.txt --undefined nix",
    "clustering karate.txt --combine sum",
    "info store",
    "explain karate.txt --question nix",
    "explain karate.txt --question k_truss",
    "convert karate.txt out.nix",
    "convert nowhere.txt out.csv",
    "partition karate.txt store",
    "partition karate.txt other --scheme nix",
    "bench nix",
    "report",
    "report nowhere.jsonl",
    "report nowhere.jsonl --output out.html",
    "generate nix out.txt",
    "generate complete out.txt",
    "generate complete --n 3",
    "generate complete --n many out.txt",
    "generate cycle --n 2 out.txt",
    "nix",
)
FAILING_DATASETS = (
    "datasets info nix",
    "datasets verify email-EuAll",
    "datasets get ca-GrQc --from nowhere",
    "datasets nix",
)
ROWS = {  # commands with --output, and the formats that hold their rows
    "triangles small.txt": ("csv", "tsv", "csv.gz", "parquet", "arrow", "npy", "npz"),
    "triangles names.csv": ("csv", "tsv.gz", "parquet", "npy"),
    "support small.txt": ("csv", "parquet", "npy", "npz"),
    "support named": ("csv", "tsv", "arrow"),
    "truss small.txt": ("csv", "parquet", "npy", "npz"),
    "truss names.csv --k 3": ("csv", "tsv", "parquet"),
    "similarity small.txt --measure overlap,common_neighbors": ("csv", "parquet", "npz"),
    "similarity small.txt --top 1": ("csv", "arrow", "npz"),
    "truss small.txt --max": ("csv", "arrow", "npy", "npz"),
    "list small.txt": ("csv", "csv.bz2", "csv.zst", "parquet", "npy"),
    "list names.csv": ("csv", "tsv", "arrow"),
    "clustering small.txt": ("csv", "tsv", "parquet", "npy", "npz"),
}

FAMILIES: dict[str, dict[str, Any]] = {  # every generator, small
    "kronecker": {"scale": 6, "edgefactor": 4, "seed": 7},
    "rmat": {"scale": 6, "a": 0.5},
    "uniform": {"n": 50, "m": 200},
    "torus3d": {"side": 3},
    "small_world": {"n": 30, "k": 4, "p": 0.25},
    "complete": {"n": 9},
    "complete_tripartite": {"a": 2, "b": 3, "c": 4},
    "turan": {"n": 10, "r": 3},
    "octahedron": {"dimension": 4},
    "star": {"leaves": 5},
    "wheel": {"rim": 6},
    "windmill": {"blades": 4},
    "book": {"pages": 7},
    "cycle": {"n": 3},
    "path": {"n": 5},
    "petersen": {},
    "hypercube": {"dimension": 4},
    "grid8": {"side": 5},
    "kronecker_of_stars": {"leaves": [3, 4, 5], "variant": "B1k"},
}


def make_files(folder: Path) -> Path:
    """The folder with its files."""
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "karate.txt.xz").write_bytes(lzma.compress(FILES["karate.txt"].encode()))
    return folder


def writing() -> dict[str, tuple[str, str]]:
    """The command lines of ROWS, each with its command and the file that it writes."""
    pairs = [(command, output_name(command, suffix)) for command, suffixes in ROWS.items() for suffix in suffixes]
    return {f"{command} --output {file}": (command, file) for command, file in pairs}


def output_name(command: str, suffix: str) -> str:
    """The file that a command of ROWS writes."""
    return f"{command.replace(' ', '_').replace('.', '_')}.{suffix}"
