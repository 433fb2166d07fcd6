"""Plan → Partials: where and how tasks run."""
