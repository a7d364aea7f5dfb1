package format_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim/ibsimtest"
)

// whole is everything that there is to know of f.
func whole(f *fabric.Fabric) string {
	var b strings.Builder
	fmt.Fprintln(&b, f, f.Scope())
	if p := f.From(); p != nil {
		fmt.Fprintln(&b, "from", p.ID())
	}
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		fmt.Fprintf(&b, "%q %+v %v %v\n", n.Name(), *n.Info(), n.SwitchInfo(), n.Route())
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		fmt.Fprintf(&b, "%s %v %s%s", p.Name(), p.GUID(), p.Width(), p.Speed())
		if q := p.Peer(); q != nil {
			fmt.Fprintf(&b, " - %d", q.ID())
		}
		if x := p.Info(); x != nil {
			fmt.Fprintf(&b, " %+v", *x)
		}
		fmt.Fprintln(&b)
	}
	for _, p := range f.Problems() {
		fmt.Fprintln(&b, p.Kind, p.Text)
	}
	for i := range f.Nodes() {
		if s := f.Nodes()[i].Adaptive(); s != nil {
			fmt.Fprintf(&b, "%d routes adaptively: %x\n", i, s.Append(nil))
		}
	}
	return b.String()
}

func discoverSim(t testing.TB, spec string) *fabric.Fabric {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(conn, engine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// adaptiveSwitch is the adaptive routing of a switch: on, or read and off.
func adaptiveSwitch(i int) *adaptive.Switch {
	if i%2 > 0 {
		return &adaptive.Switch{}
	}
	groups := adaptive.NewGroups(2)
	groups.Set(3, 1, adaptive.PortSet(1, 200))
	table := adaptive.NewTable(300, groups)
	table.Set(300, adaptive.Entry{State: adaptive.Free, Port: uint8(i), Group: 3})
	return &adaptive.Switch{Enabled: true, SLs: 0x1234, Unknown: "a reason", Tables: []*adaptive.Table{table}}
}

func writeSnapshot(t testing.TB, f *fabric.Fabric) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := format.WriteSnapshot(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSnapshot: a snapshot preserves all that is known of a fabric, whatever its
// source, and equal fabrics give equal bytes.
func TestSnapshot(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{"sim": discoverSim(t, "fattree:k=4,levels=3")}
	for name, text := range map[string]string{"ibsim": ibsimtest.Net(t, "names"), "odd": oddNet} {
		f, err := format.Load(strings.NewReader(text), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		fabrics[name] = f
	}
	b := fabric.NewBuilder()
	b.SetScope("within 2 hops of 0,1")
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemTimedOut, Text: "no answer"})
	fabrics["empty"] = b.Build()
	for name, f := range fabrics {
		t.Run(name, func(t *testing.T) {
			var read fabric.Reading
			for i := range f.Nodes() {
				if f.Nodes()[i].IsSwitch() {
					if read.LFTs == nil {
						read.LFTs = make([][]byte, len(f.Nodes()))
					}
					read.LFTs[i] = []byte{255, byte(i), 3}
					if read.Adaptive == nil {
						read.Adaptive = make([]*adaptive.Switch, len(f.Nodes()))
					}
					read.Adaptive[i] = adaptiveSwitch(i)
				}
			}
			if len(f.Nodes()) > 0 {
				read.CountersRead = time.UnixMilli(1e12 + 7)
				read.Answers = []fabric.Answer{
					{Node: fabric.NoNode, Port: fabric.NoPort, Class: mad.ClassSubnAdm, ID: mad.AttrMCMemberRecord.ID, Data: []byte{4}},
					{Node: 0, Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrPKeyTable.ID, Modifier: 1 << 16, Data: []byte{1, 2, 3}},
					{Node: 0, Port: 254, Class: mad.ClassPerf, ID: mad.AttrPortCounters.ID, Data: []byte{5}},
				}
			}
			f := f.With(read)
			data := writeSnapshot(t, f)
			if !bytes.Equal(data, writeSnapshot(t, f)) {
				t.Error("the same fabric made other bytes")
			}
			got, err := format.ReadSnapshot(bytes.NewReader(data), "x")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(whole(f), whole(got)); d != "" {
				t.Errorf("(-written +read):\n%s", d)
			}
			if !f.CountersRead().Equal(got.CountersRead()) {
				t.Errorf("counters read at %v, want %v", got.CountersRead(), f.CountersRead())
			}
			if d := cmp.Diff(f.Answers(), got.Answers()); d != "" {
				t.Errorf("(-written +read):\n%s", d)
			}
			for i := range f.Nodes() {
				if !bytes.Equal(f.Nodes()[i].LFT(), got.Nodes()[i].LFT()) {
					t.Errorf("table of node %d: %v, read %v", i, f.Nodes()[i].LFT(), got.Nodes()[i].LFT())
				}
			}
			if g, err := format.Load(bytes.NewReader(data), "x", nil); err != nil || whole(g) != whole(f) {
				t.Errorf("loaded %v, %v", g, err)
			}
		})
	}
}

// oddNet has a loop, two nodes of one GUID, and FDR10.
const oddNet = `switchguid=0x10
Switch 4 "a" # "a" base port 0 lid 3 lmc 2
[1] "a"[2] # "a" lid 3 4xFDR10
[2] "a"[1] # "a" lid 3 4xFDR10
[3] "a"[3] # "a" lid 3 12xXDR

switchguid=0x10
Switch 4 "b" # "b" enhanced port 0 lid 4 lmc 0
`

// TestSnapshotKeys: no key gets into a snapshot.
func TestSnapshotKeys(t *testing.T) {
	const secret = 0x5ec4e75ec4e75ec4
	b := fabric.NewBuilder()
	n := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 1}})
	b.SetPort(n, 1, &mad.PortInfo{LID: 7, MKey: secret})
	info := make([]byte, 64)
	(&mad.PortInfo{LID: 7, MKey: secret}).Encode(info)
	f := b.Build().With(fabric.Reading{Answers: []fabric.Answer{{Class: mad.ClassSubn, ID: mad.AttrPortInfo.ID, Data: info}}})
	got, err := format.ReadSnapshot(bytes.NewReader(writeSnapshot(t, f)), "x")
	if err != nil {
		t.Fatal(err)
	}
	var answer mad.PortInfo
	answer.Decode(got.Answers()[0].Data)
	for _, x := range []*mad.PortInfo{got.Nodes()[0].Port(1).Info(), &answer} {
		if x.LID != 7 || x.MKey != 0 {
			t.Errorf("read LID %d, M_Key %#x", x.LID, x.MKey)
		}
	}
	if f.Nodes()[0].Port(1).Info().MKey != secret || !bytes.Equal(info[:2], []byte{0x5e, 0xc4}) {
		t.Error("the fabric itself lost its key")
	}
}

