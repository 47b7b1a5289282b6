#!/usr/bin/env python3
"""Holds the dependency graph to the rules of ARCHITECTURE.md: who may link what, from where, under which licences.

Reads `cargo metadata` and nothing else. Prints each breach with the path that leads to it, and exits with 1.
"""

import json
import subprocess
import sys

# Crates that only these members may link, in what they ship, in their tests or in their builds.
ONLY_UNDER = {
    "deno_core": {"codemode-runner"},
    "deno_web": {"codemode-runner"},
    "v8": {"codemode-runner"},
    "v8x": {"codemode-runner"},
    "deno_ast": {"codemode-strip", "codemode-runner"},
    "swc_ecma_parser": {"codemode-strip", "codemode-runner"},
}
# Crates that these members may not link in what they ship. The reasons stand with each invariant.
NEVER_UNDER = {
    "codemode-executor": {"codemode-runner", "codemode-strip", "codemode-client"},
    "codemode-client": {"codemode-executor", "codemode-wire", "codemode-runner"},
    "codemode-wire": {"tokio", "tonic", "prost", "serde_json", "libc", "nix"},
    "codemode-lockdown": {"tokio", "tonic", "deno_core", "deno_ast"},
    "codemode-strip": {"tonic", "deno_core"},
    "codemode-runner": {"tonic", "hyper", "codemode-executor", "codemode-proto"},
    "codemode-proto": {"codemode-wire", "codemode-executor"},
    "codemode-registry": {"codemode-executor", "codemode-lockdown", "codemode-strip", "codemode-wire", "codemode-runner"},
    "codemode-sdk": {"tokio", "hyper", "tonic", "prost", "libc", "nix", "codemode-proto", "codemode-client"},
}
# Terms under which a dependency may come, as SPDX names them; of "A OR B" one is enough.
LICENCES = {
    "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "MPL-2.0", "MPL-2.0+",
    "Unicode-3.0", "Zlib",
}


def metadata(*arguments):
    host = next(line.split()[1] for line in output("rustc", "-vV").splitlines() if line.startswith("host:"))
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host, *arguments]
    return json.loads(output(*command))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def paths(graph, member, with_dev):
    """Package id to the id that led to it, for everything that a member links; its own tests too if asked."""
    came_from, pending = {member: None}, [member]
    while pending:
        node = pending.pop()
        for dependency in graph[node]:
            kinds = {kind["kind"] for kind in dependency["dep_kinds"]}
            wanted = None in kinds or "build" in kinds or (with_dev and node == member and "dev" in kinds)
            if wanted and dependency["pkg"] not in came_from:
                came_from[dependency["pkg"]] = node
                pending.append(dependency["pkg"])
    return came_from


def path_text(came_from, names, package):
    steps = []
    while package is not None:
        steps.append(names[package])
        package = came_from[package]
    return " > ".join(reversed(steps))


def edge_faults(data):
    names = {package["id"]: package["name"] for package in data["packages"]}
    graph = {node["id"]: node["deps"] for node in data["resolve"]["nodes"]}
    for member in data["workspace_members"]:
        everything, shipped = paths(graph, member, True), paths(graph, member, False)
        for package in everything:
            allowed = ONLY_UNDER.get(names[package])
            if allowed is not None and names[member] not in allowed:
                yield f"{path_text(everything, names, package)}: only {', '.join(sorted(allowed))} may"
        for package in shipped:
            if names[package] in NEVER_UNDER.get(names[member], ()):
                yield f"{path_text(shipped, names, package)}: {names[member]} may not"


def licence_holds(expression):
    # All that occur are alternatives joined by AND; read so, any other expression is judged too strictly, never too laxly.
    alternatives = expression.replace("/", " OR ").translate(str.maketrans("", "", "()")).split(" AND ")
    return all(any(term.strip() in LICENCES for term in each.split(" OR ")) for each in alternatives)


def package_faults(data):
    members = set(data["workspace_members"])
    used = {node["id"] for node in data["resolve"]["nodes"]} - members
    for package in data["packages"]:
        if package["id"] not in used:
            continue
        name = f"{package['name']} {package['version']}"
        if not (package["source"] or "").startswith("registry+"):
            yield f"{name}: comes from `{package['source'] or package['manifest_path']}` and not from the registry"
        if not package["license"]:
            if not package["license_file"]:
                yield f"{name}: says nothing about its licence"
        elif not licence_holds(package["license"]):
            yield f"{name}: licence `{package['license']}` is not among those accepted"


def main():
    faults = set()
    for features in ([], ["--no-default-features", "--features", "codemode-runner/v8"]):
        data = metadata(*features)
        faults.update(edge_faults(data))
        faults.update(package_faults(data))
        present = {package["name"] for package in data["packages"]}
        unknown = (set(NEVER_UNDER) | {"deno_core", "deno_ast"}) - present
        faults.update(f"a rule names `{name}`, which is not there" for name in unknown)
    for fault in sorted(faults):
        print(fault)
    if not faults:
        print("dependency rules hold")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
