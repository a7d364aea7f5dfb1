package cabling

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

// wiring is a fabric whose cables can be changed: ports by name, "leaf-1/3".
type wiring struct {
	from  *fabric.Fabric
	links map[string]string // both ways
	slow  map[string]bool   // ports that run at a lower speed
}

func wiringOf(f *fabric.Fabric) *wiring {
	w := &wiring{from: f, links: map[string]string{}, slow: map[string]bool{}}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			w.links[p.Name()] = p.Peer().Name()
		}
	}
	return w
}

func (w *wiring) link(a, b string) { w.links[a], w.links[b] = b, a }

func (w *wiring) unlink(a string) string {
	b := w.links[a]
	delete(w.links, a)
	delete(w.links, b)
	return b
}

// build returns the fabric with these cables. A plan has racks, and states the rate of its cables; a
// fabric has no nodes that no cable reaches.
func (w *wiring) build(t testing.TB, plan bool) *fabric.Fabric {
	t.Helper()
	b := fabric.NewBuilder()
	if plan {
		places := make([]fabric.Place, 0, len(w.from.Nodes()))
		for i := range w.from.Nodes() {
			places = append(places, fabric.Place{Hall: "A", Rack: "R" + strconv.Itoa(i/18), Unit: strconv.Itoa(i%18 + 1)})
		}
		b.SetPlan(&fabric.Plan{Places: places})
	}
	handle := map[string]int{}
	for i := range w.from.Nodes() {
		n := &w.from.Nodes()[i]
		if plan || slices.ContainsFunc(slices.Collect(n.Ports()), func(p *fabric.Port) bool { return w.links[p.Name()] != "" }) {
			handle[n.Name()] = b.AddNode(fabric.NodeSpec{Info: *n.Info(), Name: n.Name(), Switch: n.SwitchInfo()})
		}
	}
	at := func(name string) (int, int) {
		i := strings.LastIndexByte(name, '/')
		num, _ := strconv.Atoi(name[i+1:])
		return handle[name[:i]], num
	}
	for i := range w.from.Nodes() {
		n := &w.from.Nodes()[i]
		h, ok := handle[n.Name()]
		if !ok {
			continue
		}
		if n.IsSwitch() {
			b.SetPort(h, 0, &mad.PortInfo{CapabilityMask: mad.CapabilityMaskIsExtendedSpeedsSupported})
		}
		for p := range n.Ports() {
			info := mad.PortInfo{CapabilityMask: mad.CapabilityMaskIsExtendedSpeedsSupported}
			far := w.links[p.Name()]
			info.PortPhysicalState, info.PortState = mad.PortPhysicalStatePolling, mad.PortStateDown
			if far != "" {
				info.PortPhysicalState, info.PortState = mad.PortPhysicalStateLinkUp, mad.PortStateActive
				info.LinkWidthActive, info.LinkSpeedActive, info.LinkSpeedExtActive = mad.LinkWidth4x, mad.LinkSpeedQDR, mad.LinkSpeedExtHDR
				if w.slow[p.Name()] || w.slow[far] {
					info.LinkWidthActive = mad.LinkWidth1x
				}
			}
			b.SetPort(h, p.Num(), &info)
			if far > p.Name() {
				m, num := at(far)
				if err := b.Link(h, p.Num(), m, num); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b.Build()
}

// repair does what actions state, as hands would: a plug goes only into a free port. It returns the
// number of plugs moved, and the largest number of cables that were out at a time.
func (w *wiring) repair(t *testing.T, list []*Action) (plugs, out int) {
	t.Helper()
	held := map[string]string{} // chain: the cable end that its first step keeps, by the port that it stays at
	for _, x := range list {
		from, to, stays := x.From.String(), x.To.String(), x.Stays.String()
		switch x.Verb {
		case Swap:
			a, b := w.unlink(from), w.unlink(to)
			if a != stays {
				t.Errorf("%s: the other end at %s is %s, not %s", x.ID, from, a, stays)
			}
			w.link(from, b)
			w.link(to, a)
			plugs, out = plugs+2, max(out, 2)
		case Move:
			if x.First != "" {
				held[x.Chain] = w.unlink(to)
				if !strings.Contains(x.First, to+" ") {
					t.Errorf("%s: %s", x.ID, x.First)
				}
			}
			far := held[x.Chain]
			if far != stays {
				far = w.unlink(from)
				out = max(out, 1)
				if held[x.Chain] != "" {
					out = max(out, 2)
				}
			}
			if far != stays || w.links[to] != "" {
				t.Errorf("%s: move %s to %s: the other end is %q, not %q, or %q is in the way", x.ID, from, to, far, stays, w.links[to])
			}
			w.link(stays, to)
			plugs++
		case Connect:
			if w.links[from] != "" || w.links[to] != "" {
				t.Errorf("%s: connect %s - %s: not free", x.ID, from, to)
			}
			w.link(from, to)
			plugs++
		case Remove:
			if w.unlink(from) != to {
				t.Errorf("%s: remove %s - %s: no such cable", x.ID, from, to)
			}
			plugs++
		case Reseat:
			delete(w.slow, from)
			delete(w.slow, to)
		default:
			t.Errorf("%s: %s", x.ID, x.Verb)
		}
	}
	return plugs, out
}

// A mistake is one kind of difference at cables of the plan.
type mistake struct {
	kind   Kind
	verb   Verb
	cables []string // planned cables, or those found, by the lower end
	steps  int
}

func (m mistake) String() string {
	slices.Sort(m.cables)
	return fmt.Sprintf("%s %s %d %s", m.kind, m.verb, m.steps, strings.Join(m.cables, ", "))
}

func cableName(a, b string) string { return min(a, b) + " - " + max(a, b) }

// spoil makes mistakes at cables of which each is touched once. It returns them, and ports of cables that are
// not touched, one of each, and ports that are free.
func (w *wiring) spoil(rnd *rand.Rand, count int) (made, untouched, free []string) {
	ports := slices.Sorted(maps.Keys(w.links))
	rnd.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
	for i := range w.from.Ports() {
		if p := &w.from.Ports()[i]; p.Num() > 0 && p.Peer() == nil {
			free = append(free, p.Name())
		}
	}
	rnd.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	var extra [][2]string
	touched := map[string]bool{}
	take := func() (a, b string) {
		for {
			a, b = ports[0], w.links[ports[0]]
			ports = ports[1:]
			if b != "" && !touched[a] && !touched[b] {
				touched[a], touched[b] = true, true
				return a, b
			}
		}
	}
	kinds := 6
	for i := range count {
		m := mistake{steps: 1}
		switch i % kinds {
		case 0, 1: // exchanges of two, and rotations of three
			n := 2 + i%kinds
			var near, far []string
			for range n {
				a, b := take()
				near, far = append(near, a), append(far, b)
				m.cables = append(m.cables, cableName(a, b))
			}
			for i := range n {
				w.unlink(near[i])
			}
			for i := range n {
				w.link(near[i], far[(i+1)%n])
			}
			m.kind, m.verb = Miswired, Swap
			if n > 2 {
				m.verb, m.steps = Move, n
			}
		case 2:
			a, b := take()
			w.unlink(a)
			w.link(a, free[0])
			free = free[1:]
			m.kind, m.verb, m.cables = Miswired, Move, []string{cableName(a, b)}
		case 3:
			a, b := take()
			w.unlink(a)
			m.kind, m.verb, m.cables = Missing, Connect, []string{cableName(a, b)}
		case 4:
			a, b := free[0], free[1]
			free = free[2:]
			w.link(a, b)
			extra = append(extra, [2]string{a, b})
			m.kind, m.verb, m.cables = Undefined, Remove, []string{cableName(a, b)}
		case 5:
			a, b := take()
			w.slow[a] = true
			m.kind, m.verb, m.cables = Slower, Reseat, []string{cableName(a, b)}
		}
		made = append(made, m.String())
	}
	device := func(port string) string { return port[:strings.LastIndexByte(port, '/')] }
	for len(untouched) < 8 && len(ports) > 0 {
		a, b := take()
		// A row that cannot be read may be that of an extra cable between the same devices.
		if !slices.ContainsFunc(extra, func(x [2]string) bool {
			return device(x[0]) == device(a) && device(x[1]) == device(b) || device(x[0]) == device(b) && device(x[1]) == device(a)
		}) {
			untouched = append(untouched, a)
		}
	}
	return made, untouched, free
}

// found returns the chains of a report as mistakes.
func found(r *Report) (list []string) {
	chains := map[string]*mistake{}
	for _, x := range r.Actions {
		m := chains[x.Chain]
		if m == nil {
			m = &mistake{kind: x.Kind, verb: x.Verb, steps: x.Steps}
			chains[x.Chain] = m
		}
		pairs := x.Planned
		if x.Kind == Undefined {
			pairs = x.Found
		}
		if x.Verb == Reseat {
			pairs = x.From.String() + " - " + x.To.String()
		}
		for pair := range strings.SplitSeq(pairs, ", ") {
			a, b, _ := strings.Cut(pair, " - ")
			m.cables = append(m.cables, cableName(a, b))
		}
	}
	for _, m := range chains {
		list = append(list, m.String())
	}
	slices.Sort(list)
	return list
}

// spoilable returns a fabric whose switches have free ports.
func spoilable(t testing.TB, spec string) *wiring {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	b := fabric.NewBuilder()
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		info := *n.Info()
		if n.IsSwitch() {
			info.NumPorts += 4
		}
		b.AddNode(fabric.NodeSpec{Info: info, Name: n.Name(), Switch: n.SwitchInfo()})
	}
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil && p.Peer().ID() > p.ID() {
			if err := b.Link(p.Node().ID(), p.Num(), p.Peer().Node().ID(), p.Peer().Num()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return wiringOf(b.Build())
}

// One hundred random mistakes are all named, and nothing else; what the actions state, done by hands
// that know nothing else, makes the fabric the plan. The plan is a sheet with errors of its own.
func TestRandomMistakes(t *testing.T) {
	plan := spoilable(t, "fattree:k=16")
	text := planText(t, plan)
	for seed := range uint64(20) {
		checkMistakes(t, plan, text, seed)
	}
}

// planText returns the plan as a sheet, by line.
func planText(t *testing.T, w *wiring) []string {
	t.Helper()
	var b bytes.Buffer
	if err := format.Dump(&b, w.build(t, true), format.KindPlan); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(b.String()), "\n")
}

// spoilPlan makes errors of all kinds in a sheet, at cables that w did not touch and at free ports. It
// returns the actions that they cause, and how often the plan has each kind of error.
func spoilPlan(rnd *rand.Rand, w *wiring, text []string, untouched, free []string, count int) (lines, actions []string, kinds [4]int) {
	lines = slices.Clone(text)
	cell := func(line, name string) int { return slices.Index(strings.Split(text[0], ","), name) }
	row := func(cells map[string]string) string {
		list := make([]string, strings.Count(text[0], ",")+1)
		for name, c := range cells {
			list[cell(text[0], name)] = c
		}
		return strings.Join(list, ",")
	}
	end := func(side, port string) map[string]string {
		i := strings.LastIndexByte(port, '/')
		cells := map[string]string{side + "-Node": port[:i], side + "-Type": "Switch", side + "-Port": port[i+1:]}
		if host, adapter, ok := strings.Cut(port[:i], " "); ok {
			cells[side+"-Node"], cells[side+"-Type"], cells[side+"-Port"] = host, "Host", adapter
		}
		return cells
	}
	cable := func(a, b string) string {
		cells := end("A", a)
		maps.Copy(cells, end("Z", b))
		return row(cells)
	}
	for i := range count {
		a := free[i]
		switch kind := i % 4; kind {
		case 0: // a port that another row uses
			lines = append(lines, cable(untouched[i/2], a))
			kinds[kind]++
		case 1: // a device that does not exist
			lines = append(lines, cable(fmt.Sprintf("ghost-%d/1", i), a))
			actions = append(actions, mistake{kind: Missing, verb: Connect, steps: 1, cables: []string{cableName(fmt.Sprintf("ghost-%d/1", i), a)}}.String())
			kinds[kind]++
		case 2: // a date in place of a port
			b := w.links[untouched[i/2]]
			for n, line := range lines[1:len(text)] {
				cells := strings.Split(line, ",")
				name := func(side string) string {
					s := cells[cell("", side+"-Node")]
					if p := cells[cell("", side+"-Port")]; cells[cell("", side+"-Type")] == "Host" {
						return s + " " + p + "/1"
					} else {
						return s + "/" + p
					}
				}
				if x, y := name("A"), name("Z"); x == untouched[i/2] && y == b || x == b && y == untouched[i/2] {
					cells[cell("", []string{"A-Port", "Z-Port"}[rnd.IntN(2)])] = "2-Jan"
					lines[n+1] = strings.Join(cells, ",")
					kinds[kind]++
				}
			}
		case 3: // a port that the device does not have
			lines = append(lines, cable(fmt.Sprintf("%s/%d", a[:strings.LastIndexByte(a, '/')], 200+i), free[count+i/4]))
			kinds[kind]++
		}
	}
	return lines, actions, kinds
}

func checkMistakes(t *testing.T, plan *wiring, text []string, seed uint64) {
	t.Helper()
	w := &wiring{from: plan.from, links: maps.Clone(plan.links), slow: map[string]bool{}}
	rnd := rand.New(rand.NewPCG(seed, 1))
	made, untouched, free := w.spoil(rnd, 100)
	lines, errors, kinds := spoilPlan(rnd, w, text, untouched, free, 12)
	if kinds != [4]int{3, 3, 3, 3} {
		t.Fatalf("errors of the plan: %v", kinds)
	}
	live := w.build(t, false)
	start := cpuTime()
	planned, err := format.Load(strings.NewReader(strings.Join(lines, "\n")+"\n"), "plan", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := Compare(planned, live)
	t.Logf("seed %d: %d actions in %v of the processor, with the reading of the plan", seed, len(r.Actions), cpuTime()-start)
	want := append(slices.Clone(made), errors...)
	slices.Sort(want)
	if got := found(r); !slices.Equal(got, want) {
		for _, m := range want {
			if !slices.Contains(got, m) {
				t.Errorf("seed %d: not found: %s", seed, m)
			}
		}
		for _, m := range got {
			if !slices.Contains(want, m) {
				t.Errorf("seed %d: not made: %s", seed, m)
			}
		}
	}
	if len(r.Names)+len(r.Strangers)+len(r.Unread)+len(r.Devices) > 0 || len(r.Conflicts) != kinds[0] || len(r.PlanFault) != kinds[2]+kinds[3] || r.Unjudged != kinds[3] {
		t.Errorf("seed %d: %v %v %v %v %d", seed, r.Names, r.Strangers, r.Unread, r.PlanFault, r.Unjudged)
	}
	for i, fault := range r.PlanFault {
		if i < kinds[2] && !strings.Contains(fault, "the date \"2-Jan\"") || i >= kinds[2] && !strings.Contains(fault, ": port 2") {
			t.Errorf("seed %d: %s", seed, fault)
		}
	}
	actions := slices.DeleteFunc(slices.Clone(r.Actions), func(x *Action) bool { return strings.Contains(x.Planned, "ghost-") })
	plugs, out := w.repair(t, actions)
	// Of six mistakes: 2 + 3 plugs move, then 1 each of a moved, a missing and an extra cable.
	if want := 17*2 + 17*3 + 17 + 17 + 16; plugs != want || out != 2 {
		t.Errorf("seed %d: %d plugs moved, want %d; %d cables were out at a time, want 2", seed, plugs, want, out)
	}
	if !maps.Equal(w.links, plan.links) {
		t.Errorf("seed %d: the repaired cables are not the planned ones", seed)
	}
	again := Compare(planned, w.build(t, false))
	if got := found(again); !slices.Equal(got, slices.Sorted(slices.Values(errors))) || again.Right != again.Planned-kinds[1]-kinds[3] {
		t.Errorf("seed %d: after the repair: %v, %d of %d right", seed, got, again.Right, again.Planned)
	}
}

// cpuTime is the time that the process has had of processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// The same at the size of a large fabric, 11,664 hosts: one seed, and twenty if FABSH_SOAK is set.
func TestRandomMistakesLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("a large fabric")
	}
	plan := spoilable(t, "fattree:k=36,levels=3")
	text := planText(t, plan)
	seeds := uint64(1)
	if os.Getenv("FABSH_SOAK") != "" {
		seeds = 20
	}
	for seed := range seeds {
		checkMistakes(t, plan, text, seed+1)
	}
}

// pairOf returns a plan and a fabric. Lines are cables "A/1 - B/2" of the plan, "+ A/1 - B/2" of the
// fabric, "= A/1 - B/2" of both, "! A/1" a port of the fabric whose far end did not answer. Names that
// begin with S are switches, of 8 ports.
func pairOf(t *testing.T, text string) (plan, live *fabric.Fabric) {
	t.Helper()
	build := func(signs string, planned bool) *fabric.Fabric {
		b := fabric.NewBuilder()
		if planned {
			b.SetPlan(&fabric.Plan{})
			b.AddProblem(fabric.Problem{Kind: fabric.ProblemAssignedGUIDs})
		}
		handles := map[string]int{}
		at := func(name string) (int, int) {
			i := strings.LastIndexByte(name, '/')
			num, _ := strconv.Atoi(name[i+1:])
			name = name[:i]
			if _, ok := handles[name]; !ok {
				info := mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 2, NodeGUID: mad.GUID(len(handles) + 1)}
				if !planned {
					info.NodeGUID += 0x1000
				}
				if strings.Contains(strings.ToLower(name), "sw") {
					info.NodeType, info.NumPorts = mad.NodeTypeSwitch, 8
				}
				if planned {
					info.NumPorts = 20
				}
				handles[name] = b.AddNode(fabric.NodeSpec{Info: info, Name: name})
			}
			return handles[name], num
		}
		for line := range strings.Lines(text) {
			sign, cable, source := "-", strings.TrimSpace(line), ""
			if cable, source, _ = strings.Cut(cable, " # "); strings.ContainsRune("+=!", rune(cable[0])) {
				sign, cable = cable[:1], cable[2:]
			}
			if !strings.Contains(signs, sign) {
				continue
			}
			a, far, _ := strings.Cut(cable, " - ")
			n, p := at(a)
			b.SetPort(n, p, &mad.PortInfo{PortPhysicalState: mad.PortPhysicalStateLinkUp, PortState: mad.PortStateActive})
			if sign == "!" {
				continue
			}
			m, q := at(far)
			b.SetPort(m, q, &mad.PortInfo{PortPhysicalState: mad.PortPhysicalStateLinkUp, PortState: mad.PortStateActive})
			if err := b.Link(n, p, m, q); err != nil {
				t.Fatal(err)
			}
			if planned && source != "" {
				b.SetCable(n, p, fabric.PlanCable{Source: source})
			}
		}
		return b.Build()
	}
	return build("-=", true), build("+=!", false)
}

// What a comparison finds, in words.
func TestCompare(t *testing.T) {
	for _, test := range []struct{ name, cables, want string }{
		{"names in other spellings", `
			sw-1/1 - n1 mlx5_0/1
			+ MF0;SW-1:MQM8700/U1/1 - N1.site HCA-1/1
			sw-1/2 - ab12-n2/1
			+ MF0;SW-1:MQM8700/U1/2 - n2 HCA-1/1
			sw-1/3 - n3_HCA-2/1
			+ MF0;SW-1:MQM8700/U1/3 - n3 mlx5_1/1`, `
			3 of 3 cables as planned
			other spelling: 4 names of the plan: ab12-n2 is n2 HCA-1, n1 mlx5_0 is N1.site HCA-1, n3_HCA-2 is n3 mlx5_1, sw-1 is MF0;SW-1:MQM8700/U1`},
		{"a host is not one of its adapters", `
			sw-1/1 - n1/1
			+ sw-1/3 - n1 HCA-1/1
			+ sw-1/2 - n1 HCA-2/1`, `
			0 of 1 cable as planned; 1 cable not judged
			less than half of the plan matches: is it the plan of this fabric?
			not found: 1 name of the plan: n1 (nearest: "n1 HCA-1" (0x0000000000001002), "n1 HCA-2" (0x0000000000001003))
			not in the plan: 2 devices: n1 HCA-1, n1 HCA-2`},
		{"an adapter of a host by its cable", `
			sw-1/1 - n1/1
			+ sw-1/1 - n1 HCA-1/1
			+ sw-1/2 - n1 HCA-2/1`, `
			1 of 1 cable as planned
			other name: 1 name of the plan, identified only by cables: n1 is n1 HCA-1
			not in the plan: 1 device: n1 HCA-2`},
		{"a name by its cables", `
			sw-1/1 - n1/1
			= sw-1/2 - n2/1
			+ sw-1/1 - localhost/1`, `
			2 of 2 cables as planned
			other name: 1 name of the plan, identified only by cables: n1 is localhost`},
		{"a device that is off", `
			= sw-1/1 - n1/1
			sw-1/7 - sw-2/7
			sw-1/8 - sw-2/8
			sw-2/1 - n2/1`, `
			1 of 4 cables as planned; 1 action; 1 cable not judged
			less than half of the plan matches: is it the plan of this fabric?
			not found: 1 name of the plan: n2
			power on sw-2, or connect it <missing: sw-2 was not found: its 2 cables have no link>`},
		{"a port that does not exist", `
			= sw-1/1 - n1/1
			= sw-1/2 - n2/1
			sw-1/9 - n2/2 # line 7`, `
			2 of 3 cables as planned; 1 cable not judged
			error in the plan: line 7: port 9 of sw-1: the device has 8 ports`},
		{"an end that did not answer", `
			= sw-1/1 - n1/1
			sw-1/2 - n2/1
			! sw-1/2`, `
			1 of 2 cables as planned; 1 cable not judged
			not found: 1 name of the plan: n2
			unread: cable sw-1/2 - n2/1: the device at the other end did not answer`},
		{"a cable is left over, and one is missing", `
			= sw-1/1 - n1/1
			= sw-1/4 - n4/1
			= sw-1/5 - n4/2
			sw-1/2 - n2/1
			sw-1/3 - n1/2
			+ sw-1/2 - n1/2
			+ sw-1/6 - n2/1`, `
			3 of 5 cables as planned; 2 actions for 1 difference
			1/2 move the plug at sw-1/2 to sw-1/3; the other end stays at n1/2 <miswired: n1/2 - sw-1/2>
			2/2 move the plug at sw-1/6 to sw-1/2; the other end stays at n2/1 <miswired: n2/1 - sw-1/6>`},
		{"the cable of another device is in the way", `
			= sw-1/1 - n1/1
			sw-1/2 - n1/2
			+ n1/2 - stranger/1
			+ sw-1/2 - stranger/2`, `
			1 of 2 cables as planned; 2 actions for 1 difference
			not in the plan: 1 device: stranger
			1/2 remove the cable between sw-1/2 and stranger/2 <undefined: sw-1/2 - stranger/2>
			2/2 move the plug at stranger/1 to sw-1/2; the other end stays at n1/2 <miswired: n1/2 - stranger/1>`},
		{"a plane", `
			= sw-1/1 - n1/1 # row 3
			sw-2/1 - n1/2 # row 3
			= sw-2/2 - n2/1 # row 4`, `
			2 of 3 cables as planned; 1 action
			reseat the cable between sw-2/1 and n1/2 <plane down: 1 of 2 planes have no link>`},
		{"a plug that connects a port with itself", `
			= sw-1/1 - n1/1
			+ sw-1/2 - sw-1/2`, `
			1 of 1 cable as planned; 1 action
			remove the cable between sw-1/2 and sw-1/2 <undefined: a plug connects the port with itself>`},
		{"exchanged at one switch", `
			= sw-2/1 - n3/1
			sw-1/1 - n1/1
			sw-1/2 - n2/1
			+ sw-1/1 - n2/1
			+ sw-1/2 - n1/1`, `
			1 of 3 cables as planned; 1 action
			less than half of the plan matches: is it the plan of this fabric?
			swap the plugs at sw-1/1 and sw-1/2 <miswired: sw-1/1 - n2/1, sw-1/2 - n1/1>`},
	} {
		plan, live := pairOf(t, strings.TrimSpace(test.cables))
		r := Compare(plan, live)
		got := append([]string{r.Summary()}, r.Notes()...)
		for _, x := range r.Actions {
			line := x.Text() + " <" + string(x.Kind) + ": " + x.Found + ">"
			if x.Steps > 1 {
				line = fmt.Sprintf("%d/%d %s", x.Step, x.Steps, line)
			}
			got = append(got, line)
		}
		var want []string
		for line := range strings.Lines(strings.TrimSpace(test.want)) {
			want = append(want, strings.TrimSpace(line))
		}
		if diff := diffLines(want, got); diff != "" {
			t.Errorf("%s:\n%s", test.name, diff)
		}
	}
}

// diffLines returns both lists if they differ.
func diffLines(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return "got\n\t" + strings.Join(got, "\n\t") + "\nwant\n\t" + strings.Join(want, "\n\t")
}

// What a plan states of devices is compared as far as the fabric has it; serial numbers identify devices
// under other names.
func TestCompareDevices(t *testing.T) {
	build := func(planned bool, names ...string) *fabric.Fabric {
		b := fabric.NewBuilder()
		for i, name := range names {
			info := mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 4, NodeGUID: mad.GUID(i + 1), VendorID: 0x2c9, DeviceID: 0x1021}
			if strings.Contains(name, "leaf") {
				info.NodeType, info.NumPorts, info.DeviceID = mad.NodeTypeSwitch, 8, 0xd2f2
			}
			if planned {
				info.VendorID, info.DeviceID = 0, 0
			}
			b.AddNode(fabric.NodeSpec{Info: info, Name: name})
		}
		for i := range 4 {
			port := mad.PortInfo{PortPhysicalState: mad.PortPhysicalStateLinkUp, PortState: mad.PortStateActive}
			if !planned && i == 1 {
				port.CapabilityMask = mad.CapabilityMaskIsSM
			}
			b.SetPort(2+i, 1, &port)
			if err := b.Link(i/2, i%2+1, 2+i, 1); err != nil {
				t.Fatal(err)
			}
		}
		if planned {
			b.AddProblem(fabric.Problem{Kind: fabric.ProblemAssignedGUIDs})
			b.SetPlan(&fabric.Plan{
				Models:     []string{"MQM9700-NS2F", "Q3400_RA", "ConnectX-7", "ConnectX-8", "X9000", ""},
				Firmware:   []string{"31.2014.1000", "31.2014.1000", "28.1.1", "", "", ""},
				Serials:    []string{"", "mt2", "", "", "", ""},
				Roles:      []string{"leaf", "spine", "storage", "leaf", "login", ""},
				Rails:      []string{"1", "2", "1", "2", "2", ""},
				Managers:   []string{"n1", "gone"},
				Partitions: []string{"0x8001"},
			})
			return b.Build()
		}
		f := b.Build()
		var answers []fabric.Answer
		for id := range 2 {
			general := make([]byte, mad.RegisterNamed("MGIR").Size)
			(&mad.MGIR{ExtFWMajor: 31, ExtFWMinor: 2014, ExtFWSubMinor: uint32(1000 + id)}).Encode(general)
			label := make([]byte, mad.RegisterNamed("MSGI").Size)
			var m mad.MSGI
			copy(m.SerialNumber[:], fmt.Sprintf("MT%d", id+1))
			m.Encode(label)
			node := f.NodeByName(names[id])[0]
			for name, data := range map[string][]byte{"MGIR": general, "MSGI": label} {
				answers = append(answers, fabric.Answer{Node: int32(node.ID()), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(mad.RegisterNamed(name).Register), Data: data})
			}
		}
		return f.With(fabric.Reading{Answers: answers})
	}
	plan := build(true, "leaf-1", "leaf-2", "n1 mlx5_0", "n1 mlx5_1", "n2 mlx5_0", "n2 mlx5_1")
	live := build(false, "leaf-1", "renamed-leaf", "n1 mlx5_0", "n1 mlx5_1", "n2 mlx5_0", "n2 mlx5_1")
	r := Compare(plan, live)
	var got []string
	for _, d := range r.Devices {
		got = append(got, d.Text())
	}
	for _, x := range r.Names {
		got = append(got, fmt.Sprintf("%s is %s by %s", x.Planned, x.Found, x.By))
	}
	want := []string{
		"leaf-2: model: 0xd2f2; planned: Q3400_RA",
		"leaf-2: firmware: 31.2014.1001; planned: 31.2014.1000",
		"n1 mlx5_1: model: 0x1021; planned: ConnectX-8",
		"n1 mlx5_1: role: host; planned: leaf",
		"n1 mlx5_1: rail: linked to leaf-1 of rail 1; planned: 2",
		"gone: manager: the device was not found; planned: subnet manager",
		"leaf-2 is renamed-leaf by serial",
	}
	if diff := diffLines(want, append(got, r.NotCompared...)[:len(got)]); diff != "" {
		t.Error(diff)
	}
	if diff := diffLines([]string{"model of 1 device: neither their names nor registers have it", "firmware of 1 device: registers of the devices were not read", "1 partition: use audit partitions --partitions FILE"}, r.NotCompared); diff != "" {
		t.Error(diff)
	}
	if r.Same() || r.Right != 4 {
		t.Errorf("same %t, %d right", r.Same(), r.Right)
	}
}

