"""Tests the page of `scalide report` in headless Chromium: sizes, themes, keyboard, plots, console. Usage: page_test.py SCALIDE.
Ends with status 77 if no Chromium is installed."""
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from browser import Browser, find_browser  # noqa: E402
from run_files import write_run  # noqa: E402
from tool import Scratch  # noqa: E402

SKIPPED = 77
PLOTS = 9  #: two of the loss, three of a tensor, two of kernels, two of memory


def check_layout(browser, page, width, dark):
    where = f"{width} pixels, {'dark' if dark else 'light'}"
    browser.open(page, width, 900, dark)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width, f"{where}: the page is wider than its window"
    drawn = browser.evaluate("[...document.querySelectorAll('.plot')].filter(plot => plot.querySelector('.main-svg')).length")
    assert drawn == PLOTS, f"{where}: the page must have {PLOTS} plots, got {drawn}"
    small = browser.evaluate("[...document.querySelectorAll('.plot text')].filter(text => text.textContent && parseFloat(getComputedStyle(text).fontSize) < 8).length")
    assert small == 0, f"{where}: {small} texts of plots are too small to read"
    dark_page = browser.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b) < 200")
    assert dark_page == dark, f"{where}: the background has the wrong theme"
    painted = browser.evaluate("(() => { const canvas = document.querySelector('canvas'); const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;"
                               " return new Set(data).size; })()")  # fmt: skip
    assert painted > 10, f"{where}: the heat map has {painted} colors"


def check_theme(browser):
    """The switch of the page wins against the system."""
    for theme in ("light", "dark", "system"):
        browser.evaluate("document.getElementById('theme').click()")
        text = browser.evaluate("document.getElementById('theme').textContent")
        assert text == f"Theme: {theme}", text
        color = browser.evaluate("getComputedStyle(document.body).backgroundColor")
        assert theme == "system" or (color == "rgb(255, 255, 255)") == (theme == "light"), (theme, color)


def check_keyboard(browser, page):
    """Tab reaches every control in its order on the page, and arrow keys move in the heat map."""
    browser.open(page)
    order = []
    for _ in range(80):
        browser.press("Tab")
        order.append(browser.evaluate("(() => { const all = [...document.querySelectorAll('*')], at = document.activeElement; return [all.indexOf(at), at.tagName, at.id, "
                                      "at.matches(':focus-visible')]; })()"))  # fmt: skip
        if order[-1][1] == "BODY":
            break
    places = [place for place, tag, *_ in order if tag != "BODY"]
    assert places == sorted(places), f"Tab must follow the order of the page, got {order}"
    assert order[0][1] == "A" and all(visible for *_, tag, _, visible in order if tag != "BODY"), order
    reached = {tag for _, tag, *_ in order}
    assert {"A", "BUTTON", "SELECT", "INPUT", "CANVAS", "g"} <= reached, reached
    browser.evaluate("document.querySelector('canvas').focus()")
    browser.press("ArrowDown")
    browser.press("ArrowRight")
    text = browser.evaluate("document.querySelector('.readout').textContent")
    assert text.startswith("params.layer0.w dot_general.rhs in block0/attention, step 10: amax "), text
    browser.press("Enter")
    assert browser.evaluate("document.getElementById('tensor-choice').value") == "1"


def check_large_table(scratch, browser):
    """A table of many rows shows some of them, and its filter finds all."""
    lines = "".join(f"  v{i + 1} = add(v{i}, 1.0) : f32[8]\n" for i in range(3000))
    scratch.write("chain.scl", f"program chain(v0: f32[8]) -> (y: f32[8] = v3000) {{\n{lines}}}\n")
    scratch.succeed("report", "chain.scl")
    browser.open(scratch.path / "chain.html")
    rows = "document.querySelectorAll('#graph tbody tr').length"
    assert browser.evaluate(rows) == 200, browser.evaluate(rows)
    browser.evaluate("[...document.querySelectorAll('#graph button')].at(-1).click()")
    assert browser.evaluate(rows) == 1200, browser.evaluate(rows)
    browser.evaluate("(() => { const filter = document.querySelector('#graph input'); filter.value = 'V2999 '; filter.dispatchEvent(new Event('input')); })()")
    text = browser.evaluate("document.querySelector('#graph tbody').textContent")
    assert "v2999 f32[8] = add" in text and browser.evaluate(rows) <= 3, text[:200]


