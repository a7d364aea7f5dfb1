package umad

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// sysfs is /sys, below the root of the files.
type sysfs struct{ root fs.FS }

// newSysfs returns the sysfs below root; nil is the host's.
func newSysfs(root fs.FS) sysfs {
	if root == nil {
		root = hostFiles
	}
	return sysfs{root}
}

// hostFiles are the files of the host.
var hostFiles = os.DirFS("/")

// absolute restores the "/" of the path in err, which is relative to root.
func absolute(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && !path.IsAbs(e.Path) {
		e.Path = "/" + e.Path
	}
	return err
}

const (
	deviceClass = "/sys/class/infiniband"     // a directory for each device
	umadClass   = "/sys/class/infiniband_mad" // a directory for each port that ib_umad serves
	abiVersion  = 5
)

// port is a port with the facts for the choice.
type port struct {
	device   string
	num      int
	umad     string // "umad0"; "": ib_umad does not serve it
	ethernet bool   // RoCE
	state    mad.PortState
	phys     mad.PortPhysicalState
	// smDisabled is set if no subnet manager can run here (CapabilityMask), as
	// on the GSI port of a planarized adapter.
	smDisabled bool
	guid       mad.GUID
}

func (p port) String() string { return fmt.Sprintf("%s/%d", p.device, p.num) }

func (p port) folder() string { return path.Join(deviceClass, p.device, "ports", strconv.Itoa(p.num)) }

// ErrNoDevice is the error of a host without RDMA devices.
var ErrNoDevice = errors.New("no InfiniBand device on this host (nothing in " + deviceClass + ")")

// ports lists all ports of the host, sorted by number within a device. Devices are
// in the kernel's order, so that the first is also the first of infiniband-diags
// (rdma-core libibumad umad.c, umad_get_ca_device_list).
func (s sysfs) ports() ([]port, error) {
	umads, noUmad := s.umads()
	ports, err := s.portsOf(umads)
	return ports, cmp.Or(err, noUmad)
}

// portsOf returns the ports, whether or not ib_umad serves them.
func (s sysfs) portsOf(umads map[string]string) (ports []port, err error) {
	err = s.eachPort(umads, func(p port, err error) {
		if err == nil { // otherwise it has just been removed
			ports = append(ports, p)
		}
	})
	return ports, err
}

// eachPort calls f with each port, and why its files are invalid. The port of a device
// whose ports are unknown is 0.
func (s sysfs) eachPort(umads map[string]string, f func(p port, err error)) error {
	devices, err := s.names(deviceClass)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(devices) == 0 {
		return ErrNoDevice
	}
	if err != nil {
		return err
	}
	for _, device := range devices {
		nums, err := s.list(path.Join(deviceClass, device, "ports"))
		if err != nil {
			f(port{device: device}, err)
		}
		for _, num := range nums {
			n, err := strconv.ParseUint(num, 10, 8)
			if err != nil {
				continue
			}
			p := port{device: device, num: int(n), umad: umads[device+"/"+num]}
			err = s.describe(&p)
			f(p, err)
		}
	}
	return nil
}

// umads maps "mlx5_0/1" to "umad0".
func (s sysfs) umads() (map[string]string, error) {
	const version = umadClass + "/abi_version"
	abi, err := s.uint(version)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("the kernel module ib_umad is not loaded (no " + umadClass + "); run modprobe ib_umad as root; a line ib_umad in a file of /etc/modules-load.d loads it at boot")
	}
	if err != nil {
		return nil, err
	}
	if abi != abiVersion {
		return nil, fmt.Errorf("the kernel's ib_umad has ABI version %d; supported: %d (%s)", abi, abiVersion, version)
	}
	names, err := s.list(umadClass)
	if err != nil {
		return nil, err
	}
	umads := map[string]string{}
	for _, name := range names {
		device, _ := s.text(path.Join(umadClass, name, "ibdev"))
		num, err := s.text(path.Join(umadClass, name, "port"))
		if strings.HasPrefix(name, "umad") && err == nil {
			umads[device+"/"+num] = name
		}
	}
	return umads, nil
}

// isSMDisabled is bit 10 of PortInfo.CapabilityMask (IBA 14.2.5.6).
const isSMDisabled = 1 << 10

