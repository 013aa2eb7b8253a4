"""Holds what the cases showed against pending.txt.

judge.py PENDING DIR

DIR has a run's output (`out`) and what it saw (`seen.json`). A line of PENDING is `CASE | why it differs`.
"""

import json
import re
import sys
from pathlib import Path


def run(path):
    """The cases that ran, and those that differ from Kafka's."""
    differs, case = set(), None
    for line in (path / "out").read_text().splitlines():
        if re.fullmatch(r"C\d+", line):
            case = line
        elif case and line.startswith("  ") and not line.startswith("  ~"):
            differs.add(case)
    return set(json.loads((path / "seen.json").read_text())), differs


def read_pending(path):
    pending = set()
    for line in Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            case, _, reason = line.partition(" | ")
            if not reason:
                sys.exit(f"pending.txt does not say why this differs: {line}")
            pending.add(case.strip())
    return pending


def main():
    pending = read_pending(sys.argv[1])
    seen, differs = run(Path(sys.argv[2]))
    bad = [f"differs, and is not pending: {case}" for case in sorted(differs - pending)]
    bad += [f"agrees, and is still pending: {case}" for case in sorted(pending & seen - differs)]
    for line in bad:
        print(line)
    agree = len(seen) - len(differs)
    print(f"cases: {agree} agree, {len(differs)} differ ({len(bad)} not as pending.txt says)")
    sys.exit(bool(bad) or not seen)


main()
