#!/bin/sh
# notes.sh: prints the release notes: the first section of CHANGELOG.md, and the modules that the
# program requires directly, with their age on the day of the release (Date in fabsh.go). The reasons
# in the table are the comments of go.mod; they also explain indirect modules of little use.
set -eu
cd "$(dirname "$0")/../.."
date=$(sed -n 's/^const Date = "\(.*\)"/\1/p' fabsh.go)
version=$(sed -n 's/^const Version = "\(.*\)"/\1/p' fabsh.go)

echo "# fabsh $version"
echo
awk '/^## / {n++; next} n == 1' CHANGELOG.md
cat <<END
## Dependencies

Modules that the program requires, and their age on $date. SHA256SUMS has the checksums of all files; each \`.cdx.json\` lists all modules of a program (CycloneDX).

| module | version | age, days | |
|---|---|---|---|
END
now=$(date -u -d "$date" +%s)
${GO:-go} mod edit -print | sed -n 's,^	\([^ ]*\) \(v[^ ]*\)\( // \)*\(.*\)$,\1 \2 \4,p' | while read -r path version why; do
	case $why in
	indirect) continue ;;
	"indirect; "*) why="indirect: ${why#indirect; }" ;;
	esac
	time=$(${GO:-go} list -m -f '{{.Time.Unix}}' "$path@$version")
	echo "| $path | $version | $(((now - time) / 86400)) | $why |"
done
