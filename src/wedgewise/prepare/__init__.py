"""EdgeList → SimpleGraph → OrientedGraph → Blocks: clean, orient, relabel, sort, cut.

Compiled versions stand beside the array operations that define them.
"""
