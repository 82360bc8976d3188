#!/usr/bin/env python3
"""pack_test.py BUILD DRIVER CUBLASLT: packs some parts, hides the source tree and runs them from an empty folder on the emulated GPU."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def hidden(command):
    """The command in a namespace in which the source tree is empty, where the kernel lets us; else the command."""
    namespace = ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*namespace, "true"], capture_output=True).returncode:
        print("the source tree is not hidden: no namespaces here")
        return command
    return [*namespace, "sh", "-c", f'mount -t tmpfs none "{ROOT}" && [ -z "$(ls "{ROOT}")" ] && exec "$@"', "sh", *command]


def main(build, driver, cublaslt):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        pack, out = scratch / "pack", scratch / "results"
        subprocess.run([HERE / "pack", pack, "--build", build, "--only", "checks,rules,bench", "--level", "0", "--most", "80"], check=True)
        libraries = scratch / "emulated"
        libraries.mkdir()
        for library in (driver, cublaslt):
            shutil.copy(library, libraries)
        empty = scratch / "empty"
        empty.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SCALIDE_")}
        environment |= {"LD_LIBRARY_PATH": str(libraries), "SCALIDE_CUBLASLT": str(libraries / Path(cublaslt).name), "SCALIDE_STANDIN_COMPUTES": "1",
                        "SCALIDE_CARD_SHRINK": "1024"}  # fmt: skip

        def run(*words):
            command = [sys.executable, str(pack / "on_device"), "--work", str(scratch / "work"), "--out", str(out), "--jobs", "2", *words]
            done = subprocess.run(hidden(command), capture_output=True, text=True, cwd=empty, env=environment)
            print(done.stdout, done.stderr)
            return done

        found = run("--filter", "kernels.map.storage*:card_rule.add.f32.cuda", "checks", "rules")
        parts = json.loads((out / "results.json").read_text())["parts"]
        assert found.returncode == 0 and {name: part["status"] for name, part in parts.items()} == {"checks": "ok", "rules": "ok"}, parts
        assert parts["checks"]["passed"] >= 8 and parts["rules"]["passed"] == 1, parts
        late = run("--limit", "3", "checks")  # what had no time is said, and is no success
        assert late.returncode == 1 and "out of time" in late.stdout, late
        nothing = run("--filter", "no.such.test", "rules")
        assert nothing.returncode == 1 and "rules      failed" in nothing.stdout, nothing
        del environment["SCALIDE_STANDIN_COMPUTES"]  # outputs keep their NaN
        wrong = run("--shrink", "1024", "--seconds", "0.01", "--filter", "convert bf16", "bench")
        assert wrong.returncode == 1 and "convert bf16 to e4m3                 WRONG" in wrong.stdout, wrong
        assert "PART must be in the pack (checks, rules, bench), got 'train'" in run("train").stderr


if __name__ == "__main__":
    main(*sys.argv[1:])
