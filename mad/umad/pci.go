package umad

import (
	"encoding/hex"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"fabsh/mad"
)

// PCI is what the kernel shows of an adapter as a PCIe device (linux
// Documentation/ABI/testing/sysfs-bus-pci). Widths are in lanes, speeds in GT/s; 0: unknown.
type PCI struct {
	Width, MaxWidth int
	Speed, MaxSpeed float64
	// Functions are the virtual functions of the adapter, by index.
	Functions []VirtualFunction
}

// VirtualFunction is a virtual function of an adapter. Of one that a driver of this host serves its device
// is known, and its state; of others what the driver of the adapter shows below sriov/ (mlx5_core of
// NVIDIA's packages), if it does.
type VirtualFunction struct {
	Index              int
	Device             string        // "mlx5_4"; "": no driver of this host serves it
	State              mad.PortState // of its port; 0: unknown
	NodeGUID, PortGUID mad.GUID      // 0: unset
	NodeKnown          bool          // the kernel shows the node GUID
	PortKnown          bool          // the kernel shows the port GUID
	Policy             string        // "down", "up", "follow"; "": unknown
}

// maxFunctions bounds the virtual functions of an adapter: mlx5 supports at most 1024 of them.
const maxFunctions = 1024

// ReadPCI reads the PCIe device of an adapter. sys is the root of the files, as in Options. What the
// kernel does not show, or has no valid text, is unknown.
func ReadPCI(sys fs.FS, device string) (p PCI) {
	s := newSysfs(sys)
	folder := path.Join(deviceClass, device, "device")
	lanes := func(name string) int {
		n, err := s.uint(path.Join(folder, name))
		if err != nil || n > 32 { // 63 or 255: unknown
			return 0
		}
		return int(n)
	}
	speed := func(name string) float64 {
		text, _, _ := strings.Cut(s.word(path.Join(folder, name)), " ")
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f > 0 && f < 1000) {
			return 0
		}
		return f
	}
	p.Width, p.MaxWidth = lanes("current_link_width"), lanes("max_link_width")
	p.Speed, p.MaxSpeed = speed("current_link_speed"), speed("max_link_speed")
	names, _ := s.list(folder)
	for _, name := range names {
		index, err := strconv.ParseUint(strings.TrimPrefix(name, "virtfn"), 10, 16)
		if err == nil && strings.HasPrefix(name, "virtfn") && len(p.Functions) < maxFunctions {
			p.Functions = append(p.Functions, s.function(folder, int(index)))
		}
	}
	return p
}

func (s sysfs) function(folder string, index int) VirtualFunction {
	f := VirtualFunction{Index: index}
	number := strconv.Itoa(index)
	if devices, _ := s.list(path.Join(folder, "virtfn"+number, "infiniband")); len(devices) > 0 {
		f.Device = devices[0]
		own := port{device: f.Device, num: 1}
		state, err := s.uint(path.Join(own.folder(), "state"))
		if err == nil && state <= uint64(mad.PortStateActive) {
			f.State = mad.PortState(state)
		}
		node, err := s.nodeGUID(f.Device)
		f.NodeGUID, f.NodeKnown = node, err == nil
		gid, err := s.gid(own)
		f.PortGUID, f.PortKnown = gid.GUID(), err == nil
		return f
	}
	shown := path.Join(folder, "sriov", number)
	f.NodeGUID, f.NodeKnown = s.bytesGUID(path.Join(shown, "node"))
	f.PortGUID, f.PortKnown = s.bytesGUID(path.Join(shown, "port"))
	if policy := strings.ToLower(s.word(path.Join(shown, "policy"))); policy == "down" || policy == "up" || policy == "follow" {
		f.Policy = policy
	}
	return f
}

// bytesGUID reads a GUID as mlx5_core writes it: "a0:88:c2:03:00:10:00:01".
func (s sysfs) bytesGUID(name string) (mad.GUID, bool) {
	b, err := hex.DecodeString(strings.ReplaceAll(s.word(name), ":", ""))
	if err != nil || len(b) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(hex.EncodeToString(b), 16, 64)
	return mad.GUID(n), err == nil
}