// TestSnapshotDamage: any lost or changed byte is reported, unless it
// changes nothing.
func TestSnapshotDamage(t *testing.T) {
	f := discoverSim(t, "ring:n=2")
	data := writeSnapshot(t, f)
	for i := range data {
		if _, err := format.ReadSnapshot(bytes.NewReader(data[:i]), "x"); err == nil || !strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("cut at %d: %v", i, err)
		}
		changed := bytes.Clone(data)
		changed[i] ^= 0x10
		s, err := format.ReadSnapshot(bytes.NewReader(changed), "x")
		if err == nil && whole(s) != whole(f) {
			t.Errorf("changed at %d: read %v", i, s)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "x: ") {
			t.Errorf("changed at %d: %v", i, err)
		}
	}
	for in, want := range map[string]string{
		"":                     `x: expected a snapshot of fabsh, which begins with "fabsh snapshot 1\n"`,
		"fabsh snapshot 5\nxx": `x: expected a snapshot of version 1 to 4; this one is of a later fabsh`,
		"fabsh snapshot 1\n":   `x: expected more: the snapshot is cut short`,
	} {
		if _, err := format.ReadSnapshot(strings.NewReader(in), "x"); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

// TestSnapshotOld: a snapshot of version 1 is read, with its answers; one without
// answers is still written as such.
func TestSnapshotOld(t *testing.T) {
	f := discoverSim(t, "ring:n=2")
	data := writeSnapshot(t, f)
	if !bytes.HasPrefix(data, []byte("fabsh snapshot 1\n")) {
		t.Errorf("written as %q", data[:17])
	}
	z, _ := zstd.NewReader(bytes.NewReader(data[17:]))
	inner, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	inner = append(inner[:len(inner)-1], 'A', 1, byte(mad.ClassSubn), 0x16, 0, 2, 0x80, 1, 'E')
	var old bytes.Buffer
	old.WriteString("fabsh snapshot 1\n")
	w, _ := zstd.NewWriter(&old)
	w.Write(inner)
	w.Close()
	got, err := format.ReadSnapshot(&old, "x")
	if err != nil {
		t.Fatal(err)
	}
	want := []fabric.Answer{{Node: 1, Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrPKeyTable.ID, Data: []byte{0x80, 1}}}
	if d := cmp.Diff(want, got.Answers()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
