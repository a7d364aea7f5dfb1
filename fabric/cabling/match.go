package cabling

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// none stands for no node and no port.
const none = -1

// Name is a device of the plan that the fabric has under another name, or not at all.
type Name struct {
	Planned string
	// Found is the name of the device in the fabric; "": no device, or several, match.
	Found string
	// By is how it was matched: "spelling", "name" (its GUID differs from that of the plan), "serial"
	// (number) or "cables"; "": it was not.
	By string
	// Candidates are devices of the fabric with the same or similar names, at most three.
	Candidates []string
	Cables     int // of the plan, which are not judged if Found is ""
}

// match is the devices of a plan and those of a fabric.
type match struct {
	plan, live *fabric.Fabric
	toLive     []int32 // by node ID of the plan; or none
	toPlan     []int32 // by node ID of the fabric; or none
	names      []Name  // differences, by plan node
	ambiguous  map[int32][]string
	assigned   bool // the GUIDs of the plan are invalid as GUIDs of devices
}

// matchNodes matches by GUID, where the plan has them, then by name: as written, then in more and
// more tolerant spellings, each only if it is unique on both sides; then by serial number; the rest by
// their cables.
func matchNodes(plan, live *fabric.Fabric) *match {
	m := &match{plan: plan, live: live, ambiguous: map[int32][]string{}}
	m.toLive = slices.Repeat([]int32{none}, len(plan.Nodes()))
	m.toPlan = slices.Repeat([]int32{none}, len(live.Nodes()))
	m.assigned = slices.ContainsFunc(plan.Problems(), func(p fabric.Problem) bool { return p.Kind == fabric.ProblemAssignedGUIDs })
	m.by("", func(n *fabric.Node) string {
		if n.GUID() == 0 || m.assigned && n.Fabric() == plan && n.Name() != "" {
			return ""
		}
		return n.GUID().String()
	})
	by := "name"
	if m.assigned {
		by = ""
	}
	m.by(by, (*fabric.Node).Name)
	if p := plan.Plan(); p != nil && p.Serials != nil {
		m.by("serial", func(n *fabric.Node) string {
			if n.Fabric() == plan {
				return strings.ToUpper(p.Serials[n.ID()])
			}
			return strings.ToUpper(hardwareOf(n).serial)
		})
	}
	m.by("spelling", func(n *fabric.Node) string { return fold(n.Name()) })
	m.by("spelling", func(n *fabric.Node) string { return withoutSite(fold(n.Name())) })
	for _, hosts := range []*fabric.Fabric{plan, live} { // one side names hosts, the other one their adapters
		m.by("spelling", func(n *fabric.Node) string { return hostKey(fold(n.Name()), n.Fabric() == hosts) })
		m.by("spelling", func(n *fabric.Node) string { return hostKey(withoutSite(fold(n.Name())), n.Fabric() == hosts) })
	}
	m.byCables()
	return m
}

// by matches the nodes that are left and whose keys are equal and unique on both sides; how is for
// the list of differences, "": a match of this kind is not listed.
func (m *match) by(how string, key func(*fabric.Node) string) {
	planned, found := left(m.plan, m.toLive, key), left(m.live, m.toPlan, key)
	for i := range m.plan.Nodes() {
		n := &m.plan.Nodes()[i]
		if m.toLive[i] != none {
			continue
		}
		k := key(n)
		switch candidates := found[k]; {
		case k == "" || len(candidates) == 0:
		case len(candidates) == 1 && len(planned[k]) == 1:
			m.join(n, candidates[0], how)
		default:
			m.ambiguous[int32(i)] = firstNames(candidates)
		}
	}
}

// left returns the nodes without a match, by key.
func left(f *fabric.Fabric, to []int32, key func(*fabric.Node) string) map[string][]*fabric.Node {
	all := map[string][]*fabric.Node{}
	for i := range f.Nodes() {
		if to[i] == none {
			k := key(&f.Nodes()[i])
			all[k] = append(all[k], &f.Nodes()[i])
		}
	}
	return all
}

func (m *match) join(planned, found *fabric.Node, how string) {
	m.toLive[planned.ID()], m.toPlan[found.ID()] = int32(found.ID()), int32(planned.ID())
	delete(m.ambiguous, int32(planned.ID()))
	if how != "" {
		m.names = append(m.names, Name{Planned: nodeName(planned), Found: nodeName(found), By: how, Cables: cables(planned)})
	}
}

