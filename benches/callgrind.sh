#!/bin/bash
# Counts the instructions of six fixed workloads and compares them with those in benches/callgrind.txt: more than 5 % above
# is a failure. A busy machine does not change the counts. `UPDATE=1` writes the counts of this build instead.
#
#     benches/callgrind.sh PROGRAM
set -euo pipefail

program=$(realpath "$1")
cd "$(dirname "$0")/.."
counts=benches/callgrind.txt
tolerance=5
folder=$(realpath -m target/tmp/callgrind)
rm -rf "$folder"
mkdir -p "$folder/files"
trap 'rm -rf "$folder"' EXIT
# One after the other: how work is shared between threads differs from run to run.
export CCM_STATE_DIR=$folder/state CCM_SEQUENTIAL=1

# A thousand files of 400 bytes.
files() {
  for ((at = 0; at < 1000; at++)); do
    printf -- '- file:\n    - %s/files/%05d.conf:\n        content: |\n' "$folder" "$at"
    for line in 0 1 2 3 4 5 6 7 8 9; do printf '          line %d of the file number %05d ......\n' "$line" "$at"; done
    printf '        owner: root\n        group: root\n        mode: "0640"\n'
  done
}

# A thousand resources whose names and properties come from data, and data from a hierarchy.
templates() {
  printf 'hierarchy:\n  order: [ "os:${ Facts.host.info.os }", common ]\n'
  printf 'data:\n  base: %s\n  mode: "0640"\n  services: [' "$folder"
  for ((at = 0; at < 500; at++)); do printf '{ name: app%04d, port: %d }, ' "$at" $((8000 + at)); done
  printf ']\noverrides:\n  common: { mode: "0600" }\n  os:linux: { owner: root }\n'
  printf 'ccm:\n  resources:\n    - file:\n        - for_each: "{{ Data.services }}"\n          "{{ Data.base }}/{{ each.name }}.conf":\n'
  printf '            content: "port = {{ each.port }}\\n"\n'
  printf '            owner: "{{ Data.owner }}"\n            group: root\n            mode: "{{ Data.mode }}"\n'
  for ((at = 0; at < 500; at++)); do
    printf '        - "{{ Data.base }}/%04d":\n            content: "{{ Data.mode }} {{ len(Data.services) }}"\n' "$at"
    printf '            owner: root\n            group: root\n            mode: "0640"\n'
  done
}

files > "$folder/files.yaml"
templates > "$folder/templates.yaml"
printf '[]\n' > "$folder/empty.yaml"

# Prints the number of instructions that the program takes.
count() {
  local log=$folder/log
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" > "$folder/out" 2> "$log" || {
    cat "$folder/out" "$log" >&2
    return 1
  }
  sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$log"
}

measured=
measure() {
  local name=$1 number
  shift
  number=$(count "$@")
  measured+="$name $number"$'\n'
}

measure empty apply "$folder/empty.yaml"
measure ensure ensure file "$folder/one" --content "on {{ Facts.host.info.os }}" --mode 0640
measure load validate "$folder/files.yaml"
measure templates validate "$folder/templates.yaml"
measure create apply "$folder/files.yaml"
# Old enough to be remembered, so that every run does the same.
sleep 3
"$program" apply "$folder/files.yaml" > /dev/null
measure unchanged apply "$folder/files.yaml"
measured=${measured%$'\n'}
if [ "${UPDATE:-}" = 1 ]; then
  printf '# Instructions of each workload; written by `make callgrind UPDATE=1`.\n%s\n' "$measured" > "$counts"
  cat "$counts"
  exit
fi
status=0
while read -r name now; do
  before=$(awk -v name="$name" '$1 == name { print $2 }' "$counts")
  if [ -z "$before" ]; then
    echo "$name: not in $counts; write it with UPDATE=1"
    status=1
    continue
  fi
  awk -v name="$name" -v now="$now" -v before="$before" -v most=$tolerance 'BEGIN {
    change = 100 * (now - before) / before
    printf "%-10s %12d instructions, %+.1f %%%s\n", name, now, change, (change > most) ? ": too many" : ""
    exit (change > most) }' || status=1
done <<< "$measured"
exit $status
