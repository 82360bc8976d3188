"""Follows README.md and docs/start/install.md in a minimal Debian. Usage: fresh_test.py SUITE CHECKOUT WORK [--keep]
It makes the folder WORK with a root of SUITE (bookworm, trixie), clones the checkout into it, runs each line of the pages in their order, and
compares what the blocks of the pages print. It removes WORK, unless --keep is given. Uncommitted changes of the checkout are not tested.
The script ends with status 77 if this machine cannot make such a root."""
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "docs"))
import blocks as page_blocks  # noqa: E402
import root as fresh_root  # noqa: E402
import run_page  # noqa: E402

CHECKOUT = "/root/scalide"
#: A line of a page, and the line that this script runs. A minimal root has one user, and no sudo.
SHORTER = [(r"^sudo ", ""), (r"(?<=&& )sudo ", ""), (r"^\./demo$", "./demo --epochs 1"), (r"^\./package$", "./package deb")]
#: Text of programs that find less than they need and go on.
SUSPICIOUS = re.compile(r"^.*(?:command not found|No such file or directory|CMake Warning|Traceback|WARNING: The script).*$", re.M)


class Failure(Exception):
    pass


def installation_lines(page: pathlib.Path) -> list:
    """The lines of the page's blocks of installation commands."""
    found = [block for block in page_blocks.blocks(page.read_text()) if block.language == "sh" and "title" not in block.attributes]
    return [line for block in found for line in block.text.splitlines() if line.strip() and not line.startswith("#")]


def shorter(line: str) -> str:
    for pattern, replacement in SHORTER:
        line = re.sub(pattern, replacement, line)
    return line


class Machine:
    """A root, and the table of what ran in it."""

    def __init__(self, root, table: list):
        self.root, self.table = root, table

    def run(self, lines, cwd=CHECKOUT, more={}):
        """Runs the lines in one shell, and notes what each took."""
        script = "set -e\nTIMEFORMAT='@ %R %U %S'\n" + "".join(f"echo {shlex.quote('$ ' + line)}\ntime {{ {line}\n}}\n" for line in lines)
        status, printed = self.root.run(script, cwd, more)
        parts = re.split(r"^\$ (.*)\n", printed, flags=re.M)
        for line, text in zip(parts[1::2], parts[2::2]):
            took = re.search(r"^@ (\S+) (\S+) (\S+)$", text, re.M)
            self.table.append((line, float(took[1]), float(took[2]) + float(took[3])) if took else (line, None, None))
            found = SUSPICIOUS.search(text)
            if took and found:
                raise Failure(f"`{line}` prints: {found[0]}")
        if status != 0:
            raise Failure(f"`{parts[-2]}` ended with status {status}")
        return printed

    def page(self, page: pathlib.Path, name: str, python="python3", more={}):
        """Runs the blocks of a page: run_page.py does so with a shell and a Python that run in the root."""
        work = self.root.folder / "root" / name
        inside = f"/root/{name}/page"
        (work / "bin").mkdir(parents=True)
        variables = {**fresh_root.variables(), **more}
        enter = shlex.join(["chroot", str(self.root.folder), "/usr/bin/env", "-i", *(f"{key}={text}" for key, text in variables.items())])
        for program, command in (("bash", 'exec bash "$@"'), ("python", f"exec {python} {CHECKOUT}/tests/docs/python_process.py")):
            script = f"#!/bin/sh\nexec {enter} bash -c {shlex.quote(f'cd {inside} && {command}')} bash \"$@\"\n"
            (work / "bin" / program).write_text(script)
            (work / "bin" / program).chmod(0o755)
        ran = run_page.run_page(page, {"PATH": f"{work / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin"}, work)
        for line, message in ran.problems:
            print(f"{page.name}:{line}: {message}")
        if ran.problems:
            raise Failure(f"{page.name}: {len(ran.problems)} blocks do something else")
        print(f"  {page.name}: all blocks print what the page shows", flush=True)


def section(page: pathlib.Path, heading: str) -> str:
    """The text of the page from this heading to the next one of its level."""
    return re.search(rf"^## {re.escape(heading)}\n.*?(?=^## |\Z)", page.read_text(), re.M | re.S)[0]


