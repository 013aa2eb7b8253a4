"""Holds the outcome of the suites against pending.txt.

judge.py PENDING DIR SUITE…

A line of PENDING is `SUITE TEST | what it waits for`. A test fails, passes or is skipped by its own runner's word; of
Go's and Node's tests only those count that have no sub-tests. The run is good when just the listed tests fail.
"""

import json
import sys
import xml.etree.ElementTree as tree
from pathlib import Path


def go(path):
    outcome = {}
    for line in path.read_text(errors="replace").splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if "Test" not in event or event["Action"] not in ("run", "pass", "fail", "skip"):
            continue
        name = event["Package"].removeprefix("interop/") + "." + event["Test"]
        # A test that ran and never ended took its package down with it.
        outcome[name] = "fail" if event["Action"] == "run" else event["Action"]
    parents = {name.rsplit("/", 1)[0] for name in outcome if "/" in name}
    return {name: what for name, what in outcome.items() if name not in parents}


def junit(root, prefix=""):
    outcome = {}
    for case in root.iter("testcase"):
        name = prefix + case.get("name")
        bad = case.find("failure") is not None or case.find("error") is not None
        outcome[name] = "fail" if bad else "skip" if case.find("skipped") is not None else "pass"
    return outcome


def python(path):
    outcome = {}
    for case in tree.parse(path).getroot().iter("testcase"):
        outcome |= {f"{case.get('classname')}.{n}": w for n, w in junit(wrap(case)).items()}
    return outcome


def wrap(case):
    parent = tree.Element("testsuite")
    parent.append(case)
    return parent


def node(path):
    return junit(tree.parse(path).getroot())


def java(path):
    outcome = {}
    for report in sorted(path.glob("*.xml")):
        root = tree.parse(report).getroot()
        outcome |= junit(root, root.get("name").split(".")[-1] + ".")
    return outcome


READERS = {"go": go, "python": python, "node": node, "java": java}
PLACES = {"node": "node-results"}


def main():
    pending_path, work, suites = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    pending = {}
    for line in Path(pending_path).read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition(" | ")
            suite, _, name = test.strip().partition(" ")
            if not reason:
                sys.exit(f"pending.txt does not say what this waits for: {line}")
            pending[suite, name] = reason
    bad, counts = [], {"pass": 0, "fail": 0, "skip": 0}
    for suite in suites:
        outcome = READERS[suite](work / PLACES.get(suite, suite))
        if not outcome:
            bad.append(f"{suite}: no test ran")
        for name, what in sorted(outcome.items()):
            counts[what] += 1
            listed = (suite, name) in pending
            if what == "fail" and not listed:
                bad.append(f"failed, and is not pending: {suite} {name}")
            if what == "pass" and listed:
                bad.append(f"passes, and is still pending: {suite} {name}")
        for listed_suite, name in sorted(pending):
            if listed_suite == suite and name not in outcome:
                bad.append(f"pending, but no such test: {suite} {name}")
    print("\n".join(bad))
    print(f"interop: {counts['pass']} pass, {counts['fail']} fail ({len(bad)} not as pending.txt says), {counts['skip']} skip")
    sys.exit(bool(bad))


main()
