package format_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/mad"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// subnet is an ibsim that OpenSM has brought up, and the fabric as we see it.
type subnet struct {
	*ibsimtest.Fixture
	f *fabric.Fabric
}

// dump is a file that OpenSM wrote.
func (s *subnet) dump(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(s.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// start brings a net up; OpenSM dumps all tables it can.
func start(t testing.TB, net string, args ...string) *subnet {
	t.Helper()
	first := regexp.MustCompile(`(?m)^Ca\t\d+ "([^"]*)"`).FindStringSubmatch(net)[1]
	s := &subnet{Fixture: ibsimtest.Start(t, net, ibsimtest.FixtureOptions{SM: first, SMArgs: append([]string{"-D", "0x43"}, args...)})}
	tr, err := ibsim.Attach(ibsim.Options{Socket: s.Name})
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(tr, engine.Options{})
	defer e.Close()
	if s.f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// nets are the net files of peers' tests, by name.
func nets(t testing.TB) map[string]string {
	m := map[string]string{"fattree": ibsimtest.FatTree(4, 2, 4)}
	for _, name := range ibsimtest.Nets() {
		m[name] = ibsimtest.Net(t, name)
	}
	return m
}

// rows are the forwarding tables of a fabric.
type rows map[*fabric.Node][]byte

// of makes rows on demand, from LID 0 to the last of the fabric.
func (r rows) of(f *fabric.Fabric) func(*fabric.Node) []byte {
	return func(n *fabric.Node) []byte {
		if r[n] == nil {
			r[n] = make([]byte, f.TopLID()+1)
		}
		return r[n]
	}
}

func (r rows) get(n *fabric.Node) []byte { return r[n] }

func readLFTs(t testing.TB, f *fabric.Fabric, name, text string) rows {
	t.Helper()
	r := rows{}
	notes, err := format.ReadLFTs(strings.NewReader(text), name, f, r.of(f))
	if err != nil || notes != nil {
		t.Fatalf("%v, notes %q", err, notes)
	}
	return r
}

// TestOpenSMTables: the tables that OpenSM and the tools of infiniband-diags
// dump are read alike, and written as OpenSM does.
func TestOpenSMTables(t *testing.T) {
	for name, net := range nets(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, net, "-Q")
			want := s.dump(t, "opensm-lfts.dump")
			tables := readLFTs(t, s.f, "lfts", want)
			var got bytes.Buffer
			if err := format.WriteLFTs(&got, s.f, tables.get); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got.String()); d != "" {
				t.Errorf("(-OpenSM +fabsh):\n%s", d)
			}
			for _, other := range []struct{ name, text string }{
				{"fdbs", s.dump(t, "opensm.fdbs")},
				{"dump_fts", s.Run(t, "dump_fts")},
				{"dump_fts -a", s.Run(t, "dump_fts", "-a")},
				{"dump_fts -n", s.Run(t, "dump_fts", "-n")},
				{"after multicast", s.Run(t, "dump_fts", "-M") + s.Run(t, "dump_fts")},
			} {
				if d := cmp.Diff(tables, readLFTs(t, s.f, other.name, other.text), cmp.Comparer(func(a, b *fabric.Node) bool { return a == b })); d != "" {
					t.Errorf("%s (-opensm-lfts.dump +it):\n%s", other.name, d)
				}
			}
			hops := readHops(t, s.f, s.dump(t, "opensm-lid-matrix.dump"))
			sl2vl := readSL2VLs(t, s.f, s.dump(t, "opensm-sl2vl.dump"))
			for _, file := range []struct {
				name  string
				write func(io.Writer) error
			}{
				{"opensm-lid-matrix.dump", func(w io.Writer) error { return format.WriteHops(w, s.f, hops) }},
				{"opensm.fdbs", func(w io.Writer) error { return format.WriteFDBs(w, s.f, tables.get, hops) }},
				{"opensm-sl2vl.dump", func(w io.Writer) error { return format.WriteSL2VLs(w, s.f, sl2vl) }},
				{"opensm-subnet.lst", func(w io.Writer) error { return format.Dump(w, s.f, "opensm-subnet") }},
				{"guid2lid", func(w io.Writer) error { return format.WriteGUID2LID(w, s.f) }},
			} {
				var got bytes.Buffer
				if err := file.write(&got); err != nil {
					t.Fatal(err)
				}
				want := s.dump(t, file.name)
				if file.name == "guid2lid" { // OpenSM writes it in the order of a hash table
					want = sorted(want)
				}
				if d := cmp.Diff(want, got.String()); d != "" {
					t.Errorf("%s (-OpenSM +fabsh):\n%s", file.name, d)
				}
			}
		})
	}
}

