package engines

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// opensmNumberings has the largest loads of nue of OpenSM of that version on the nets of numberedNets, each in
// the numberings of numbered; "-": it refused, or was not done after openSMLimit. TestOpenSMNumberings measures them.
const opensmNumberings = "testdata/opensm-3.3.23-nue.csv"

// numberings is how many numberings a net has there.
const numberings = 20

// arrangements begins the name of a dragonfly whose groups are joined at random, differently in each numbering.
const arrangements = "arrangements:"

// numberedNets are benchNets, and those whose cables are in other places in each numbering.
func numberedNets() []string {
	nets := benchNets()
	for _, net := range nets {
		if strings.HasPrefix(net, "dragonfly:") && !strings.Contains(net, "arrangement=") && !strings.Contains(net, "remove_") {
			nets = append(nets, arrangements+net)
		}
	}
	return nets
}

// numbered is a net with other GUIDs, LIDs, and ports of its cables; seed 0: as it is.
func numbered(t testing.TB, net string, seed int) *fabric.Fabric {
	t.Helper()
	net, arranged := strings.CutPrefix(net, arrangements)
	if arranged && seed > 0 {
		net = fmt.Sprintf("%s,arrangement=random,seed=%d", net, seed)
	}
	f := benchNet(t, net)
	if seed > 0 {
		f = routingtest.WithLMC(t, routingtest.Shuffled(t, f, uint64(seed)), 0)
	}
	return f
}

// readNumberings are the largest loads of OpenSM, by net and numbering, from 1; 0: none.
func readNumberings(t testing.TB) map[string][]int64 {
	t.Helper()
	text, err := os.ReadFile(opensmNumberings)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]int64{}
	for _, row := range rows[1:] {
		for field := range strings.FieldsSeq(row[1]) {
			n, _ := strconv.ParseInt(field, 10, 64)
			found[row[0]] = append(found[row[0]], n)
		}
	}
	return found
}

// TestOpenSMNumberings lets OpenSM compute the tables of nue that opensmNumberings lacks, and keeps each figure
// at once: a run that is stopped is continued by the next.
func TestOpenSMNumberings(t *testing.T) {
	if !*collect {
		t.Skip("with -opensm: an hour, if all are missing")
	}
	loads := readNumberings(t)
	for _, net := range numberedNets() {
		for seed := len(loads[net]); seed < numberings; seed++ {
			t.Run(fmt.Sprintf("%s/%d", net, seed+1), func(t *testing.T) {
				x := figure{Engine: nue.Name}
				x.fromOpenSM(t, numbered(t, net, seed+1), []string{"-Q", "-D", "0x47", "-R", nue.Name})
				loads[net] = append(loads[net], x.Largest)
				writeNumberings(t, loads)
			})
			if t.Failed() {
				return
			}
		}
	}
}

