"""What the benchmark measured, as a page, charts and tables."""
