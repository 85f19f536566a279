# Makes an apt and a dnf repository with the packages that the tests install. Run in the lab, writes to /repositories.
set -eu
cd /repositories

# deb NAME VERSION [FIELD...]: builds a package from the folder tree/ and from what is in control/.
deb() {
    name=$1 version=$2
    shift 2
    mkdir -p tree/DEBIAN apt
    if [ -d control ]; then cp control/* tree/DEBIAN/; fi
    mkdir -p tree/usr/share/"$name" && echo "$version" >tree/usr/share/"$name"/version
    {
        printf 'Package: %s\nVersion: %s\nMaintainer: lab <lab@localhost>\n' "$name" "$version"
        [ $# -eq 0 ] && echo 'Architecture: all'
        for field in "$@"; do echo "$field"; done
        echo 'Description: a package of the lab'
    } >tree/DEBIAN/control
    dpkg-deb --build --root-owner-group -Znone tree apt >/dev/null
    rm -rf tree control
}

# script NAME: a maintainer script of the next package, from standard input.
script() {
    mkdir -p control
    { echo '#!/bin/sh'; echo 'set -e'; cat; } >control/"$1"
    chmod 755 control/"$1"
}

# file PATH [MODE]: a file of the next package, from standard input.
file() {
    mkdir -p "tree$(dirname "$1")"
    cat >"tree$1"
    chmod "${2:-644}" "tree$1"
}

for version in 1.0-1 1.5~rc1-1 1.5-1 2.0-1 1:0.9-1; do deb tool "$version"; done
for version in 1.0 2.0; do deb plain "$version"; done
for name in one two three four; do deb "$name" 1.0; done
native=$(dpkg --print-architecture)
deb arched 1.0 "Architecture: $native" 'Multi-Arch: same'
deb helper 1.0
deb needy 1.0 'Architecture: all' 'Depends: helper (>= 1.0)'
deb rival 1.0 'Architecture: all' 'Depends: missing | helper'
deb provider 1.0 'Architecture: all' 'Provides: virtual'

# A configuration file that differs between the versions.
for version in 1.0 2.0; do
    echo "setting of $version" | file /etc/configured.conf
    mkdir -p control && echo /etc/configured.conf >control/conffiles
    deb configured "$version"
done

# Cannot be configured before somebody allows it.
script postinst <<'END'
if [ "$1" = configure ] && [ ! -e /run/stubborn-may ]; then
    echo 'stubborn: not before /run/stubborn-may is there' >&2
    exit 3
fi
END
deb stubborn 1.0

# Asks, and does not go on without an answer where somebody listens.
script postinst <<'END'
[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 1
if read -r answer; then exit 1; fi
if [ -t 0 ] || [ -t 1 ]; then exit 1; fi
END
deb curious 1.0

# Is in the middle of its configuration until somebody lets it go on.
script postinst <<'END'
if [ "$1" = configure ]; then
    touch /run/slow-begun
    while [ ! -e /run/slow-may ]; do sleep 0.05; done
fi
END
deb slow 1.0

# What stands in for nginx: files, unit and start are those of the real package, the server is not.
script postinst <<'END'
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    systemctl enable --quiet --now nginx.service
fi
END
script prerm <<'END'
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --quiet --now nginx.service; fi
END
file /etc/nginx/conf.d/default.conf <<'END'
server { listen 80; }
END
file /usr/sbin/nginx 755 <<'END'
#!/bin/sh
cat /etc/nginx/conf.d/*.conf >/run/nginx.read
exec sleep 1000000
END
file /lib/systemd/system/nginx.service <<'END'
[Service]
ExecStart=/usr/sbin/nginx
[Install]
WantedBy=multi-user.target
END
mkdir -p control && echo /etc/nginx/conf.d/default.conf >control/conffiles
deb nginx 1.22.1-9+deb12u3

(cd apt && dpkg-scanpackages --multiversion . /dev/null >Packages 2>/dev/null)

# A repository that comes later.
deb late 1.0
mkdir late && mv apt/late_1.0_all.deb late/
(cd late && dpkg-scanpackages . /dev/null >Packages 2>/dev/null)

# rpm NAME VERSION RELEASE [EPOCH]: builds a package; more of its spec comes from standard input.
rpm() {
    spec=build/$1.spec
    mkdir -p build dnf
    {
        printf 'Name: %s\nVersion: %s\nRelease: %s\nSummary: a package of the lab\n' "$1" "$2" "$3"
        [ -z "${4:-}" ] || echo "Epoch: $4"
        [ -z "${preamble:-}" ] || echo "$preamble"
        printf 'License: none\nBuildArch: noarch\n%%description\nA package of the lab.\n'
        cat
    } >"$spec"
    rpmbuild --quiet -bb --define "_topdir $PWD/build" --define "_rpmdir $PWD/dnf" \
        --define '_build_id_links none' "$spec" >build/log 2>&1 || { cat build/log >&2; exit 1; }
}

nothing='%files'
# What scripts need, and a Debian does not tell rpm that it has.
preamble='Provides: /bin/sh' && echo "$nothing" | rpm shell 1.0 1 && preamble=
for version in '1.0 1' '1.5~rc1 1' '1.5 1' '1.5 2' '2.0 1' '0.9 1 1'; do
    # shellcheck disable=SC2086
    echo "$nothing" | rpm tool $version
done
for version in 1.0 2.0; do echo "$nothing" | rpm plain $version 1; done
for name in one two three four; do echo "$nothing" | rpm "$name" 1.0 1; done
echo "$nothing" | rpm helper 1.0 1
for name in needy rival; do preamble='Requires: helper' && echo "$nothing" | rpm "$name" 1.0 1 && preamble=; done
for version in 1.0 2.0; do
    printf '%s\n' '%install' 'mkdir -p %{buildroot}/etc' "echo 'setting of $version' >%{buildroot}/etc/configured.conf" \
        '%files' '%config(noreplace) /etc/configured.conf' | rpm configured "$version" 1
done
printf '%s\n' '%pre' "echo 'stubborn: not before /run/stubborn-may is there' >&2" '[ -e /run/stubborn-may ] || exit 3' \
    "$nothing" | rpm stubborn 1.0 1
printf '%s\n' '%post' 'touch /run/slow-begun' 'while [ ! -e /run/slow-may ]; do sleep 0.05; done' "$nothing" | rpm slow 1.0 1
# What stands in for nginx, as above. Packages of rpm start nothing.
{
    echo '%install'
    echo 'mkdir -p %{buildroot}/etc/nginx/conf.d %{buildroot}/usr/sbin %{buildroot}/usr/lib/systemd/system'
    echo 'echo "server { listen 80; }" >%{buildroot}/etc/nginx/conf.d/default.conf'
    echo 'printf "#!/bin/sh\\ncat /etc/nginx/conf.d/*.conf >/run/nginx.read\\nexec sleep 1000000\\n" >%{buildroot}/usr/sbin/nginx'
    echo 'printf "[Service]\\nExecStart=/usr/sbin/nginx\\n[Install]\\nWantedBy=multi-user.target\\n" >%{buildroot}/usr/lib/systemd/system/nginx.service'
    echo '%files'
    echo '%config(noreplace) /etc/nginx/conf.d/default.conf'
    echo '%attr(755, root, root) /usr/sbin/nginx'
    echo '/usr/lib/systemd/system/nginx.service'
} | rpm nginx 1.20.1 1
# Several versions of it can be installed at once, as of a kernel.
preamble='Provides: installonlypkg(kernel)'
for version in 1.0 2.0 3.0; do echo "$nothing" | rpm core "$version" 1; done
rm -rf build
createrepo_c --quiet dnf
