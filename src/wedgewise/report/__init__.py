"""Result → text, JSON."""