// node returns the node of the fabric that is n of the plan; or nil.
func (m *match) node(n *fabric.Node) *fabric.Node {
	if id := m.toLive[n.ID()]; id != none {
		return &m.live.Nodes()[id]
	}
	return nil
}

// byCables matches the nodes that are left by the places of their cables: at least half of those of
// the plan are at the same ports. As a match may settle the place of its neighbours, it repeats.
func (m *match) byCables() {
	var open []*fabric.Node
	for i := range m.plan.Nodes() {
		if m.toLive[i] == none {
			open = append(open, &m.plan.Nodes()[i])
		}
	}
	for found := true; found; {
		found = false
		rest := open[:0:0]
		for _, n := range open {
			if same := m.atPlace(n); same != nil {
				m.join(n, same, "cables")
				found = true
			} else {
				rest = append(rest, n)
			}
		}
		open = rest
	}
}

// atPlace returns the node without a match that has at least half of the cables of n; or nil.
func (m *match) atPlace(n *fabric.Node) *fabric.Node {
	all := 0
	votes := map[*fabric.Node]int{}
	var best *fabric.Node
	for p := range n.Ports() {
		if p.Peer() == nil {
			continue
		}
		all++
		far := m.node(p.Peer().Node())
		if far == nil {
			continue
		}
		q := far.Port(p.Peer().Num())
		if q == nil || q.Peer() == nil || q.Peer().Num() != p.Num() || m.toPlan[q.Peer().Node().ID()] != none {
			continue
		}
		x := q.Peer().Node()
		if votes[x]++; best == nil || votes[x] > votes[best] || votes[x] == votes[best] && x.ID() < best.ID() {
			best = x
		}
	}
	if best == nil || 2*votes[best] < all {
		return nil
	}
	return best
}

// maxNearest is the number of names for which similar ones are searched: each search reads all names.
const maxNearest = 100

// unmatched adds the nodes of the plan that were not found, in the order of the plan. skip are those
// that are only out of reach.
func (m *match) unmatched(skip func(*fabric.Node) bool) {
	var names []string
	searches := 0
	for i := range m.plan.Nodes() {
		n := &m.plan.Nodes()[i]
		if m.toLive[i] != none || skip(n) {
			continue
		}
		x := Name{Planned: nodeName(n), Candidates: m.ambiguous[int32(i)], Cables: cables(n)}
		if searches++; x.Candidates == nil && searches <= maxNearest {
			if names == nil {
				for j := range m.live.Nodes() {
					if m.toPlan[j] == none {
						names = append(names, m.live.Nodes()[j].Name())
					}
				}
			}
			if near := fabric.Nearest(n.Name(), names); near != "" {
				x.Candidates = []string{near}
			}
		}
		m.names = append(m.names, x)
	}
	slices.SortStableFunc(m.names, func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.By, b.By), fabric.CompareNames(a.Planned, b.Planned))
	})
}

// cables is the number of cables of n.
func cables(n *fabric.Node) (num int) {
	for p := range n.Ports() {
		if p.Peer() != nil {
			num++
		}
	}
	return num
}

// firstNames returns the names of the first three nodes.
func firstNames(nodes []*fabric.Node) []string {
	var names []string
	for _, n := range nodes[:min(len(nodes), 3)] {
		names = append(names, n.Label())
	}
	return names
}

// nodeName is the name of n, or its GUID where it has none, or shares it with others.
func nodeName(n *fabric.Node) string {
	if n.Name() == "" || len(n.Fabric().NodeByName(n.Name())) > 1 {
		return n.GUID().String()
	}
	return n.Name()
}

// adapter is the last word of the name of an adapter, after a blank, or "_" in a .topo.
var adapter = regexp.MustCompile(`^(.*[^ _])[ _](hca-|mlx4_|mlx5_|hfi1_)(\d{1,3})$`)

