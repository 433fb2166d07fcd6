"""Result → text for people, JSON for programs, pages for the documentation."""
