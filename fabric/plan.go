package fabric

// Plan is what a plan of cables states besides nodes and links: places, labels, what else should be
// there, and the rows that could not be used. Its slices and maps must not be modified. The name of a
// port on its panel, as the plan writes it, is Port.PanelLabel.
type Plan struct {
	// Places, Models, Firmware, Serials, Roles and Rails are by node ID; nil if the plan states none. The
	// zero Place, and "", are unknown.
	Places   []Place
	Models   []string // as written: "MQM9700"
	Firmware []string
	Serials  []string
	Roles    []string // as written: "host", "switch", "storage"
	Rails    []string

	Cables    map[int32]PlanCable // by the lower port ID of the link
	Conflicts []PlanConflict
	Unread    []string // rows that could not be used: sheet, row, column and cause
	// UnreadBetween are the devices that such rows name: a cable between them may be planned.
	UnreadBetween [][2]string
	Managers      []string // nodes that should run the subnet manager: names or GUIDs
	Partitions    []string
	// Partial states which part of a fabric the plan describes, in words: "hosts and switches, no ports";
	// "" if it has all cables.
	Partial string
	// Groups are hosts that share the same leaf switches, by the plan's name of the group (Slurm).
	Groups []PlanGroup
}

// Place is where a device is, as the plan writes it. A field that is not stated is "".
type Place struct{ Hall, Row, Rack, Unit string }

// PlanCable is what a plan states of a cable besides its ends.
type PlanCable struct {
	Label, Length string
	Source        string // where the plan has it: "sheet Links row 7", "line 7"
}

// PlanConflict is an end that a plan uses more than once.
type PlanConflict struct {
	Node, Port    string // as the plan writes them
	First, Second PlanUse
}

// PlanUse is one row that uses an end: where it is, and the end at the other side.
type PlanUse struct {
	Source           string
	FarNode, FarPort string
}

// PlanGroup is a group of hosts of a partial plan, or of other groups.
type PlanGroup struct {
	Name          string
	Hosts, Groups []string
}

// Plan returns what a plan of cables states besides nodes and links; nil if f was not read from a
// plan.
func (f *Fabric) Plan() *Plan { return f.plan }

// PlanCable returns what the plan states of the cable at p; the zero value if f was not read from a
// plan, or p has no cable.
func (p *Port) PlanCable() PlanCable {
	if p.fabric.plan == nil || p.peer < 0 {
		return PlanCable{}
	}
	return p.fabric.plan.Cables[min(p.id, p.peer)]
}

// Place returns where the plan puts n; the zero Place if f was not read from a plan.
func (n *Node) Place() Place {
	if p := n.fabric.plan; p != nil && p.Places != nil {
		return p.Places[n.id]
	}
	return Place{}
}

// SetPlan makes the fabric one of a plan. The slices of p that are by node ID are by handle here, and
// Cables are set by SetCable.
func (b *Builder) SetPlan(p *Plan) { b.plan = p }

// SetCable sets what a plan states of the cable at a port. It requires SetPlan.
func (b *Builder) SetCable(node, num int, c PlanCable) {
	if p := b.port(node, num); p != nil {
		p.cable = &c
	}
}

// setPlan makes the plan of f from that of its Builder. order has the handles of nodes by ID.
func (f *Fabric) setPlan(b *Builder, order []int32) {
	if b.plan == nil {
		return
	}
	p := *b.plan
	p.Places, p.Models, p.Firmware = byID(p.Places, order), byID(p.Models, order), byID(p.Firmware, order)
	p.Serials, p.Roles, p.Rails = byID(p.Serials, order), byID(p.Roles, order), byID(p.Rails, order)
	p.Cables = map[int32]PlanCable{}
	for i := range f.ports {
		q := &f.ports[i]
		if c := b.nodes[order[q.node]].ports[q.num].cable; c != nil && q.peer >= 0 {
			p.Cables[min(q.id, q.peer)] = *c
		}
	}
	f.plan = &p
}

// byID returns a slice by node ID of one by handle; nil of nil.
func byID[T any](list []T, order []int32) []T {
	if list == nil {
		return nil
	}
	out := make([]T, len(order))
	for id, h := range order {
		out[id] = list[h]
	}
	return out
}
