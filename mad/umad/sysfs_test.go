package umad

import (
	"errors"
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

// counterLines are the lines of all counters of mlx5_0/1: each has its place in the list.
func counterLines() string {
	var b strings.Builder
	for i, c := range mad.CounterFiles {
		fmt.Fprintf(&b, "infiniband/mlx5_0/ports/1/counters/%s: %d\n", c.Name, i+1)
	}
	return b.String()
}

// TestReadCounters: the counters are read into the attributes that the kernel takes them from.
func TestReadCounters(t *testing.T) {
	sys := fakeSys(t, counterLines())
	c, err := ReadCounters(sys.root, "mlx5_0", 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range mad.CounterFiles {
		data := c.Base
		if x.Attr == mad.AttrPortCountersExtended {
			data = c.Extended
		}
		if got := x.Attr.Field(x.Field).Uint(data); got != uint64(i+1) || !c.Wait {
			t.Errorf("%s: %d, want %d", x.Name, got, i+1)
		}
	}
}

func TestReadCountersErrors(t *testing.T) {
	all := counterLines()
	const folder = "/sys/class/infiniband/mlx5_0/ports/1/counters"
	without := func(words ...string) string {
		var kept []string
		for line := range strings.Lines(all) {
			drop := false
			for _, w := range words {
				drop = drop || strings.Contains(line, w)
			}
			if !drop {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	line := func(name, text string) string {
		return all + "infiniband/mlx5_0/ports/1/counters/" + name + ": " + text + "\n"
	}
	for _, c := range []struct {
		name, lines, want string
		wait, extended    bool
	}{
		{"without traffic of unicast, which may have 32 bits", without("unicast"), "<nil>", true, false},
		{"without port_xmit_wait", without("wait"), "<nil>", false, true},
		{"none", "", folder + ": the kernel shows no counters of the port", false, false},
		{"no agent", strings.ReplaceAll(line("link_downed", "N/A (no PMA)"), ": 1\n", ": N/A (no PMA)\n"), folder + ": 2 of 12 error counters are missing", false, false},
		{"text", line("symbol_error", "many"), folder + `/symbol_error: invalid counter "many"`, false, false},
		{"more than the kernel has", line("symbol_error", "65536"), folder + `/symbol_error: invalid counter "65536"`, false, false},
		{"negative", line("VL15_dropped", "-1"), folder + `/VL15_dropped: invalid counter "-1"`, false, false},
		{"long", line("VL15_dropped", strings.Repeat("1", 5000)), folder + "/VL15_dropped: longer than 4096 bytes", false, false},
	} {
		got, err := ReadCounters(fakeSys(t, c.lines).root, "mlx5_0", 1)
		if fmt.Sprint(err) != c.want || got.Wait != c.wait || (got.Extended != nil) != c.extended || (got.Base == nil) != (err != nil) {
			t.Errorf("%s: got %v, %+v; want %s", c.name, err, got, c.want)
		}
	}
}

// TestAllPorts: ports whose files are invalid are there, with the reason, and HostPorts leaves
// them out.
func TestAllPorts(t *testing.T) {
	sys := fakeSys(t, fakePort("mlx5_0/1", "active", 0x11, 0)+"infiniband/mlx5_0/hca_type: MT4129\ninfiniband/mlx5_0/board_id: MT_0000000838\ninfiniband/mlx5_0/sys_image_guid: 0002:c903:0000:0013\n"+
		fakePort("mlx5_1/1", "active", 0x21, 1)+"infiniband/mlx5_1/ports/1/cap_mask: what\n"+
		fakePort("mlx5_2/1", "active", 0x31, 2)+"infiniband/mlx5_2/ports/1/lid: none\n"+
		"infiniband/mlx5_3/node_guid: 0002:c903:0000:0040\n")
	all, err := AllPorts(sys.root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, fmt.Sprintf("%s/%d %s %s %v %v", p.Device, p.Num, p.Model, p.Board, p.System, p.Err))
	}
	want := []string{
		"mlx5_0/1 MT4129 MT_0000000838 0x0002c90300000013 <nil>",
		`mlx5_2/1   0x0000000000000000 /sys/class/infiniband/mlx5_2/ports/1/lid: invalid number "none"`,
		`mlx5_1/1   0x0000000000000000 /sys/class/infiniband/mlx5_1/ports/1/cap_mask: invalid number "what"`,
		"mlx5_3/0   0x0000000000000000 open /sys/class/infiniband/mlx5_3/ports: file does not exist",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if list, err := HostPorts(sys.root); len(list) != 1 || err != nil {
		t.Errorf("HostPorts: %d ports, %v", len(list), err)
	}
	if _, err := AllPorts(fakeSys(t, "").root); !errors.Is(err, ErrNoDevice) {
		t.Errorf("no device: %v", err)
	}
}
