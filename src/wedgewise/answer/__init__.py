"""A question about a source → its `Result`."""
