"""What `Graph` is made of: the pairs of a file or an object, those that lie or are asked for on a GPU cleaned there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wedgewise.errors import DeviceMemoryError, InputError, MemoryLimitError, UnknownNameError
from wedgewise.machine import gpu
from wedgewise.prepare.clean import clean, clean_bytes
from wedgewise.read import ReadOptions, check_names, edges_of_file
from wedgewise.read.objects.arrays import check_labels, edges_from_array
from wedgewise.stages import CleanReport, EdgeList, Origin, SimpleGraph
from wedgewise.stages.limits import available_bytes_for

if TYPE_CHECKING:
    from wedgewise.machine.ring import Arriving
    from wedgewise.prepare.attributes import EdgeAttributes
    from wedgewise.prepare.device_forms import DeviceForms

CLEANING_DEVICES = ("auto", "cpu", "cuda")


class CleanedData(NamedTuple):
    """What a `Graph` begins with: a simple graph on the host, or what a GPU made of the pairs.

    Attributes
    ----------
    origin, n, m, report : where it is from, its size, and what cleaning dropped
    simple, forms : one of them is None
    attributes : directions and weights, where they are kept
    note : why it was cleaned on the host where that was to be on the GPU
    """

    origin: Origin
    n: int
    m: int
    report: CleanReport
    simple: SimpleGraph | None = None
    forms: DeviceForms | None = None
    attributes: EdgeAttributes | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GraphData:
    """A source, and how its pairs are read; the fields are parameters of `Graph`."""

    source: Any
    n: int | None
    weights: Any
    format: str | None
    options: ReadOptions

    @property
    def is_file(self) -> bool:
        """Whether the source is a path or a stream, whose pairs nobody else holds once they are read."""
        return isinstance(self.source, (str, PathLike)) or hasattr(self.source, "read")

    def cleaned(self, device: str, *, drop_leaves: bool, directed: bool, combine: str, is_counted: bool) -> CleanedData:
        """The simple graph of the pairs, made on the GPU where that is asked for or the pairs lie there."""
        from wedgewise.prepare.attributes import check_combine, edge_attributes

        check_combine(combine)
        if device not in CLEANING_DEVICES:
            raise UnknownNameError(f"no device named {device!r}; there are: {', '.join(CLEANING_DEVICES)}")
        keeps_weights = self.weights is not None or self.options.columns.weight is not None
        forms = note = None
        if device == "cpu" or drop_leaves or directed or keeps_weights:
            edge_list = self.pairs()
        else:
            forms, edge_list, note = self._cleaned_on_device(is_requested=device == "cuda", is_counted=is_counted)
        if combine != "last" and edge_list.weights is None:
            raise InputError(
                f"{edge_list.origin.name}: combine={combine!r} where no weights are kept; pass weights too: weights=…, "
                "or weight=… (--weight) for a column"
            )
        if forms is not None:
            there = forms.cleaned
            assert there is not None
            return CleanedData(edge_list.origin, there.n, there.m, there.report, forms=forms)
        edge_list = self._on_host(edge_list)
        threads, limits = self.options.threads, self.options.limits
        keeps_more = directed or edge_list.weights is not None
        consume = self.is_file and not keeps_more
        simple = clean(edge_list, threads, drop_leaves=drop_leaves, limits=limits, consume=consume)
        attributes = (
            edge_attributes(edge_list, simple, directed=directed, threads=threads, combine=combine)
            if keeps_more
            else None
        )
        return CleanedData(
            edge_list.origin, simple.n, simple.m, simple.report, simple, attributes=attributes, note=note
        )

    def pairs(self, receiver: Arriving | None = None, *, labels_checked_later: bool = False) -> EdgeList:
        """The pairs as they came; those of a file also go to a receiver, while later ones are parsed.

        With `labels_checked_later`, the labels of an array are not looked at.
        """
        if labels_checked_later and isinstance(self.source, np.ndarray):
            edge_list = edges_from_array(self.source, labels_checked_later=True)
        else:
            edge_list = self._read(receiver)
        if self.n is None:
            return edge_list
        if edge_list.vertices is not None:
            raise InputError(f"{edge_list.origin.name} names its own {edge_list.vertices} vertices; leave n out")
        if self.n < 0:
            raise InputError(f"n is at least 0, not {self.n}")
        self.options.limits.check("vertices", self.n, path=edge_list.origin.name)
        return replace(edge_list, vertices=self.n)

    def _read(self, receiver: Arriving | None) -> EdgeList:
        options, is_file = self.options, self.is_file
        if is_file and self.weights is not None:
            raise InputError(
                f"{self.source}: weights={self.weights!r} of a file; name the column that holds them: weight=…"
            )
        check_names(self.format, options.labels)
        if is_file:
            return edges_of_file(self.source, self.format, replace(options, receiver=receiver))
        if isinstance(self.source, EdgeList):
            return self.source
        from wedgewise.read.objects import edges_from, is_table

        said = options if options.in_table is None or not is_table(self.source) else options.in_table
        return edges_from(self.source, self.weights, said.columns, said.labels)

    def _cleaned_on_device(
        self, *, is_requested: bool, is_counted: bool
    ) -> tuple[DeviceForms | None, EdgeList, str | None]:
        """Clean on the GPU where that is requested or the pairs lie there; of what does not fit, the pairs, and why.

        Pairs that are to be counted are ranked instead, unless there are none or very many.
        """
        from wedgewise.prepare.device_forms import DeviceForms
        from wedgewise.prepare.ranked_arcs import MAX_PAIRS

        if not is_requested:
            edge_list = self.pairs()
            if not edge_list.lies_on_device:
                return None, edge_list, None
        forms = DeviceForms(gpu.find_device(), None)
        pairs = None
        if is_requested and self.is_file:
            edge_list, pairs = self._read_to_device(forms)
        elif is_requested:
            edge_list = self.pairs(labels_checked_later=True)
        if edge_list.lies_on_device:
            pairs = edge_list.pairs
        try:
            if is_counted and 0 < edge_list.pairs.shape[0] < MAX_PAIRS:
                forms.rank(edge_list, pairs, self.options.limits, consume=not edge_list.lies_on_device)
            else:
                forms.clean(edge_list, pairs, self.options.limits)
        except (DeviceMemoryError, InputError) as error:
            if isinstance(self.source, np.ndarray):
                check_labels(edge_list.pairs, edge_list.origin.name)  # says better what is wrong, if they are
            if isinstance(error, InputError):
                raise
            return None, edge_list, f"cleaned on the CPU, because the GPU has too little memory: {error.reason}"
        return forms, edge_list, None

    def _read_to_device(self, forms: DeviceForms) -> tuple[EdgeList, Any]:
        """Read a file while its pairs are copied; without memory for them, read it again if it is there twice."""
        try:
            with forms.device.memory(), forms.device.arriving() as arriving:
                edge_list = self.pairs(arriving)
                with forms.stage("copy"):
                    return edge_list, arriving.finish()
        except DeviceMemoryError:
            if hasattr(self.source, "read") or self.source == "-":
                raise
            return self.pairs(), None

    def _on_host(self, edge_list: EdgeList) -> EdgeList:
        """Its pairs in the host's memory, refused where cleaning them cannot fit, before the first buffer is taken."""
        if edge_list.lies_on_device:
            edge_list = replace(edge_list, pairs=gpu.find_device().download(edge_list.pairs))
        pairs, vertices, limits = len(edge_list.pairs), edge_list.vertices, self.options.limits
        need = clean_bytes(pairs, pairs if vertices is None else vertices, self.options.threads)
        if need > (left := available_bytes_for(need, limits)):
            declared = "" if vertices is None else f" among {vertices:,} vertices"
            allowed = "available" if limits.memory_bytes is None else "left of the limit"
            raise MemoryLimitError(
                f"{edge_list.origin.name}: cleaning {pairs:,} pairs{declared} takes {need:,} bytes and {left:,} are "
                f"{allowed}",
                "use a machine with more memory",
            )
        return edge_list
