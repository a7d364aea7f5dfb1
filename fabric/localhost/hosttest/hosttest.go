// Package hosttest has the files in which Linux shows the ports of a host, for tests, and the
// leaves at their other ends.
//
//	hosttest.go  Files
//	leaf.go      Leaves
package hosttest

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing/fstest"

	"fabsh/mad"
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

// Adapter and Port replace files of a device, and of its port 1.
func (f Files) Adapter(device string, texts map[string]string) {
	for name, text := range texts {
		f.Set(path.Join(class, device, name), text)
	}
}

func (f Files) Port(device string, texts map[string]string) {
	for name, text := range texts {
		f.Set(path.Join(class, device, "ports/1", name), text)
	}
}

// Remove removes a device.
func (f Files) Remove(device string) { f.Set(path.Join(class, device), "") }

var _ fs.FS = Files{}
