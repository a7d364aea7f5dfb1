//go:build linux && (amd64 || arm64)

package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fabsh/fabric"
	"fabsh/fabric/sim"
)

// hosts are the hosts that programs are on. They are made as programs come.
type hosts struct {
	ProgramOptions
	names    *sim.Names
	standard []int // the adapters of the host of ProgramOptions.Node
	folder   string
	lock     int // of the folder: a file that is locked as long as this process lives

	mu     sync.Mutex // guards all below
	ports  map[portKey]*port
	byName map[string]*host // by SIM_HOST
	all    map[string]*host // by folder
}

// portKey names a port: a node by its index, and the port's number.
type portKey struct{ node, num int }

// port is a port whose files programs may open.
type port struct {
	*umadPort
	waiting []func() // opens of its issm file
}

// host is a machine with its adapters: programs with one SIM_HOST see it.
type host struct {
	*fileTree
	ports  []*port // as fileTree.Ports
	folder string  // of the folders that programs get
	root   int     // that folder, open
}

func newHosts(o ProgramOptions) (*hosts, error) {
	h := &hosts{ProgramOptions: o, names: sim.NewNames(o.Fabric, o.Subnet.SM.Node()), ports: map[portKey]*port{}, byName: map[string]*host{}, all: map[string]*host{}}
	var err error
	if h.standard, err = h.adapters(o.Node); err != nil {
		return nil, &NodeError{err}
	}
	removeAbandoned(cmp.Or(o.Folder, os.TempDir()))
	if h.folder, err = os.MkdirTemp(o.Folder, folderPrefix); err != nil {
		return nil, err
	}
	if h.lock, err = lockFolder(h.folder); err != nil {
		os.RemoveAll(h.folder)
		return nil, err
	}
	if h.folder, err = filepath.EvalSymlinks(h.folder); err != nil { // as the kernel names it
		return nil, err
	}
	if _, err = h.host("", h.standard); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *hosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.ports {
		p.Close()
	}
	for _, m := range h.all {
		unix.Close(m.root)
	}
	h.ports, h.all = nil, nil
	os.RemoveAll(h.folder)
	unix.Close(h.lock)
}

// Names of folders of hosts, and of the file in each that is locked.
const (
	folderPrefix = "fabsh-run-"
	lockName     = "fabsh-run.lock"
)

// lockFolder makes the file of a folder. It has its name once it is locked.
func lockFolder(folder string) (fd int, err error) {
	name := filepath.Join(folder, lockName)
	fd, err = unix.Open(name+".new", unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return -1, err
	}
	if err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// removeAbandoned removes this user's folders whose supervisor and keeper were killed
// together: otherwise the one that is left removes them.
func removeAbandoned(in string) {
	locks, _ := filepath.Glob(filepath.Join(in, folderPrefix+"*", lockName))
	for _, lock := range locks {
		fd, err := unix.Open(lock, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && int(st.Uid) == os.Getuid() && unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.RemoveAll(filepath.Dir(lock))
		}
		unix.Close(fd)
	}
}

// adapters returns the nodes that are the adapters of a host: the one that is named
// first, then the others by name. A switch is a host of its own.
func (h *hosts) adapters(name string) ([]int, error) {
	nodes := h.Fabric.Nodes()
	hostOf := func(i int) string {
		host, _ := fabric.HostName(nodes[i].Name())
		return host
	}
	first, err := h.names.Find(name)
	byHost := err != nil
	if byHost {
		first = slices.IndexFunc(nodes, func(n fabric.Node) bool { return !n.IsSwitch() && hostOf(n.ID()) == name })
		if name == "" || first < 0 {
			return nil, err
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("the fabric is empty")
	}
	if nodes[first].IsSwitch() || hostOf(first) == "" {
		return []int{first}, nil
	}
	var list []int
	for i := range nodes {
		if !nodes[i].IsSwitch() && hostOf(i) == hostOf(first) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		if !byHost && name != "" && a != b {
			if a == first {
				return -1
			} else if b == first {
				return 1
			}
		}
		return cmp.Compare(nodes[a].Name(), nodes[b].Name())
	})
	return list, nil
}

// of returns the host that the process of a thread is on: the one of SIM_HOST in the
// environment that it was started with.
func (h *hosts) of(thread uint32) *host {
	name := environmentOf(thread, "SIM_HOST")
	h.mu.Lock()
	m := h.byName[name]
	h.mu.Unlock()
	if m != nil {
		return m
	}
	adapters, err := h.standard, error(nil)
	if name != "" {
		adapters, err = h.adapters(name)
	}
	if err == nil {
		m, err = h.host(name, adapters)
	}
	if err != nil && h.Log != nil {
		h.Log(fmt.Sprintf("SIM_HOST=%s: %v; the program sees no device", fabric.Clip(name), err))
	}
	return m
}

// environmentOf returns a variable of the environment that the process of a thread was started
// with; "": it is not set.
func environmentOf(thread uint32, name string) string {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", thread))
	if err != nil {
		return ""
	}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if value, ok := bytes.CutPrefix(e, []byte(name+"=")); ok {
			return string(value)
		}
	}
	return ""
}

