package format_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestRoundTrip: files written of simulated fabrics read back as these fabrics.
func TestRoundTrip(t *testing.T) {
	for _, spec := range []string{"", "fattree:k=4,levels=3", "ring:n=2", "ring:n=7,hosts=2", "pgft:m=3/3,w=1/2,p=2/1"} {
		f, o, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(conn, engine.Options{})
		got, err := discover.Sweep(t.Context(), e, discover.Options{}) // with LIDs
		e.Close()
		if err != nil {
			t.Fatal(err)
		}
		checkFixedPoint(t, spec, got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("vendid=0x2c9\nmodule=\"m\"\nSwitch 4 \"leaf\" # \"the leaf\" lid 3 lmc 1\n[1] \"host\" w=1 s=3\n@[2] \"up\"\n\nCa 2 \"host\"\n[1] \"leaf\" # lid 1 lmc 0 \"leaf\" lid 0 4xQDR\n[2] \"@up\"\n")
	f.Add("switchguid=0x1(1)\nSwitch\t2 \"S-0000000000000001\"\t\t# \"a\" base port 0 lid 1 lmc 0\n[1]\t\"S-0000000000000001\"[2]\t\t# \"a\" lid 1 4xXDR\n[2]\t\"S-0000000000000001\"[1]\t\t# \"a\" lid 1 4xXDR\n")
	f.Fuzz(func(t *testing.T, text string) {
		fab, err := format.Load(strings.NewReader(text), "net", nil)
		if err != nil {
			if fab != nil || !strings.HasPrefix(err.Error(), "net:") {
				t.Errorf("%v, %v", fab, err)
			}
			return
		}
		if slices.ContainsFunc(fab.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemNoLIDs }) {
			return // unknown LIDs are written as 0, and a file with nothing else gets LIDs
		}
		checkFixedPoint(t, "", fab)
	})
}

// checkFixedPoint: f, written, read and written again, is what it was the
// first time; and what was read is f, but for what the format cannot say.
func checkFixedPoint(t *testing.T, name string, f *fabric.Fabric) {
	t.Helper()
	var first, second strings.Builder
	if err := format.Dump(&first, f, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	g, err := format.Load(strings.NewReader(first.String()), "dump", nil)
	if err != nil {
		t.Fatalf("%s: %v in\n%s", name, err, first.String())
	}
	if err := format.Dump(&second, g, "ibnetdiscover"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first.String(), second.String()); d != "" {
		t.Errorf("%s: dumped twice (-first +second):\n%s", name, d)
	}
	if d := cmp.Diff(topology(f), topology(g)); d != "" {
		t.Errorf("%s: (-written +read):\n%s", name, d)
	}
}

// topology is who is connected to whom.
func topology(f *fabric.Fabric) string {
	var b strings.Builder
	for i := range f.Ports() {
		p := &f.Ports()[i]
		fmt.Fprintf(&b, "%s %v %d/%d lid %d", p.Node().Type(), p.Node().GUID(), p.Node().ID(), p.Num(), p.LID())
		if q := p.Peer(); q != nil {
			fmt.Fprintf(&b, " - %d/%d %s%s", q.Node().ID(), q.Num(), p.Width(), p.Speed())
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// BenchmarkLoad reads the topology of 11,664 hosts and 1,620 switches.
func BenchmarkLoad(b *testing.B) {
	f, _, err := sim.Parse("pgft:m=18/18/36,w=1/18/18,p=1/1/1")
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	if err := format.Dump(&text, f, "ibnetdiscover"); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := format.Load(strings.NewReader(text.String()), "net", nil); err != nil {
			b.Fatal(err)
		}
	}
}
