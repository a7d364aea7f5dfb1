#!/bin/sh
# peers.sh FOLDER [PACKAGE]: unpacks the Debian packages of the programs that the tests
# use into FOLDER. Nothing is installed, no maintainer script runs
# (opensm's would start a subnet manager, slurmctld's a scheduler), root is not needed. What the machine
# has already is used from there. A folder that is complete is left alone.
# The files of each package are listed in FOLDER/var/lib/dpkg/info/PACKAGE.md5sums, where dpkg
# keeps the lists of installed packages.
# With PACKAGE, that one, and what it depends on.
set -eu
folder=$1
packages=${2-ibsim-utils opensm infiniband-diags ibutils tshark slurmctld slurmd slurm-client munge postgresql mandoc neovim emacs-nox elpa-eglot python3-minimal less strace}
info=var/lib/dpkg/info

complete() {
	for package in $packages; do
		[ -e "$1/$info/$package.md5sums" ] || [ -e "/$info/$package.md5sums" ] || return 1
	done
}

complete "$folder" && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
	echo "peers: apt-get and dpkg-deb are needed to unpack: $packages" >&2
	exit 1
}

new=$folder.new # becomes $folder once it is whole
rm -rf "$new"
mkdir -p "$new/debs" "$new/lists/partial" "$new/$info"
new=$(cd "$new" && pwd)
trap 'rm -rf "$new"' EXIT

# Without root the machine's package lists cannot be fetched afresh, and with
# it they are none of our business: lists of our own serve where the machine's
# are missing, or so old that a package of theirs is gone.
apt() {
	[ -z "$own" ] || set -- -o "Dir::State::Lists=$new/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
	apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}
fetch() {
	need=$(apt -s --no-install-recommends install $packages) || return
	need=$(echo "$need" | awk '/^Inst /{print $2}')
	[ -z "$need" ] || (cd "$new/debs" && apt download $need)
}
own=
fetch 2>/dev/null || {
	own=yes
	apt update
	fetch
}
for deb in "$new"/debs/*.deb; do
	[ -e "$deb" ] || continue
	dpkg-deb -x "$deb" "$new"
	name=${deb##*/}
	dpkg-deb -I "$deb" md5sums >"$new/$info/${name%%_*}.md5sums" || rm "$new/$info/${name%%_*}.md5sums" # of a package without files
done
rm -rf "$new/debs" "$new/lists"
complete "$new" || {
	echo "peers: not all of these packages were found: $packages" >&2
	exit 1
}
rm -rf "$folder"
mv "$new" "$folder"
