"""Arrays that lie on a CUDA device → pairs of the device's own array module, in the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from wedgewise.errors import InputError
from wedgewise.machine.gpu import Array, Device, find_device
from wedgewise.read.checks import KEPT_DTYPES
from wedgewise.read.objects.arrays import check_pairs, no_label
from wedgewise.read.objects.foreign import foreign, weights_of_pairs
from wedgewise.stages import EdgeList, Origin
from wedgewise.stages.limits import MAX_LABEL

CUDA_DEVICES = (2, 13)  # DLPack's numbers for CUDA's own memory and for what CUDA manages
NAME = "<device array>"


def lies_on_cuda(source: Any) -> bool:
    """Whether an object says that it is an array on a CUDA device; those on other devices say so by DLPack."""
    if hasattr(source, "__dlpack_device__"):
        with foreign(NAME, "pass a NumPy or CuPy array"):
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
        raise InputError(f"{NAME}: {error}; pass a CuPy array") from error
    number = int(array.__dlpack_device__()[1])
    if number != 0:
        raise InputError(f"{NAME}: lies on CUDA device {number} where device 0 is used; copy it to that one")
    return array


def device_pairs(source: Any, device: Device) -> Array:
    """View an array of pairs on a CUDA device as a C-contiguous (k, 2) array of ``device.xp``.

    The memory is the same where type and layout can stay; other layouts and integer types are copied once, on the
    device.
    """
    array = device_view(source, device)
    check_pairs(array.dtype, array.shape, NAME)
    if array.dtype not in KEPT_DTYPES:
        array = array.astype(np.int32)
    pairs = device.xp.ascontiguousarray(array)
    _check_labels(pairs, device.xp)
    return pairs


def edges_from_device(source: Any, weights: Any = None) -> EdgeList:
    """Wrap pairs that lie on a CUDA device and stay there; weights lie in the host's memory."""
    device = find_device()
    with device.memory():
        pairs = device_pairs(source, device)
    return EdgeList(pairs, Origin(NAME, "array"), weights=weights_of_pairs(weights, len(pairs), NAME))


def _check_labels(pairs: Array, xp: Any) -> None:
    """Refuse negative numbers and those above 2^63 − 1: seen as unsigned ones, both are above the signed maximum."""
    if pairs.dtype == np.uint32 or pairs.size == 0:
        return
    largest = MAX_LABEL if pairs.itemsize == 8 else 2**31 - 1
    unsigned = pairs.reshape(-1).view(f"u{pairs.itemsize}")
    if int(unsigned.max()) > largest:
        at = int(xp.flatnonzero(unsigned > unsigned.dtype.type(largest))[0])
        raise no_label(NAME, at, int(pairs.reshape(-1)[at]))
