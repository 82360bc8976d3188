"""Builds that meet a fault. Usage: faults_test.py SCALIDE INJECTOR TEST NUMBER; see TESTS.

A folder holds an older library of another program. Each build of a newer one over it either succeeds and all files are new, or says why
and all files are the old ones; nothing else is left in the folder or in the cache, and the next build succeeds.
"""
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from tool import Scratch  # noqa: E402

PROGRAM = "program small(x: f32[b]) -> (y: f32[b]) {\n  y = %s(x, x)\n}\n"
OLD, NEW = (("build", f"{age}.scl", "-o", "out", "--jobs", "1") for age in ("old", "new"))
# Where these fail nothing can remove what was begun: the next build does.
REMOVALS = ("unlink", "unlinkat", "remove", "openat", "opendir")


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def members(archive):
    """The names in an archive: of the plan, and of kernels, which are named by what they are made from."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(archive)
        file.flush()
        return subprocess.run(["ar", "t", file.name], capture_output=True, check=True).stdout


def is_same(files, others):
    """Bytes of a kernel may differ by the names that Halide gives, where a fault let the same process lower it twice."""
    def comparable(files):
        return {name: members(bytes_) if name.endswith(".a") else bytes_ for name, bytes_ in files.items()}

    return files == others or comparable(files) == comparable(others)


class Builds:
    """Two libraries, and builds of the new one in a folder that has the old one, with a cache that has not the new kernel."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.out, self.cache = scratch.path / "out", scratch.path / "cache" / "scalide"
        for age, operator in (("old", "add"), ("new", "mul")):
            scratch.write(f"{age}.scl", PROGRAM % operator)
        scratch.succeed(*NEW)
        self.new = content(self.out)
        shutil.rmtree(self.cache)
        scratch.succeed(*OLD)
        self.old, self.before = content(self.out), content(self.cache)
        assert all(self.new[name] != self.old[name] for name in ("libsmall.a", "small.json", "small.plan.c"))

    def restore(self):
        for folder, files in ((self.out, self.old), (self.cache, self.before)):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for name, bytes_ in files.items():
                (folder / name).write_bytes(bytes_)

    def left(self):
        return [file for file in self.scratch.files() if "part" in file or file.startswith("tmp")]

    def wrong_after(self):
        """Returns the errors of a build after a faulty one, and of the files that both leave."""
        again = self.scratch.run(*NEW)
        if again.returncode != 0 or not is_same(content(self.out), self.new):
            yield f"the next build failed: {again.stderr}"
        for file in self.left():
            yield f"{file} is left by the next build"


class Faults(Builds):
    """One call of a kind fails: memory, file, process; or from one write on the disk is full."""

    def __init__(self, scratch, injector, kind, by_place=False):
        super().__init__(scratch)
        self.kind, self.by_place, self.calls = kind, by_place, scratch.path / "calls"
        self.environment = {"LD_PRELOAD": injector, "SCALIDE_FAULT_CALLS": str(self.calls)}

    def build(self, number):
        """The build with this fault, how many calls of the kind there were, and the name of the one that failed."""
        self.restore()
        self.calls.unlink(missing_ok=True)
        plain = self.scratch.environment
        self.scratch.environment = {**plain, **self.environment, "SCALIDE_FAULT": f"{self.kind}:{number}"}
        try:
            result = self.scratch.run(*NEW)
        finally:
            self.scratch.environment = plain
        calls, failed = struct.unpack("q56s", self.calls.read_bytes())
        return result, calls, failed.decode().strip("\0")

    def wrong(self, result, call):
        files = content(self.out)
        if result.returncode == 0:
            if not is_same(files, self.new):
                yield "succeeded without all new files"
        else:
            if result.returncode != 1 or "error: " not in result.stderr or len(result.stderr) < 20:
                yield f"status {result.returncode}"
            if files != self.old:
                yield f"failed, and {[name for name in {**self.old, **files} if files.get(name) != self.old.get(name)]} are not the old ones"
        if call not in REMOVALS:
            for file in self.left():
                yield f"{file} is left"
        yield from self.wrong_after()

    def run(self, step):
        """Every so many-th call fails, or the first call of each place that so many callers make."""
        places = self.scratch.path / "places"
        if self.by_place:
            self.environment["SCALIDE_FAULT_PLACES"] = f"{step} {places}"
        result, calls, _ = self.build(-1)
        assert result.returncode == 0 and is_same(content(self.out), self.new) and calls > 0, result.stderr
        faults, problems, refused = range(0, calls, step), [], 0
        if self.by_place:
            del self.environment["SCALIDE_FAULT_PLACES"]
            faults = [int(line) for line in places.read_text().split()]
        for number in faults:
            result, _, call = self.build(number)
            refused += result.returncode != 0
            for problem in self.wrong(result, call):
                problems.append(f"{self.kind}:{number} ({call}): {problem}\n{result.stderr}")
        print("\n".join(problems), f"{len(faults)} of {calls} calls failed, {refused} builds were refused: {len(problems)} problems", sep="\n")
        return refused and not problems


def faults_of(kind, by_place=False):
    def test(scratch, injector, step):
        assert Faults(scratch, injector, kind, by_place).run(step)

    return test


