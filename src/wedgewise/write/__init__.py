"""Edges and answers → files, in every format that is read."""
