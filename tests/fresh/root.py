"""A minimal Debian in a folder, and commands that run in it. It gets the mirror, the certificates and the settings of pip from this machine."""
import glob
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # an exit status
CERTIFICATES = "/etc/certificates-of-the-host.crt"
#: Variables that name a file of certificates, in the order in which this script looks for one.
CERTIFICATE_VARIABLES = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
INSIDE = "SCALIDE_FRESH_INSIDE"  # set in a process that may mount and change its root


def skip(reason: str):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def enter_namespace():
    """Runs this script again in a namespace of its own, in which it is root. Mounts and processes end with it."""
    if os.environ.get(INSIDE):
        return
    for program, package in (("mmdebstrap", "mmdebstrap"), ("unshare", "util-linux")):
        shutil.which(program) or skip(f"there is no {program} (Debian: {package})")
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    if os.getuid() != 0:
        command += ["--user", "--map-root-user", "--map-auto"]
    tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        skip(f"this user is not root and cannot make a user namespace: {tried.stderr.strip()}")
    sys.stdout.flush()
    os.execvpe(command[0], [*command, sys.executable, *sys.argv], {**os.environ, INSIDE: "yes"})  # a killed test leaves no process


def apt_lines(suite: str) -> list:
    """The sources of a suite of Debian, on the mirrors of this machine."""
    found = []  # (URI, suite)
    for file in ("/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*.list"))):
        if os.path.exists(file):
            found += re.findall(r"^deb +(?:\[.*?\] +)?(\S+) +(\S+)", pathlib.Path(file).read_text(), re.M)
    for file in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        for part in re.split(r"\n\s*\n", pathlib.Path(file).read_text()):
            fields = dict(re.findall(r"^([\w-]+): *(.*)", part, re.M))
            found += [(uri, name) for uri in fields.get("URIs", "").split() for name in fields.get("Suites", "").split()]
    names = "bookworm|trixie|forky|sid|oldstable|stable|testing|unstable"
    mirror = next((uri for uri, name in found if re.fullmatch(names, name)), None) or skip("the apt sources of this machine name no mirror of Debian")
    security = next((uri for uri, name in found if re.fullmatch(f"({names})-security", name)), None)
    lines = [f"deb {mirror} {suite} main", f"deb {mirror} {suite}-updates main"]
    return lines + ([f"deb {security} {suite}-security main"] if security else [])


def apt_options() -> list:
    """How apt reaches its mirrors (proxies, say), and settings without which lines of the pages would ask or install more than they name."""
    dump = subprocess.run(["apt-config", "dump"], stdout=subprocess.PIPE, text=True, check=True).stdout
    network = re.findall(r'^(Acquire::(?:https?|ftp|Retries|Check-Valid-Until|Check-Date)\S* "[^"]+";)$', dump, re.M)
    return [*network, 'APT::Install-Recommends "false";', 'APT::Get::Assume-Yes "true";', 'Dpkg::Use-Pty "false";']


def variables() -> dict:
    """The environment in the root. Of this machine it has the proxies and the settings of pip that do not name files."""
    given = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    printed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True).stdout
    for name, text in re.findall(r"^(?:global|install|download|:env:)\.([\w.-]+)='(.*)'$", printed, re.M):
        if name != "cert" and not text.startswith("/"):
            given["PIP_" + name.strip(".").upper().replace("-", "_")] = text
    given |= {name: os.environ[name] for name in PROXIES if name in os.environ}
    if certificates():
        given |= {name: CERTIFICATES for name in CERTIFICATE_VARIABLES}
    return given


def certificates():
    return next((os.environ[name] for name in CERTIFICATE_VARIABLES if os.path.isfile(os.environ.get(name, ""))), None)


class Root:
    """A folder with a system."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        for name, options in (("proc", ["-t", "proc", "proc"]), ("dev", ["--rbind", "/dev"])):
            if not os.path.ismount(folder / name):
                subprocess.run(["mount", *options, folder / name], check=True)

    @classmethod
    def make(cls, suite: str, folder: pathlib.Path):
        """The essential packages of Debian and apt, with the lists of packages that apt has not fetched yet."""
        command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", *(f"--aptopt={line}" for line in apt_options()), suite, folder, "-"]
        made = subprocess.run(command, input="\n".join(apt_lines(suite)) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode != 0:
            sys.exit(f"cannot make a root of Debian ({suite}):\n{made.stdout}")
        if certificates():
            shutil.copyfile(certificates(), str(folder) + CERTIFICATES)
        return cls(folder)

    def copy(self, folder: pathlib.Path):
        subprocess.run(["cp", "-a", "--one-file-system", self.folder, folder], check=True)
        return Root(folder)

    def run(self, script: str, cwd="/root", more={}, seconds=7200):
        """Runs a bash script. Returns its exit status and what it printed, which this function prints too."""
        command = ["chroot", self.folder, "/usr/bin/env", "-i", *(f"{name}={text}" for name, text in {**variables(), **more}.items()),
                   "bash", "-c", f'cd "{cwd}" && {{\n{script}\n}}']  # fmt: skip
        printed = []
        with subprocess.Popen(["timeout", str(seconds), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace") as process:  # fmt: skip
            for line in process.stdout:
                print("  " + line, end="", flush=True)
                printed.append(line)
        return process.returncode, "".join(printed)
