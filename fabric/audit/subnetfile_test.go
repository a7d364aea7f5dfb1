package audit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestSubnetFile: what is kept of one subnet is not that of another with the same name.
// Switches that are missing stay recorded, unless the sweep was complete and has half of
// them; so does the prefix, if a text dump lacks it.
func TestSubnetFile(t *testing.T) {
	dir := t.TempDir()
	of := func(prefix uint64, switches ...mad.GUID) fabric.Subnet {
		return fabric.Subnet{Given: "rail-1", Prefix: prefix, Switches: switches}
	}
	folder := filepath.Join(dir, "rail-1")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	const head = "# The subnet of which this directory keeps acknowledgements and state.\nprefix 0x0000000000000001\n"
	for _, step := range []struct {
		now      fabric.Subnet
		complete bool
		file     string
		err      string
	}{
		{now: of(1, 10, 20, 30, 40), file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(1, 10), complete: true, file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(0, 10, 20, 30, 40), complete: true, file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\n"},
		{now: of(1, 10, 50), err: folder + " is of another subnet (prefix 0x0000000000000001, 4 switches from 0x000000000000000a), not of this one (prefix 0x0000000000000001, 2 switches from 0x000000000000000a, with 1 of those 4); use --subnet NAME or --state DIR, or remove " + folder + "/subnet if the subnet is the same"},
		{now: of(2, 10, 20, 30, 40), err: folder + " is of another subnet (prefix 0x0000000000000001, 4 switches from 0x000000000000000a), not of this one (prefix 0x0000000000000002, 4 switches from 0x000000000000000a, with 4 of those 4); use --subnet NAME or --state DIR, or remove " + folder + "/subnet if the subnet is the same"},
		{now: of(1, 30, 40, 50), file: head + "switch 0x000000000000000a\nswitch 0x0000000000000014\nswitch 0x000000000000001e\nswitch 0x0000000000000028\nswitch 0x0000000000000032\n"},
		{now: of(1, 30, 40, 50), complete: true, file: head + "switch 0x000000000000001e\nswitch 0x0000000000000028\nswitch 0x0000000000000032\n"},
	} {
		text := ""
		err := CheckSubnet(dir, step.now)
		if err != nil {
			text = err.Error()
		}
		if text != step.err {
			t.Errorf("%v: got %q, want %q", step.now, text, step.err)
		}
		if err != nil {
			continue
		}
		if err := RecordSubnet(dir, step.now, step.complete); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(folder, "subnet"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.file, string(file)); diff != "" {
			t.Errorf("%v: -want +got\n%s", step.now, diff)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "subnet"), []byte("switch x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := folder + "/subnet: line 1: want prefix or switch, and a number; remove it to record the subnet again"
	if err := CheckSubnet(dir, of(1, 30)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzSubnetFile: any bytes are a subnet or an error.
func FuzzSubnetFile(f *testing.F) {
	f.Add(subnetHeader + "prefix 0xfe80000000000000\nswitch 0x0002c90300100000\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseSubnet(text); (s == nil) == (err == nil) {
			t.Errorf("%v, %v", s, err)
		}
	})
}
