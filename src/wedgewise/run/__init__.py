"""Plan → Execution: where and how tasks run."""