// Work orders in a workbook are texts in columns that show them; in HTML nothing of a plan is markup.
func TestOrders(t *testing.T) {
	plan, live := pairOf(t, strings.TrimSpace(`
		= sw-1/1 - n1/1
		sw-1/2 - =cmd<b>x</b>/1 # =1+1`))
	r := Compare(plan, live)
	var book, page bytes.Buffer
	if err := errors.Join(r.WriteXLSX(&book), r.WriteHTML(&page, "<i>plan</i>.csv")); err != nil {
		t.Fatal(err)
	}
	x, err := excelize.OpenReader(bytes.NewReader(book.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	rows, err := x.GetRows("Actions")
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, name := range rows[0] {
		cell, _ := excelize.CoordinatesToCellName(i+1, 2)
		column, _ := excelize.ColumnNumberToName(i + 1)
		formula, _ := x.GetCellFormula("Actions", cell)
		kind, _ := x.GetCellType("Actions", cell)
		width, _ := x.GetColWidth("Actions", column)
		if formula != "" || kind == excelize.CellTypeFormula || width < float64(len(name)) {
			t.Errorf("column %s: formula %q, type %d, width %.0f", name, formula, kind, width)
		}
	}
	if i := slices.Index(rows[0], "source"); i < 0 || rows[1][i] != "=1+1" {
		t.Errorf("got %q", rows[1])
	}
	if text := page.String(); strings.Contains(text, "<b>x") || strings.Contains(text, "<i>plan") || !strings.Contains(text, "&lt;b&gt;x") || strings.Count(text, `type="checkbox"`) != 1 {
		t.Error(text)
	}
}
