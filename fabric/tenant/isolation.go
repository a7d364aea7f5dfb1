package tenant

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/plural"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// Facts are what was read of a subnet. What is missing is unknown, never absent.
type Facts struct {
	// Tables are the P_Key tables of end ports, and of switch ports that check P_Keys: entries by index.
	Tables map[*fabric.Port][]uint16
	// Virtual are the tables of virtual ports, by port GUID.
	Virtual map[mad.GUID][]uint16
	// VirtualPorts are the numbers of virtual ports of ports (VirtualizationInfo); nil: unknown.
	VirtualPorts map[*fabric.Port]int
	// Checks are the directions in which switch ports check P_Keys, where they differ from PortInfo.
	Checks map[*fabric.Port]Directions
	// Groups are the multicast groups; nil: unknown.
	Groups []Group
	// Routes are the tables in force, with the choices of adaptive routing; nil: which paths exist is unknown.
	Routes *routes.Routes
}

// Ports are the ports of f whose P_Key tables decide: end ports with a LID, and switch ports in front of them that
// check P_Keys.
func Ports(f *fabric.Fabric) (list []*fabric.Port) {
	j := &judge{facts: &Facts{}}
	for _, p := range f.EndPorts() {
		if p.LID() == 0 {
			continue
		}
		list = append(list, p)
		if q := p.Peer(); q != nil && q.Node().IsSwitch() && !p.Node().IsSwitch() && j.checks(q) != (Directions{}) {
			list = append(list, q)
		}
	}
	return list
}

// Directions are the packets of which a switch port checks the P_Key: those that it receives, those that it sends.
type Directions struct{ Inbound, Outbound bool }

// Group is a multicast group, with the members that are known.
type Group struct {
	MGID    string
	Key     uint16
	Members []*fabric.Port
}

// Member is an end port of a tenant: a port, or a virtual port of it.
type Member struct {
	Port    *fabric.Port
	Virtual mad.GUID // of the virtual port; 0: the port itself
	Tenant  int      // index in File.Tenants
}

// String returns the name of a member: "node-1/1", with the GUID of a virtual port.
func (m *Member) String() string {
	if m.Virtual != 0 {
		return fmt.Sprintf("virtual port %v of %s", m.Virtual, m.Port.Name())
	}
	return m.Port.Name()
}

// Members are the ports of tenants in a fabric.
type Members struct {
	File    *File
	Fabric  *fabric.Fabric
	List    []Member   // by tenant
	Missing [][]string // by tenant: hosts and GUIDs that are not in the fabric
}

