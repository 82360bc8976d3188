"""Helpers for tests of the built `scalide`: scratch folders, safetensors files byte by byte, runs of a command. Standard library only."""
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
from pathlib import Path


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors):
    """The bytes of a file; `tensors` maps a name to (dtype, shape, bytes)."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(path):
    """name -> (dtype, shape, bytes)."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]
    return {
        name: (entry["dtype"], entry["shape"], data[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }


def unpack_floats(content):
    return struct.unpack(f"<{len(content) // 4}f", content)


class Scratch:
    """A folder of its own that goes at the end, with a cache of compiled kernels in it. Commands run there."""

    def __init__(self, tool):
        self.tool = str(Path(tool).resolve())

    def __enter__(self):
        self.path = Path(tempfile.mkdtemp(prefix="scalide-test-"))
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.path / "cache"), "TMPDIR": str(self.path)}
        self.environment.pop("SCALIDE_HOME", None)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name, content):
        (self.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def files(self):
        return {str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file()}

    def run(self, *arguments, largest_file=None, stdout=subprocess.PIPE):
        """Runs the tool; `largest_file` in bytes stands in for a full disk."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

        return subprocess.run([self.tool, *arguments], cwd=self.path, env=self.environment, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=300, preexec_fn=None if largest_file is None else limit)

    def succeed(self, *arguments):
        """Runs the tool and returns what it prints; an AssertionError when it fails."""
        result = self.run(*arguments)
        assert result.returncode == 0, f"scalide {' '.join(arguments)}: status {result.returncode}\n{result.stderr}"
        return result.stdout
