// Package hosttest has Files, in which Linux shows the ports of a host, for tests, and Leaves,
// the switches at their other ends.
package hosttest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"

	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// Files are the files of a host. They implement fs.FS.
type Files struct{ fstest.MapFS }

const class = "sys/class/infiniband"

// Rails returns the files of a host of the kind of DGX H100: eight ConnectX-7 at 400 Gb/s, each
// in a device of its own; the numbers between are Ethernet adapters for storage. Ports are
// active and have counted nothing.
func Rails() Files {
	f := Files{fstest.MapFS{}}
	f.Set("sys/class/infiniband_mad/abi_version", "5")
	for i, device := range []string{"mlx5_0", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10", "mlx5_11"} {
		f.Add(device, i)
	}
	return f
}

// Add adds an adapter with one port, whose GUIDs, LID and umad device have the number i.
func (f Files) Add(device string, i int) {
	f.Adapter(device, map[string]string{
		"node_type": "1: CA", "node_guid": fmt.Sprintf("a088:c203:0010:%04x", i<<4), "sys_image_guid": fmt.Sprintf("a088:c203:0010:%04x", i<<4),
		"node_desc": "node-0012 " + device, "fw_ver": "28.39.1002", "hca_type": "MT4129", "board_id": "MT_0000000838", "hw_rev": "0",
		"device/current_link_width": "16", "device/max_link_width": "16", "device/current_link_speed": "32.0 GT/s PCIe", "device/max_link_speed": "32.0 GT/s PCIe",
	})
	f.Port(device, map[string]string{
		"state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)", "link_layer": "InfiniBand",
		"lid": fmt.Sprintf("0x%x", 0x100+i), "lid_mask_count": "0", "sm_lid": "0x1", "sm_sl": "0", "cap_mask": "0xa751e848",
		"gids/0": fmt.Sprintf("fe80:0000:0000:0000:a088:c203:0010:%04x", i<<4|1), "pkeys/0": "0xffff", "pkeys/1": "0x0000",
	})
	for _, c := range mad.CounterFiles {
		f.Port(device, map[string]string{"counters/" + c.Name: "0"})
	}
	umad := fmt.Sprintf("sys/class/infiniband_mad/umad%d/", i)
	f.Set(umad+"ibdev", device)
	f.Set(umad+"port", "1")
}

// Set replaces a file; "" removes it, and what is below it.
func (f Files) Set(name, text string) {
	if text != "" {
		f.MapFS[name] = &fstest.MapFile{Data: []byte(text + "\n"), Mode: 0o444}
		return
	}
	for other := range f.MapFS {
		if other == name || strings.HasPrefix(other, name+"/") {
			delete(f.MapFS, other)
		}
	}
}

// Adapter replaces files of a device.
func (f Files) Adapter(device string, texts map[string]string) {
	for name, text := range texts {
		f.Set(path.Join(class, device, name), text)
	}
}

// Port replaces files of port 1 of a device.
func (f Files) Port(device string, texts map[string]string) {
	for name, text := range texts {
		f.Set(path.Join(class, device, "ports/1", name), text)
	}
}

// Function adds a virtual function of a device: with a served device, the port of which has a state, else
// with what the driver of the adapter shows.
func (f Files) Function(device string, index int, served, state, guid string) {
	folder := path.Join(class, device, "device")
	if served != "" {
		f.Add(served, 0x80+index)
		f.Port(served, map[string]string{"state": state, "gids/0": "fe80:0000:0000:0000:" + guid})
		f.Adapter(served, map[string]string{"node_guid": guid})
		f.Set(path.Join(folder, fmt.Sprintf("virtfn%d/infiniband/%s/node_guid", index, served)), guid)
		return
	}
	f.Set(path.Join(folder, fmt.Sprintf("virtfn%d/vendor", index)), "0x15b3")
	shown := path.Join(folder, fmt.Sprintf("sriov/%d", index))
	f.Set(path.Join(shown, "node"), guid)
	f.Set(path.Join(shown, "port"), guid)
	f.Set(path.Join(shown, "policy"), state)
}

// Remove removes a device.
func (f Files) Remove(device string) { f.Set(path.Join(class, device), "") }

var _ fs.FS = Files{}

// Leaves returns a function that opens transports: the neighbour of mlx5_N is the switch leaf-M, of the number M
// that at returns, at its port N+1; a negative number does not answer.
func Leaves(at func(device string) int) func(umad.HostPort) (engine.Transport, error) {
	return func(p umad.HostPort) (engine.Transport, error) {
		return &leaf{n: at(p.Device), port: uint8(Number(p.Device)%64 + 1), answers: make(chan engine.Datagram, 8), closed: make(chan struct{})}, nil
	}
}

type leaf struct {
	n       int
	port    uint8
	answers chan engine.Datagram
	closed  chan struct{}
}

func (l *leaf) Traits() engine.Traits                        { return engine.Traits{Name: "test"} }
func (l *leaf) Port() (engine.Port, error)                   { return engine.Port{}, errors.New("unused") }
func (l *leaf) String() string                               { return "test" }
func (l *leaf) GaveUp(*engine.Datagram)                      {}
func (l *leaf) Behind() bool                                 { return false }
func (l *leaf) BeforeWait(func() bool) bool                  { return false }
func (l *leaf) Close() error                                 { close(l.closed); return nil }
func (l *leaf) TrySend(d *engine.Datagram) (bool, error)     { return true, l.Send(d) }
func (l *leaf) Accept(mad.Class, mad.Method) (func(), error) { return nil, errors.New("unused") }

func (l *leaf) Send(d *engine.Datagram) error {
	h := mad.ParseHeader(d.MAD)
	if h.Method != mad.MethodGet || h.Class != mad.ClassSubnDirected || mad.RouteOf(d.MAD).Compare(mad.DirectedRoute{0, 1}) != 0 {
		return fmt.Errorf("sent %v %v on %v", h.Method, h.Attribute, mad.RouteOf(d.MAD))
	}
	if l.n < 0 {
		return nil
	}
	answer := engine.Datagram{Address: d.Address, MAD: append([]byte{}, d.MAD...)}
	answer.MAD[mad.MethodOffset] = byte(mad.MethodGetResp)
	data := answer.MAD[mad.SMPDataOffset:]
	switch h.Attribute {
	case mad.AttrNodeInfo.ID:
		(&mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 64, NodeGUID: mad.GUID(0xb000 + l.n), LocalPortNum: l.port}).Encode(data)
	case mad.AttrNodeDescription.ID:
		copy(data, fmt.Sprintf("leaf-%d", l.n))
	}
	l.answers <- answer
	return nil
}

func (l *leaf) Recv(d *engine.Datagram) error {
	select {
	case a := <-l.answers:
		d.Address, d.MAD = a.Address, append(d.MAD[:0], a.MAD...)
		return nil
	case <-l.closed:
		return engine.ErrClosed
	}
}

// Number returns the number in the name of a device.
func Number(device string) (n int) {
	fmt.Sscanf(device, "mlx5_%d", &n)
	return n
}
