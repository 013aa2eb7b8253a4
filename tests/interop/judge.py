"""Holds the outcome of the suites against pending.txt.

judge.py PENDING DIR SUITE

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
    # A file of which a test failed counts as failed itself, by its path: that says nothing more. One that failed with
    # none of its tests, which begin with its name, could not be run.
    outcome = junit(tree.parse(path).getroot())
    files = {name for name in outcome if name.endswith(".test.js")}
    tests = {name: what for name, what in outcome.items() if name not in files}
    failed = [name for name, what in tests.items() if what == "fail"]
    for file in (Path(name).name for name in files if outcome[name] == "fail"):
        if not any(name.startswith(file.removesuffix(".test.js") + ":") for name in failed):
            tests[file] = "fail"
    return tests


def java(path):
    outcome = {}
    for report in sorted(path.glob("*.xml")):
        root = tree.parse(report).getroot()
        outcome |= junit(root, root.get("name").split(".")[-1] + ".")
    return outcome


READERS = {"go": go, "python": python, "node": node, "java": java}
PLACES = {"node": "node-results"}


def read_pending(path, suite):
    pending = set()
    for line in Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            test, _, reason = line.partition(" | ")
            of, _, name = test.strip().partition(" ")
            if not reason:
                sys.exit(f"pending.txt does not say what this waits for: {line}")
            if of == suite:
                pending.add(name)
    return pending


def main():
    pending_path, work, suite = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    pending = read_pending(pending_path, suite)
    outcome = READERS[suite](work / PLACES.get(suite, suite))
    bad, counts = [] if outcome else [f"{suite}: no test ran"], {"pass": 0, "fail": 0, "skip": 0}
    for name, what in sorted(outcome.items()):
        counts[what] += 1
        if what == "fail" and name not in pending:
            bad.append(f"failed, and is not pending: {suite} {name}")
        if what == "pass" and name in pending:
            bad.append(f"passes, and is still pending: {suite} {name}")
    bad += [f"pending, but no such test: {suite} {name}" for name in sorted(pending - outcome.keys())]
    for line in bad:
        print(line)
    print(f"{suite}: {counts['pass']} pass, {counts['fail']} fail ({len(bad)} not as pending.txt says), "
          f"{counts['skip']} skip")
    sys.exit(bool(bad))


main()
