package umad

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fabsh/mad"
)

// counterLines are the lines of all counters of mlx5_0/1: each has its place in the list.
func counterLines() string {
	var b strings.Builder
	for i, c := range mad.CounterFiles {
		fmt.Fprintf(&b, "infiniband/mlx5_0/ports/1/counters/%s: %d\n", c.Name, i+1)
	}
	return b.String()
}

// TestReadCounters: the counters are those of the attributes that the kernel reads.
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
