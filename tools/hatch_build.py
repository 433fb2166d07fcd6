"""What a wheel holds beyond its sources: machine code, where the environment names a folder with some (``make wheel``).

Such a wheel is for Linux on x86-64, and asks for Numba on other systems alone: what it says of itself is right
everywhere, whoever reads it. Any other wheel compiles its kernels where it is installed, and asks for Numba always.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FOLDER = "WEDGEWISE_KERNELS"
TAG = "py3-none-manylinux_2_17_x86_64"  # the libraries need memcpy and its like, and nothing newer


class Dependencies(MetadataHookInterface):
    """Numba is needed where no machine code is shipped."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        where = "; sys_platform != 'linux' or platform_machine != 'x86_64'" if FOLDER in os.environ else ""
        compiling = [f"{package}{where}" for package in self.config["where-kernels-are-compiled"]]
        metadata["dependencies"] = [*self.config["always"], *compiling]


class ShippedKernels(BuildHookInterface[Any]):
    """The libraries, with what is in them, beside the module that opens them."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or FOLDER not in os.environ:
            return
        kernels = sorted(Path(os.environ[FOLDER]).glob("kernels-*"))
        if not kernels:
            raise FileNotFoundError(f"{os.environ[FOLDER]} has no kernels: make them with tools/kernels.py")
        build_data["tag"], build_data["pure_python"] = TAG, False
        build_data["force_include"] |= {str(path): f"wedgewise/machine/{path.name}" for path in kernels}