// sorted are the records of text, which blank lines end.
func sorted(text string) string {
	records := strings.SplitAfter(text, "\n\n")
	slices.Sort(records)
	return strings.Join(records, "")
}

func readHops(t testing.TB, f *fabric.Fabric, text string) format.HopsFunc {
	t.Helper()
	type key struct {
		sw  *fabric.Node
		lid mad.LID
	}
	m := map[key][]byte{}
	for row, err := range format.HopRows(strings.NewReader(text), "hops") {
		if err != nil {
			t.Fatal(err)
		}
		sw, err := row.Find(f)
		if err != nil {
			t.Fatal(err)
		}
		m[key{sw, row.LID}] = slices.Clone(row.Hops)
	}
	return func(sw *fabric.Node, lid mad.LID, hops []byte) bool {
		row := m[key{sw, lid}]
		return copy(hops, row) > 0
	}
}

func readSL2VLs(t testing.TB, f *fabric.Fabric, text string) format.SL2VLFunc {
	t.Helper()
	type key struct{ in, out *fabric.Port }
	m := map[key][16]uint8{}
	for row, err := range format.SL2VLs(strings.NewReader(text), "sl2vl") {
		if err != nil {
			t.Fatal(err)
		}
		n, err := row.Find(f)
		if err != nil {
			t.Fatal(err)
		}
		k := key{n.Port(row.In), n.Port(row.Out)}
		if !n.IsSwitch() {
			k = key{nil, f.PortByGUID(row.GUID)[0]}
		}
		m[k] = row.VLs
	}
	return func(in, out *fabric.Port) ([16]uint8, bool) {
		vls, ok := m[key{in, out}]
		return vls, ok
	}
}

// TestOpenSMSubnet: what we read of opensm-subnet.lst we write as OpenSM did,
// and it is what we discover.
func TestOpenSMSubnet(t *testing.T) {
	for name, net := range nets(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, net)
			want := s.dump(t, "opensm-subnet.lst")
			f, err := format.Load(strings.NewReader(want), "lst", nil)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := format.Dump(&got, f, "opensm-subnet"); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got.String()); d != "" {
				t.Errorf("(-OpenSM +fabsh):\n%s", d)
			}
			if d := cmp.Diff(topology(s.f), topology(f)); d != "" {
				t.Errorf("(-discovered +read):\n%s", d)
			}
		})
	}
}

// TestOpenSMLoads: OpenSM takes the tables we write for its own, and dumps
// them as they are. They are not those it would have made.
func TestOpenSMLoads(t *testing.T) {
	for name, net := range nets(t) {
		t.Run(name, func(t *testing.T) {
			s := start(t, net)
			tables := readLFTs(t, s.f, "lfts", s.dump(t, "opensm-lfts.dump"))
			hops := readHops(t, s.f, s.dump(t, "opensm-lid-matrix.dump"))
			changed := 0
			for sw, row := range tables {
				for lid := range row {
					changed += reroute(sw, s.f.PortByLID(mad.LID(lid)), &row[lid], hops)
				}
			}
			var want bytes.Buffer
			if err := format.WriteLFTs(&want, s.f, tables.get); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "lfts")
			if err := os.WriteFile(file, want.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			got := start(t, net, "-R", "file,no_fallback", "-U", file).dump(t, "opensm-lfts.dump")
			if d := cmp.Diff(want.String(), got); d != "" || changed == 0 && name != "ring" { // where there is no other way
				t.Errorf("%d entries changed; (-fabsh +OpenSM):\n%s", changed, d)
			}
		})
	}
}