def follow(suite: str, checkout: pathlib.Path, work: pathlib.Path, table: list):
    print(f"making a minimal root of {suite}", flush=True)
    pristine = fresh_root.Root.make(suite, work / "pristine")
    machine, other = (Machine(pristine.copy(work / name), table) for name in ("first", "second"))
    clone = pathlib.Path(str(machine.root.folder) + CHECKOUT)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", checkout, clone], check=True)
    readme, install = clone / "README.md", clone / "docs/start/install.md"

    machine.run(map(shorter, installation_lines(readme)))
    # After pip, ./demo compiles only what it needs for generators in C++.
    compiled = re.findall(r"Building C\w* object (\S+)", (clone / "build/log/build.log").read_text())
    if not compiled or any("scalide_generator.dir" not in name for name in compiled):
        raise Failure(f"./demo compiles what pip has compiled: {compiled}")
    prefix = {"CMAKE_PREFIX_PATH": f"{CHECKOUT}/build/install", "PATH": f"{CHECKOUT}/scalide-env/bin:{fresh_root.variables()['PATH']}"}
    machine.page(readme, "readme", more=prefix)

    # The tests of the package in the newest JAX, which the README installs if the Python is new enough.
    pip, python = f"{CHECKOUT}/scalide-env/bin/pip", f"{CHECKOUT}/scalide-env/bin/python"
    if machine.root.run(f"{python} -c 'import sys; sys.exit(sys.version_info < (3, 12))'")[0] == 0:
        tests = {**prefix, "SCALIDE_TOOL": f"{CHECKOUT}/scalide-env/bin/scalide", "JAX_PLATFORMS": "cpu"}
        machine.run([f"{pip} install --group check-new-jax", f"{python} -m pytest -q -p no:cacheprovider tests/python/test_jax_*.py"], more=tests)

    # What the README has installed is not installed again: each line of the page that the README does not have, and the script.
    ran = {part for line in installation_lines(readme) for part in line.split(" && ")}
    machine.run([shorter(line) for line in installation_lines(install) if line not in ran and "apt-get" not in line])
    files = {block.attributes["title"]: block.text for block in page_blocks.blocks(install.read_text()) if "title" in block.attributes}
    script = "install-scalide.sh"
    (clone / script).write_text(files[script])
    machine.run([f"sh {script} /opt/scalide"])
    machine.page(install, "install", more={**prefix, "CMAKE_PREFIX_PATH": "/opt/scalide"})

    # The Debian packages in a root that has nothing else than what they need, and then what CMake projects need.
    for file in (clone / "dist").glob("*.deb"):
        shutil.copy(file, other.root.folder / "root")
    (other.root.folder / "root/twice.scl").write_text(files["twice.scl"])
    project = run_page.installation.debian_packages(clone)["project"]
    other.run(["apt-get update", "apt-get install ./scalide*.deb", "scalide build twice.scl --output twice", "apt-get install " + " ".join(project)], "/root")
    quick_start = clone / "cpp-quick-start.md"
    quick_start.write_text(section(readme, "Quick start: C++"))
    other.page(quick_start, "cpp")


def main():
    words = [word for word in sys.argv[1:] if word != "--keep"]
    suite, checkout = words[0], pathlib.Path(words[1]).resolve()
    fresh_root.enter_namespace()
    pathlib.Path(words[2]).mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=words[2]))
    work.chmod(0o755)
    table, failure = [], None
    try:
        follow(suite, checkout, work, table)
    except Failure as error:
        failure = error
    finally:
        if "--keep" not in sys.argv:
            subprocess.run(["umount", "--recursive", "--lazy", *(work / name / part for name in ("pristine", "first", "second") for part in ("dev", "proc"))],
                           stderr=subprocess.DEVNULL)  # fmt: skip
            subprocess.run(["rm", "-rf", "--one-file-system", work])  # whatever is still mounted there, /dev say, stays
    print(f"\n{suite}: wall clock and processor time in minutes")
    for line, wall, processor in table:
        print(f"{'' if wall is None else f'{wall / 60:.1f}':>6} {'' if wall is None else f'{processor / 60:.1f}':>6}  {line}")
    sys.exit(f"{suite}: {failure}" if failure else 0)


if __name__ == "__main__":
    main()
