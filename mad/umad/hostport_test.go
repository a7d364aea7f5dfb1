package umad

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHostPorts: InfiniBand, RoCE and iWARP are told apart, the halves of a
// planarized adapter know of each other, and the default is what is chosen.
func TestHostPorts(t *testing.T) {
	sys := fakeSys(t, fakePort("irdma0/1", "active roce", 0x71, -1)+"infiniband/irdma0/node_type: 4: RNIC\n"+
		fakePort("mlx5_0/1", "active gsi", 0x11, 0)+"infiniband/mlx5_0/ports/1/rate: 800 Gb/sec (4X XDR)\ninfiniband/mlx5_0/fw_ver: 40.44.1036\n"+
		fakePort("mlx5_1/1", "active roce", 0x21, 1)+"infiniband/mlx5_1/ports/1/rate: 25 Gb/sec (1X EDR)\n"+
		fakePort("mlx5_2/1", "down", 0x31, 2)+"infiniband/mlx5_2/ports/1/rate: 10 Gb/sec (4X)\n"+
		fakePort("mlx5_3/1", "active gsi", 0x41, 3)+
		fakePort("smi1/1", "down", 0x11, 4)+fakePort("smi1/2", "active", 0x11, 5))
	list, err := HostPorts(sys.root)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range list {
		fmt.Fprintf(&got, "%s/%d %s %v %v %v %q %q role %q pair %q umad %q fw %q default %v LID %d GUID %v planes %v unusable %q\n",
			p.Device, p.Num, p.Link, p.State, p.PhysicalState, p.Gbps, p.Width, p.Speed, p.Role, p.Pair, p.Umad, p.Firmware, p.Default, p.LID, p.PortGUID, p.Planes, p.Unusable)
	}
	want := `irdma0/1 iwarp active link_up 0 "" "" role "" pair "" umad "" fw "" default false LID 31 GUID 0x0002c90300000071 planes [] unusable "not InfiniBand"
mlx5_0/1 infiniband active link_up 800 "4x" "xdr" role "gsi" pair "smi1/2" umad "umad0" fw "40.44.1036" default true LID 31 GUID 0x0002c90300000011 planes [1 2] unusable ""
mlx5_1/1 roce active link_up 25 "1x" "edr" role "gsi" pair "" umad "umad1" fw "" default false LID 31 GUID 0x0002c90300000021 planes [] unusable "not InfiniBand"
mlx5_2/1 infiniband down polling 10 "4x" "sdr" role "both" pair "" umad "umad2" fw "" default false LID 31 GUID 0x0002c90300000031 planes [] unusable ""
mlx5_3/1 infiniband active link_up 0 "" "" role "gsi" pair "" umad "umad3" fw "" default false LID 31 GUID 0x0002c90300000041 planes [] unusable ""
smi1/1 infiniband down polling 0 "" "" role "smi" pair "mlx5_0/1" umad "umad4" fw "" default false LID 31 GUID 0x0002c90300000011 planes [1] unusable ""
smi1/2 infiniband active link_up 0 "" "" role "smi" pair "mlx5_0/1" umad "umad5" fw "" default true LID 31 GUID 0x0002c90300000011 planes [2] unusable ""
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestHostPortsWithout: what is there without devices, and without ib_umad.
func TestHostPortsWithout(t *testing.T) {
	if list, err := HostPorts(fakeSys(t, "").root); len(list) != 0 || !errors.Is(err, ErrNoDevice) {
		t.Errorf("no device: %v, %v", list, err)
	}
	var lines []string
	for line := range strings.Lines(fakePort("mlx5_0/1", "active", 0x11, 0)) {
		if !strings.HasPrefix(line, "infiniband_mad") {
			lines = append(lines, line)
		}
	}
	list, err := HostPorts(fakeSys(t, strings.Join(lines, "")).root)
	if len(list) != 1 || list[0].Role != "" || list[0].Default || err == nil || !strings.Contains(err.Error(), "modprobe ib_umad") {
		t.Errorf("no module: %+v, %v", list, err)
	}
}

// TestUnusable: a port that cannot be used has the reason, and is not the default.
func TestUnusable(t *testing.T) {
	sys := fakeSys(t, fakePort("mlx5_0/1", "active", 0x11, 0)+fakePort("mlx5_1/1", "active", 0x21, 1)+fakePort("mlx5_2/1", "active", 0x31, -1)+
		fakePort("mlx5_3/1", "init", 0x41, 3)+fakePort("mlx5_4/1", "active", 0x51, 4))
	all, err := sys.ports()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, p := range sys.hostPorts(all, func(path string) error {
		return map[string]error{"/dev/infiniband/umad0": syscall.EACCES, "/dev/infiniband/umad1": fs.ErrNotExist, "/dev/infiniband/umad4": syscall.EIO}[path]
	}) {
		fmt.Fprintf(&got, "%s/%d default %v: %s\n", p.Device, p.Num, p.Default, p.Unusable)
	}
	const want = `mlx5_0/1 default false: no permission
mlx5_1/1 default false: no /dev/infiniband/umad1
mlx5_2/1 default false: no ib_umad
mlx5_3/1 default true: 
mlx5_4/1 default false: input/output error
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSkipped: without -C, the ports that cannot be opened are skipped; if none can, the
// error is that of the first.
func TestSkipped(t *testing.T) {
	tree := fakePort("mlx5_0/1", "active", 0x11, 0) + fakePort("mlx5_1/1", "active", 0x21, -1) + fakePort("mlx5_2/1", "init", 0x31, 2)
	for _, tt := range []struct {
		options Options
		denied  string // devices that may not be opened
		want    string
	}{
		{Options{}, "", "mlx5_0/1 []"},
		{Options{}, "/dev/infiniband/umad0", "mlx5_2/1 [mlx5_0/1: umad0: the kernel has it, but /dev/infiniband/umad0 does not exist; udev should create it; pass it to a container with --device /dev/infiniband/umad0 mlx5_1/1: carries no management datagrams: ib_umad does not serve it (an iWARP port?)]"},
		{Options{}, "/dev/infiniband/umad0 /dev/infiniband/umad2", "mlx5_0/1: umad0: the kernel has it, but /dev/infiniband/umad0 does not exist; udev should create it; pass it to a container with --device /dev/infiniband/umad0"},
		{Options{Device: "mlx5_0"}, "/dev/infiniband/umad0", "mlx5_0/1: umad0: the kernel has it, but /dev/infiniband/umad0 does not exist; udev should create it; pass it to a container with --device /dev/infiniband/umad0"},
		{Options{Device: "mlx5_1"}, "", "mlx5_1/1: carries no management datagrams: ib_umad does not serve it (an iWARP port?)"},
	} {
		tr, err := openBest(fakeSys(t, tree), tt.options, func(path string) (file, error) {
			if strings.Contains(tt.denied, path) {
				return nil, fs.ErrNotExist
			}
			return newFakeFile(), nil
		})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(tr, tr.Skipped)
			tr.Close()
		}
		if got != tt.want {
			t.Errorf("%+v without %q\ngot  %s\nwant %s", tt.options, tt.denied, got, tt.want)
		}
	}
}

// FuzzRate: whatever stands there, a rate is a number that people can read.
func FuzzRate(f *testing.F) {
	for _, text := range []string{"100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)", "NaN Gb/sec", "1e400 Gb/sec (4X)", "40 Gb/sec (4X FDR10)", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		gbps, width, speed := ParseRate(text)
		if !(gbps >= 0 && gbps < 1e6) || len(width) > 3 || len(speed) > 5 {
			t.Errorf("%q: %v %q %q", text, gbps, width, speed)
		}
	})
}