// fold returns a name in the form that all spellings share: "MF0;SW-1:MQM8700/U1" is "sw-1", and
// "N1.site HCA-1", "n1_mlx5_0" and "n1 mlx5_0" are "n1 1". "leaf/L06/U2" is "leaf/l6/u2".
func fold(name string) string {
	name = strings.ToLower(strings.Join(strings.Fields(name), " "))
	if rest, ok := strings.CutPrefix(name, "mf0;"); ok {
		device, chip, _ := strings.Cut(rest, ":")
		_, chip, _ = strings.Cut(chip, "/")
		if name = device; chip != "" {
			name += "/" + chip
		}
	}
	name = strings.TrimSuffix(name, "/u1")
	if device, chips, ok := strings.Cut(name, "/"); ok {
		name = device
		for part := range strings.SplitSeq(chips, "/") {
			name += "/" + part[:min(1, len(part))] + strings.TrimLeft(part[min(1, len(part)):], "0")
		}
		return name
	}
	suffix := ""
	if part := adapter.FindStringSubmatch(name); part != nil {
		num, _ := strconv.Atoi(part[3])
		if part[2] != "hca-" {
			num++
		}
		name, suffix = part[1], " "+strconv.Itoa(num)
	}
	host, rest, _ := strings.Cut(name, " ")
	if first, _, _ := strings.Cut(host, "."); strings.Trim(first, "0123456789") != "" { // not an IP address
		host = first
	}
	if rest != "" {
		host += " " + rest
	}
	return strings.ReplaceAll(host, "_", " ") + suffix
}

// site is the prefix that some sites put before the names of a plan.
var site = regexp.MustCompile(`^[a-z]{2}[0-9]{2}-`)

func withoutSite(name string) string { return site.ReplaceAllString(name, "") }

// hostKey returns the first word of a folded name, without the number of the adapter; "" if that is
// there, and the names are to be those of hosts.
func hostKey(name string, host bool) string {
	word, rest, _ := strings.Cut(name, " ")
	switch _, err := strconv.Atoi(rest); {
	case rest == "":
		return name
	case host:
		return ""
	case err != nil:
		return name
	}
	return word
}

// strangers returns the devices of the fabric that the plan does not have, without those inside
// switches, which no plan has.
func (m *match) strangers() (names []string) {
	named := map[string]bool{} // by rows that could not be used
	if p := m.plan.Plan(); p != nil {
		for _, pair := range p.UnreadBetween {
			named[strings.ToLower(pair[0])], named[strings.ToLower(pair[1])] = true, true
		}
	}
	for i := range m.live.Nodes() {
		n := &m.live.Nodes()[i]
		if m.toPlan[i] == none && n.Kind() != fabric.KindAggregation && !slices.ContainsFunc(spellings(n.Name()), func(s string) bool { return s != "" && named[s] }) {
			names = append(names, nodeName(n))
		}
	}
	slices.SortFunc(names, fabric.CompareNames)
	return names
}

// spellings are the names, in lower case, by which a row of a plan may name a node: an adapter by its host.
func spellings(name string) []string {
	name = strings.ToLower(name)
	if i := strings.LastIndexByte(name, ' '); i > 0 {
		return []string{name, name[:i]}
	}
	return []string{name}
}

// unreadable returns why the fabric may hold more than was read; "": it does not.
func unreadable(f *fabric.Fabric) string {
	switch {
	case !f.Complete():
		return "the fabric is incomplete: " + f.Missing()
	case f.Scope() != "":
		return "the fabric is a part of the subnet: " + f.Scope()
	}
	return ""
}

// rate is the width and speed of a link: "4x ndr"; "" where they are unknown.
func rate(p *fabric.Port) string { return strings.TrimSpace(p.Width() + " " + p.Speed()) }

// slower reports whether p is narrower or slower than q in a plan, and whether that is known.
func slower(p, q *fabric.Port) (is, known bool) {
	if p.Info() == nil || p.PhysicalState() != 0 && p.PhysicalState() != mad.PortPhysicalStateLinkUp {
		return false, q.Width() == "" && q.Speed() == ""
	}
	known = true
	for _, x := range [][3]any{{q.Width(), p.Width(), widths}, {q.Speed(), p.Speed(), speeds}} {
		want, now, all := x[0].(string), x[1].(string), x[2].([]string)
		switch i, j := slices.Index(all, want), slices.Index(all, now); {
		case want == "" || i < 0:
		case j < 0:
			known = false
		case j < i:
			is = true
		}
	}
	return is, known
}

// Widths and speeds, slowest first.
var (
	widths = []string{"1x", "2x", "4x", "8x", "12x"}
	speeds = []string{"sdr", "ddr", "fdr10", "qdr", "fdr", "edr", "hdr", "ndr", "xdr"}
)

// count is "1 cable", "3 cables".
func count(n int, one string) string { return plural.Count(n, one, one+"s") }
