package engines

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/traffic"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// writeSubnet writes what OpenSM calls opensm-subnet.lst: each link from both ends.
func writeSubnet(t testing.TB, path string, g *graph.Graph) {
	t.Helper()
	write(t, path, func(w *bufio.Writer) {
		side := func(p *fabric.Port) {
			n := p.Node()
			kind, port, lid := "CA", p.GUID(), mad.LID(0)
			if n.IsSwitch() {
				kind, port = "SW", n.GUID()
			}
			if i := g.TerminalOf(p); i >= 0 {
				lid = g.Terminals()[i].LID
			}
			fmt.Fprintf(w, "{ %s Ports:%02x SystemGUID:%016x NodeGUID:%016x PortGUID:%016x VenID:%06x DevID:%04x Rev:%08x {%s} LID:%04x PN:%02x } ",
				kind, n.NumPorts(), uint64(n.GUID()), uint64(n.GUID()), uint64(port), n.Info().VendorID, n.Info().DeviceID, 0, n.Name(), lid, p.Num())
		}
		for i := range g.Fabric().Ports() {
			if p := &g.Fabric().Ports()[i]; p.Peer() != nil {
				side(p)
				side(p.Peer())
				fmt.Fprintln(w, "PHY=4x LOG=ACT SPD=10")
			}
		}
	})
}

// writeTables writes what OpenSM calls opensm.fdbs.
func writeTables(t testing.TB, path string, r *routes.Routes) {
	t.Helper()
	write(t, path, func(w *bufio.Writer) {
		for s, n := range r.Graph().Switches() {
			fmt.Fprintf(w, "dump_ucast_routes: Switch 0x%016x\nLID    : Port : Hops : Optimal\n", uint64(n.GUID()))
			for lid, port := range r.Row(s) {
				switch {
				case lid == 0:
				case port == routes.NoPort:
					fmt.Fprintf(w, "0x%04X : UNREACHABLE\n", lid)
				default:
					fmt.Fprintf(w, "0x%04X : %03d  : 00   : yes\n", lid, port)
				}
			}
			fmt.Fprintln(w)
		}
	})
}

func write(t testing.TB, path string, do func(w *bufio.Writer)) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	do(w)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// ibdmchk is the output of ibdmchk.
type ibdmchk struct {
	Hops    map[int]int64 // pairs of CAs by links
	DLIDs   map[int64]int // ports by LIDs
	Missing int64         // paths
	Acyclic bool
}

// check runs ibdmchk on tables, with their service levels and lanes.
func check(t testing.TB, r *routes.Routes, args ...string) ibdmchk {
	t.Helper()
	dir := t.TempDir()
	writeSubnet(t, filepath.Join(dir, "lst"), r.Graph())
	writeTables(t, filepath.Join(dir, "fdbs"), r)
	write(t, filepath.Join(dir, "mcfdbs"), func(*bufio.Writer) {})
	if r.SL2VL != nil && len(args) == 0 {
		args = []string{"-c", "sl", "-d", "vl"}
		write(t, filepath.Join(dir, "sl"), func(w *bufio.Writer) {
			for i, from := range r.Graph().Terminals() {
				for _, lid := range r.Graph().LIDs(^graph.ClassSwitch) {
					if from.Out > 0 && r.Graph().TerminalByLID(lid) != i {
						fmt.Fprintf(w, "0x%016x %d %d\n", uint64(from.Port.Node().GUID()), lid, r.SL.Of(i, lid))
					}
				}
			}
		})
		write(t, filepath.Join(dir, "vl"), func(w *bufio.Writer) {
			if err := r.Write(t.Context(), w, format.KindShortSL2VL); err != nil {
				t.Fatal(err)
			}
		})
	}
	c := ibsimtest.Command(t, "ibdmchk", append([]string{"-s", "lst", "-f", "fdbs", "-m", "mcfdbs"}, args...)...)
	c.Dir = dir
	said, _ := c.CombinedOutput() // it crashes at exit
	found := ibdmchk{Hops: map[int]int64{}, DLIDs: map[int64]int{}}
	table := ""
	for line := range strings.Lines(string(said)) {
		line = strings.TrimSpace(line)
		var a, b int64
		switch {
		case strings.Contains(line, "LFT ROUTE HOP HISTOGRAM"):
			table = "hops"
		case strings.Contains(line, "NUM DLIDS HISTOGRAM"):
			table = "dlids"
		case strings.HasPrefix(line, "-----") && len(strings.Trim(line, "-")) == 0:
			table = ""
		case strings.Contains(line, "no credit loops found"):
			found.Acyclic = true
		case strings.HasPrefix(line, "-E- Fail to find a path"):
			found.Missing++ // and it judges no credit loops
		}
		if n, _ := fmt.Sscanf(line, "%d %d", &a, &b); n == 2 && table == "hops" {
			found.Hops[int(a)] = b
		} else if n == 2 && table == "dlids" {
			if a > 0 { // ports without LIDs are counted on some switches only
				found.DLIDs[a] = int(b)
			}
		}
	}
	if !strings.Contains(string(said), "credit loops") && found.Missing == 0 {
		t.Fatalf("ibdmchk did not come to a verdict:\n%s", said)
	}
	return found
}

