"""All seeded bugs: those of every place where this field goes wrong, and those that the comparison has to mark."""

from __future__ import annotations

from mutants.compared import COMPARED
from mutants.in_stores import IN_STORES
from mutants.mutant import Mutant
from mutants.on_cpu import ON_CPU
from mutants.on_gpu import ON_GPU

MUTANTS: tuple[Mutant, ...] = (*COMPARED, *ON_CPU, *IN_STORES, *ON_GPU)
