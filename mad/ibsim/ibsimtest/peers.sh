#!/bin/sh
# peers.sh FOLDER [PACKAGE]: unpacks the Debian packages of the programs that the tests
# compare with into FOLDER. Nothing is installed, no maintainer script runs
# (opensm's would start a subnet manager, slurmctld's a scheduler), root is not needed. What the machine
# has already is used from there. A folder that is complete is left alone.
# With PACKAGE, that one, for the program of its name, and what it depends on.
set -eu
folder=$1
packages='ibsim-utils opensm infiniband-diags ibutils tshark slurmctld slurmd slurm-client munge mandoc neovim'
programs='ibsim opensm ibnetdiscover saquery ibdmchk tshark slurmctld-wlm slurmd-wlm scontrol munged mandoc nvim'
[ -z "${2-}" ] || packages=$2 programs=$2

complete() {
	for program in $programs; do
		found=
		for d in "$1/usr/bin" "$1/usr/sbin" /usr/bin /usr/sbin; do
			[ -x "$d/$program" ] && found=yes && break
		done
		[ -n "$found" ] || return 1
	done
}

complete "$folder" && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
	echo "peers: apt-get and dpkg-deb are needed to unpack: $packages" >&2
	exit 1
}

new=$folder.new # becomes $folder once it is whole
rm -rf "$new"
mkdir -p "$new/debs" "$new/lists/partial"
new=$(cd "$new" && pwd)
trap 'rm -rf "$new"' EXIT

# Without root the machine's package lists cannot be fetched afresh, and with
# it they are none of our business: lists of our own serve where the machine's
# are missing, or so old that a package of theirs is gone.
apt() { apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 $lists "$@"; }
fetch() {
	need=$(apt -s --no-install-recommends install $packages) || return
	need=$(echo "$need" | awk '/^Inst /{print $2}')
	[ -z "$need" ] || (cd "$new/debs" && apt download $need)
}
lists=
fetch 2>/dev/null || {
	lists="-o Dir::State::Lists=$new/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
	apt update
	fetch
}
for deb in "$new"/debs/*.deb; do
	[ ! -e "$deb" ] || dpkg-deb -x "$deb" "$new"
done
rm -rf "$new/debs" "$new/lists"
complete "$new" || {
	echo "peers: the packages $packages do not hold all of: $programs" >&2
	exit 1
}
rm -rf "$folder"
mv "$new" "$folder"
