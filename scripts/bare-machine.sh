#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The README's two commands on a bare Debian 12: a fresh debootstrap with a clean clone of this checkout's HEAD in it.
#   scripts/bare-machine.sh [demo|check|both]      (root; needs debootstrap and a Debian mirror)
# MIRROR=URL chooses the mirror; KEEP=DIR uses and keeps that root file system. Exit status: of the last command that ran.
set -eu
what=${1:-both}
top=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
mirror=${MIRROR:-http://deb.debian.org/debian}

[ "$(id -u)" = 0 ] || { echo "bare-machine: needs root for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "bare-machine: debootstrap is not installed: apt-get install debootstrap" >&2; exit 1; }

root=${KEEP:-$(mktemp -d)}
cleanup() {
	umount "$root/proc" 2>/dev/null || true
	[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
}
trap cleanup EXIT

[ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 ||
	{ tail -3 "$root.log" >&2; exit 1; }
rm -f "$root.log"
for f in /etc/resolv.conf /etc/hosts; do [ -e $f ] && cp -L $f "$root$f"; done
# the machine's way to its package mirror, if it has one of its own
for f in /etc/apt/apt.conf.d/*proxy*; do [ -e "$f" ] && cp "$f" "$root/etc/apt/apt.conf.d/"; done
rm -rf "$root/root/inlay"
git clone -q "$top" "$root/root/inlay"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"

run() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LC_ALL=C.UTF-8 \
	/bin/bash -c "cd /root/inlay && ./bootstrap $1"; }
case $what in
demo | check) run "$what" ;;
both) run demo && run check ;;
*) echo "usage: bare-machine.sh [demo|check|both]" >&2; exit 2 ;;
esac
