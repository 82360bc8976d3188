"""Runs tests of kernels for a CPU with AMX tiles. Usage: tiles_test.py EMULATOR PROGRAM ARGUMENT...

EMULATOR: libemulated_tiles.so, which executes the instructions that this CPU lacks. It must have executed products of bf16 and of bytes.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

NEEDED = {"avx512f", "avx512bw", "avx512_bf16", "avx512_vnni"}  # of which the emulator executes nothing

emulator, *command = sys.argv[1:]
flags = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())
if missing := NEEDED - flags:
    print("this CPU lacks", ", ".join(sorted(missing)))
    sys.exit(77)
environment = os.environ | {"LD_PRELOAD": emulator, "EMULATED_TILES_COUNTS": "1", "SCALIDE_TEST_TILES": "1"}
run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
print(run.stdout)
if run.returncode == 0 and "amx_tile" not in flags:
    assert re.search(r"emulated tiles:.* tdpbf16ps", run.stdout), "no tile was used"
sys.exit(run.returncode)
