"""Tests `scalide view`: its texts are the dumps of passes, its page shows each change, and works with keys. Usage: view_test.py SCALIDE.
Ends with status 77 after the other tests if no Chromium is installed."""
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from browser import Browser, find_browser  # noqa: E402
from tool import Scratch  # noqa: E402

SKIPPED = 77
MODEL = "\n".join(f"line {number} of the model" for number in range(1, 41))
PROGRAM = """program layer(x: f32[32, 64], w: f32[64, 16], c: f32[16]) -> (y: f32[32, 16], z: f32[16] = s) {
  scope "body" {
    h = dot_general(x, w) {contract: [[1], [0]]}  #@ model.py:12:4 (layer)
    y = tanh(h)  #@ model.py:13:4 (layer)
  }
  s, ys = scan(c, y) {length: 32} with
    step(a: f32[16] inout, e: f32[16] each) -> (a = b, r: f32[16] = b) {
      b = add(a, e)  #@ model.py:21:8 (layer)
    }
}
"""


def data_of(scratch, name):
    page = (scratch.path / name).read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def texts(data, numbers):
    return [data["lines"][number][0] for number in numbers]


def check_dumps(scratch, data):
    """Each text is the dump of its pass, and the script turns the text before into the text after."""
    for change in data["passes"]:
        before, after, made = texts(data, change["before"]), texts(data, change["after"]), []
        for sign, count in change["script"]:
            made += after[len(made) : len(made) + count] if sign != "-" else []
            removed, before = (before[:count], before[count:]) if sign != "+" else ([], before)
            assert sign != "=" or removed == made[len(made) - count :], (change["name"], sign)
        assert made == after and not before, change["name"]
        dump = scratch.succeed("build", "layer.scl", "-n", "f8_master", "-o", "out", "--dump-after", change["name"])
        dumped = [line for line in dump.split("out/liblayer.a")[0].splitlines() if not line.startswith("# after")]
        if not change["of_kernels"]:
            assert [line for line in after if line] == [line for line in dumped if line], f"{change['name']}: {after} {dumped}"
        else:
            assert set(dumped) <= set(after), change["name"]


def check_places(data):
    """Nodes have their source lines, also in a loop and after passes, and the page has the files that the user named, without their folders."""
    places = {line[0].strip(): (data["files"][line[1]], line[2]) for line in data["lines"] if len(line) > 1}
    for node, line in (("b = add(a, e)", 21), ("y = tanh(h)", 13), ("x.dynamic_rescale.scale = norm_to_scale", 12)):
        found = {place for text, place in places.items() if text.startswith(node)}
        assert found == {("model.py", line)}, (node, found)
    assert data["sources"] == {"layer.scl": PROGRAM, "model.py": MODEL}, data["sources"].keys()


def check_page(browser, page):
    for width in (390, 1440):
        for dark in (False, True):
            browser.open(page, width, 900, dark)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width, f"the page is wider than {width} pixels"
            assert browser.evaluate("document.querySelectorAll('td.added, td.removed').length") > 0
            dark_page = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b) < 200")
            assert dark_page == dark
    browser.open(page)
    current = "document.querySelector('.passes [aria-current]')?.textContent"
    seen = []
    for key in ("j", "j", "k", "ArrowRight", "ArrowRight"):
        browser.press(key)
        seen.append(browser.evaluate(current))
    assert seen[0] == seen[2] != seen[1] == seen[3] and len(set(seen)) == 3, seen
    assert "assign_numerics" in seen, seen
    browser.evaluate("(() => { const box = document.querySelector('input[type=search]'); box.value = 'NORM_TO_SCALE'; box.dispatchEvent(new Event('input')); })()")
    assert browser.evaluate("document.querySelector('[role=status]').textContent").endswith(" passes have a match")
    browser.evaluate("document.querySelector('input[type=search]').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.querySelectorAll('.found').length") > 0
    browser.evaluate("document.querySelector('button.place').click()")
    assert browser.evaluate("document.querySelector('#source .here').textContent").endswith("of the model")
    browser.press("Escape")
    assert browser.evaluate("document.getElementById('source').hidden")
    assert not browser.messages and all(request.startswith(("file:", "data:")) for request in browser.requests), (browser.messages, browser.requests)


def main():
    with Scratch(sys.argv[1]) as scratch:
        (scratch.path / "layer.scl").write_text(PROGRAM)
        (scratch.path / "private").mkdir()
        (scratch.path / "private/model.py").write_text(MODEL)
        printed = scratch.succeed("view", "layer.scl", "-n", "f8_master", "--source", "private/model.py")
        data = data_of(scratch, "view.html")
        changed = sum(any(sign != "=" for sign, _ in change["script"]) for change in data["passes"])
        assert printed == f"view.html: {len(data['passes'])} passes, {changed} of them change the program\n", printed
        check_dumps(scratch, data)
        check_places(data)
        text = (scratch.path / "view.html").read_text()
        assert "private" not in text and str(scratch.path) not in text, "the page must not contain folders"
        missing = scratch.run("view", "layer.scl", "--source", "missing.py")
        assert missing.returncode == 1 and missing.stderr.startswith("error: cannot read missing.py"), missing.stderr
        program = find_browser()
        if not program:
            print("skipped: Chromium is not installed")
            sys.exit(SKIPPED)
        with Browser(program) as browser:
            check_page(browser, scratch.path / "view.html")
    print("ok")


main()
