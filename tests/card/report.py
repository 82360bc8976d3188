#!/usr/bin/env python3
"""report.py JUNIT.xml OUT.json DEVICE: what ctest found on a card, as a table, a row a group of tests, the lines `finding: ...` of tests that
passed or failed, and as JSON with every test."""
import datetime
import json
import sys
import xml.etree.ElementTree as xml

GROUPS = ["card.casts", "card.products", "card.accuracy", "card.probes", "card.memcheck", "card.racecheck", "card_rule"]
FINDING = "finding: "


def read(path):
    for case in xml.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped") is not None
        failed = case.get("status") == "fail" or case.find("failure") is not None
        result = "failed" if failed else "skipped" if skipped else "passed"
        output = case.findtext("system-out") or ""
        findings = [line.removeprefix(FINDING) for line in output.splitlines() if line.startswith(FINDING)]
        yield {"test": case.get("name"), "result": result, "seconds": float(case.get("time", 0)), "findings": findings, "output": output if failed else ""}


def main(junit, out, device):
    tests = list(read(junit))
    print(f"{'group':<16} {'passed':>7} {'failed':>7} {'skipped':>8} {'seconds':>9}")
    for group in GROUPS:
        rows = [test for test in tests if test["test"].startswith(group)]
        counts = [sum(row["result"] == result for row in rows) for result in ("passed", "failed", "skipped")]
        print(f"{group:<16} {counts[0]:>7} {counts[1]:>7} {counts[2]:>8} {sum(row['seconds'] for row in rows):>9.1f}")
    for test in tests:
        for line in test["findings"]:
            print(line)
    with open(out, "w") as file:
        json.dump({"device": device, "date": datetime.date.today().isoformat(), "tests": tests}, file, indent=1)
    print(f"{device}; every test in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
