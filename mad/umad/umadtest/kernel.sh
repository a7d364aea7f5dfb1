#!/bin/sh
# kernel.sh FOLDER: unpacks Debian's kernel, and QEMU where the machine has
# none, into FOLDER, and compiles the module of the virtual adapters for it.
# Nothing is installed, no maintainer script runs, root is not needed. What is
# there already is left alone.
#
#	kernel         as QEMU starts it
#	lib/modules    those of InfiniBand and Soft-RoCE
#	vib            the module of the virtual adapters
#	usr            QEMU; headers of the kernel
set -eu
vib=$(cd "$(dirname "$0")/testdata/vib" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# Lists of packages of our own serve where the machine's are missing or old.
apt() { apt-get -qq -o APT::Sandbox::User=root -o Acquire::Retries=3 $lists "$@"; }
lists=
own_lists() {
	mkdir -p "$folder/lists/partial"
	lists="-o Dir::State::Lists=$folder/lists -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
	apt update
}

# fetch WHAT: downloads the packages that WHAT prints the names of.
fetch() {
	command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
		echo "kernel: apt-get and dpkg-deb are needed" >&2
		exit 1
	}
	rm -rf "$folder/debs"
	mkdir -p "$folder/debs"
	(cd "$folder/debs" && packages=$($1) && apt download $packages) 2>/dev/null || {
		own_lists
		(cd "$folder/debs" && packages=$($1) && apt download $packages)
	}
}

depends() { apt-cache $lists depends "$1" | awk -v want="$2" '/Depends: / && $2 ~ "^" want {print $2}'; }

kernel_packages() {
	image=$(depends linux-image-amd64 linux-image- | head -n 1)
	[ -n "$image" ] || return 1
	headers=linux-headers-${image#linux-image-}
	echo "$image" "$headers" $(depends "$headers" 'linux-(headers|kbuild)-')
}

qemu_packages() {
	packages=$(apt -s --no-install-recommends install qemu-system-x86) || return 1
	echo "$packages" | awk '/^Inst /{print $2}'
}

# uncompress KERNEL: QEMU starts a bare kernel sooner than it unpacks itself.
# Where it lies stands in the header (Documentation/x86/boot.rst: setup_sects,
# payload_offset); what is not compressed by xz starts quickly enough.
uncompress() {
	number() { od -An -tu"$2" -j"$1" -N"$2" "$3" | tr -d ' '; }
	start=$((($(number 497 1 "$1") + 1) * 512 + $(number 584 4 "$1") + 1))
	tail -c +$start "$1" 2>/dev/null | xz -dc --single-stream 2>/dev/null
}

[ -e "$folder/kernel" ] || {
	fetch kernel_packages
	rm -rf "$folder/new"
	mkdir -p "$folder/new"
	for deb in "$folder"/debs/*.deb; do
		case $deb in
		*/linux-image-*) dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder/new" --wildcards \
			'./boot/vmlinuz-*' './lib/modules/*/infiniband/core/*' './lib/modules/*/infiniband/sw/rxe/*' \
			'./lib/modules/*/net/dummy.ko*' './lib/modules/*/*udp_tunnel.ko*' './lib/modules/*/crc32_generic.ko*' ;;
		*) dpkg-deb -x "$deb" "$folder/new" ;;
		esac
	done
	find "$folder/new/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	uncompress "$folder"/new/boot/vmlinuz-* >"$folder/kernel.new" || cp "$folder"/new/boot/vmlinuz-* "$folder/kernel.new"
	# Debian's makefile of the headers names the folder they would be in.
	sed -i "s|^include /usr/src|include $folder/usr/src|" "$folder"/new/usr/src/*/Makefile
	rm -rf "$folder/debs" "$folder/new/boot"
	cp -a "$folder"/new/. "$folder"
	rm -rf "$folder/new"
	mv "$folder/kernel.new" "$folder/kernel" # the last, for it says that all is there
}
[ -e "$folder/usr/bin/qemu-system-x86_64" ] || command -v qemu-system-x86_64 >/dev/null || {
	fetch qemu_packages
	for deb in "$folder"/debs/*.deb; do
		dpkg-deb -x "$deb" "$folder"
	done
	rm -rf "$folder/debs" "$folder/usr/share/doc" "$folder/usr/share/man"
}
rm -rf "$folder/lists"
[ "$folder/vib/vib.ko" -nt "$vib/vib.c" ] || {
	rm -rf "$folder/vib"
	cp -r "$vib" "$folder/vib"
	make -s -C "$folder"/usr/src/linux-headers-*-amd64 M="$folder/vib" CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= modules
	strip -g "$folder/vib/vib.ko"
}
