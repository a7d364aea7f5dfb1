package builtins

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
)

// walker follows packets through raw tables, with nothing of the code that it proves.
type walker struct {
	rows  map[mad.GUID][]int
	owner map[mad.LID]*fabric.Port // ports of hosts, and ports 0 of switches
	hosts []*fabric.Port           // of CAs and routers, with a LID
}

// newWalker reads the blocks of all tables.
func newWalker(t *testing.T, f *fixture, swept *fabric.Fabric) *walker {
	w := &walker{rows: map[mad.GUID][]int{}, owner: map[mad.LID]*fabric.Port{}}
	highest := mad.LID(0)
	for i := range swept.Ports() {
		p := &swept.Ports()[i]
		if n := p.Node(); p.LID() == 0 || n.IsSwitch() && p.Num() != 0 {
			continue
		}
		if !p.Node().IsSwitch() {
			w.hosts = append(w.hosts, p)
		}
		for lid := p.LID(); lid < p.LID()+1<<p.LMC(); lid++ {
			w.owner[lid], highest = p, max(highest, lid)
		}
	}
	out, failed, _ := f.run(fmt.Sprintf(`json.encode({s.guid: [port for b in range(%d) for port in smp_get("LinearForwardingTable", [s], block = b)[0].port_block] for s in discover().switches})`, highest/64+1))
	var text string
	rows := map[string][]int{}
	if failed != "" {
		t.Fatal(failed)
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(out)), &rows); err != nil {
		if json.Unmarshal([]byte(strings.TrimSpace(out)), &text) != nil || json.Unmarshal([]byte(text), &rows) != nil {
			t.Fatalf("%v: %.200s", err, out)
		}
	}
	for i := range swept.Nodes() {
		n := &swept.Nodes()[i]
		w.rows[n.GUID()] = rows[n.GUID().String()]
	}
	return w
}

// walk returns the ports that packets leave through, and whether they arrive.
func (w *walker) walk(from *fabric.Port, lid mad.LID) (path []*fabric.Port, arrive bool) {
	for p := from; len(path) < 64; {
		if p.Peer() == nil {
			return path, false
		}
		path = append(path, p)
		n := p.Peer().Node()
		if w.owner[lid] != nil && w.owner[lid].Node() == n {
			return path, true
		}
		row := w.rows[n.GUID()]
		if !n.IsSwitch() || int(lid) >= len(row) || row[lid] == 0 || row[lid] > n.NumPorts() {
			return path, false
		}
		p = n.Port(row[lid])
	}
	return path, false
}

// pairs calls each for all pairs whose packets arrive.
func (w *walker) pairs(each func(from *fabric.Port, lid mad.LID, path []*fabric.Port)) {
	for _, from := range w.hosts {
		for _, to := range w.hosts {
			for lid := to.LID(); from != to && lid < to.LID()+1<<to.LMC(); lid++ {
				if path, ok := w.walk(from, lid); ok {
					each(from, lid, path)
				}
			}
		}
	}
}

// reaches returns the nodes that links without those of down join with n.
func reaches(n *fabric.Node, down map[*fabric.Port]bool) map[*fabric.Node]bool {
	seen, edge := map[*fabric.Node]bool{n: true}, []*fabric.Node{n}
	for len(edge) > 0 {
		n, edge = edge[0], edge[1:]
		if !n.IsSwitch() && len(seen) > 1 {
			continue // hosts forward nothing
		}
		for p := range n.Ports() {
			if q := p.Peer(); q != nil && !down[p] && !seen[q.Node()] {
				seen[q.Node()] = true
				edge = append(edge, q.Node())
			}
		}
	}
	return seen
}

