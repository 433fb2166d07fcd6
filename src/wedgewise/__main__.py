"""``python -m wedgewise``: the command line, from a source tree too."""

from wedgewise.cli import main

main()
