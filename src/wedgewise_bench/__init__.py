"""The comparison framework: system × device × algorithm × graph × question × row, each cell in a child with limits.

    TOML ─suite_files.py→ Suite ─matrix.py→ cells ─┐
    graphs.py ─PreparedGraph→ runner.py ←──────────┘ ─Job→ watch.py ═process═ child.py ─loads→ ours.py | peers.py | …
                                 │                                                └─answer→ digest.py
                                 └─Record→ results.jsonl ─table.py, ways.py, metrics.py, papers.py→ Markdown

Three rows are timed, and each one includes the work of the one before: ``count`` (the graph is loaded in the system's
own structure; a count on a GPU is its kernels alone), ``edges`` (from raw pairs in memory), ``file`` (from a text edge
list on disk, in a fresh process). A question other than the count is timed on the loaded graph. A crash, a time-out or
a wrong answer is a result like any other. Importing this package imports none of the systems.
"""
