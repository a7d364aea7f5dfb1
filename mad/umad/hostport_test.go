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

// TestHostPorts: InfiniBand, RoCE and iWARP are distinguished, the halves of a
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
// error is the first port's.
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

func TestChoose(t *testing.T) {
	none := ""
	noModule := "infiniband/mlx5_0/ports/1/state: 4: ACTIVE\n"
	single := fakePort("mlx5_0/1", "active", 0x11, 0)
	newABI := strings.ReplaceAll(single, "abi_version: 5", "abi_version: 6")
	dual := fakePort("mlx4_0/1", "down", 0x11, 0) + fakePort("mlx4_0/2", "active", 0x12, 1)
	many := fakePort("mlx5_10/1", "active", 0x31, 3) + fakePort("mlx5_9/1", "active", 0x21, 2) + fakePort("mlx5_2/1", "init", 0x11, 0)
	linkUp := fakePort("mlx5_0/1", "down", 0x11, 0) + fakePort("mlx5_1/1", "init", 0x21, 1)
	down := fakePort("mlx5_0/1", "down", 0x11, 0) + fakePort("mlx5_0/2", "down", 0x12, 1)
	mixed := fakePort("irdma0/1", "active roce", 0x11, 0) + fakePort("mlx5_0/1", "active", 0x21, 1)
	vpi := fakePort("mlx4_0/1", "active roce", 0x11, 0) + fakePort("mlx4_0/2", "init", 0x12, 1)
	roce := fakePort("rxe0/1", "active roce", 0x11, 0)
	iwarp := fakePort("cxgb4_0/1", "active roce", 0x11, -1) + single
	planar := fakePort("mlx5_0/1", "active gsi", 0x11, 0) + fakePort("smi1/1", "init", 0x11, 1) +
		fakePort("smi1/2", "active", 0x11, 2) + fakePort("smi1/3", "active", 0x11, 3)
	planars := planar + fakePort("mlx5_2/1", "active gsi", 0x21, 4) + fakePort("smi3/1", "active", 0x21, 5)
	halfDown := fakePort("mlx5_0/1", "active gsi", 0x11, 0) + fakePort("smi1/1", "down", 0x11, 1) + fakePort("mlx5_2/1", "active", 0x21, 4)
	twins := fakePort("mlx5_0/1", "active", 0x11, 0) + fakePort("mlx5_1/1", "active", 0x11, 1)
	virtual := fakePort("mlx5_0/1", "down", 0x11, 0) + fakePort("mlx5_1/1", "active gsi", 0x21, 1)
	managed := fakePort("sx0/0", "down", 0x11, 0) + "infiniband/sx0/node_type: 2: switch\n" + fakePort("mlx5_0/1", "init", 0x21, 1)
	broken := fakePort("mlx5_0/1", "active", 0x11, 0) + "infiniband/mlx5_0/ports/1/cap_mask: what\n" + fakePort("mlx5_1/1", "active", 0x21, 1)

	for _, c := range []struct {
		name, tree, device string
		port               int
		want               string
	}{
		{"none", none, "", 0, "no InfiniBand device on this host (nothing in /sys/class/infiniband)"},
		{"none, named", none, "mlx5_0", 1, "no InfiniBand device on this host (nothing in /sys/class/infiniband)"},
		{"no module", noModule, "", 0, "the kernel module ib_umad is not loaded (no /sys/class/infiniband_mad); run modprobe ib_umad as root; a line ib_umad in a file of /etc/modules-load.d loads it at boot"},
		{"new ABI", newABI, "", 0, "the kernel's ib_umad has ABI version 6; supported: 5 (/sys/class/infiniband_mad/abi_version)"},
		{"single", single, "", 0, "mlx5_0/1 umad0"},
		{"single, named", single, "mlx5_0", 1, "mlx5_0/1 umad0"},
		{"active goes first", dual, "", 0, "mlx4_0/2 umad1"},
		{"named and down", dual, "mlx4_0", 1, "mlx4_0/1 umad0"},
		{"port number alone, down", dual, "", 1, "no InfiniBand port is up: mlx4_0/1 (down, polling); check cable and switch, or name a device to use it anyway (-C); fabsh ports lists them"},
		{"device alone", dual, "mlx4_0", 0, "mlx4_0/2 umad1"},
		{"no such port", dual, "mlx4_0", 3, "device mlx4_0: unknown port 3; ports: 1, 2; fabsh ports lists them"},
		{"no such port anywhere", dual, "", 3, "port 3: unknown; ports: mlx4_0/1 (down, polling), mlx4_0/2 (active, link_up); fabsh ports lists them"},
		{"no such device", mixed, "mlx4_0", 0, "device mlx4_0: unknown; devices: irdma0, mlx5_0; fabsh ports lists them"},
		{"in the order of the folder", many, "", 0, "mlx5_10/1 umad3"}, // here by name
		{"link up", linkUp, "", 0, "mlx5_1/1 umad1"},
		{"all down", down, "", 0, "no InfiniBand port is up: mlx5_0/1 (down, polling), mlx5_0/2 (down, polling); check cable and switch, or name a device to use it anyway (-C); fabsh ports lists them"},
		{"all down, device named", down, "mlx5_0", 0, "mlx5_0/1 umad0"},
		{"RoCE first in the list", mixed, "", 0, "mlx5_0/1 umad1"},
		{"RoCE alone", roce, "", 0, "no InfiniBand port is up: rxe0/1 (RoCE); check cable and switch, or name a device to use it anyway (-C); fabsh ports lists them"},
		{"RoCE named", roce, "rxe0", 0, "rxe0/1 umad0"},
		{"device of both kinds", vpi, "mlx4_0", 0, "mlx4_0/2 umad1"},
		{"device of both kinds, RoCE named", vpi, "mlx4_0", 1, "mlx4_0/1 umad0"},
		{"iWARP beside", iwarp, "", 0, "mlx5_0/1 umad0"},
		{"iWARP named", iwarp, "cxgb4_0", 0, "cxgb4_0/1: carries no management datagrams: ib_umad does not serve it (an iWARP port?)"},
		{"planarized", planar, "", 0, "mlx5_0/1 umad0 + smi1/2 umad2"},
		{"planarized, GSI named", planar, "mlx5_0", 1, "mlx5_0/1 umad0 + smi1/2 umad2"},
		{"planarized, SMI named", planar, "smi1", 3, "mlx5_0/1 umad0 + smi1/3 umad3"},
		{"planarized, plane by number", planar, "", 3, "mlx5_0/1 umad0 + smi1/3 umad3"},
		{"two planarized", planars, "mlx5_2", 0, "mlx5_2/1 umad4 + smi3/1 umad5"},
		{"planarized, and all planes down", halfDown, "", 0, "mlx5_2/1 umad4"},
		{"planarized, and all planes down, named", halfDown, "mlx5_0", 0, "mlx5_0/1 umad0 + smi1/1 umad1"},
		{"one GUID, two ports", twins, "mlx5_1", 0, "mlx5_1/1 umad1"},
		{"virtual function", virtual, "", 0, "mlx5_1/1 umad1"},
		{"switch", managed, "", 0, "sx0/0 umad0"},
		{"unreadable", broken, "", 0, "mlx5_1/1 umad1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gsi, smi, err := fakeSys(t, c.tree).choose(Options{Device: c.device, Port: c.port})
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprintf("%v %s", gsi, gsi.umad)
				if smi != gsi {
					got += fmt.Sprintf(" + %v %s", smi, smi.umad)
				}
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestKernelOrder: devices come as the kernel lists them, for the first is the default of
// infiniband-diags, too.
func TestKernelOrder(t *testing.T) {
	sys := fakeSys(t, fakePort("vib0/1", "active", 0x11, 0)+fakePort("vib1/1", "active", 0x21, 1))
	got, err := newSysfs(reversed{sys.root}).names(deviceClass)
	if diff := cmp.Diff([]string{"vib1", "vib0"}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