// judgedByIbdmchk is our verdict in the terms of ibdmchk.
func judgedByIbdmchk(t testing.TB, r *routes.Routes) ibdmchk {
	t.Helper()
	v := routingtest.Verified(t, r, verify.Options{})
	found := ibdmchk{Hops: map[int]int64{}, DLIDs: map[int64]int{}, Missing: v.Unreachable, Acyclic: v.Acyclic}
	for hops, n := range v.Hops {
		if n > 0 {
			found.Hops[hops] = n
		}
	}
	b, err := traffic.MeasureBalance(t.Context(), r, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range b.DLIDs {
		if n > 0 {
			found.DLIDs[n]++
		}
	}
	return found
}

// TestIbdmchk: hops, LIDs by port and the verdict on credit loops agree with ibdmchk.
func TestIbdmchk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	cyclic := 0
	for _, spec := range routingtest.SmallNets() {
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		for _, e := range All() {
			r, err := Compute(t.Context(), g, e.Name, Options{})
			if err != nil {
				continue // it does not apply
			}
			got := judgedByIbdmchk(t, r)
			if got.Missing > 0 {
				continue // a fabric in parts is too much for ibdmchk
			}
			if d := cmp.Diff(check(t, r), got); d != "" {
				t.Errorf("%s, %s (-ibdmchk +fabsh):\n%s", spec, e.Name, d)
			}
			if !got.Acyclic {
				cyclic++
			}
		}
	}
	if cyclic < 10 {
		t.Errorf("only %d tables with credit loops: that proves little", cyclic)
	}
}

// TestIbdmchkDamaged: where entries are missing or wrong, as many paths do not
// arrive.
func TestIbdmchkDamaged(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		g := routingtest.Graph(t, []string{"fattree:k=4,levels=3", "torus:dims=4/4,hosts=2"}[seed%2], graph.BuildOptions{})
		r := compute(t, g, "minhop", Options{})
		for range 1 + random.IntN(20) {
			s := random.IntN(len(g.Switches()))
			port := uint8(routes.NoPort)
			if seed%4 > 1 {
				port = uint8(1 + random.IntN(g.Switches()[s].NumPorts()))
			}
			r.Row(s)[1+random.IntN(int(g.Top()))] = port
		}
		if got, want := judgedByIbdmchk(t, r).Missing, check(t, r).Missing; got != want {
			t.Errorf("seed %d: %d paths do not arrive, ibdmchk: %d", seed, got, want)
		}
	}
}

// TestIbdmchkLanes: verdicts agree where chance decides on service levels and virtual lanes.
func TestIbdmchkLanes(t *testing.T) {
	verdicts := map[bool]int{}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		spec := []string{"ring:n=6,hosts=1", "torus:dims=3/3,hosts=1", "mesh:dims=3/3,hosts=1", "random:n=10,degree=3,hosts=1"}[seed%4]
		g := routingtest.Graph(t, spec, graph.BuildOptions{})
		r := compute(t, g, "minhop", Options{})
		r.SL = &routes.SL{Pair: make([][]uint8, len(g.Terminals()))}
		levels := 2 + random.IntN(6)
		r.SL2VL = routes.NewSL2VL(g)
		dir := t.TempDir()
		write(t, filepath.Join(dir, "sl"), func(w *bufio.Writer) {
			for i, from := range g.Terminals() {
				r.SL.Pair[i] = make([]uint8, int(g.Top())+1)
				for lid := range r.SL.Pair[i] {
					to := g.TerminalByLID(mad.LID(lid))
					if from.Out == 0 || to < 0 || to == i || g.Terminals()[to].Out == 0 {
						continue
					}
					sl := random.IntN(levels)
					r.SL.Pair[i][lid] = uint8(sl)
					fmt.Fprintf(w, "0x%016x %d %d\n", uint64(from.Port.Node().GUID()), lid, sl)
				}
			}
		})
		write(t, filepath.Join(dir, "vl"), func(w *bufio.Writer) {
			for s, n := range g.Switches() {
				for in := 1; in <= n.NumPorts(); in++ {
					for out := 1; out <= n.NumPorts(); out++ {
						var vls [16]uint8
						for sl := range vls {
							vls[sl] = uint8(sl)
							if random.IntN(8) == 0 {
								vls[sl] = uint8(random.IntN(levels))
							}
						}
						if err := r.SL2VL.Set(s, uint8(in), uint8(out), vls); err != nil {
							t.Fatal(err)
						}
						fmt.Fprintf(w, "0x%016x %d %d", uint64(n.GUID()), in, out)
						for sl := 0; sl < 16; sl += 2 {
							fmt.Fprintf(w, " 0x%x%x", vls[sl], vls[sl+1])
						}
						fmt.Fprintln(w)
					}
				}
			}
		})
		want := check(t, r, "-c", filepath.Join(dir, "sl"), "-d", filepath.Join(dir, "vl"))
		v := routingtest.Verified(t, r, verify.Options{})
		if v.Acyclic != want.Acyclic || v.Unreachable != 0 {
			t.Errorf("%s, seed %d: acyclic %v, ibdmchk: %v\n%s", spec, seed, v.Acyclic, want.Acyclic, verify.FormatCycle(v.Cycle))
		}
		verdicts[v.Acyclic]++
	}
	if verdicts[true] == 0 || verdicts[false] == 0 {
		t.Errorf("all verdicts are alike: %v", verdicts)
	}
}
