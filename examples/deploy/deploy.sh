#!/bin/sh
# An application from its release, as a shell script: deploy.sh URL SHA256
set -eu
url=$1 sum=$2
cd "$(dirname "$0")"

eval "$(ccm session new)"
root="--owner root --group root"

ccm ensure file /opt/dl directory $root --mode 0755
ccm ensure archive /opt/dl/app.tar.gz --url "$url" --checksum "$sum" \
    --extract-parent /opt/app --creates /opt/app/bin/app $root --require file#/opt/dl
ccm ensure file /etc/app.conf --content-file app.conf $root --mode 0644 --require archive#/opt/dl/app.tar.gz
ccm ensure file /etc/systemd/system/app.service --source app.service $root --mode 0644
ccm ensure service app running --enable --require archive#/opt/dl/app.tar.gz \
    --subscribe file#/etc/app.conf --subscribe file#/etc/systemd/system/app.service
# Not before: until a session is reported, the next one follows what this one changed, should it break off.
ccm session report --remove
