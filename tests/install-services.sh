#!/usr/bin/env bash
# Installs with apt-get what tests and pictures need and this machine lacks. Programs only: nothing is started,
# tests start their own instances. Without root or apt-get the tests that need a missing program say so and skip;
# those of the emulated node fail.
set -euo pipefail

# program -> Debian package; PostgreSQL keeps its programs off the PATH.
declare -A packages=(
  [redis-server]=redis-server
  [prometheus]=prometheus
  [prometheus-node-exporter]=prometheus-node-exporter
  [chromium]=chromium
  [xgettext]=gettext
  [dbus-daemon]=dbus
  [systemd-analyze]=systemd
  [qemu-system-x86_64]=qemu-system-x86
  [qemu-img]=qemu-utils
  [mmdebstrap]=mmdebstrap
  [busybox]=busybox-static
  [ssh]=openssh-client
  [mke2fs]=e2fsprogs
  [ip]=iproute2
)

missing=()
for program in "${!packages[@]}"; do
  command -v "$program" >/dev/null || missing+=("${packages[$program]}")
done
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
compgen -G '/usr/share/fonts/opentype/noto/NotoSansCJK*' >/dev/null || missing+=(fonts-noto-cjk)

[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "Not installed, and only root on a Debian system can change that here: ${missing[*]}"
  echo "The tests that need them are skipped and named at the end, or fail (tests/node)."
  exit 0
fi

# Debian's packages start their service and make a database at once unless these say no; both go away again.
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/numaweb-tests.conf
written=()
trap 'rm -f "${written[@]}"' EXIT
if [ ! -e "$policy" ]; then
  written+=("$policy")
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod +x "$policy"
fi
if [ ! -e "$cluster" ]; then
  written+=("$cluster")
  mkdir -p "$(dirname "$cluster")"
  echo "create_main_cluster = false" > "$cluster"
fi

echo "Installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
install() { apt-get install --yes --no-install-recommends "$@"; } >>"$log" 2>&1
if ! { apt-get update >"$log" 2>&1 && install "${missing[@]}"; }; then
  # One that this system does not have keeps none of the others away.
  lacking=()
  for package in "${missing[@]}"; do
    install "$package" || lacking+=("$package")
  done
  if [ ${#lacking[@]} -gt 0 ]; then
    tail -n 20 "$log"
    echo "apt-get could not install: ${lacking[*]} (whole log: $log)."
    echo "The tests that need them are skipped and named at the end, or fail (tests/node)."
    exit 0
  fi
fi
rm -f "$log"