// reroute takes another port as near to the LID, if there is one.
func reroute(sw *fabric.Node, to *fabric.Port, port *byte, hops format.HopsFunc) int {
	if to != nil && !to.Node().IsSwitch() {
		to = to.Peer()
	}
	row := make([]byte, sw.NumPorts()+1)
	if to == nil || to.Node() == sw || !hops(sw, to.LID(), row) {
		return 0
	}
	for num := sw.NumPorts(); num > 0; num-- {
		if row[num] == row[0] && byte(num) != *port {
			*port = byte(num)
			return 1
		}
	}
	return 0
}

// TestIbnetdiscoverVariants: the options of ibnetdiscover do not change the links.
func TestIbnetdiscoverVariants(t *testing.T) {
	m := nets(t)
	// A director whose boards ibnetdiscover knows, and a router in it, of which
	// -g prints no record.
	chassis := strings.ReplaceAll(m["names"], "devid=0xc738", "devid=0xbd36")
	m["chassis"] = strings.Replace(chassis, "devid=0x6001\n", "devid=0x6001\nsysimgguid=0x0c42a10300002000\n", 1)
	for name, net := range m {
		t.Run(name, func(t *testing.T) {
			s := start(t, net)
			// The cache holds all that was answered, and nothing it would be found by.
			cache := filepath.Join(t.TempDir(), "cache")
			s.Run(t, "ibnetdiscover", "--cache", cache)
			f, err := loadFile(cache)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(all(s.f), all(f)); d != "" {
				t.Errorf("--cache (-discovered +read):\n%s", d)
			}
			if f.From() == nil || f.From().Name() != s.f.From().Name() {
				t.Errorf("--cache: from %v", f.From())
			}
			for _, args := range [][]string{nil, {"-g"}, {"-f"}, {"-g", "-f", "-m"}} {
				text := s.Run(t, "ibnetdiscover", args...)
				if name == "chassis" && len(args) == 1 && args[0] == "-g" && (!strings.Contains(text, "[ext 1]") || strings.Contains(text, "\nRt")) {
					t.Fatalf("no chassis, or a record of the router, in\n%s", text)
				}
				f, err := format.Load(strings.NewReader(text), "net", nil)
				if err != nil {
					t.Errorf("%q: %v", args, err)
					continue
				}
				if d := cmp.Diff(topology(s.f), topology(f)); d != "" {
					t.Errorf("%q (-discovered +read):\n%s", args, d)
				}
				for i := range f.Ports() {
					want := mad.VLs(0)
					if slices.Contains(args, "-f") && f.Ports()[i].Peer() != nil {
						want = s.f.Ports()[i].Info().VLCap
					}
					if p := &f.Ports()[i]; p.Info() != nil && p.Num() > 0 && p.Info().VLCap != want && p.Node().Type() != mad.NodeTypeRouter {
						t.Errorf("%q: %s has VLs %v, not %v", args, p.Label(), p.Info().VLCap, want)
					}
				}
			}
		})
	}
}

// all is what whole is, without routes and problems.
func all(f *fabric.Fabric) string {
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		info := *n.Info()
		info.LocalPortNum = 0 // that by which an SMP came in
		if !n.IsSwitch() {
			info.PortGUID = 0
		}
		si := n.SwitchInfo()
		name := []byte(n.Name())
		for i, c := range name {
			if c < ' ' || c > '~' { // as ibnetdiscover has them
				name[i] = ' '
			}
		}
		b.AddNode(fabric.NodeSpec{Info: info, Name: string(name[:min(len(name), 63)]), Switch: si})
	}
	for i := range f.Ports() {
		p := &f.Ports()[i]
		n := p.Node().ID()
		if x := p.Info(); x != nil {
			info := *x
			info.LocalPortNum = 0
			b.SetPort(n, p.Num(), &info)
		}
		if q := p.Peer(); q != nil {
			b.Link(n, p.Num(), q.Node().ID(), q.Num())
			if !p.Node().IsSwitch() {
				b.SetPortGUID(n, p.Num(), p.GUID())
			}
		}
	}
	return whole(b.Build())
}
