package format

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
)

// tableTexts are tables of each format, and what reads them.
var tableTexts = []struct {
	name, text string
	read       func(r io.Reader) error
}{
	{"opensm-lfts", "Unicast lids [0-2] of switch Lid 2 guid 0x0c42a10300001000 ('rack 1'):\n0x0001 001 # host\n0x0002 000 # here\n2 lids dumped\n", drained(LFTs)},
	{"ibroute", "Unicast lids [0x0-0x2] of switch Lid 2 guid 0x0c42a10300001000 (rack 1):\n  Lid  Out   Destination\n       Port     Info \n0x0001 001 : (Channel Adapter portguid 0x0c42a10300000101: 'node 1')\n1 valid lids dumped \n", drained(LFTs)},
	{"opensm.fdbs", "dump_ucast_routes: Switch 0x0c42a10300001000\nLID    : Port : Hops : Optimal\n0x0001 : 001  : 01   : yes\n", drained(LFTs)},
	{"opensm-sl2vl", "Channel Adapter 0x0002c90300001001, base LID 2, \"node\"\n#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15\n1 0 : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 7\n", drained(SL2VLs)},
	{"ibdm-sl2vl", "0x0002c90000000201 5 1 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xe7\n", drained(SL2VLs)},
	{"smpquery sl2vl", "# SL2VL table: Lid 2\n#                 SL: | 0| 1|\nports: in  0, out  0: | 0| 1| 2| 3| 4| 5| 6| 7| 0| 1| 2| 3| 4| 5| 6| 7|\n", drained(SL2VLs)},
	{"path-sl", "Channel Adapter 0x0002c90300001001, base LID 2, \"node\"\n0x009a : 0\n", drained(PathSLs)},
	{"opensm-lid-matrix", "Switch: guid 0x0c42a10300001000\n0x0002: 00 ff 02 02 # portguid 0x0c42a10300001000\n", drained(HopRows)},
	{"opensm.mcfdbs", "Switch 0x0c42a10300001000\nLID    : Out Port(s)\n0xC000 : 0x001  0x007\n", drained(MFTs)},
	{"ibroute -M", "Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x0c42a10300001000 (rack 1):\n            0                   1\n     Ports: 0 1 2 3 4 5 6 7 8 9 0\n MLid\n0xc000        x     x\n1 valid mlids dumped \n", drained(MFTs)},
	{"ibdiagnet2.far", "File version: 1\nSwitch 0x0c42a10300001000 - rack 1\nGroups Definition:\nGroup Sub Weight Ports\n------\n1 0 1 5,6,\n\nLFT Definition: PLFT_NUM: 0, top: 0x1\nLID Port State Group\n------\n0x0001 5 Free 1\n\n", drained(FARs)},
}

// drained returns a function that reads all rows.
func drained[T any](rows func(io.Reader, string) iter.Seq2[T, error]) func(io.Reader) error {
	return func(r io.Reader) error {
		n := 0
		for _, err := range rows(r, "x") {
			if err != nil {
				return err
			}
			n++
		}
		if n == 0 {
			return fmt.Errorf("no rows")
		}
		return nil
	}
}

// TestPreambles: a banner or a prompt before a table is skipped with a note. Without a place for
// the note, and where the table has lost its beginning, the file is refused as before.
func TestPreambles(t *testing.T) {
	const banner = "PuTTY\r\n\r\nWelcome to sw-1, up 2 days\r\n[root@a ~]# dump -D 0,1 0x0c42a10300001000\r\n"
	for _, x := range tableTexts {
		var notes []string
		capture := func(text string) error {
			notes = nil
			return x.read(&Capture{Reader: strings.NewReader(text), Note: func(s string) { notes = append(notes, s) }})
		}
		if err := capture(x.text); err != nil || len(notes) > 0 {
			t.Errorf("%s alone: %v, notes %q", x.name, err, notes)
		}
		want := []string{"x:1: skipped 3 lines before the table, such as a banner or a prompt: PuTTY"}
		if err := capture(banner + strings.ReplaceAll(x.text, "\n", "\r\n")); err != nil || !cmp.Equal(want, notes) {
			t.Errorf("%s captured: %v, notes %q", x.name, err, notes)
		}
		for _, text := range []string{banner, banner + "end\n", "hello\n", banner + "0x0001 001 # host\n" + x.text, banner + "1 lids dumped\n" + x.text} {
			strict := x.read(strings.NewReader(text))
			err := capture(text)
			if strings.HasSuffix(text, x.text) && x.name == "ibdiagnet2.far" {
				continue // its reader ignores all lines before a switch
			}
			if err == nil || strict == nil || err.Error() != strict.Error() || len(notes) > 0 {
				t.Errorf("%s: %q: %v, want %v; notes %q", x.name, fabric.Clip(text), err, strict, notes)
			}
		}
		// The numbers of lines are those of the file.
		broken := banner + x.text + "~\n"
		err := capture(broken)
		if at := fmt.Sprintf("x:%d: ", strings.Count(broken, "\n")); x.name != "ibdiagnet2.far" && (err == nil || !strings.HasPrefix(err.Error(), at)) {
			t.Errorf("%s with a broken line: %v, want an error at %s", x.name, err, at)
		}
	}
}

func FuzzPreambles(f *testing.F) {
	for i, x := range tableTexts {
		f.Add(i, "PuTTY\r\n[root@a ~]# dump\r\n"+x.text)
		f.Add(i, "\n# x\n1\n"+x.text)
		f.Add(i, x.text+"[root@a ~]# exit\nlogout\n")
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		x := tableTexts[uint(i)%uint(len(tableTexts))]
		notes := 0
		err := x.read(&Capture{Reader: strings.NewReader(text), Note: func(string) { notes++ }})
		strict := x.read(strings.NewReader(text))
		if notes == 0 && (err == nil) != (strict == nil) || notes > 2 {
			t.Errorf("%d notes; %v, strict %v", notes, err, strict)
		}
	})
}
