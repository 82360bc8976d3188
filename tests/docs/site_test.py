"""The site: mkdocs builds it without a warning, and it needs nothing of another host. Usage: site_test.py BUILD, with a Python that has mkdocs."""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: What a browser loads by itself, as opposed to links.
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?(?:https?:)?//[^\" >]+|<link(?![^>]*rel=\"?(?:canonical|next|prev))[^>]* href=\"?(?:https?:)?//[^\" >]+")


def main():
    build = Path(sys.argv[1]).resolve()
    site = build / "site"
    variables = {**os.environ, "SCALIDE_BUILD_DIR": str(build), "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean", "--config-file", ROOT / "mkdocs.yml", "--site-dir", site]
    result = subprocess.run(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(result.stdout)
    assert result.returncode == 0, "mkdocs must build the site without a warning"
    pages = [*site.rglob("*.html")]
    assert len(pages) > 100, len(pages)
    for file in [*pages, *site.rglob("*.css")]:
        text = file.read_text()
        loaded = LOADED.findall(text) if file.suffix == ".html" else re.findall(r"(?:@import|url\()\s*[\"']?https?://[^\"')]+", text)
        assert not loaded, f"{file.relative_to(site)} loads {loaded[0]}"
    shown = set(re.findall(r"<img [^>]*src=\"?([^\" >]*\.svg[^\" >]*)", "".join(page.read_text() for page in pages)))
    wrong = {address for address in shown if not re.search(r"\.(light|dark)\.svg#only-\1$", address)}
    assert len(shown) >= 50 and not wrong, f"each picture must have a light and a dark form, got {sorted(wrong)[:3]}"
    assert (site / "search/search_index.js").exists(), "the search works from files"
    print(f"{site}: {len(pages)} pages")


main()