// writeNumberings replaces opensmNumberings.
func writeNumberings(t *testing.T, loads map[string][]int64) {
	t.Helper()
	rows := [][]string{{"net", "largest"}}
	for _, net := range numberedNets() {
		if loads[net] == nil {
			continue
		}
		fields := make([]string, len(loads[net]))
		for i, n := range loads[net] {
			if fields[i] = "-"; n > 0 {
				fields[i] = strconv.FormatInt(n, 10)
			}
		}
		rows = append(rows, []string{net, strings.Join(fields, " ")})
	}
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(opensmNumberings, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// nueLoad is the largest load of nue on f, all of whose paths must be there and close no loop.
func nueLoad(t testing.TB, f *fabric.Fabric) int64 {
	t.Helper()
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := compute(t, g, nue.Name, Options{})
	if v := routingtest.Verified(t, r, verify.Options{}); !v.OK() {
		t.Fatalf("%+v", v)
	}
	load, err := largestLoad(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return load
}

// mostSpread is how many times the median of a net's largest loads the worst may be.
const mostSpread = 1.15

// TestNumberings: the largest load of nue depends little on how a net is numbered, and it is never above
// OpenSM's on the same numbers.
func TestNumberings(t *testing.T) {
	routingtest.ResultsOnly(t)
	theirs := readNumberings(t)
	for _, net := range append(smallerNets(), "dragonfly:a=6,p=3,h=3,arrangement=circulant", "slimfly:q=5", "random:n=64,degree=11,hosts=4,seed=5", "drawn:one-uplink") {
		t.Run(net, func(t *testing.T) {
			if len(theirs[net]) != numberings {
				t.Fatalf("%d figures of OpenSM", len(theirs[net]))
			}
			var loads []int64
			for seed := range 3 {
				load := nueLoad(t, numbered(t, net, seed))
				if loads = append(loads, load); seed > 0 && theirs[net][seed-1] > 0 && load > theirs[net][seed-1] {
					t.Errorf("numbers %d: %d routes on a channel, OpenSM: %d", seed, load, theirs[net][seed-1])
				}
			}
			if worst, median := spread(loads); float64(worst) > mostSpread*float64(median) {
				t.Errorf("loads %v", loads)
			}
		})
	}
}

// TestArrangements: nor does it depend much on how the groups of a dragonfly are joined.
func TestArrangements(t *testing.T) {
	routingtest.ResultsOnly(t)
	theirs := readNumberings(t)
	for _, net := range []string{"dragonfly:a=4,p=2,h=2", "dragonfly:a=4,p=2,h=1"} {
		loads := []int64{nueLoad(t, routingtest.Topology(t, net)), nueLoad(t, routingtest.Topology(t, net+",arrangement=relative")), nueLoad(t, routingtest.Topology(t, net+",arrangement=circulant"))}
		opensm := theirs[arrangements+net]
		if len(opensm) != numberings {
			t.Fatalf("%s: %d figures of OpenSM", net, len(opensm))
		}
		for seed := range 9 {
			load := nueLoad(t, numbered(t, arrangements+net, seed+1))
			if loads = append(loads, load); load > opensm[seed] {
				t.Errorf("%s, arrangement %d: %d routes on a channel, OpenSM: %d", net, seed+1, load, opensm[seed])
			}
		}
		if worst, median := spread(loads); float64(worst) > mostSpread*float64(median) {
			t.Errorf("%s: loads %v", net, loads)
		}
	}
}

// spread are the largest and the median of loads.
func spread(loads []int64) (worst, median int64) {
	loads = slices.Sorted(slices.Values(loads))
	return loads[len(loads)-1], loads[len(loads)/2]
}

// BenchmarkNumberings prints, for each net of numberedNets, how many times the median the worst of nue's largest
// loads is, in its own and 20 other numberings, and the worst ratio to OpenSM's on the same numbers.
func BenchmarkNumberings(b *testing.B) {
	theirs := readNumberings(b)
	for _, net := range numberedNets() {
		b.Run(strings.ReplaceAll(net, "/", "x"), func(b *testing.B) {
			for b.Loop() {
				var loads []int64
				ratio := 0.0
				for seed := range numberings + 1 {
					load := nueLoad(b, numbered(b, net, seed))
					if loads = append(loads, load); seed > 0 && seed <= len(theirs[net]) && theirs[net][seed-1] > 0 {
						ratio = max(ratio, float64(load)/float64(theirs[net][seed-1]))
					}
				}
				worst, median := spread(loads)
				b.ReportMetric(float64(worst)/float64(median), "worst/median")
				b.ReportMetric(ratio, "load-worst/OpenSM")
			}
		})
	}
}

// freshNet is a network of some hundred switches at most, drawn at random, often with parts missing.
func freshNet(seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 53))
	in := func(lo, hi int) int { return lo + random.IntN(hi-lo+1) }
	dims := func(n, lo, hi int) string {
		var list []string
		for range n {
			list = append(list, fmt.Sprint(in(lo, hi)))
		}
		return strings.Join(list, "/")
	}
	var net string
	switch random.IntN(12) {
	case 0:
		net = fmt.Sprintf("fattree:k=%d,levels=3", 2*in(2, 5))
	case 1:
		net = fmt.Sprintf("pgft:m=%d/%d,w=1/%d,p=1/%d", in(3, 20), in(3, 12), in(2, 10), in(1, 3))
	case 2:
		net = fmt.Sprintf("pgft:m=%d/%d/%d,w=1/%d/%d,p=1/%d/%d", in(3, 8), in(3, 6), in(2, 6), in(2, 6), in(2, 6), in(1, 2), in(1, 2))
	case 3, 4:
		n := in(20, 110)
		net = fmt.Sprintf("random:n=%d,degree=%d,hosts=%d,seed=%d", n+n%2, in(3, 10), in(1, 6), in(1, 100))
	case 5:
		net = fmt.Sprintf("torus:dims=%s,hosts=%d,links=%d", dims(2, 3, 9), in(1, 4), in(1, 2))
	case 6:
		net = fmt.Sprintf("torus:dims=%s,hosts=%d", dims(3, 3, 5), in(1, 4))
	case 7:
		net = fmt.Sprintf("mesh:dims=%s,hosts=%d", dims(in(2, 4), 2, 5), in(1, 4))
	case 8, 9:
		net = fmt.Sprintf("hyperx:dims=%s,hosts=%d", dims(in(2, 3), 3, 6), in(1, 5))
	case 10:
		net = fmt.Sprintf("dragonfly:a=%d,p=%d,h=%d,arrangement=%s,seed=%d", in(3, 7), in(1, 4), in(1, 3), []string{"absolute", "relative", "circulant", "random"}[random.IntN(4)], in(1, 100))
	case 11:
		net = fmt.Sprintf("dragonfly+:leaves=%d,spines=%d,p=%d", in(2, 5), in(2, 5), in(2, 5))
	}
	if !strings.Contains(net, "seed=") && random.IntN(3) == 0 {
		net += fmt.Sprintf(",remove_links=%d%%,remove_switches=%d,seed=%d", in(1, 10), in(0, 2), in(1, 100))
	}
	return net
}

// TestFreshNets: on nets that are in no list, in random numberings, no engine has a higher largest load than
// OpenSM's, which is asked at once. OpenSM's dnup has credit loops where switches of one level have links, so
// it is compared only where it has none.
func TestFreshNets(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("10 minutes: with FABSH_SOAK=1")
	}
	worst := map[string]float64{}
	for seed := range uint64(60) {
		f := routingtest.WithLMC(t, routingtest.Shuffled(t, routingtest.Topology(t, freshNet(1000+seed)), seed), 0)
		g, err := graph.New(f, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range []string{"minhop", "updn", "dnup", "ftree", "dor", "sssp", "dfsssp", "lash", "nue"} {
			t.Run(freshNet(1000+seed)+" "+engine, func(t *testing.T) {
				theirs := figure{Net: freshNet(1000 + seed), Engine: engine}
				loops := theirs.fromOpenSM(t, f, []string{"-Q", "-D", "0x47", "-R", engine})
				if theirs.Result != "ok" || loops && engine == "dnup" {
					t.Skip(theirs.Result)
				}
				load, err := largestLoad(t.Context(), theirs.ours(t, g))
				if err != nil {
					t.Fatal(err)
				}
				ratio := float64(load) / float64(theirs.Largest)
				if worst[engine] = max(worst[engine], ratio); ratio > 1 {
					t.Errorf("%d routes on a channel, OpenSM: %d", load, theirs.Largest)
				}
			})
		}
	}
	t.Logf("worst ratios: %v", worst)
}
