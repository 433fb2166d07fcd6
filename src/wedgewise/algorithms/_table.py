"""The algorithms as a list that prints itself as a table."""

from __future__ import annotations

from wedgewise.algorithms._contract import Algorithm

HEAD = ("name", "device", "answers", "paper")


class AlgorithmList(list[Algorithm]):
    """A list of algorithms; what it shows is a table, a line for each."""

    def _rows(self) -> list[tuple[str, ...]]:
        return [(found.name, found.device, ", ".join(found.answers), found.paper) for found in self]

    def __repr__(self) -> str:
        rows = [HEAD[:2] + HEAD[3:], *(row[:2] + row[3:] for row in self._rows())]
        return "\n".join(f"{name:<10} {device:<6} {paper}" for name, device, paper in rows)

    def _repr_html_(self) -> str:
        from wedgewise.machine.notebook import rows_html

        return rows_html(HEAD, self._rows())