// TestPathAndImpact: on random fabrics, report path shows the links and loads, and impact counts the
// pairs, loads and nodes that a plain walk through the raw tables finds. 200 fabrics with
// FABSH_SOAK=1.
func TestPathAndImpact(t *testing.T) {
	fabrics := 12
	if os.Getenv("FABSH_SOAK") != "" {
		fabrics = 200
	}
	for i := range fabrics {
		r := rand.New(rand.NewPCG(uint64(i), 51))
		spec := randomSpec(r)
		onSim(t, spec, nil, func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(t.Context(), f.Runtime)
			if err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
			w := newWalker(t, f, swept)
			loads, total := map[*fabric.Port]int{}, 0
			w.pairs(func(_ *fabric.Port, _ mad.LID, path []*fabric.Port) {
				total++
				for _, p := range path {
					loads[p]++
				}
			})
			if total == 0 {
				t.Fatalf("%s: no pair has a path", spec)
			}
			for range 3 {
				w.checkPath(t, f, r, spec, loads)
				w.checkImpact(t, f, r, spec, swept, loads)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// checkPath compares the path between two random hosts.
func (w *walker) checkPath(t *testing.T, f *fixture, r *rand.Rand, spec string, loads map[*fabric.Port]int) {
	a, b := w.hosts[r.IntN(len(w.hosts))], w.hosts[r.IntN(len(w.hosts))]
	if a.Node() == b.Node() {
		return
	}
	path, arrive := w.walk(a, b.LID())
	want := fmt.Sprintln(arrive)
	for _, p := range path {
		load := "None" // balance() has links between switches
		if p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
			load = fmt.Sprint(loads[p])
		}
		want += fmt.Sprintln(p.Name(), p.Peer().Name(), load)
	}
	got, failed, _ := f.run(fmt.Sprintf(`
load("@std//lib/path.star", "hops")
load("@std//lib/report.star", "end_port")
f = discover()
def run():
    p = hops(f, end_port(f, "%d"), end_port(f, "%d"), loads = True)
    print("true" if p["broken"] == None else "false")
    for h in p["hops"]:
        print(h["from"], h["to"], h["load"])
run()`, a.LID(), b.LID()))
	if got != want || failed != "" {
		t.Errorf("%s: %s to %s: got\n%s%s\nwant\n%s", spec, a.Name(), b.Name(), got, failed, want)
	}
}

// checkImpact compares the impact of a random link or node.
func (w *walker) checkImpact(t *testing.T, f *fixture, r *rand.Rand, spec string, swept *fabric.Fabric, loads map[*fabric.Port]int) {
	down, target := map[*fabric.Port]bool{}, ""
	cut := func(p *fabric.Port) {
		if p.Peer() != nil {
			down[p], down[p.Peer()] = true, true
		}
	}
	n := &swept.Nodes()[r.IntN(len(swept.Nodes()))]
	var gone *fabric.Node
	if r.IntN(2) == 0 {
		gone, target = n, n.Name()
		for p := range n.Ports() {
			cut(p)
		}
	} else {
		var linked []*fabric.Port
		for p := range n.Ports() {
			if p.Peer() != nil {
				linked = append(linked, p)
			}
		}
		if len(linked) == 0 {
			return
		}
		p := linked[r.IntN(len(linked))]
		target = p.Name() + " - " + p.Peer().Name()
		cut(p)
	}
	if len(down) == 0 {
		return
	}
	through, apart, most := 0, 0, 0
	for p, n := range loads {
		if p.Node().IsSwitch() && p.Peer().Node().IsSwitch() {
			most = max(most, n)
		}
	}
	parts := map[*fabric.Node]map[*fabric.Node]bool{}
	w.pairs(func(from *fabric.Port, lid mad.LID, path []*fabric.Port) {
		if slices.ContainsFunc(path, func(p *fabric.Port) bool { return down[p] }) {
			through++
			// A port of a host is reached over its own link only.
			leaf, to := from.Peer().Node(), w.owner[lid]
			if parts[leaf] == nil {
				parts[leaf] = reaches(leaf, down)
			}
			if down[from] || down[to] || !parts[leaf][to.Peer().Node()] {
				apart++
			}
		}
	})
	var cutOff []string
	for i := range swept.Nodes() {
		n, keeps, loses := &swept.Nodes()[i], false, false
		for p := range n.Ports() {
			keeps, loses = keeps || p.Peer() != nil && !down[p], loses || down[p]
		}
		if loses && !keeps && n != gone {
			cutOff = append(cutOff, n.Name())
		}
	}
	slices.Sort(cutOff)
	want := fmt.Sprintf("%d %d %d %q\n", len(down)/2, through, most, strings.Join(cutOff, ","))
	got, failed, _ := f.run(fmt.Sprintf(`
i = discover().impact(%q)
e = i.effect
print("%%d %%d %%d %%r" %% (len(e.links), e.through, e.load_before, ",".join(sorted(i.cut_off))))
print(e.lost, e.rerouted)`, target))
	first, second, _ := strings.Cut(got, "\n")
	if first+"\n" != want || failed != "" {
		t.Errorf("%s without %s: got\n%s%s\nwant\n%s", spec, target, got, failed, want)
		return
	}
	var lost, rerouted int
	if _, err := fmt.Sscan(second, &lost, &rerouted); err != nil || lost < apart || lost > through || rerouted < through-lost {
		t.Errorf("%s without %s: %d lost, %d rerouted; %d pairs are apart, %d through the links (%v)", spec, target, lost, rerouted, apart, through, err)
	}
}

// TestImpactRates: where rates of links differ, the traffic of a job in an impact is per capacity, as in job_traffic().
func TestImpactRates(t *testing.T) {
	onSim(t, "fattree:k=4,generation=ndr,split=yes", nil, func(t *testing.T, f *fixture) {
		out, failed, _ := f.run(`
swept, jobs = discover(), {"a": "node-[0001-0008]"}
t = get_routes(swept).job_traffic(jobs)
print(t.reference_rate != None, fmt(".3f", t.max), fmt(".3f", swept.impact(t.port, jobs = jobs).jobs[0].traffic))`)
		if out != "True 0.429 0.429\n" {
			t.Errorf("%s%s", out, failed)
		}
	})
}
