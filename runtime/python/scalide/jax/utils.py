"""jax_scalify.utils: the text that XLA prints for a jitted function, line by line. A generated library is one custom call in it. `scalide inspect`
lists the kernels of the library."""
from __future__ import annotations

import dataclasses
import json
import re
import textwrap

from jax.stages import Compiled, Lowered

_LINE = re.compile(r"(?P<space> *)(?P<cmd>.*?)(?:, (?P<metadata>metadata=\{[^}]*\}))?(?:, backend_config=(?P<config>\{.*\}))?\s*\Z")


@dataclasses.dataclass
class HloOperationInfo:
    """One line: the operation, its indentation, its metadata and its backend configuration."""

    cmd: str
    indent: int = 0
    metadata: str | None = None
    backend_config: dict | None = None

    def as_text(self, metadata: bool = False, backend_cfg: bool = False, indent: int = 2) -> str:
        """Returns the line as text. `indent` is the number of spaces for each level."""
        text = self.cmd + (f", {self.metadata}" if metadata and self.metadata else "")
        if backend_cfg and self.backend_config:
            text += "\n" + textwrap.indent("backend_cfg: " + json.dumps(self.backend_config, indent=indent), " " * indent)
        return textwrap.indent(text, " " * (indent * self.indent))


def parse_hlo_module(module: Lowered | Compiled) -> list[HloOperationInfo]:
    """Returns the lines of `jax.jit(fn).lower(*args)`, compiled or not. Raises TypeError for another object."""
    if not isinstance(module, (Lowered, Compiled)):
        raise TypeError(f"parse_hlo_module: module must be a result of jax.jit(fn).lower(*args), got {type(module).__name__}.")
    compiled = module.compile() if isinstance(module, Lowered) else module
    found = [_LINE.match(line) for line in compiled.as_text().splitlines()]
    return [HloOperationInfo(line["cmd"], len(line["space"]) // 2, line["metadata"], line["config"] and json.loads(line["config"])) for line in found]


def print_hlo_module(module: Lowered | Compiled, metadata: bool = False, backend_cfg: bool = False, indent: int = 2) -> None:
    """Prints the lines of `parse_hlo_module`."""
    for line in parse_hlo_module(module):
        print(line.as_text(metadata, backend_cfg, indent))