// describe fills in the rest of p.
func (s sysfs) describe(p *port) error {
	layer, err := s.text(path.Join(p.folder(), "link_layer"))
	p.ethernet = err == nil && layer == "Ethernet"
	state, err1 := s.uint(path.Join(p.folder(), "state"))
	if kind, err := s.uint(path.Join(deviceClass, p.device, "node_type")); err == nil && mad.NodeType(kind) == mad.NodeTypeSwitch && p.num == 0 {
		state = uint64(mad.PortStateActive) // whatever the file has (libibumad umad.c, resolve_ca_port)
	}
	phys, err2 := s.uint(path.Join(p.folder(), "phys_state"))
	mask, err3 := s.uint(path.Join(p.folder(), "cap_mask"))
	gid, err4 := s.gid(*p)
	p.state, p.phys = mad.PortState(state), mad.PortPhysicalState(phys)
	p.smDisabled = mask&isSMDisabled != 0
	p.guid = gid.GUID()
	return cmp.Or(err1, err2, err3, err4)
}

// facts reads the facts of an engine.Port of p.
func (s sysfs) facts(p port) (f engine.Port, err error) {
	uint := func(name string, most uint64) uint64 {
		name = path.Join(p.folder(), name)
		v, e := s.uint(name)
		if e == nil && v > most {
			e = fmt.Errorf("%s: invalid number %d; want at most %d", name, v, most)
		}
		err = cmp.Or(err, e)
		return v
	}
	f = engine.Port{
		Device: p.device,
		Num:    uint8(p.num),
		LID:    mad.LID(uint("lid", 0xffff)),
		LMC:    uint8(uint("lid_mask_count", 7)),
		SMLID:  mad.LID(uint("sm_lid", 0xffff)),
		SMSL:   uint8(uint("sm_sl", 15)),
		State:  mad.PortState(uint("state", 15)),
	}
	if err != nil {
		return f, err
	}
	gid, err := s.gid(p)
	if err != nil {
		return f, err
	}
	f.GIDPrefix, f.PortGUID = gid.Prefix(), gid.GUID()
	if f.NodeGUID, err = s.nodeGUID(p.device); err != nil {
		return f, err
	}
	f.PKeys, err = s.pkeys(p)
	return f, err
}

// pkeys returns the table of partitions up to the last that is in use.
func (s sysfs) pkeys(p port) (keys []uint16, err error) {
	folder := path.Join(p.folder(), "pkeys")
	indices, err := s.list(folder)
	for _, index := range indices {
		i, err := strconv.ParseUint(index, 10, 16)
		if err != nil {
			continue
		}
		key, err := s.uint(path.Join(folder, index))
		if err != nil {
			return nil, err
		}
		if key != 0 {
			keys = append(keys, make([]uint16, max(0, int(i)+1-len(keys)))...)
			keys[i] = uint16(key)
		}
	}
	return keys, err
}

// gid returns the first GID of p: subnet prefix and port GUID.
func (s sysfs) gid(p port) (mad.GID, error) {
	name := path.Join(p.folder(), "gids/0")
	text, err := s.text(name)
	if err != nil {
		return mad.GID{}, err
	}
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() {
		return mad.GID{}, fmt.Errorf("%s: invalid GID %.64q", name, text)
	}
	return a.As16(), nil
}

// nodeGUID reads "0002:c903:0000:0010".
func (s sysfs) nodeGUID(device string) (mad.GUID, error) {
	return s.guid(path.Join(deviceClass, device, "node_guid"))
}

// guid reads a GUID.
func (s sysfs) guid(name string) (mad.GUID, error) {
	text, err := s.text(name)
	if err != nil {
		return 0, err
	}
	a, err := netip.ParseAddr("::" + text)
	if err != nil {
		return 0, fmt.Errorf("%s: invalid GUID %.64q", name, text)
	}
	b := a.As16()
	return mad.GUID(binary.BigEndian.Uint64(b[8:])), nil
}

// names returns the names in a directory, in the kernel's order: fs.ReadDir would sort them.
func (s sysfs) names(folder string) ([]string, error) {
	f, err := s.root.Open(strings.TrimPrefix(folder, "/"))
	if err != nil {
		return nil, absolute(err)
	}
	defer f.Close()
	dir, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, fmt.Errorf("%s: not a directory", folder)
	}
	entries, err := dir.ReadDir(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) == maxNames {
		return nil, fmt.Errorf("%s: has %d entries or more", folder, maxNames)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, absolute(err)
}