def killed(scratch, _, times):
    """Kills and interrupts at random moments: each file is the old or the new one, and whole; who was interrupted has removed all parts of a library."""
    builds = Builds(scratch)
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    moments, dead = random.Random(seed), 0
    started = time.monotonic()
    builds.restore()
    scratch.succeed(*NEW)
    longest = time.monotonic() - started
    for i in range(times):
        builds.restore()
        build = subprocess.Popen([scratch.tool, *NEW], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, longest))
        build.send_signal(signal.SIGINT if i % 4 == 0 else signal.SIGKILL)
        dead += build.wait() != 0
        assert build.returncode != -signal.SIGINT or not list(builds.out.glob(".*"))
        for name, bytes_ in content(builds.out).items():
            assert is_same({name: bytes_}, {name: builds.old[name]}) or is_same({name: bytes_}, {name: builds.new[name]}), name
        problems = list(builds.wrong_after())
        assert not problems, problems
    print(f"{dead} of {times} builds were killed")
    assert dead * 4 >= times


def revived(scratch, injector, _):
    """A kernel's compiler that a signal ends runs once more, and the build says so; one that dies again ends the build."""
    builds, calls = Builds(scratch), scratch.path / "calls"
    plain, dead = scratch.environment, "error: cannot compile kernel map_1: signal 9 (Killed). If memory ran out"
    for fault, lines in ("death:0", 1), ("death:1", 1), ("deaths:0", None), ("deaths:1", None):
        builds.restore()
        calls.unlink(missing_ok=True)
        scratch.environment = {**plain, "LD_PRELOAD": injector, "SCALIDE_FAULT_CALLS": str(calls), "SCALIDE_FAULT": fault}
        result = scratch.run(*NEW)
        scratch.environment = plain
        retried = "kernel map_1: signal 9 (Killed). Compiling it again, without other jobs\n"
        assert result.stderr.startswith(retried), result.stderr
        if lines:
            assert result.returncode == 0 and result.stderr == retried and is_same(content(builds.out), builds.new), result.stderr
        else:
            assert result.returncode == 1 and result.stderr[len(retried):].startswith(dead) and content(builds.out) == builds.old, result.stderr
        problems = list(builds.wrong_after())
        assert not problems, problems


def together(scratch, injector, times):
    """Two programs of one name are built at the same time, into one folder with one cache: what is there is of one of them."""
    builds = Builds(scratch)
    scratch.environment.update({"LD_PRELOAD": injector, "SCALIDE_FAULT_CALLS": str(scratch.path / "calls"), "SCALIDE_FAULT": "pause:100"})
    scratch.succeed(*NEW)  # nothing is compiled below: both come to their files soon
    for _ in range(times):
        both = [subprocess.Popen([scratch.tool, *command], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL) for command in (OLD, NEW)]
        assert [build.wait() for build in both] == [0, 0]
        files = content(builds.out)
        assert is_same(files, builds.old) or is_same(files, builds.new), "files of two builds"
        assert not builds.left(), builds.left()


def compiler(scratch, text):
    """A C compiler that is a shell script."""
    scratch.write("compiler", "#!/bin/sh\n" + text)
    (scratch.path / "compiler").chmod(0o755)
    scratch.environment["CC"] = str(scratch.path / "compiler")


def ends(process):
    """A process that was killed ends soon, not at once."""
    for _ in range(1000):
        try:
            if Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def sleeper(scratch):
    """The process that the compiler has started, once it has."""
    file, end = scratch.path / "sleeper", time.monotonic() + 60
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, "no compiler was started"
        time.sleep(0.01)
    return int(file.read_text())


def slow_compiler(scratch):
    compiler(scratch, "sleep 1000 &\necho $! > sleeper\nwait\n")


def hanging(scratch, *_):
    """A compiler that does not end is ended, with all that it has started."""
    builds = Builds(scratch)
    builds.restore()
    slow_compiler(scratch)
    result = scratch.run(*NEW, "--time-limit", "1")
    assert result.returncode == 1, result.returncode
    assert result.stderr.strip() == ("error: cannot make the plan with '%s': stopped after 1 s (--time-limit). Raise --time-limit, or use fewer jobs (--jobs)"
                                     % scratch.environment["CC"]), result.stderr
    assert ends(sleeper(scratch))
    assert content(builds.out) == builds.old and not builds.left(), builds.left()
    del scratch.environment["CC"]
    assert not list(builds.wrong_after())


def interrupted(scratch, *_):
    """SIGINT, SIGTERM and SIGHUP end a build and its children, and the folder is as it was; a build that is to ignore SIGINT does."""
    builds = Builds(scratch)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        builds.restore()
        (scratch.path / "sleeper").unlink(missing_ok=True)
        slow_compiler(scratch)
        build = subprocess.Popen([scratch.tool, *NEW], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL)
        process = sleeper(scratch)
        build.send_signal(number)
        assert build.wait(60) == -number
        assert ends(process)
        assert content(builds.out) == builds.old and not builds.left(), builds.left()
    compiler(scratch, "kill -INT $PPID\nsleep 0.1\nexec cc \"$@\"\n")
    ignored = subprocess.run([scratch.tool, *NEW], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert ignored.returncode == 0 and is_same(content(builds.out), builds.new)


def unheard(scratch, *_):
    """A process that ignores SIGCHLD hands that on: its children's ends are heard nevertheless."""
    builds = Builds(scratch)
    builds.restore()
    build = subprocess.Popen([scratch.tool, *NEW], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert build.wait(60) == 0 and is_same(content(builds.out), builds.new)


TESTS = {"memory": faults_of("memory"), "file": faults_of("file"), "disk": faults_of("disk"), "process": faults_of("process"),
         "places": faults_of("memory", by_place=True),
         "killed": killed, "revived": revived, "together": together, "hanging": hanging, "interrupted": interrupted, "unheard": unheard}

if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        TESTS[sys.argv[3]](scratch, str(Path(sys.argv[2]).resolve()), int(sys.argv[4]))
    print("ok")
