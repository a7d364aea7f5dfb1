package localhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric/localhost/hosttest"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/umad"
)

// text is a host in lines.
func text(h *Host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, subnet %s\n", h, h.Subnet())
	for i := range h.Ports {
		p := &h.Ports[i]
		if p.Err != nil {
			fmt.Fprintf(&b, "%s: %v\n", p.Name(), p.Err)
			continue
		}
		end := "none"
		if p.Port != nil && p.Port.Peer() != nil {
			end = p.Port.Peer().Name()
		}
		fmt.Fprintf(&b, "%s: %s %v %s %s LID %d, firmware %s, counters %v, neighbour %s (%v)\n",
			p.Name(), p.Link, p.State, p.Width, p.Speed, p.LID, p.Firmware, p.CountersErr == nil, end, p.NeighborErr)
	}
	return b.String()
}

// A host with eight rails, each at a leaf of its own: devices in the order of their numbers.
func TestRails(t *testing.T) {
	h, err := Read(t.Context(), ReadOptions{FS: hosttest.Rails(), Open: hosttest.Leaves(hosttest.Number), Name: "node-0012"})
	if err != nil {
		t.Fatal(err)
	}
	want := "host node-0012: 8 ports, 8 of InfiniBand, subnet host-node-0012\n"
	for i, n := range []int{0, 3, 4, 5, 6, 9, 10, 11} {
		want += fmt.Sprintf("mlx5_%d/1: infiniband active 4x ndr LID %d, firmware 28.39.1002, counters true, neighbour leaf-%[1]d/%[3]d (<nil>)\n", n, 0x100+i, n+1)
	}
	if diff := cmp.Diff(want, text(h)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	p := h.Ports[1].Port
	if p.GUID() != 0xa088c20300100011 || p.Node().GUID() != 0xa088c20300100010 || p.Speed() != "ndr" || p.Width() != "4x" || p.State() != mad.PortStateActive {
		t.Errorf("%v: GUID %v, node %v, %s %s, %v", p.Name(), p.GUID(), p.Node().GUID(), p.Width(), p.Speed(), p.State())
	}
}

// Whatever stands in the files, each port is there, with the reason why it is not known.
func TestInvalidFiles(t *testing.T) {
	f := hosttest.Rails()
	for _, device := range []string{"mlx5_5", "mlx5_6", "mlx5_9", "mlx5_10"} {
		f.Remove(device)
	}
	f.Port("mlx5_0", map[string]string{"state": strings.Repeat("4", 1<<20)})
	f.Port("mlx5_3", map[string]string{"lid": "\x1b[31mred"})
	f.Port("mlx5_4", map[string]string{"counters/link_downed": "-1"})
	f.Adapter("mlx5_4", map[string]string{"fw_ver": "28\x1b[31m"})
	f.Adapter("mlx5_11", map[string]string{"ports": ""})
	h, err := Read(t.Context(), ReadOptions{FS: f, Open: hosttest.Leaves(hosttest.Number), Name: "a\x1b[31m b/c"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `host a[31m b/c: 4 ports, 1 of InfiniBand, subnet host-a_31m_b_c
mlx5_0/1: /sys/class/infiniband/mlx5_0/ports/1/state: longer than 4096 bytes
mlx5_3/1: /sys/class/infiniband/mlx5_3/ports/1/lid: invalid number "\x1b[31mred"
mlx5_4/1: infiniband active 4x ndr LID 258, firmware , counters false, neighbour leaf-4/5 (<nil>)
mlx5_11: open /sys/class/infiniband/mlx5_11/ports: file does not exist
`
	if diff := cmp.Diff(want, text(h)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := h.Ports[2].CountersErr; fmt.Sprint(err) != `/sys/class/infiniband/mlx5_4/ports/1/counters/link_downed: invalid counter "-1"` {
		t.Errorf("counters: %v", err)
	}
}

// A device that is a link to itself.
func TestSymlinkLoop(t *testing.T) {
	dir := t.TempDir()
	class := filepath.Join(dir, "sys/class/infiniband")
	if err := os.MkdirAll(class, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mlx5_0", filepath.Join(class, "mlx5_0")); err != nil {
		t.Fatal(err)
	}
	h, err := Read(t.Context(), ReadOptions{FS: os.DirFS(dir)})
	if err != nil || len(h.Ports) != 1 || !strings.Contains(fmt.Sprint(h.Ports[0].Err), "too many levels of symbolic links") {
		t.Errorf("%v, %v", h, err)
	}
}

// A neighbour that does not answer costs the time of its requests, for all ports together; a
// device that cannot be opened is a reason.
func TestSilentNeighbors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h, err := Read(t.Context(), ReadOptions{FS: hosttest.Rails(), Open: hosttest.Leaves(func(device string) int {
			if n := hosttest.Number(device); n > 3 {
				return n
			}
			return -1
		})})
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 300*time.Millisecond {
			t.Errorf("took %v, want 300ms", d)
		}
		for i := range h.Ports {
			if p := &h.Ports[i]; (p.NeighborErr != nil) != (i < 2) || !p.NeighborRequested || i < 2 && !engine.Unanswered(p.NeighborErr) {
				t.Errorf("%s: %v", p.Name(), p.NeighborErr)
			}
		}
	})
}

// A device that blocks in the kernel, or files that do, end at the limit; the rest is there.
func TestBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		defer close(block)
		ready := hosttest.Leaves(hosttest.Number)
		h, err := Read(t.Context(), ReadOptions{FS: hosttest.Rails(), Open: func(p umad.HostPort) (engine.Transport, error) {
			if p.Device == "mlx5_4" {
				<-block
			}
			return ready(p)
		}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range h.Ports {
			p := &h.Ports[i]
			if late := p.Device == "mlx5_4"; late != errors.Is(p.NeighborErr, errLate) || p.Port == nil {
				t.Errorf("%s: %v", p.Name(), p.NeighborErr)
			}
		}
		_, err = Read(t.Context(), ReadOptions{FS: blocked{hosttest.Rails(), block}, Limit: time.Second})
		if got := fmt.Sprint(err); got != "/sys/class/infiniband: not read in time: 1s" {
			t.Errorf("blocked files: %s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := Read(ctx, ReadOptions{FS: blocked{hosttest.Rails(), block}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("deadline: %v", err)
		}
	})
}

// blocked has files that block.
type blocked struct {
	fs.FS
	until chan struct{}
}

func (b blocked) Open(name string) (fs.File, error) {
	<-b.until
	return b.FS.Open(name)
}

// Without ib_umad, and without its device, the ports are known and the neighbours are not.
func TestWithoutUmad(t *testing.T) {
	f := hosttest.Rails()
	f.Set("sys/class/infiniband_mad/umad1", "")
	h, err := Read(t.Context(), ReadOptions{FS: f})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(h.Ports[1].NeighborErr); got != "ib_umad does not serve the port" || h.Ports[1].NeighborRequested {
		t.Errorf("without a device: %s", got)
	}
	f.Set("sys/class/infiniband_mad", "")
	if h, err = Read(t.Context(), ReadOptions{FS: f}); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(h.Ports[0].NeighborErr); !strings.Contains(got, "modprobe ib_umad") || h.Ports[0].Port == nil {
		t.Errorf("without the module: %s", got)
	}
	h, err = Read(t.Context(), ReadOptions{FS: fstest.MapFS{}, Name: "node-1"})
	if err != nil || h.String() != "host node-1: 0 ports, 0 of InfiniBand" {
		t.Errorf("without a device: %v, %v", h, err)
	}
}

// Hundreds of ports, of which two have equal GUIDs.
func TestManyPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on a slow machine an answer takes longer than the limit
		f := hosttest.Rails()
		for i := 8; i < 200; i++ {
			f.Add(fmt.Sprintf("mlx5_%d", 100+i), i)
		}
		f.Add("mlx5_999", 9)
		h, err := Read(t.Context(), ReadOptions{FS: f, Open: hosttest.Leaves(func(device string) int { return hosttest.Number(device) })})
		if err != nil {
			t.Fatal(err)
		}
		known := 0
		for i := range h.Ports {
			if h.Ports[i].Port != nil && h.Ports[i].NeighborErr == nil {
				known++
			}
		}
		if len(h.Ports) != 201 || known != 201 {
			t.Errorf("%d of %d ports are known", known, len(h.Ports))
		}
	})
}

// Files that may not be read are no host without devices.
func TestNoPermission(t *testing.T) {
	_, err := Read(t.Context(), ReadOptions{FS: forbidden{}})
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

// forbidden has only files that may not be read.
type forbidden struct{}

func (forbidden) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
