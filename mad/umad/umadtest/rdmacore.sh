#!/bin/sh
# rdmacore.sh SOURCE FOLDER: compiles tools of infiniband-diags from the source of
# rdma-core into FOLDER, each with its libraries in it: those of a release that
# libumad2sim does not serve. It needs gcc, and nothing of what rdma-core builds with.
set -eu
src=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
tools='dump_fts ibaddr iblinkinfo ibnetdiscover ibping ibportstate ibqueryerrors ibroute ibtracert perfquery saquery sminfo smpquery'

[ -d "$src/libibumad" ] && [ -d "$src/infiniband-diags" ] || {
	echo "rdmacore: $src is no source of rdma-core" >&2
	exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
inc=$work/include
mkdir -p "$inc/infiniband" "$inc/util"
cp "$src"/libibumad/*.h "$src"/libibmad/mad.h "$src"/libibmad/mad_osd.h "$src"/libibnetdisc/ibnetdisc*.h "$inc/infiniband"
cp "$src"/util/*.h "$src"/libibmad/iba_types.h "$inc/util"
cp -r "$src/ccan" "$src/kernel-headers/rdma" "$inc"
# What its configuration would find out, as far as these programs ask.
cat >"$inc/config.h" <<EOF
#define HAVE_STATEMENT_EXPR 1
#define HAVE_BUILTIN_TYPES_COMPATIBLE_P 1
#define HAVE_TYPEOF 1
#define HAVE_ISBLANK 1
#define HAVE_BUILTIN_CLZ 1
#define HAVE_BUILTIN_CLZL 1
#define PACKAGE_VERSION "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' "$src/CMakeLists.txt")"
#define STREAM_CLOEXEC "e"
#define RDMA_CDEV_DIR "/dev/infiniband"
#define IBDIAG_CONFIG_PATH "/etc/infiniband-diags"
#define IBDIAG_NODENAME_MAP_PATH "/etc/rdma/ib-node-name-map"
EOF
flags="-O1 -w -std=gnu11 -D_GNU_SOURCE -include $inc/config.h -I$inc -I$src/infiniband-diags"
cd "$work"
gcc -c $flags "$src"/libibumad/*.c "$src"/libibmad/*.c "$src"/libibnetdisc/*.c "$src"/ccan/*.c \
	"$src"/util/cl_map.c "$src"/util/node_name_map.c "$src"/util/open_cdev.c "$src"/util/util.c "$src"/infiniband-diags/ibdiag_*.c
for tool in $tools; do
	gcc $flags -o "$out/$tool" "$src/infiniband-diags/$tool.c" ./*.o -lpthread
done