// On finds the ports of the tenants in f. The error names a port of two tenants.
func (f *File) On(fab *fabric.Fabric) (*Members, error) {
	m := &Members{File: f, Fabric: fab, Missing: make([][]string, len(f.Tenants))}
	byHost, short := map[string][]*fabric.Port{}, map[string][]*fabric.Port{}
	byGUID := map[mad.GUID][]Member{}
	for _, p := range fab.EndPorts() {
		n := p.Node()
		byGUID[p.GUID()] = append(byGUID[p.GUID()], Member{Port: p})
		if n.IsSwitch() {
			continue
		}
		if n.GUID() != p.GUID() {
			byGUID[n.GUID()] = append(byGUID[n.GUID()], Member{Port: p})
		}
		if host, _, _ := strings.Cut(n.Name(), " "); host != "" {
			byHost[host] = append(byHost[host], p)
			short[shortName(host)] = append(short[shortName(host)], p)
		}
	}
	for _, v := range fab.VirtualPorts() {
		if g := v.GUID(); g != 0 && g != v.Port.GUID() {
			byGUID[g] = append(byGUID[g], Member{Port: v.Port, Virtual: g})
		}
	}
	type place struct {
		port    *fabric.Port
		virtual mad.GUID
	}
	of := map[place]int{}
	for t := range f.Tenants {
		x := &f.Tenants[t]
		add := func(list []Member, name string) error {
			if len(list) == 0 {
				m.Missing[t] = append(m.Missing[t], name)
			}
			for _, e := range list {
				at := place{e.Port, e.Virtual}
				other, taken := of[at]
				switch {
				case taken && other == t:
					continue
				case taken:
					return fmt.Errorf("tenants %s and %s: both have %s; a port that both may reach is a tenant of its own, with shared", f.Tenants[other].Name, x.Name, e.String())
				}
				of[at], e.Tenant = t, t
				m.List = append(m.List, e)
			}
			return nil
		}
		for _, host := range x.Hosts {
			list := byHost[host]
			if list == nil {
				list = short[shortName(host)]
			}
			ends := make([]Member, len(list))
			for i, p := range list {
				ends[i].Port = p
			}
			if err := add(ends, host); err != nil {
				return nil, err
			}
		}
		for _, g := range x.GUIDs {
			if err := add(byGUID[g], g.String()); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func shortName(host string) string {
	host, _, _ = strings.Cut(host, ".")
	return strings.ToLower(host)
}

// Of returns the members of a tenant.
func (m *Members) Of(t int) []Member {
	i, _ := slices.BinarySearchFunc(m.List, t, func(e Member, t int) int { return cmp.Compare(e.Tenant, t) })
	j, _ := slices.BinarySearchFunc(m.List, t+1, func(e Member, t int) int { return cmp.Compare(e.Tenant, t) })
	return m.List[i:j]
}

// allowed reports whether tenant a may reach tenant b: one of them is a service for the other.
func (f *File) allowed(a, b int) bool {
	serves := func(s, t *Tenant) bool {
		return s.Shared && (s.Serves == nil || t.Shared || slices.Contains(s.Serves, t.Name))
	}
	x, y := &f.Tenants[a], &f.Tenants[b]
	return serves(x, y) || serves(y, x)
}

// Verdict is the result for a pair of tenants.
type Verdict uint8

// Verdicts.
const (
	Isolated Verdict = iota // no packet of one is accepted by the other
	Unknown                 // what was read does not decide
	Reaches                 // a packet of one is accepted by the other
)

// String returns the verdict as a word of results.
func (v Verdict) String() string { return [...]string{"isolated", "unknown", "reaches"}[v] }

// Pair is the judgment on packets from one tenant to another.
type Pair struct {
	From, To int // indexes of tenants
	Verdict  Verdict
	Allowed  bool // one is a shared service for the other
	// Reason is why: a proof of isolation, what is unknown, or the counterexample.
	Reason  string
	Example *Example // if it reaches

	rejected rejection // of isolated pairs: why partitions that both have do not join them
}

// Example is how packets pass from one tenant to another.
type Example struct {
	From, To       Member
	Key            uint16 // of the packets, with FullMember
	FromIn, ToIn   int    // its indexes in the tables
	ToKey          uint16 // in the table of To
	Path           []*fabric.Port
	Group          string // the MGID, if there is no unicast path
	NoRoutes, Both bool   // paths are unknown; a switch port checks, and lets it pass
}

// Outsider is a full member of a partition of tenants that is not a port of a tenant, such as the subnet manager's.
type Outsider struct {
	Key     uint16 // without FullMember
	Ports   []*fabric.Port
	Tenants int // that they reach
}

// Deviation is a port of a tenant whose P_Keys differ from the tenant's.
type Deviation struct {
	Member         Member
	Missing, Extra []string
}

// Report is the judgment on all tenants.
type Report struct {
	Members    *Members
	Pairs      []Pair // of each two tenants, in both directions, by From and To
	Outsiders  []Outsider
	Deviations []Deviation
	// Index0 are members whose entry 0 is not the default partition (IBA 10.9.1.2).
	Index0 []Member
	// Unchecked are members in front of which no switch port checks P_Keys in both directions: only
	// the tables of adapters isolate them.
	Unchecked []Member
	// Unread are members whose tables are unknown.
	Unread []Member
}

// Count returns how many pairs that are not allowed have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Pairs {
		if !r.Pairs[i].Allowed && r.Pairs[i].Verdict == v {
			n++
		}
	}
	return n
}

// end is an end port with its table.
type end struct {
	Member
	keys  []uint16
	known bool
	guard *fabric.Port // the switch port at the other end of the link; nil: none
	// bound are the partitions that a port with an unknown table can use at most, as full members: what
	// the switch port lets pass; nil: any.
	bound map[uint16]bool
	// virtual is the number of virtual ports that the end stands for, whose tables are unknown; 0: it is Member.
	virtual int
}

// name returns the name of an end.
func (e *end) name() string {
	if e.virtual > 0 {
		return fmt.Sprintf("%s of %s", plural.Count(e.virtual, "virtual port", "virtual ports"), e.Port.Name())
	}
	return e.String()
}

// judge is the memory of a judgment.
type judge struct {
	*Members
	facts    *Facts
	ends     []end // of tenants, in the order of Members.List
	others   []end // of no tenant
	switches map[*fabric.Port]map[uint16]bool
	groups   map[uint16][]*Group
	paths    map[[2]*fabric.Port]answer
}

// answer is a fact that may be unknown.
type answer uint8

const (
	no answer = iota
	maybe
	yes
)

// Judge judges each two tenants. A packet of one port is accepted by another if a P_Key of the sender is in the table
// of the receiver, with FullMember in one of both (IBA 10.9.3), switch ports that check P_Keys have it in their tables, and a
// path exists. Sources differ on what membership means at switch ports, so there either counts.
//
// Time: O(T*T + M*M) for M members of the largest partition, less where pairs are found early.
func Judge(ctx context.Context, m *Members, facts *Facts) (*Report, error) {
	j := &judge{Members: m, facts: facts, switches: map[*fabric.Port]map[uint16]bool{}, groups: map[uint16][]*Group{}, paths: map[[2]*fabric.Port]answer{}}
	for i := range facts.Groups {
		g := &facts.Groups[i]
		j.groups[g.Key&^FullMember] = append(j.groups[g.Key&^FullMember], g)
	}
	mine, virtual := map[*fabric.Port]bool{}, map[*fabric.Port]int{}
	for _, e := range m.List {
		j.ends = append(j.ends, j.end(e))
		if e.Virtual == 0 {
			mine[e.Port] = true
		} else {
			virtual[e.Port]++
		}
	}
	for _, e := range m.List {
		if n := facts.VirtualPorts[e.Port] - virtual[e.Port]; e.Virtual == 0 && n > 0 {
			v := j.end(e)
			v.keys, v.known, v.virtual = nil, false, n
			if d := j.checks(v.guard); d.Inbound && d.Outbound {
				v.bound = j.table(v.guard)
			}
			j.ends = append(j.ends, v)
		}
	}
	for _, p := range m.Fabric.EndPorts() {
		if !mine[p] {
			j.others = append(j.others, j.end(Member{Port: p, Tenant: -1}))
		}
	}
	r := &Report{Members: m}
	tenants := len(m.File.Tenants)
	r.Pairs = make([]Pair, 0, tenants*(tenants-1))
	verdicts := make([]Pair, tenants*tenants)
	if err := j.match(ctx, verdicts); err != nil {
		return nil, err
	}
	j.unread(verdicts)
	j.routers(verdicts)
	of := j.partitions()
	for a := range tenants {
		for b := range tenants {
			if a == b {
				continue
			}
			p := verdicts[a*tenants+b]
			p.From, p.To, p.Allowed = a, b, m.File.allowed(a, b)
			j.explain(&p, of)
			r.Pairs = append(r.Pairs, p)
		}
	}
	r.Outsiders = j.outsiders()
	j.members(r)
	return r, nil
}

// end returns what is known of an end port.
func (j *judge) end(m Member) end {
	e := end{Member: m}
	if m.Virtual != 0 {
		e.keys, e.known = j.facts.Virtual[m.Virtual]
	} else {
		e.keys, e.known = j.facts.Tables[m.Port]
	}
	if q := m.Port.Peer(); q != nil && q.Node().IsSwitch() && !m.Port.Node().IsSwitch() {
		e.guard = q
	}
	if d := j.checks(e.guard); !e.known && d.Inbound && d.Outbound {
		e.bound = j.table(e.guard)
	}
	return e
}

// checks returns the directions in which a switch port checks.
func (j *judge) checks(q *fabric.Port) Directions {
	if q == nil {
		return Directions{}
	}
	if s := q.Node().SwitchInfo(); s != nil && s.PartitionEnforcementCap == 0 {
		return Directions{}
	}
	if d, ok := j.facts.Checks[q]; ok {
		return d
	}
	if i := q.Info(); i != nil {
		return Directions{i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound}
	}
	return Directions{}
}

// table returns the partitions in the table of a switch port; nil: unknown.
func (j *judge) table(q *fabric.Port) map[uint16]bool {
	if t, ok := j.switches[q]; ok {
		return t
	}
	var t map[uint16]bool
	if keys, ok := j.facts.Tables[q]; ok {
		t = map[uint16]bool{}
		for _, k := range keys {
			if k&^FullMember != 0 {
				t[k&^FullMember] = true
			}
		}
	}
	j.switches[q] = t
	return t
}

// passes reports whether the switch port of an end lets a partition pass.
func (j *judge) passes(e *end, base uint16, sending bool) answer {
	d := j.checks(e.guard)
	if sending && !d.Inbound || !sending && !d.Outbound {
		return yes
	}
	switch t := j.table(e.guard); {
	case t == nil:
		return maybe
	case t[base]:
		return yes
	}
	return no
}

// path reports whether packets of a can arrive at b, by some choice of switches.
func (j *judge) path(a, b *end) answer {
	p, q := a.Port, b.Port
	if p == q {
		return yes // within the adapter
	}
	if known, ok := j.paths[[2]*fabric.Port{p, q}]; ok {
		return known
	}
	found := no
	switch {
	case p.LID() == 0 || q.LID() == 0 || j.Fabric.PartOf(p) != j.Fabric.PartOf(q):
	case j.facts.Routes == nil:
		found = maybe
	case arrives(j.facts.Routes, p.LID(), q):
		found = yes
	}
	j.paths[[2]*fabric.Port{p, q}] = found
	return found
}

// arrives reports whether packets from a LID can arrive at any of the LIDs of a port.
func arrives(r *routes.Routes, from mad.LID, q *fabric.Port) bool {
	g := r.Graph()
	for i := range 1 << q.LMC() {
		path, err := r.Trace(from, q.LID()+mad.LID(i))
		if err != nil {
			continue
		}
		if path.Broken == "" {
			return true
		}
		to := g.TerminalByLID(q.LID())
		for _, step := range path.Steps {
			for _, s := range step {
				for out := range s.Ports.All() {
					if g.Target(int32(s.Switch), out) == graph.ToTerminal(int32(to)) {
						return true
					}
				}
			}
		}
	}
	return false
}

// group returns a multicast group of a partition that has the port of an end as a member; unknown: there may be one.
func (j *judge) group(base uint16, e *end) (g *Group, unknown bool) {
	for _, g := range j.groups[base] {
		if slices.Contains(g.Members, e.Port) {
			return g, false
		}
	}
	return nil, j.facts.Groups == nil
}

// holder is an end with an entry of its table.
type holder struct {
	end   *end
	index int
	key   uint16
}

// rejection is a set of reasons why a partition that two tenants have does not join them.
type rejection uint8

const (
	onlyLimited rejection = 1 << iota
	blocked
	noPath
)

// match finds pairs by the tables that are known.
func (j *judge) match(ctx context.Context, verdicts []Pair) error {
	tenants := len(j.File.Tenants)
	holders := map[uint16][][]holder{} // by partition, by tenant
	for i := range j.ends {
		e := &j.ends[i]
		for index, key := range e.keys {
			base := key &^ FullMember
			if base == 0 {
				continue
			}
			if holders[base] == nil {
				holders[base] = make([][]holder, tenants)
			}
			holders[base][e.Tenant] = append(holders[base][e.Tenant], holder{e, index, key})
		}
	}
	for _, base := range slices.Sorted(maps.Keys(holders)) {
		of := holders[base]
		for a := range tenants {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for b := range tenants {
				if a != b && len(of[a]) > 0 && len(of[b]) > 0 {
					j.pair(&verdicts[a*tenants+b], of[a], of[b], base)
				}
			}
		}
	}
	return nil
}

// pair judges a partition that two tenants have.
func (j *judge) pair(p *Pair, from, to []holder, base uint16) {
	for i := range from {
		if p.Verdict == Reaches {
			return
		}
		a := &from[i]
		sends := j.passes(a.end, base, true)
		for k := range to {
			b := &to[k]
			if (a.key|b.key)&FullMember == 0 {
				p.rejected |= onlyLimited
				continue
			}
			enforced := min(sends, j.passes(b.end, base, false))
			if enforced == no {
				p.rejected |= blocked
				continue
			}
			path := j.path(a.end, b.end)
			x := &Example{From: a.end.Member, To: b.end.Member, Key: a.key, FromIn: a.index, ToIn: b.index, ToKey: b.key, NoRoutes: path == maybe && j.facts.Routes == nil}
			if path == no {
				g, unknown := j.group(base, b.end)
				switch {
				case g != nil && a.end.Port.LID() != 0 && j.Fabric.PartOf(a.end.Port) == j.Fabric.PartOf(b.end.Port):
					x.Group = g.MGID
				case unknown && p.Verdict == Isolated && a.end.Port.LID() != 0 && b.end.Port.LID() != 0:
					p.Verdict, p.Reason = Unknown, fmt.Sprintf("%s and %s have P_Key 0x%04x; no unicast path exists, and the multicast groups are unknown", a.end.String(), b.end.String(), base)
					continue
				default:
					p.rejected |= noPath
					continue
				}
			}
			if enforced == maybe {
				if p.Verdict == Isolated {
					p.Verdict, p.Reason = Unknown, fmt.Sprintf("%s and %s have P_Key 0x%04x; the table of the switch port that checks it was not read", a.end.String(), b.end.String(), base)
				}
				continue
			}
			x.Both = j.checks(a.end.guard).Inbound || j.checks(b.end.guard).Outbound
			p.Verdict, p.Reason, p.Example = Reaches, "", x
			return
		}
	}
}

// unread makes pairs unknown whose tables were not read, and that no switch port separates.
func (j *judge) unread(verdicts []Pair) {
	tenants := len(j.File.Tenants)
	for i := range j.ends {
		e := &j.ends[i]
		if e.known {
			continue
		}
		for k := range j.ends {
			o := &j.ends[k]
			if o.Tenant == e.Tenant {
				continue
			}
			for _, way := range [2][2]*end{{e, o}, {o, e}} {
				p := &verdicts[way[0].Tenant*tenants+way[1].Tenant]
				if p.Verdict == Isolated && j.couldReach(way[0], way[1]) {
					p.Verdict, p.Reason = Unknown, fmt.Sprintf("the P_Key table of %s was not read", e.name())
				}
			}
		}
	}
	hidden := slices.ContainsFunc(slices.Collect(maps.Values(j.facts.VirtualPorts)), func(n int) bool { return n > 0 })
	for t := range tenants {
		why := ""
		missing := slices.DeleteFunc(slices.Clone(j.Missing[t]), func(name string) bool { return !strings.HasPrefix(name, "0x") })
		switch name := j.File.Tenants[t].Name; {
		case len(j.Of(t)) == 0:
			why = fmt.Sprintf("no port of tenant %s is in the fabric", name)
		case len(missing) > 0 && hidden:
			why = fmt.Sprintf("GUID %s of tenant %s is not in the fabric, and may be that of a virtual port, whose P_Key table cannot be read", missing[0], name)
		default:
			continue
		}
		for o := range tenants {
			for _, at := range [2]int{t*tenants + o, o*tenants + t} {
				if p := &verdicts[at]; p.Verdict == Isolated {
					p.Verdict, p.Reason = Unknown, why
				}
			}
		}
	}
}

// couldReach reports whether packets may pass of two ends, of which one has an unknown table.
func (j *judge) couldReach(a, b *end) bool {
	if j.path(a, b) == no && (a.Port.LID() == 0 || b.Port.LID() == 0 || j.Fabric.PartOf(a.Port) != j.Fabric.PartOf(b.Port)) {
		return false
	}
	possible := func(e *end) (map[uint16]bool, bool) {
		if !e.known {
			return e.bound, e.bound == nil
		}
		m := map[uint16]bool{}
		for _, k := range e.keys {
			if k&^FullMember != 0 {
				m[k&^FullMember] = true
			}
		}
		return m, false
	}
	x, anyX := possible(a)
	y, anyY := possible(b)
	can := func(base uint16) bool { return j.passes(a, base, true) != no && j.passes(b, base, false) != no }
	switch {
	case anyX && anyY:
		return true
	case anyX:
		x = y
	case anyY:
		y = x
	}
	for base := range x {
		if y[base] && can(base) {
			return true
		}
	}
	return false
}

// routers makes pairs unknown that reach the same router: it may forward packets from one to the other.
func (j *judge) routers(verdicts []Pair) {
	tenants := len(j.File.Tenants)
	for i := range j.others {
		router := &j.others[i]
		if router.Port.Node().Type() != mad.NodeTypeRouter || router.Port.LID() == 0 {
			continue
		}
		to, from := make([]bool, tenants), make([]bool, tenants)
		for k := range j.ends {
			e := &j.ends[k]
			to[e.Tenant] = to[e.Tenant] || j.joined(e, router)
			from[e.Tenant] = from[e.Tenant] || j.joined(router, e)
		}
		for a := range tenants {
			for b := range tenants {
				if p := &verdicts[a*tenants+b]; a != b && to[a] && from[b] && p.Verdict == Isolated {
					p.Verdict, p.Reason = Unknown, fmt.Sprintf("both reach router %s, which may forward packets between them", router.Port.Name())
				}
			}
		}
	}
}

// joined reports whether packets of a may be accepted by b.
func (j *judge) joined(a, b *end) bool {
	if !a.known || !b.known {
		return j.couldReach(a, b)
	}
	for _, k := range a.keys {
		for _, l := range b.keys {
			base := k &^ FullMember
			if base != 0 && base == l&^FullMember && (k|l)&FullMember != 0 && j.passes(a, base, true) != no && j.passes(b, base, false) != no && j.path(a, b) != no {
				return true
			}
		}
	}
	return false
}

// partitions returns the partitions of each tenant.
func (j *judge) partitions() []map[uint16]bool {
	of := make([]map[uint16]bool, len(j.File.Tenants))
	for i := range of {
		of[i] = map[uint16]bool{}
	}
	for i := range j.ends {
		for _, k := range j.ends[i].keys {
			if k&^FullMember != 0 {
				of[j.ends[i].Tenant][k&^FullMember] = true
			}
		}
	}
	return of
}

// explain gives a pair its reason in words.
func (j *judge) explain(p *Pair, of []map[uint16]bool) {
	a, b := j.File.Tenants[p.From].Name, j.File.Tenants[p.To].Name
	switch p.Verdict {
	case Reaches:
		p.Reason = j.example(p)
		return
	case Unknown:
		p.Reason = fmt.Sprintf("%s to %s: not judged: %s", a, b, p.Reason)
		return
	}
	n := fmt.Sprintf("%d x %d ports", len(j.Of(p.From)), len(j.Of(p.To)))
	var why string
	switch {
	case p.rejected&noPath != 0:
		why = "a common key with a full member, but no path by the forwarding tables, on any of " + n
	case p.rejected&blocked != 0:
		why = "a common key with a full member, which switch ports drop, on any of " + n
	default:
		why = "no common key with a full member on any of " + n
	}
	var limited []string
	for _, base := range slices.Sorted(maps.Keys(of[p.From])) {
		if of[p.To][base] {
			limited = append(limited, fmt.Sprintf("0x%04x", base))
		}
	}
	if p.rejected == onlyLimited && len(limited) > 0 {
		why += "; both are limited members of " + strings.Join(limited[:min(len(limited), 4)], ", ")
	}
	p.Reason = fmt.Sprintf("%s cannot reach %s: %s", a, b, why)
}

// example describes how a pair reaches.
func (j *judge) example(p *Pair) string {
	x := p.Example
	var s strings.Builder
	fmt.Fprintf(&s, "%s can reach %s: key 0x%04x at %s, index %d, and key 0x%04x at %s, index %d", j.File.Tenants[p.From].Name, j.File.Tenants[p.To].Name, x.Key, x.From.String(), x.FromIn, x.ToKey, x.To.String(), x.ToIn)
	if x.Both {
		s.WriteString("; switch ports check it and let it pass")
	} else {
		s.WriteString(", enforced nowhere")
	}
	switch {
	case x.Group != "":
		fmt.Fprintf(&s, "; no unicast path; multicast group %s", x.Group)
	case x.NoRoutes:
		s.WriteString("; the forwarding tables were not read")
	case x.From.Port == x.To.Port:
		s.WriteString("; within the adapter")
	default:
		if path, err := j.facts.Routes.Trace(x.From.Port.LID(), x.To.Port.LID()); err == nil {
			x.Path = path.Ports()
			names := make([]string, 0, len(x.Path))
			for _, q := range x.Path {
				names = append(names, q.Name())
			}
			s.WriteString("; path " + strings.Join(names, " "))
		}
	}
	return s.String()
}

// outsiders returns the full members of partitions of tenants that belong to no tenant.
func (j *judge) outsiders() (list []Outsider) {
	tenants := map[uint16]map[int]bool{}
	for i := range j.ends {
		for _, k := range j.ends[i].keys {
			if base := k &^ FullMember; base != 0 {
				if tenants[base] == nil {
					tenants[base] = map[int]bool{}
				}
				tenants[base][j.ends[i].Tenant] = true
			}
		}
	}
	full := map[uint16][]*fabric.Port{}
	for i := range j.others {
		seen := map[uint16]bool{}
		for _, k := range j.others[i].keys {
			base := k &^ FullMember
			if k&FullMember != 0 && tenants[base] != nil && !seen[base] {
				seen[base] = true
				full[base] = append(full[base], j.others[i].Port)
			}
		}
	}
	for _, base := range slices.Sorted(maps.Keys(full)) {
		list = append(list, Outsider{base, full[base], len(tenants[base])})
	}
	return list
}

// members judges each port of a tenant alone.
func (j *judge) members(r *Report) {
	for i := range j.ends {
		e := &j.ends[i]
		if e.virtual > 0 {
			continue
		}
		if !e.known {
			r.Unread = append(r.Unread, e.Member)
			continue
		}
		if d := j.checks(e.guard); e.guard != nil && (!d.Inbound || !d.Outbound) {
			r.Unchecked = append(r.Unchecked, e.Member)
		}
		if len(e.keys) > 0 && e.keys[0]&^FullMember != DefaultKey {
			r.Index0 = append(r.Index0, e.Member)
		}
		if want := j.File.Tenants[e.Tenant].Keys; want != nil {
			if d := deviation(want, e.keys); len(d.Missing)+len(d.Extra) > 0 {
				d.Member = e.Member
				r.Deviations = append(r.Deviations, d)
			}
		}
	}
}

// deviation compares a table with the keys of a tenant. No tenant has the default partition: any membership may be
// there, unless the file states it.
func deviation(want []Key, keys []uint16) (d Deviation) {
	have := map[uint16]Membership{}
	for _, k := range keys {
		base := k &^ FullMember
		if base == 0 {
			continue
		}
		m := Limited
		if k&FullMember != 0 {
			m = Full
		}
		if old, ok := have[base]; ok && old != m {
			m = Both
		}
		have[base] = m
	}
	stated := map[uint16]bool{DefaultKey: true}
	for _, k := range want {
		stated[k.Base] = true
		switch m, ok := have[k.Base]; {
		case !ok:
			d.Missing = append(d.Missing, k.String())
		case k.Membership != Any && m != k.Membership && !(k.Membership == Both && m == Full):
			d.Extra = append(d.Extra, Key{k.Base, m}.String()+" instead of "+k.String())
		}
	}
	for _, base := range slices.Sorted(maps.Keys(have)) {
		if !stated[base] {
			d.Extra = append(d.Extra, Key{base, have[base]}.String())
		}
	}
	return d
}

// Line sums the report up: "6 pairs of tenants: 5 isolated, 1 reaches".
func (r *Report) Line() string {
	all := r.Count(Isolated) + r.Count(Reaches) + r.Count(Unknown)
	line := fmt.Sprintf("%s of %s: %d isolated", plural.Count(all, "ordered pair", "ordered pairs"), plural.Count(len(r.Members.File.Tenants), "tenant", "tenants"), r.Count(Isolated))
	if n := r.Count(Reaches); n > 0 {
		line += fmt.Sprintf(", %d not isolated", n)
	}
	if n := r.Count(Unknown); n > 0 {
		line += fmt.Sprintf(", %d not judged", n)
	}
	return line
}
