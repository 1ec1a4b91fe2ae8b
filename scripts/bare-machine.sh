#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The README's two commands on a bare Debian 12: a fresh debootstrap with a clean clone of this checkout's HEAD in it.
#
#   scripts/bare-machine.sh [demo|check|both]      (root; needs debootstrap and a Debian mirror)
#
# MIRROR=URL chooses the mirror. KEEP=DIR makes (or uses again) that root file system and leaves it there. REF=COMMIT
# takes another commit than HEAD. What is not committed is not in it, and that is said.
# Exit status: of the command that failed, or 0. The last line is the last command's.
set -eu
what=${1:-both}
case $what in demo | check | both) ;; *) echo "usage: bare-machine.sh [demo|check|both]" >&2; exit 2 ;; esac
top=$(git -C "$(dirname "$(readlink -f "$0")")" rev-parse --show-toplevel)
mirror=${MIRROR:-http://deb.debian.org/debian}

[ "$(id -u)" = 0 ] || { echo "bare-machine: needs root for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "bare-machine: debootstrap is not installed: apt-get install debootstrap" >&2; exit 1; }

# Mounts of its own: whatever happens, nothing stays mounted. (The pids stay those of the machine: live tests need them.)
if [ -z "${BARE_MACHINE_INSIDE:-}" ]; then
	root=${KEEP:-$(mktemp -d)}
	status=0
	BARE_MACHINE_INSIDE=1 unshare --mount -- "$0" "$what" "$root" || status=$?
	[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root"
	exit $status
fi
root=$2

log=$root/bare-machine.log
mkdir -p "$root"
chmod 755 "$root" # mktemp lets nobody else in, so that in there nobody could run anything
if [ ! -e "$root/etc/debian_version" ]; then
	echo "bare-machine: debootstrap bookworm from $mirror ..."
	debootstrap --variant=minbase bookworm "$root" "$mirror" >"$log" 2>&1 || { tail -3 "$log" >&2; exit 1; }
fi
# the machine's way to the network and to its package mirror, if it has one of its own
for f in /etc/resolv.conf /etc/hosts; do [ ! -e $f ] || cp -L $f "$root$f"; done
if command -v apt-config >/dev/null; then
	# proxies, and whether its clock is to be trusted
	apt-config dump | grep -E '^Acquire::(Check-|[a-z]+::Proxy)' >"$root/etc/apt/apt.conf.d/99this-machine" || true
fi
pass=(PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb)
for v in http_proxy https_proxy no_proxy JOBS; do [ -z "${!v:-}" ] || pass+=("$v=${!v}"); done

rm -rf "$root/root/inlay"
git -c advice.detachedHead=false clone -q --no-hardlinks "$top" "$root/root/inlay"
commit=$(git -C "$top" rev-parse --short "${REF:-HEAD}")
git -C "$root/root/inlay" checkout -q "$(git -C "$top" rev-parse "${REF:-HEAD}")"
changed=$(git -C "$top" status --porcelain | wc -l)
echo "bare-machine: Debian $(cat "$root/etc/debian_version"), commit $commit; $changed files changed or new here are not in it"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys" && mount --make-rslave "$root/sys"
mount --rbind /dev "$root/dev" && mount --make-rslave "$root/dev"

run() {
	echo "bare-machine: ./bootstrap $1"
	chroot "$root" /usr/bin/env -i "${pass[@]}" /bin/bash -c "cd /root/inlay && ./bootstrap $1"
}
case $what in
both) run demo && run check ;;
*) run "$what" ;;
esac
