package umad

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// fakeSys makes a tree out of lines "PATH: CONTENT", PATH below /sys/class.
func fakeSys(t testing.TB, lines string) sysfs {
	t.Helper()
	files := fstest.MapFS{}
	for line := range strings.Lines(lines) {
		name, content, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "" {
			continue
		}
		files[path.Join("sys/class", name)] = &fstest.MapFile{Data: []byte(content + "\n"), Mode: 0o444}
	}
	return sysfs{files}
}

// fakePort are the lines of a port as Linux shows it: its name ("mlx5_0/1"),
// state and such in words, the last digits of its GUID, and its umad's number,
// negative if it has none.
func fakePort(name, words string, guid, umad int) string {
	device, num, _ := strings.Cut(name, "/")
	layer, state, phys, mask := "InfiniBand", "1: DOWN", "2: Polling", "0x2651e848"
	for w := range strings.FieldsSeq(words) {
		switch w {
		case "active":
			state, phys = "4: ACTIVE", "5: LinkUp"
		case "init":
			state, phys = "2: INIT", "5: LinkUp"
		case "down":
		case "roce":
			layer, mask = "Ethernet", "0x00010000"
		case "gsi":
			mask = "0x2651ec48" // IsSMDisabled
		default:
			panic(w)
		}
	}
	p := "infiniband/" + device + "/ports/" + num + "/"
	var b strings.Builder
	for _, line := range []string{
		"link_layer: " + layer, "state: " + state, "phys_state: " + phys, "cap_mask: " + mask,
		"lid: 0x1f", "lid_mask_count: 2", "sm_lid: 0x1", "sm_sl: 3",
		fmt.Sprintf("gids/0: fe80:0000:0000:0000:0002:c903:0000:%04x", guid),
		"pkeys/0: 0xffff", "pkeys/1: 0x0000", "pkeys/2: 0x8001", "pkeys/3: 0x0000", "pkeys/10: 0x0000",
	} {
		b.WriteString(p + line + "\n")
	}
	fmt.Fprintf(&b, "infiniband/%s/node_guid: 0002:c903:0000:0010\n", device)
	b.WriteString("infiniband_mad/abi_version: 5\n")
	if umad >= 0 {
		for _, kind := range []string{"umad", "issm"} {
			fmt.Fprintf(&b, "infiniband_mad/%s%d/ibdev: %s\ninfiniband_mad/%[1]s%[2]d/port: %[4]s\n", kind, umad, device, num)
		}
	}
	return b.String()
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

// reversed has the files of another, and lists its folders backwards.
type reversed struct{ fs.FS }

func (r reversed) Open(name string) (fs.File, error) {
	f, err := r.FS.Open(name)
	if dir, ok := f.(fs.ReadDirFile); ok {
		return reversedDir{dir}, err
	}
	return f, err
}

type reversedDir struct{ fs.ReadDirFile }

func (d reversedDir) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := d.ReadDirFile.ReadDir(n)
	slices.Reverse(entries)
	return entries, err
}

func TestFacts(t *testing.T) {
	sys := fakeSys(t, fakePort("mlx5_0/2", "active", 0x12, 0))
	got, err := sys.facts(port{device: "mlx5_0", num: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Port{
		Device: "mlx5_0", Num: 2,
		NodeGUID: 0x0002c90300000010, PortGUID: 0x0002c90300000012,
		LID: 31, LMC: 2, SMLID: 1, SMSL: 3,
		State: mad.PortStateActive, GIDPrefix: 0xfe80000000000000,
		PKeys: []uint16{0xffff, 0, 0x8001},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What a file of /sys may hold that is no good.
func TestFactsErrors(t *testing.T) {
	good := fakePort("mlx5_0/1", "active", 0x11, 0)
	for _, c := range []struct{ file, content, want string }{
		{"ports/1/lid", "x", `/sys/class/infiniband/mlx5_0/ports/1/lid: invalid number "x"`},
		{"ports/1/gids/0", "1.2.3.4", `/sys/class/infiniband/mlx5_0/ports/1/gids/0: invalid GID "1.2.3.4"`},
		{"ports/1/pkeys/2", "-1", `/sys/class/infiniband/mlx5_0/ports/1/pkeys/2: invalid number "-1"`},
		{"node_guid", "?", `/sys/class/infiniband/mlx5_0/node_guid: invalid GUID "?"`},
	} {
		sys := fakeSys(t, good+"infiniband/mlx5_0/"+c.file+": "+c.content)
		if _, err := sys.facts(port{device: "mlx5_0", num: 1}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.file, err, c.want)
		}
	}
}
