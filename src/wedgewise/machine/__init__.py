"""What hardware is there, and the compilers for it."""
