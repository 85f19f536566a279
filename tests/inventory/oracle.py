#!/usr/bin/env python3
"""Writes random inventories and patterns, and what Ansible makes of them.

Usage: oracle.py SEED CASES PATTERNS DIRECTORY

Each case is a directory with an inventory and `expected.json`: `hosts` with groups and variables or `error`, and `patterns`
with the hosts that each selects or `error`. ansible-core must be importable.
"""

import json
import os
import random
import re
import sys

os.environ["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "1"
os.environ["ANSIBLE_LOCALHOST_WARNING"] = "0"
os.environ["ANSIBLE_INVENTORY_UNPARSED_WARNING"] = "0"

from ansible.cli.inventory import InventoryCLI  # noqa: E402
from ansible.errors import AnsibleError  # noqa: E402
from ansible.inventory.manager import InventoryManager  # noqa: E402
from ansible.parsing.dataloader import DataLoader  # noqa: E402
from ansible.vars.manager import VariableManager  # noqa: E402
from ansible.module_utils._internal._json._profiles import _tagless  # noqa: E402

GROUPS = ["web", "db", "prod", "stage", "rack_1", "eu", "us", "empty"]
HOSTS = ["web1", "web2", "db1", "mail.example.net", "10.0.0.7", "cache", "node-3", "h_4", "localhost"]
RANGES = ["web[01:03]", "n[1:5:2]", "x[a:c]", "r[1:2]s[0:1]", "10.1.0.[1:3]", "z[08:10]", "p[:2]"]
NAMES = ["port", "mode", "title", "items_", "ansible_host", "ansible_user", "level", "nested", "x1"]
LITERALS = ["80", "0644", "0", "00", "-5", "+7", "1_000", "0x1f", "0o17", "0b11", "1.5", "1e3", ".5", "1.", "-2.5e-3",
            "True", "true", "False", "None", "null", "yes", "abc", "a.b", "10.0.0.1", "1:30", "'x'", "''", "[1,2]",
            "[1,'a',[True]]", "(1,)", "(1)", "()", "{}", "{'a':1}", "{'a':{'b':[1]},2:3}", "80,443", "80,",
            "{{ other }}", "a=b", "b'bytes'", "r'\\n'", "'a''b'", "1__0", "08", "10s", "--1", "-True", "1+2", "...",
            "9223372036854775807", "2024-01-31", "'\\x41\\u00e9'", "\"it's\"", "'unclosed", "[1", "a\\tb", "set()", "0_0"]
QUOTED = ["\"two words\"", "'two words'", "\"say \\\"hi\\\"\"", "a\\ b", "\"{'a': [1, 2]}\"", "'[1, 2]'", "\"80\""]
YAML_VALUES = ["80", "0644", "08", "1_000", "0x1F", "0b11", "0o17", "1.5", "1e3", "1.0e+3", ".5", "7", "yes", "No",
               "on", "off", "true", "~", "null", "", "abc", "\"80\"", "'yes'", "1:30", "190:20:30", "2024-01-31", "[1, yes, a]",
               "{a: 1, b: [x, 0644]}", "\"{{ x }}\"", "'it''s'", "-5", "+5", "1.", "-.5", "_1", "12:99", "1.5.2", "y", "n"]


def value(rng):
    return rng.choice(LITERALS)


def host(rng):
    return rng.choice(HOSTS) if rng.random() < 0.7 else rng.choice(RANGES)


def ini(rng):
    lines = []
    if rng.random() < 0.5:
        lines.append(host_line(rng))
    groups = rng.sample(GROUPS, rng.randint(1, len(GROUPS)))
    for group in groups:
        kind = rng.random()
        if kind < 0.6:
            lines.append(f"[{group}]" + rng.choice(["", "", " # comment"]))
            lines += [host_line(rng) for _ in range(rng.randint(0, 3))]
        elif kind < 0.8:
            lines.append(f"[{group}:children]")
            later = groups if rng.random() < 0.15 else groups[groups.index(group) + 1:]
            lines += rng.sample(later, min(len(later), rng.randint(0, 2)))
            if rng.random() < 0.05:
                lines.append("undeclared")
        else:
            if rng.random() < 0.9:
                lines.append(f"[{group}]")
            lines.append(f"[{group}:vars]")
            lines += [f"{rng.choice(NAMES)}{rng.choice(['=', ' = '])}{value(rng)}{rng.choice(['', '', ' # x'])}"
                      for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.2:
            lines += ["", "# comment", "; comment"]
    if rng.random() < 0.3:
        lines += ["[all:vars]", f"{rng.choice(NAMES)}={value(rng)}"]
    if rng.random() < 0.2:
        group = rng.choice(groups)
        lines += [f"[{group}]", f"[{group}:vars]", f"ansible_group_priority={rng.choice([2, 5, 10])}"]
    if rng.random() < 0.03:
        lines.append(rng.choice(["[broken", "[a b]", "[web:other]", "host 'unclosed", "host novalue", "host:", "bad[1:", "---"]))
    return "\n".join(lines) + "\n"


def host_line(rng):
    words = [host(rng) + (rng.choice([":22", ":2222"]) if rng.random() < 0.15 else "")]
    for _ in range(rng.choice([0, 0, 1, 2])):
        text = rng.choice(QUOTED) if rng.random() < 0.3 else value(rng)
        words.append(f"{rng.choice(NAMES)}={text}")
    return " ".join(words) + rng.choice(["", "", "  # comment"])


def yaml(rng):
    groups = rng.sample(GROUPS, rng.randint(1, 5))
    lines = ["all:"]
    lines += yaml_body(rng, groups, "  ", 0)
    for group in groups[:1]:
        if rng.random() < 0.4:
            lines.append(f"{group}:")
            lines += yaml_body(rng, [], "  ", 2)
    return "---\n" * rng.randint(0, 1) + "\n".join(lines) + "\n"


def yaml_body(rng, groups, indent, depth):
    lines = []
    if rng.random() < 0.7:
        lines.append(f"{indent}hosts:")
        for name in {host(rng) for _ in range(rng.randint(0, 3))}:
            name = f'"{name}"' if "[" in name else name
            lines.append(f"{indent}  {name}:")
            lines += yaml_variables(rng, indent + "    ")
    if rng.random() < 0.5:
        lines.append(f"{indent}vars:")
        lines += yaml_variables(rng, indent + "  ")
    if groups and depth < 3:
        lines.append(f"{indent}children:")
        for group in groups:
            lines.append(f"{indent}  {group}:")
            below = [other for other in groups if other > group] if rng.random() < 0.3 else []
            lines += yaml_body(rng, below, indent + "    ", depth + 1)
    return lines


def yaml_variables(rng, indent):
    names = rng.sample(NAMES, rng.choice([0, 1, 2]))
    return [f"{indent}{name}: {rng.choice(YAML_VALUES)}".rstrip() for name in names]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def variables(rng):
    return "\n".join(yaml_variables(rng, "")) + "\n"


def generate(rng, directory):
    """Writes an inventory and returns the paths to give to `-i`."""
    form = rng.random()
    if form < 0.5:
        sources = ["hosts.ini" if rng.random() < 0.7 else "hosts"]
        write(f"{directory}/{sources[0]}", ini(rng))
    elif form < 0.8:
        sources = [rng.choice(["hosts.yml", "hosts.yaml"])]
        write(f"{directory}/{sources[0]}", yaml(rng))
    elif form < 0.9:
        sources = ["inventory"]
        write(f"{directory}/inventory/01-hosts", ini(rng))
        write(f"{directory}/inventory/02.yml", yaml(rng))
        write(f"{directory}/inventory/notes.md", "not an inventory")
    else:
        sources = ["a.ini", "more/b.yml"]
        write(f"{directory}/a.ini", ini(rng))
        write(f"{directory}/more/b.yml", yaml(rng))
    base = f"{directory}/inventory" if sources == ["inventory"] else directory
    for group in rng.sample(GROUPS + ["all"], rng.choice([0, 1, 3])):
        if rng.random() < 0.3:
            write(f"{base}/group_vars/{group}/b.yml", variables(rng))
            write(f"{base}/group_vars/{group}/a", variables(rng))
            write(f"{base}/group_vars/{group}/.hidden", "port: 1")
        else:
            write(f"{base}/group_vars/{group}{rng.choice(['', '.yml', '.yaml'])}", variables(rng))
    for name in rng.sample(HOSTS, rng.choice([0, 1, 2])):
        write(f"{base}/host_vars/{name}{rng.choice(['', '.yml'])}", variables(rng))
    return sources


def pattern(rng):
    def one():
        word = rng.choice(GROUPS + HOSTS + ["web*", "*", "all", "*.net", "h?che", "?ache", "[wd]*", "~web.*", "~^(db|n)\\d",
                                           "~.*[13]$", "ungrouped", "n1", "x[ab]", "nothing", "[!w]*", "e*"])
        if rng.random() < 0.4 and not word.startswith("~"):
            word += rng.choice(["[0]", "[1]", "[-1]", "[0:1]", "[1:]", "[0:0]", "[2:0]"])
        return word
    words = [one()]
    for _ in range(rng.choice([0, 0, 1, 2, 3])):
        words.append(rng.choice(["", "&", "!"]) + one())
    if rng.random() < 0.05:
        words[0] = "!" + words[0]
    return rng.choice([":", ","]).join(words)


def expected(directory, sources, patterns):
    loader = DataLoader()
    loader.set_basedir(directory)
    try:
        inventory = InventoryManager(loader=loader, sources=[f"{directory}/{source}" for source in sources])
        manager = VariableManager(loader=loader, inventory=inventory)
        hosts = {}
        for machine in inventory.get_hosts("all"):
            found = manager.get_vars(host=machine, include_hostvars=False, stage="all")
            hosts[machine.name] = {
                "groups": sorted(group.name for group in machine.get_groups() if group.name != "all"),
                "variables": InventoryCLI._remove_internal(found),
            }
    except Exception as error:  # Whatever Ansible cannot load, ccm must not load either.
        return {"error": str(error)[:300]}
    selected = []
    # Ansible walks groups below the first level in the order of their memory addresses: positions mean nothing there.
    deep = any(group.depth > 1 for group in inventory.groups.values())
    for text in patterns:
        if deep and re.search(r"\[-?\d", text):
            continue
        try:
            names = sorted({machine.name for machine in inventory.list_hosts(text) if machine in inventory.hosts.values()})
            selected.append({"pattern": text, "hosts": names})
        except AnsibleError as error:
            selected.append({"pattern": text, "error": str(error)[:300]})
    return {"hosts": hosts, "patterns": selected}


def main():
    seed, cases, patterns, directory = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    for number in range(cases):
        rng = random.Random(f"{seed}.{number}")
        case = f"{directory}/{number}"
        os.makedirs(case)
        sources = generate(rng, case)
        result = expected(case, sources, [pattern(rng) for _ in range(patterns)])
        result["sources"] = sources
        text = json.dumps(result, cls=_tagless.Encoder)
        write(f"{case}/expected.json", text)


main()
