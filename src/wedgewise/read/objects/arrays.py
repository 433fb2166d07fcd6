"""Arrays of NumPy and on a CUDA device, and plain iterables of pairs → EdgeList."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wedgewise.errors import InputError
from wedgewise.machine.gpu import Array, Device, find_device
from wedgewise.prepare.radix import changed
from wedgewise.read.objects.foreign import foreign, refuse_masked, weights_of_pairs
from wedgewise.read.pieces import KEPT_DTYPES, first_outside, kept_type
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.labels import TextLabels
from wedgewise.stages.limits import MAX_LABEL

CUDA_DEVICES = (2, 13)  # DLPack's numbers for CUDA's own memory and for what CUDA manages
ON_DEVICE = "<device array>"
DTYPE_REMEDIES = {
    "b": "if this is an adjacency matrix, pass numpy.argwhere(matrix)",
    "f": "vertices are integers: convert with .astype(numpy.int64) after checking that nothing is lost",
    "O": "pass an integer array, or a list of pairs of strings",
    "U": "for text labels pass array.tolist()",
}


def edges_from_array(array: NDArray[Any], weights: Any = None, *, labels_checked_later: bool = False) -> EdgeList:
    """Check an array of pairs and wrap it: no copy where its type and layout can stay."""
    refuse_masked(array, "<array>")
    check_pairs(array.dtype, array.shape, "<array>")
    pairs = kept_type(array)
    if not labels_checked_later:
        check_labels(pairs, "<array>")
    return EdgeList(pairs, Origin("<array>", "array"), weights=weights_of_pairs(weights, len(pairs), "<array>"))


def check_pairs(dtype: np.dtype[Any], shape: tuple[int, ...], name: str) -> None:
    """Refuse an array that holds no integers, or whose rows are no pairs."""
    if dtype.kind not in "iu":
        remedy = DTYPE_REMEDIES.get(dtype.kind, "pass an integer array")
        raise InputError(f"{name}: dtype {dtype} where integers are needed; {remedy}")
    if len(shape) != 2 or shape[1] != 2:
        raise InputError(f"{name}: shape {shape} where (k, 2) is needed; {_shape_remedy(shape)}")


def edges_from_pairs(source: Iterable[Any], weights: Any = None) -> EdgeList:
    """Make an iterable of pairs an array: integers stay, strings are numbered by first appearance.

    Pairs that are all sets have no directions.
    """
    with foreign("<pairs>", "pass pairs such as (0, 1)"):
        rows = list(source)
        refuse_masked(rows, "<pairs>")
        for number, row in enumerate(rows):
            if isinstance(row, Mapping):
                raise InputError(
                    f"<pairs>: row {number} is a {type(row).__name__}, whose keys are no labels; "
                    "pass a table, such as pandas.DataFrame(rows)"
                )
            if not _is_pair(row):
                raise InputError(f"<pairs>: row {number} is {row!r}, not a pair; pass pairs such as (0, 1)")
        flat = list(chain.from_iterable(rows))
    if len(flat) != 2 * len(rows):
        raise InputError("<pairs>: rows hold more or less than the two values that they say; pass pairs such as (0, 1)")
    kinds = set(map(type, flat))
    origin = Origin("<pairs>", "pairs")
    undirected = bool(rows) and all(isinstance(row, Set) for row in rows)
    kept = weights_of_pairs(weights, len(rows), origin.name)
    if kinds and all(issubclass(kind, str) for kind in kinds):
        number_of: dict[str, int] = {}
        codes = [number_of.setdefault(str(text), len(number_of)) for text in flat]
        pairs = np.array(codes, np.int64).reshape(-1, 2)
        names = TextLabels.of(number_of)
        return EdgeList(pairs, origin, vertices=len(names), names=names, weights=kept, undirected=undirected)
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return EdgeList(_integer_pairs(flat), origin, weights=kept, undirected=undirected)
    refuse_masked(flat, "<pairs>")
    raise _mixed(flat)


def _is_pair(row: Any) -> bool:
    """Whether a row has a length, which is two; one number in an array of NumPy has none."""
    is_one = isinstance(row, str | bytes) or not hasattr(row, "__len__") or getattr(row, "ndim", 1) == 0
    return not is_one and len(row) == 2


def _integer_pairs(flat: list[int]) -> NDArray[np.int64]:
    with foreign("<pairs>", "pass plain integers"):
        try:
            pairs = np.array(flat, np.int64).reshape(-1, 2)
        except OverflowError:
            at = next(at for at, value in enumerate(flat) if not -(2**63) <= value < 2**63)
            raise no_label("<pairs>", at, int(flat[at])) from None
    check_labels(pairs, "<pairs>")
    return pairs


def check_labels(pairs: NDArray[Any], name: str) -> None:
    """Refuse the first number that can be no label."""
    outside = first_outside(pairs)
    if outside is not None:
        raise no_label(name, *outside)


def no_label(name: str, position: int, value: int) -> InputError:
    """What is wrong with a number that can be no label, at its position in flat order."""
    if 0 <= value <= MAX_LABEL:
        return changed(name)
    rule = "vertices are non-negative integers" if value < 0 else "labels go up to 2^63 − 1"
    return InputError(f"{name}: row {position // 2} holds {value}; {rule}: renumber them")


def _shape_remedy(shape: tuple[int, ...]) -> str:
    if len(shape) == 2 and shape[0] == 2:
        return "two rows look like sources and targets: pass the transpose, array.T, or call interop.from_edge_index"
    if len(shape) == 2 and shape[0] == shape[1]:
        return "if this is an adjacency matrix, pass numpy.argwhere(matrix)"
    return "pass one row per edge: source, target"


def _mixed(flat: list[Any]) -> InputError:
    """Name the first value that keeps the list from being all integers or all strings."""
    wanted: tuple[type, ...] = (str,) if isinstance(flat[0], str) else (int, np.integer)
    at = next(at for at, value in enumerate(flat) if isinstance(value, bool) or not isinstance(value, wanted))
    return InputError(
        f"<pairs>: row {at // 2} holds {flat[at]!r} of type {type(flat[at]).__name__}; "
        "pass pairs that are all integers or all strings"
    )


def lies_on_cuda(source: Any) -> bool:
    """Whether an object says that it is an array on a CUDA device; those on other devices say so by DLPack."""
    if hasattr(source, "__dlpack_device__"):
        with foreign(ON_DEVICE, "pass a NumPy or CuPy array"):
            return int(source.__dlpack_device__()[0]) in CUDA_DEVICES
    return hasattr(source, "__cuda_array_interface__")


def device_view(source: Any, device: Device) -> Array:
    """The same memory as an array of ``device.xp``, for a source that lies on a CUDA device.

    DLPack is asked first, because its exporter waits for work that it has not finished; ``__cuda_array_interface__``
    promises that only in its third version.
    """
    view = device.xp.from_dlpack if hasattr(source, "__dlpack__") else device.xp.asarray
    try:
        array = view(source)
    except (AttributeError, BufferError, LookupError, TypeError, ValueError) as error:  # others are the device's own
        raise InputError(f"{ON_DEVICE}: {error}; pass a CuPy array") from error
    number = int(array.__dlpack_device__()[1])
    if number != 0:
        raise InputError(f"{ON_DEVICE}: lies on CUDA device {number} where device 0 is used; copy it to that one")
    return array


def device_pairs(source: Any, device: Device) -> Array:
    """View an array of pairs on a CUDA device as a C-contiguous (k, 2) array of ``device.xp``.

    The memory is the same where type and layout can stay; other layouts and integer types are copied once, on the
    device.
    """
    array = device_view(source, device)
    check_pairs(array.dtype, array.shape, ON_DEVICE)
    if array.dtype not in KEPT_DTYPES:
        array = array.astype(np.int32)
    pairs = device.xp.ascontiguousarray(array)
    if pairs.dtype != np.uint32 and pairs.size:
        largest = MAX_LABEL if pairs.itemsize == 8 else 2**31 - 1
        unsigned = pairs.reshape(-1).view(f"u{pairs.itemsize}")  # in which negative numbers are the largest
        if int(unsigned.max()) > largest:
            at = int(device.xp.flatnonzero(unsigned > unsigned.dtype.type(largest))[0])
            raise no_label(ON_DEVICE, at, int(pairs.reshape(-1)[at]))
    return pairs


def edges_from_device(source: Any, weights: Any = None) -> EdgeList:
    """Wrap pairs that lie on a CUDA device and stay there; weights lie in the host's memory."""
    device = find_device()
    with device.memory():
        pairs = device_pairs(source, device)
    return EdgeList(pairs, Origin(ON_DEVICE, "array"), weights=weights_of_pairs(weights, len(pairs), ON_DEVICE))