def check_small_runs(scratch, browser):
    """Runs without statistics, without metrics, and with one step."""
    header = '{"scalide": "statistics", "version": 1, "tensors": [{"tensor": "x"}, {"tensor": "y"}]}\n'
    runs = {"header": header, "metric": '{"step": 3, "loss": "nan"}\n', "nothing": "", "one": header + '{"step": 5, "amax": [1, "inf"], "histogram": [[1, 2, 3], null]}\n',
            "null": header + '{"step": 5, "amax": [null, null]}\n'}  # fmt: skip
    for name, text in runs.items():
        scratch.write(f"{name}.jsonl", text)
        scratch.succeed("report", str(HERE / "two_layers.scl"), f"{name}.jsonl", "-o", f"{name}.html")
        browser.open(scratch.path / f"{name}.html")
        assert not browser.messages, f"{name}: {browser.messages}"
        assert browser.evaluate("document.getElementById('graph') !== null"), f"{name}: the page must end with the graph"
        assert browser.evaluate("document.querySelectorAll('canvas').length") == (name == "one"), f"{name}: only a run with statistics has a heat map"


def check_several_runs(scratch, browser):
    """The page draws the metrics of all runs, and shows the tensors of the run that the user chooses."""
    names = ["one", "two", "three"]
    for name in names:
        write_run(scratch.path / name, faults=["outlier"] if name == "two" else [])
    scratch.succeed("report", str(HERE / "two_layers.scl"), *names, *(word for policy in ("f32", "f16_scaled", "f8_master") for word in ("-n", policy)), "-o", "runs.html")
    for width in (390, 1440):
        browser.open(scratch.path / "runs.html", width)
        assert browser.evaluate("document.documentElement.scrollWidth") <= width, width
    curves = browser.evaluate("[...document.querySelectorAll('#metrics .plot')].map(plot => plot.data.map(trace => [trace.name, trace.x.length]))")
    assert curves == [[[name, 200] for name in names], [[name, 20] for name in names[1:]]], f"a difference has means of 10 values, got {curves}"
    assert browser.evaluate("document.getElementById('run-choice').value") == "1", "the run of the first finding is shown first"
    browser.evaluate("(() => { const box = document.getElementById('run-choice'); box.value = 0; box.dispatchEvent(new Event('change')); })()")
    assert browser.evaluate("run.name") == "one" and browser.evaluate("document.querySelectorAll('canvas').length") == 1
    browser.evaluate("document.querySelector('.finding button').click()")
    assert browser.evaluate("run.name") == "two" and browser.evaluate("document.getElementById('tensor-choice').value") == browser.evaluate("`${page.data.findings[0].tensor}`")
    # Of three policies, the page compares the first and the last one, until the user chooses another one.
    heads = "[...document.querySelectorAll('#kernels h3')].map(head => head.textContent.split(':')[0])"
    assert browser.evaluate(heads) == ["f32", "f8_master"], browser.evaluate(heads)
    browser.evaluate("(() => { const box = document.querySelectorAll('#formats select')[1]; box.value = 1; box.dispatchEvent(new Event('change')); })()")
    assert browser.evaluate(heads) == ["f32", "f16_scaled"], browser.evaluate(heads)
    assert "f32 and f16_scaled differ in" in browser.evaluate("document.getElementById('formats').textContent")
    assert not browser.messages, browser.messages


def main():
    program = find_browser()
    if not program:
        print("skipped: Chromium is not installed")
        sys.exit(SKIPPED)
    with Scratch(sys.argv[1]) as scratch:
        for name, faults in (("run", ["outlier"]), ("other", [])):
            write_run(scratch.path / name, faults=faults)
        scratch.succeed("report", str(HERE / "two_layers.scl"), "run", "--against", "other", "-n", "f8_master", "-n", "f16_scaled", "-o", "page.html")
        scratch.succeed("report", str(HERE / "two_layers.scl"), "-o", "no_run.html")
        page = scratch.path / "page.html"
        with Browser(program) as browser:
            for width in (390, 1440):
                for dark in (False, True):
                    check_layout(browser, page, width, dark)
            check_theme(browser)
            check_keyboard(browser, page)
            check_small_runs(scratch, browser)
            check_several_runs(scratch, browser)
            check_large_table(scratch, browser)
            browser.open(scratch.path / "no_run.html", 390)
            assert browser.evaluate("document.documentElement.scrollWidth") <= 390 and browser.evaluate("document.querySelectorAll('section').length") == 5
            assert not browser.messages, browser.messages
            assert all(address.startswith(("file:", "data:", "blob:", "about:")) for address in browser.requests), browser.requests
    print("ok")


if __name__ == "__main__":
    main()
