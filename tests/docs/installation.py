"""The installation commands of the pages (```sh blocks). Pages do not run them, so each has a test elsewhere that does."""
import functools
import pathlib
import re
import subprocess

WHOLE_SUITE = "ctest"
#: A command, and the test that runs it.
TESTED = {
    "pip install .": "python.wheel",
    'pip install ".[jax]"': "python.wheel",
    "./demo": "install.digits",
    "./package": "packages.tar",
    "./check": WHOLE_SUITE,
}
#: The commands of .ci/setup.sh for which the apt lines of the pages install packages.
APT_LINE = ["demo", "pip", "project"]
#: Commands that only fetch or enter a folder.
TRIVIAL = [r"git clone \S+( \S+)?", r"cd \S+", r"python3? -m venv \S+", r"(source|\.) \S+/bin/activate", r"sudo apt-get update"]


def is_tested(line: str, root: pathlib.Path) -> bool:
    """True if a test runs each command of this line of a page, or if it is an apt line with exactly the packages that its commands need."""
    return all(_is_tested_command(command.strip(), root) for command in line.split("&&"))


def _is_tested_command(line: str, root: pathlib.Path) -> bool:
    if line in TESTED or any(re.fullmatch(pattern, line) for pattern in TRIVIAL):
        return True
    packages = re.fullmatch(r"sudo apt(?:-get)? install (?:-y )?(.*)", line)
    return bool(packages) and sorted(packages[1].split()) == sorted({name for command in APT_LINE for name in debian_packages(root)[command]})


@functools.lru_cache(maxsize=None)
def debian_packages(root: pathlib.Path) -> dict:
    """The Debian packages that each command needs: the table in .ci/setup.sh."""
    script = '. "$0"; for command in "${!PACKAGES[@]}"; do echo "$command ${PACKAGES[$command]}"; done'
    printed = subprocess.run(["bash", "-c", script, root / ".ci/setup.sh"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {command: packages for command, *packages in map(str.split, printed.splitlines())}
