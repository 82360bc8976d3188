"""Tests `scalide report`: what it finds in runs with a known fault, wrong files, and what the page contains. Usage: report_test.py SCALIDE."""
import json
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from run_files import write_run  # noqa: E402
from tool import Scratch, floats, safetensors  # noqa: E402

PROGRAM = HERE / "two_layers.scl"
#: fault -> the beginning of the first line that the command prints
FIRST_LINES = {
    "nan": "bad: h1 is the first tensor with an infinity or a NaN, in step 100, at index [3, 2]. The operator is dot_general in block1/attention (model.py:12:4 (loss)).",
    "outlier": "bad: params.layer0.w (dot_general.rhs in block0/attention, model.py:13:4 (loss)): from step 110 to step 190, its scale is ",
    "saturation": "bad: params.layer0.w (dot_general.rhs in block0/attention, model.py:13:4 (loss)): up to 50 % of its elements saturate, from step 100 on.",
    "checkpoint": "bad: params.layer0.w (inout argument in block0/attention, model.py:14:4 (loss)): its largest magnitude grows ",
    "jump": "bad: params.layer0.w (inout argument in block0/attention, model.py:14:4 (loss)): its largest magnitude grows ",
    "sibling": "bad: params.layer0.w (inout argument in block0/attention, model.py:14:4 (loss)): its largest magnitude is ",
    "underflow": "warn: dy0 (dot_general.lhs in block0/attention, model.py:15:4 (loss)): 80 % of its elements become 0 by rounding to f8_e5m2",
    "zero_gradient": "bad: dy0 (dot_general.lhs in block0/attention, model.py:15:4 (loss)) is exactly 0 in 20 of 20 lines",
    "odd_format": "warn: h0 (dot_general.lhs in block0/attention, model.py:12:4 (loss)) is stored in f8_e5m2",
    "constant": "warn: params.layer0.w (inout argument in block0/attention, model.py:14:4 (loss)) does not change: its root mean square is 0.25 in all 20 lines",
    "growth": "warn: params.layer0.w (inout argument in block0/attention, model.py:14:4 (loss)): its largest magnitude grows ",
    "loss_scale": "warn: loss_scale falls from 1 to ",
    "torn": "note: The last line of a file is not complete. The run ends at step 199.",
}


