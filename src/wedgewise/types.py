"""The types of what functions and attributes return, for annotations; `Graph`, `Result` and `Plan` are in the package.

Examples
--------
>>> import wedgewise as ww
>>> isinstance(ww.Graph([("ada", "bob")]).labels, ww.types.TextLabels)
True
"""

from wedgewise.algorithms._contract import Algorithm, Knob
from wedgewise.answer_types import GeneralizedDegree
from wedgewise.stages import CleanReport, DeviceGraph, EdgeList, OrientedGraph
from wedgewise.stages.labels import TextLabels

__all__ = [
    "Algorithm",
    "CleanReport",
    "DeviceGraph",
    "EdgeList",
    "GeneralizedDegree",
    "Knob",
    "OrientedGraph",
    "TextLabels",
]