// list returns the names in a directory, 9 before 10.
func (s sysfs) list(folder string) ([]string, error) {
	names, err := s.names(folder)
	slices.SortFunc(names, func(a, b string) int {
		wordA, numA := splitNumber(a)
		wordB, numB := splitNumber(b)
		return cmp.Or(cmp.Compare(wordA, wordB), cmp.Compare(numA, numB))
	})
	return names, err
}

func splitNumber(name string) (word string, num uint64) {
	word = strings.TrimRight(name, "0123456789")
	num, _ = strconv.ParseUint(name[len(word):], 10, 64)
	return word, num
}

// maxText is the longest file of sysfs, a page (linux Documentation/filesystems/sysfs.rst);
// maxNames bounds the entries of a directory.
const (
	maxText  = 4096
	maxNames = 1 << 16
)

func (s sysfs) text(name string) (string, error) {
	b, err := s.read(name)
	if err == nil && len(b) > maxText {
		return "", fmt.Errorf("%s: longer than %d bytes", name, maxText)
	}
	return strings.TrimSpace(string(b)), absolute(err)
}

// read reads up to maxText+1 bytes of a file. Files of the host are read by system calls
// alone: a host has over a thousand, and package os checks for each whether it can be waited for.
func (s sysfs) read(name string) ([]byte, error) {
	if s.root == hostFiles {
		return readFile(name, maxText+1)
	}
	f, err := s.root.Open(strings.TrimPrefix(name, "/"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxText+1))
}

// word reads a text of printable characters, such as a name; "": it is missing, or is not one.
func (s sysfs) word(name string) string {
	text, err := s.text(name)
	if err != nil || len(text) > maxWord || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return text
}

const maxWord = 64

// uint reads "0x12", "7", or the number before the words in "4: ACTIVE".
func (s sysfs) uint(name string) (uint64, error) {
	text, err := s.text(name)
	if err != nil {
		return 0, err
	}
	digits, _, _ := strings.Cut(text, ":")
	v, err := strconv.ParseUint(digits, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: invalid number %.64q", name, text)
	}
	return v, nil
}

// PortCounters has the counters of a port, as the attributes from which the kernel reads
// them.
type PortCounters struct {
	Base     []byte // PortCounters; nil: the kernel shows none of it
	Wait     bool   // Base has PortXmitWait
	Extended []byte // PortCountersExtended; nil: not all of it is shown
}

// ReadCounters reads the counters of a port, and opens no device. sys is the root of the
// files, as in Options. The kernel shows all error counters or none.
func ReadCounters(sys fs.FS, device string, num int) (c PortCounters, err error) {
	s := newSysfs(sys)
	folder := path.Join(port{device: device, num: num}.folder(), "counters")
	base, extended := make([]byte, mad.AttrPortCounters.Size), make([]byte, mad.AttrPortCountersExtended.Size)
	errorsRead, extendedRead, wanted := 0, 0, 0
	for _, x := range mad.CounterFiles {
		name := path.Join(folder, x.Name)
		text, err := s.text(name)
		isWait, isExtended := x.Name == "port_xmit_wait", x.Attr == mad.AttrPortCountersExtended
		if !isWait && !isExtended {
			wanted++
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.HasPrefix(text, "N/A") { // no agent
			continue
		}
		if err != nil {
			return PortCounters{}, err
		}
		f := x.Attr.Field(x.Field)
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v > f.Max() {
			return PortCounters{}, fmt.Errorf("%s: invalid counter %.64q", name, text)
		}
		switch {
		case isExtended:
			extendedRead++
			f.SetUint(extended, v)
		case isWait:
			c.Wait = true
			f.SetUint(base, v)
		default:
			errorsRead++
			f.SetUint(base, v)
		}
	}
	switch {
	case errorsRead == 0:
		return PortCounters{}, fmt.Errorf("%s: the kernel shows no counters of the port", folder)
	case errorsRead < wanted:
		return PortCounters{}, fmt.Errorf("%s: %d of %d error counters are missing", folder, wanted-errorsRead, wanted)
	}
	c.Base = base
	// Without the counters of unicast the others may have 32 bits, which end at their largest value.
	if extendedRead == len(mad.CounterFiles)-wanted-1 {
		c.Extended = extended
	}
	return c, nil
}
