"""``python -m wedgewise``: the command line, from a source tree too."""

from wedgewise.cli import main

try:
    main()
finally:
    exec("")  # Python ends -m by SIGINT where Ctrl-C went through a text before, as of a dataclass, though it was heard
