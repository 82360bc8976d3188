"""The installation commands of the pages (```sh blocks). Pages do not run them, so each has a test elsewhere that does."""
import pathlib
import re

WHOLE_SUITE = "ctest"
#: A command, and the test that runs it.
TESTED = {
    "pip install .": "python.wheel",
    'pip install ".[jax]"': "python.wheel",
    "./demo": "install.digits",
    "./package": "packages.tar",
    "./check": WHOLE_SUITE,
}
#: Packages of Debian for `pip install .` in a virtual environment; the tests have an environment of their own.
PYTHON_PACKAGES = ["python3-dev", "python3-venv"]
#: Commands that only fetch or enter a folder.
TRIVIAL = [r"git clone \S+( \S+)?", r"cd \S+", r"python3? -m venv \S+", r"(source|\.) \S+/bin/activate", r"sudo apt-get update"]


def is_tested(line: str, root: pathlib.Path) -> bool:
    """True if a test runs each command of this line of a page, or if it is an apt line with exactly the packages of .ci/setup.sh
    (and those that only the Python package needs)."""
    return all(_is_tested_command(command.strip(), root) for command in line.split("&&"))


def _is_tested_command(line: str, root: pathlib.Path) -> bool:
    if line in TESTED or any(re.fullmatch(pattern, line) for pattern in TRIVIAL):
        return True
    packages = re.fullmatch(r"sudo apt(?:-get)? install (?:-y )?(.*)", line)
    return bool(packages) and sorted(set(packages[1].split()) - set(PYTHON_PACKAGES)) == sorted(debian_packages(root))


def debian_packages(root: pathlib.Path) -> list:
    """The Debian packages that a build needs, as .ci/setup.sh installs them."""
    return re.search(r"local wanted=\((.*?) \"\$@\"\)", (root / ".ci/setup.sh").read_text())[1].split()