// maxHosts is how many hosts there may be at a time: each has folders of some 200 files.
const maxHosts = 1024

// host returns the host with these adapters, for programs with that SIM_HOST.
func (h *hosts) host(name string, adapters []int) (*host, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	folder := filepath.Join(h.folder, strings.Trim(strings.ReplaceAll(fmt.Sprint(adapters), " ", "-"), "[]"))
	if m := h.all[folder]; m != nil {
		h.byName[name] = m
		return m, nil
	}
	if len(h.byName) >= maxHosts {
		return nil, fmt.Errorf("%d hosts have programs, and no more may", maxHosts)
	}
	m := &host{folder: folder, root: -1}
	var devices []treeAdapter
	for i, node := range adapters {
		a := treeAdapter{Name: fmt.Sprintf("ibsim%d", i)}
		n := &h.Fabric.Nodes()[node]
		first, last := 1, n.NumPorts()
		if n.IsSwitch() {
			first, last = 0, 0
		}
		for num := first; num <= last; num++ {
			p, err := h.port(node, num)
			if err != nil {
				return nil, err
			}
			a.Ports = append(a.Ports, treePort{Num: num, Client: p.Client()})
			m.ports = append(m.ports, p)
		}
		devices = append(devices, a)
	}
	m.fileTree = newFileTree(devices)
	var err error
	if m.root, err = m.makeFolders(); err != nil {
		return nil, err
	}
	h.all[folder], h.byName[name] = m, m
	return m, nil
}

// port returns a port of a node. The lock is held.
func (h *hosts) port(node, num int) (*port, error) {
	key := portKey{node, num}
	if p := h.ports[key]; p != nil {
		return p, nil
	}
	d, err := newUmadPort(h.Subnet.Programs, node, num)
	if err != nil {
		return nil, err
	}
	h.ports[key] = &port{umadPort: d}
	return h.ports[key], nil
}

// makeFolders makes the folders of the tree, with an empty file for each file: programs
// list the folders themselves.
func (m *host) makeFolders() (root int, err error) {
	for _, p := range m.Paths() {
		name := filepath.Join(m.folder, p)
		if m.Lookup(p).Kind == entryFolder {
			err = os.MkdirAll(name, 0o755)
		} else {
			err = os.WriteFile(name, nil, 0o444)
		}
		if err != nil {
			return -1, err
		}
	}
	return unix.Open(m.folder, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// containing returns the host in whose folders a path of the file system is, and the
// path that programs know it by.
func (h *hosts) containing(p string) (*host, string) {
	rest, ok := strings.CutPrefix(p, h.folder+"/")
	if !ok {
		return nil, ""
	}
	name, rest, _ := strings.Cut(rest, "/")
	h.mu.Lock()
	defer h.mu.Unlock()
	if m := h.all[filepath.Join(h.folder, name)]; m != nil {
		return m, "/" + rest
	}
	return nil, ""
}
