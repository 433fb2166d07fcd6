"""A graph in blocks on disk: how it is built, what it says of itself, and how it is opened."""
