"""OrientedGraph → Blocks: cuts, blocks, tasks, and how even they are."""
