"""NumPy's allocator, so that tests can watch what arrays take and refuse it.

NumPy calls a handler for the memory of every array, whoever makes it. Ours is NumPy's own, but asks before it gives. A
handler belongs to a context: threads have it that were started in a copy of the context.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

SET_HANDLER, GET_HANDLER = 304, 305  # places in NumPy's table of functions, the same in all versions
CAPSULE = b"mem_handler"


class _Functions(ctypes.Structure):
    _fields_ = (
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class _Handler(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("functions", _Functions))


_Malloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_Calloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_Realloc = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

_address_in = ctypes.pythonapi.PyCapsule_GetPointer
_address_in.restype, _address_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_capsule_of = ctypes.pythonapi.PyCapsule_New
_capsule_of.restype, _capsule_of.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_table = ctypes.cast(_address_in(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
_set_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_table[SET_HANDLER])
_get_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object)(_table[GET_HANDLER])
_usual = _Handler.from_address(_address_in(_get_handler(), CAPSULE)).functions
_usual_malloc, _usual_calloc = _Malloc(_usual.malloc), _Calloc(_usual.calloc)
_usual_realloc = _Realloc(_usual.realloc)

_refuses: list[Callable[[int], bool]] = [lambda _size: False]


def _malloc(context: Any, size: int) -> Any:
    return None if _refuses[-1](size) else _usual_malloc(context, size)


def _calloc(context: Any, count: int, size: int) -> Any:
    return None if _refuses[-1](count * size) else _usual_calloc(context, count, size)


def _realloc(context: Any, memory: Any, size: int) -> Any:
    return None if _refuses[-1](size) else _usual_realloc(context, memory, size)


_callbacks = _Malloc(_malloc), _Calloc(_calloc), _Realloc(_realloc)
# freed by NumPy's own function; kept for good, since arrays refer to the handler that made them
_addresses = [ctypes.cast(function, ctypes.c_void_p) for function in _callbacks]
_watching = _Handler(b"refusing", 1, _Functions(_usual.context, *_addresses, _usual.free))
_capsule = _capsule_of(ctypes.addressof(_watching), CAPSULE, None)


@contextmanager
def watched(refuses: Callable[[int], bool]) -> Iterator[None]:
    """Within the block an array gets no memory when ``refuses(bytes)`` says so."""
    _refuses.append(refuses)
    handler = _set_handler(_capsule)
    try:
        yield
    finally:
        _set_handler(handler)
        _refuses.pop()
