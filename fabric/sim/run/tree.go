//go:build linux

// Package tree is what programs see of a host's InfiniBand devices below /sys and /dev:
// the files, and their text, which is read from the subnet whenever one is opened.
//
//	tree.go    Tree: paths and what they stand for
//	text.go    the text of the files
//
// Sources: Linux 6.1: drivers/infiniband/core sysfs.c, user_mad.c, uverbs_main.c.

package run

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"fabsh/fabric/sim"
)

// treeAdapter is a device: a channel adapter, or a switch.
type treeAdapter struct {
	Name  string // "ibsim0"
	Ports []treePort
}

// treePort is a port of an adapter.
type treePort struct {
	Num    int
	Client *sim.Client
}

// entryKind is what a path stands for.
type entryKind uint8

// The kinds of entries.
const (
	entryFolder entryKind = iota
	entryText
	entryUMAD // /dev/infiniband/umadN
	entryISSM // /dev/infiniband/issmN
	entryVerb // /dev/infiniband/uverbsN
)

// Numbers of the devices (IB_UMAD_MAJOR, IB_ISSM_MINOR_BASE).
const (
	umadMajor = 231
	issmMinor = 64
	verbMinor = 192
)

// treeEntry is a file or a folder.
type treeEntry struct {
	Kind  entryKind
	Minor uint32 // of a device
	Port  int    // of a device: the port's index in Tree.Ports
	read  func() (text string, ok bool)
}

// Read returns the text of a file; false: the kernel fails to read it, with EINVAL.
func (e *treeEntry) Read() (string, bool) { return e.read() }

// fileTree has the files of a host. It is immutable, and safe for concurrent use.
type fileTree struct {
	Ports   []treePort // of all adapters, in the order of their umad files
	entries map[string]*treeEntry
}

// The folders that belong to the tree, with all below them.
var treeRoots = []string{"/sys/class/infiniband", "/sys/class/infiniband_mad", "/sys/class/infiniband_verbs", "/dev/infiniband"}

// inFileTree reports whether a clean absolute path belongs to the tree, whether or not there is
// a file of that name.
func inFileTree(p string) bool {
	return slices.ContainsFunc(treeRoots, func(root string) bool {
		return strings.HasPrefix(p, root) && (len(p) == len(root) || p[len(root)] == '/')
	})
}

// newFileTree returns the tree of a host with these adapters.
func newFileTree(adapters []treeAdapter) *fileTree {
	t := &fileTree{entries: map[string]*treeEntry{}}
	for _, root := range treeRoots {
		t.folder(root)
	}
	t.text("/sys/class/infiniband_mad/abi_version", "5")
	t.text("/sys/class/infiniband_verbs/abi_version", "6")
	for i, a := range adapters {
		t.addAdapter(a)
		uverbs := fmt.Sprintf("uverbs%d", i)
		t.add("/dev/infiniband/"+uverbs, &treeEntry{Kind: entryVerb, Minor: uint32(verbMinor + i)})
		verbs := "/sys/class/infiniband_verbs/" + uverbs + "/"
		t.text(verbs+"ibdev", a.Name)
		t.text(verbs+"abi_version", "1")
		t.text(verbs+"dev", fmt.Sprintf("%d:%d", umadMajor, verbMinor+i))
		for _, p := range a.Ports {
			n := len(t.Ports)
			t.Ports = append(t.Ports, p)
			t.addDevice(a, p, treeEntry{Kind: entryUMAD, Minor: uint32(n), Port: n}, fmt.Sprintf("umad%d", n))
			t.addDevice(a, p, treeEntry{Kind: entryISSM, Minor: uint32(issmMinor + n), Port: n}, fmt.Sprintf("issm%d", n))
		}
	}
	return t
}

func (t *fileTree) addDevice(a treeAdapter, p treePort, e treeEntry, name string) {
	t.add("/dev/infiniband/"+name, &e)
	class := "/sys/class/infiniband_mad/" + name
	t.text(class+"/ibdev", a.Name)
	t.text(class+"/port", fmt.Sprint(p.Num))
	t.text(class+"/dev", fmt.Sprintf("%d:%d", umadMajor, e.Minor))
}

// add adds an entry, and the folders above it.
func (t *fileTree) add(p string, e *treeEntry) {
	t.entries[p] = e
	for p = path.Dir(p); p != "/"; p = path.Dir(p) {
		if t.entries[p] != nil {
			return
		}
		t.entries[p] = &treeEntry{Kind: entryFolder}
	}
}

func (t *fileTree) folder(p string) { t.add(p, &treeEntry{Kind: entryFolder}) }

func (t *fileTree) text(p, text string) {
	t.file(p, func() string { return text })
}

func (t *fileTree) file(p string, read func() string) {
	t.add(p, &treeEntry{Kind: entryText, read: func() (string, bool) { return read() + "\n", true }})
}

// Lookup returns the entry of a clean absolute path, or nil.
func (t *fileTree) Lookup(p string) *treeEntry { return t.entries[p] }

// Paths returns all paths, folders before what is in them.
func (t *fileTree) Paths() []string {
	var list []string
	for p := range t.entries {
		list = append(list, p)
	}
	slices.Sort(list)
	return list
}
