"""What users see of wedgewise, and nothing behind it: the gate of a redesign.

Tests here import `wedgewise`, the submodules that the reference documents, and no other part of it; `test_imports.py`
holds that. `recorded/` has tables of names, signatures, options, JSON objects and text, and two stores. A test here
changes only together with a line in the changelog.

    PYTHONPATH=src:tests python -m surface        # renews the tables; `git diff` then shows what users would notice
"""
