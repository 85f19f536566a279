#!/usr/bin/env python3
"""Prints the licences of everything that is part of the binary: `notices.py TARGET`.

A crate that is only used to build or to test is left out. Texts that several crates share are printed once.
"""

import json
import pathlib
import subprocess
import sys

NAMES = ("LICEN", "COPYING", "NOTICE", "UNLICENSE")


def linked(metadata):
    """Returns the packages that are linked into the binary, by name and version."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    ahead, seen = [metadata["resolve"]["root"]], set()
    while ahead:
        node = nodes[ahead.pop()]
        if node["id"] in seen:
            continue
        seen.add(node["id"])
        for dependency in node["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                ahead.append(dependency["pkg"])
    packages = [package for package in metadata["packages"] if package["id"] in seen and package["source"]]
    return sorted(packages, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Returns what the package's own files say about its licence."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.upper().startswith(NAMES)]
    return [path.read_text(errors="replace").strip() for path in files]


def main():
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={sys.argv[1]}"]
    packages = linked(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    print("ccm is made of the following, besides its own code (Apache-2.0, see LICENSE).\n")
    users = {}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license']}, {package['repository'] or 'https://crates.io/crates/' + package['name']}")
        for text in texts(package):
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        print(f"\n{'=' * 79}\n{', '.join(names)}\n{'=' * 79}\n\n{text}")


main()