def data_of(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def check_findings(scratch):
    for fault, first in FIRST_LINES.items():
        write_run(scratch.path / fault, faults=[fault])
        printed = scratch.succeed("report", str(PROGRAM), fault, "-o", f"{fault}.html").splitlines()
        assert printed[0].startswith(first), f"{fault}: the first line must begin with {first!r}, got {printed[0]!r}"
        assert printed[-1] == f"{fault}.html", printed
    write_run(scratch.path / "normal")
    printed = scratch.succeed("report", str(PROGRAM), "normal")
    assert printed == "good: Nothing unusual was found in 24 tensors and 3 metrics, from step 0 to step 199.\nstep.html\n", printed
    findings = data_of((scratch.path / "nan.html").read_text())["findings"]
    assert findings[0]["tensor"] == 4 and findings[0]["step"] == 100 and findings[0]["todo"], findings[0]


def check_missing(scratch):
    """Without all numbers, the command does not say that the run is normal."""
    (scratch.path / "loss_only").mkdir()
    scratch.write("loss_only/metrics.jsonl", "".join(json.dumps({"step": step, "time": 1.0, "loss": 2 - step / 100}) + "\n" for step in range(100)))
    printed = scratch.succeed("report", str(PROGRAM), "loss_only")
    assert "the files have no statistics of tensors" in printed and "in the numbers that the files contain" in printed, printed
    scratch.write("empty.jsonl", "")
    assert scratch.succeed("report", str(PROGRAM), "empty.jsonl").startswith("bad: The files contain no step.")
    printed = scratch.succeed("report", str(PROGRAM))
    assert printed.startswith("note: No run was given"), printed


def check_losses(scratch):
    def lines(values):
        return "".join(json.dumps({"step": step, "loss": value}) + "\n" for step, value in enumerate(values))

    scratch.write("flat.jsonl", lines([2.3] * 100))
    assert "warn: loss does not fall: 2.3 on average" in scratch.succeed("report", str(PROGRAM), "flat.jsonl")
    scratch.write("falls.jsonl", lines([2.3 - step / 100 for step in range(100)]))
    scratch.write("worse.jsonl", lines([2.3 - step / 100 + (0.1 if step >= 40 else 0) for step in range(100)]))
    printed = scratch.succeed("report", str(PROGRAM), "worse.jsonl", "--against", "falls.jsonl")
    assert "warn: loss differs from falls.jsonl by +5.26 % in step 40" in printed, printed
    # A resumed run repeats steps: the last ones hold.
    scratch.write("resumed.jsonl", lines([2.3, 2.2, 9.0, 9.0]) + json.dumps({"step": 2, "loss": 2.1}) + "\n")
    scratch.succeed("report", str(PROGRAM), "resumed.jsonl", "-o", "resumed.html")
    loss = data_of((scratch.path / "resumed.html").read_text())["runs"][0]["metrics"]["loss"]
    assert loss["steps"] == [0, 1, 2] and abs(loss["values"][2] - 2.1) < 1e-6, loss


def check_several_runs(scratch):
    """Each folder is a run: findings name it, the worst comes first, and the page has the policies of all. Files together are one run."""
    write_run(scratch.path / "healthy")
    write_run(scratch.path / "deep/healthy", faults=["nan"])
    header, rest = (scratch.path / "healthy/statistics.jsonl").read_text().split("\n", 1)
    assert '"numerics": "f8_master"' in header, header
    scratch.write("healthy/statistics.jsonl", header.replace('"f8_master"', '"f32"') + "\n" + rest)
    printed = scratch.succeed("report", str(PROGRAM), "healthy", "deep/healthy", "-o", "runs.html").splitlines()
    assert printed[0].startswith("bad: healthy (2): h1 is the first tensor with an infinity"), printed
    assert printed[-2:] == ["good: healthy: Nothing unusual was found in 24 tensors and 3 metrics, from step 0 to step 199.", "runs.html"], printed
    data = data_of((scratch.path / "runs.html").read_text())
    assert [run["name"] for run in data["runs"]] == ["healthy", "healthy (2)"] and [policy["name"] for policy in data["policies"]] == ["f32", "f8_master"]
    assert data["findings"][0]["run"] == 1 and data["findings"][-1]["run"] == 0, data["findings"]
    # The name of a library is not the name of its program, but a run with other tensors is from another program.
    for line, message in ((header.replace('"program": "step"', '"program": "library"'), "warn: The run is from 'library'. Of its 24 tensors, the program 'step' has "),
                          (json.dumps({"scalide": "statistics", "version": 1, "program": "library", "tensors": [{"tensor": "x"}]}), "note: ")):  # fmt: skip
        scratch.write("named.jsonl", line + "\n")
        printed = scratch.succeed("report", str(PROGRAM), "healthy/metrics.jsonl", "named.jsonl")
        assert ("The run is from" in printed) == (message != "note: ") and message in printed, printed
    scratch.succeed("report", str(PROGRAM), "healthy/metrics.jsonl", "healthy/statistics.jsonl", "-o", "files.html")
    (run,) = data_of((scratch.path / "files.html").read_text())["runs"]
    assert run["metrics"] and run["tensors"] and run["name"] == "metrics.jsonl, statistics.jsonl", run["name"]


def check_errors(scratch):
    header = '{"scalide": "statistics", "version": 1, "tensors": [{"tensor": "x"}, {"tensor": "y"}]}\n'
    cases = {
        'no json\n{"step": 1}\n': "bad.jsonl:1: line: must be a JSON object, got 'no json'",
        '{"loss": 1}\n': "bad.jsonl:1: line: must have an integer 'step', or be a header of statistics",
        '{"step": 0, "loss": "high"}\n': "bad.jsonl:1: line: must have numbers",
        '{"step": 0, "amax": [1, 2]}\n': "bad.jsonl:1: line: must be after a header of statistics",
        header + '{"step": 0, "amax": [1]}\n': "bad.jsonl:2: 'amax': must be a list with 2 elements, one for each tensor of the header, got 1 elements",
        header.replace("1", "2", 1): "bad.jsonl:1: version of the statistics: must be 1, got 2",
    }
    for text, message in cases.items():
        scratch.write("bad.jsonl", text)
        result = scratch.run("report", str(PROGRAM), "bad.jsonl")
        assert result.returncode == 1 and message in result.stderr, f"{text!r}: {result.stderr}"
    for arguments, message in ((["nothing.jsonl"], "cannot read the run file nothing.jsonl"), (["--against", "x.jsonl"], "'--against' needs a run to compare"),
                               ([str(HERE)], "the folder has no metrics.jsonl and no statistics.jsonl")):  # fmt: skip
        result = scratch.run("report", str(PROGRAM), *arguments)
        assert result.returncode == 1 and message in result.stderr, result.stderr


def check_page(scratch):
    """The page has both policies and the two levels of the graph, and no path and no host that the user did not give."""
    write_run(scratch.path / "deep/inner/run")
    scratch.succeed("report", str(PROGRAM), "deep/inner/run", "-n", "f8_master", "-n", "f16_scaled", "-o", "page.html")
    page = (scratch.path / "page.html").read_text()
    data = data_of(page)
    assert [policy["name"] for policy in data["policies"]] == ["f8_master", "f16_scaled"]
    assert data["runs"][0]["name"] == "run" and len(data["runs"][0]["columns"]) == 20
    text = json.dumps(data)
    for private in (str(scratch.path), str(HERE), "deep/inner", os.uname().nodename):
        assert private not in text, f"the page contains {private}"
    assert "default-src 'none'" in page
    for policy in data["policies"]:
        assert policy["kernels"] and max(policy["memory"]["alive"]) > 0 and len(policy["memory"]["steps"]) >= len(policy["kernels"])
    # Text of a file cannot end the element of the data.
    scratch.write("hostile.jsonl", json.dumps({"step": 0, "</script><script>alert(1)</script>": 1}) + "\n")
    scratch.succeed("report", str(PROGRAM), "hostile.jsonl", "-o", "hostile.html")
    assert "</script><script>alert" not in (scratch.path / "hostile.html").read_text()


def check_policy_of_run(scratch):
    scratch.succeed("report", str(PROGRAM), "normal", "-o", "policy.html")
    assert [policy["name"] for policy in data_of((scratch.path / "policy.html").read_text())["policies"]] == ["f8_master"]
    printed = scratch.succeed("report", str(PROGRAM), "-n", str(HERE / "unscaled.yaml"))
    assert "warn: The policy unscaled converts 2 arrays to f16 or 8 bits without a scale." in printed, printed


def check_graph(scratch):
    """Bodies of loops are scopes. Without dot, the page says so and lists the operators."""
    scratch.succeed("report", str(HERE / "loops.scl"), "-o", "loops.html")
    graph = data_of((scratch.path / "loops.html").read_text())["graph"]
    names = [scope["name"] for scope in graph["scopes"]]
    assert names[0] == "(no scope)" and "scan h: (no scope)" in names and "switch y 1: (no scope)" in names, names
    assert graph["svg"].count('class="node scope"') == len(names) and all(scope["svg"] for scope in graph["scopes"]), names
    scratch.environment["PATH"] = "/nowhere"
    scratch.succeed("report", str(PROGRAM), "-o", "bare.html")
    graph = data_of((scratch.path / "bare.html").read_text())["graph"]
    assert graph["svg"] is None and "Install graphviz" in graph["reason"] and len(graph["scopes"][0]["operators"]) > 3, graph


def check_installation(scratch):
    """An installation that was configured without plotly says so."""
    home = Path(sys.argv[1]).resolve().parents[1] / "home/share/scalide"
    (scratch.path / "share/pages").mkdir(parents=True)
    (scratch.path / "share/rules").symlink_to((home / "rules").resolve())
    for file in (home / "pages").iterdir():
        if not file.name.startswith("plotly"):
            (scratch.path / "share/pages" / file.name).symlink_to(file.resolve())
    result = scratch.run("report", str(PROGRAM), "--home", str(scratch.path / "share"))
    assert result.returncode == 1 and "this installation of Scalide lacks the file. Configure Scalide with SCALIDE_PLOTLY_ROOT" in result.stderr, result.stderr


def check_profile(scratch):
    scratch.write("small.scl", "program small(x: f32[4, 8]) -> (y: f32[4, 8] = b) {\n  a = mul(x, x)\n  b = tanh(a)\n}\n")
    scratch.write("small.safetensors", safetensors({"x": ("F32", [4, 8], floats(*range(32)))}))
    scratch.succeed("report", "small.scl", "--profile", "3", "-i", "small.safetensors")
    kernels = data_of((scratch.path / "small.html").read_text())["policies"][0]["kernels"]
    assert kernels and all(kernel["seconds"] > 0 for kernel in kernels), kernels
    result = scratch.run("report", "small.scl", "--profile", "3")
    assert result.returncode == 2 and "--inputs" in result.stderr, result.stderr


if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        for check in (check_findings, check_missing, check_losses, check_several_runs, check_errors, check_page, check_policy_of_run, check_installation, check_profile, check_graph):
            check(scratch)
    print("ok")
