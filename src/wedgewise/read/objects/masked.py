"""NumPy's masked arrays are refused: NumPy reads what is masked like everything else, and the mask is lost unheard."""

from __future__ import annotations

import sys
from typing import Any

from wedgewise.errors import InputError


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array, and a list that holds one or a masked value; `numpy.ma` is not imported for that."""
    kind: Any = getattr(sys.modules.get("numpy.ma"), "MaskedArray", ())
    if isinstance(values, kind) or (isinstance(values, list | tuple) and any(isinstance(one, kind) for one in values)):
        raise InputError(
            f"{name}: a masked array, whose mask would be lost; leave out what is masked, by .compressed() or "
            "numpy.ma.compress_rows, or give it a value, by .filled(value)"
        )
