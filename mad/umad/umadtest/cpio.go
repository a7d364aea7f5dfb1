//go:build linux

package umadtest

import (
	"bytes"
	"fmt"
	"path"
)

// archive is an initial RAM disk: a cpio of the "newc" format
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	bytes.Buffer
	inode int
	there map[string]bool
}

const (
	modeFile   = 0o100000
	modeFolder = 0o040000
	modeDevice = 0o020000
)

// file adds a file and the directories above it.
func (a *archive) file(name string, mode int, content []byte) {
	a.folder(path.Dir(name))
	a.add(name, modeFile|mode, 0, 0, content)
}

func (a *archive) folder(name string) {
	if name == "/" || a.there[name] {
		return
	}
	a.folder(path.Dir(name))
	a.add(name, modeFolder|0o755, 0, 0, nil)
}

// add writes an entry, once; major and minor are of a device.
func (a *archive) add(name string, mode, major, minor int, content []byte) {
	if a.there[name] {
		return
	}
	if a.there == nil {
		a.there = map[string]bool{}
	}
	a.there[name] = true
	a.inode++
	fmt.Fprint(a, "070701")
	for _, field := range []int{
		a.inode, mode, 0, 0, 1, 0, len(content), // user, group, links, time
		0, 0, major, minor, len(name), 0, // without the slash, with a NUL
	} {
		fmt.Fprintf(a, "%08X", field)
	}
	fmt.Fprintf(a, "%s\x00", name[1:])
	a.pad()
	a.Write(content)
	a.pad()
}

func (a *archive) pad() {
	for a.Len()%4 != 0 {
		a.WriteByte(0)
	}
}

// end closes the archive.
func (a *archive) end() { a.add("/TRAILER!!!", 0, 0, 0, nil) }
