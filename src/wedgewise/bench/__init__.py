"""The comparison framework: system × algorithm × graph × row, each cell in a child process with limits.

    graphs.py ─PreparedGraph→ runner.py ─Job→ watch.py ═process═ child.py ─loads→ ours.py | peers.py
                                 │
                                 └─Record→ results.jsonl ─table.py→ Markdown

Three rows are timed, and each one includes the work of the one before: ``count`` (the graph is loaded in
the system's own structure), ``edges`` (from raw pairs in memory), ``file`` (from a text edge list on disk,
in a fresh process). A crash, a time-out or a wrong count is a result like any other. Importing this
package imports none of the systems.
"""
