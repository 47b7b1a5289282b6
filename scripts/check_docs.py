#!/usr/bin/env python3
"""Finds what the documents name and is not there: linked files, tests (`file::name`), conformance cases (`A022`).

Prints each and exits with 1.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tracked(*patterns):
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [path for path in (ROOT / name for name in names) if path.is_file()]


def links(document, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (document.parent / file) if file else document
        if not path.exists():
            yield f"`{target}` is not there"
        elif anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"`{target}`: no such heading"


def anchors(text):
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def named_tests(text, sources):
    for stem, name in re.findall(r"`([a-z_0-9]+)::([a-z_0-9]+)`", text):
        # Paths of Rust code begin with a crate; files of tests never do.
        if not stem.startswith("codemode_") and not any(path.stem == stem and f"fn {name}(" in source for path, source in sources):
            yield f"`{stem}::{name}`: no such test"


def named_cases(text, ids):
    for prefix in re.findall(r"`([ABPLSC]\d{3})`", text):
        if not any(case.startswith(prefix) for case in ids):
            yield f"`{prefix}`: no such conformance case"


def main():
    sources = [(path, path.read_text(encoding="utf-8")) for path in tracked("*.rs")]
    cases = "\n".join(path.read_text(encoding="utf-8") for path in tracked("tests/conformance/*.toml"))
    ids = re.findall(r"^id = [\"'](.*?)[\"']", cases, re.MULTILINE)
    found = False
    for document in tracked("*.md", ":!registry/sdk/tests"):  # Data of tests, made from schemas.
        text = document.read_text(encoding="utf-8")
        faults = [*links(document, text)]
        if document.parent == ROOT:
            faults += [*named_tests(text, sources), *named_cases(text, ids)]
        for fault in faults:
            found = True
            print(f"{document.relative_to(ROOT)}: {fault}")
    if not found:
        print("documents name nothing that is not there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
