package remedy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/mad"
)

const timeFormat = time.RFC3339

// MaxActions is how many actions a remedy may return.
const MaxActions = 5_000

// Case is what actions are judged by.
type Case struct {
	Fabric *fabric.Fabric // just swept
	State  *State
	// Host is the port of this host, and Manager the port of the subnet manager; nil: unknown,
	// or missing.
	Host, Manager *fabric.Port
	// Now is the time of the decisions.
	Now time.Time
	// Effect predicts what happens if links go down, of each of which ports has an end: why
	// they must not ("": they may), and what it costs. Nil: it is unknown.
	Effect func(ctx context.Context, ports []*fabric.Port) (refusal, cost string, err error)
	// PKeys reads P_Keys: a host may lose a link if another one has its partitions. Nil: unknown.
	PKeys change.PKeys
}

// Decision is an action with what was decided.
type Decision struct {
	Action
	// Port is where the Set goes: the end of a switch. Nil for a ticket.
	Port *fabric.Port
	Name string // of the link, port, or subject of a ticket
	// Rule is the rule by which the action is declined, and Why the reason; "": it is done.
	Rule, Why string
	// Cost is the predicted effect of the actions up to this one; "": unknown.
	Cost string
	// Kept reports that no Set is needed: the link passed its test, and stays up.
	Kept bool
}

// decider judges the actions of a run.
type decider struct {
	*Case
	kind  ActionKind            // of the action that is judged
	down  map[*fabric.Port]bool // both ends of links that go down
	order []*fabric.Port        // their first ends
	taken map[*fabric.Port]bool // both ends of links with an action
	steps map[stepKey]bool      // that tickets propose
	cost  string
}

// Decide judges actions in their order. An action that is declined does not affect later ones.
func Decide(ctx context.Context, c *Case, actions []Action) ([]Decision, error) {
	x := &decider{Case: c, down: map[*fabric.Port]bool{}, taken: map[*fabric.Port]bool{}, steps: map[stepKey]bool{}}
	rules := Rules()
	list := make([]Decision, 0, len(actions))
	for _, a := range actions {
		d := Decision{Action: a}
		if a.Kind == Ticket {
			d.Name = a.Subject.Name()
			if d.Why = x.week(c.Now, &a); d.Why != "" {
				d.Rule = weekRule
			}
			list = append(list, d)
			continue
		}
		d.Port = linkEnd(a.Port)
		if a.Kind == Restore {
			d.Port = c.disabledEnd(a.Port)
		}
		d.Name = nameOf(d.Port)
		if rule, why, found := strings.Cut(a.Declined, ":"); a.Declined != "" {
			if d.Rule, d.Why = strings.TrimSpace(rule), strings.TrimSpace(why); !found || d.Rule == "" {
				d.Rule, d.Why = cmp.Or(a.Remedy, "remedy"), a.Declined
			}
			list = append(list, d)
			continue
		}
		x.kind, x.cost = a.Kind, ""
		for _, r := range rules {
			if !slices.Contains(r.Kinds, a.Kind) { // tickets are judged above: they have no port
				continue
			}
			why, err := r.judge(x, ctx, d.Port)
			if err != nil {
				return nil, err
			}
			if why != "" {
				d.Rule, d.Why = r.Name, why
				break
			}
		}
		if d.Rule == "" {
			x.take(&d)
		}
		list = append(list, d)
	}
	return list, nil
}

// disabledEnd returns the end at which fabsh isolated the link of p, else p.
func (c *Case) disabledEnd(p *fabric.Port) *fabric.Port {
	if past := c.State.Of(p); past != nil && past.Port.In(c.Fabric) != nil {
		return past.Port.In(c.Fabric)
	}
	return p
}

// take records that an action is accepted.
func (x *decider) take(d *Decision) {
	d.Cost = x.cost
	x.taken[d.Port] = true
	if q := d.Port.Peer(); q != nil {
		x.taken[q] = true
	}
	if d.Kind == Restore {
		d.Kept = d.Port.PhysicalState() != mad.PortPhysicalStateDisabled
		return
	}
	x.down[d.Port], x.down[d.Port.Peer()] = true, true
	x.order = append(x.order, d.Port)
}

// downWith returns both ends of the links that go down, and both ends of the link of p.
func (x *decider) downWith(p *fabric.Port) map[*fabric.Port]bool {
	all := maps.Clone(x.down)
	all[p], all[p.Peer()] = true, true
	return all
}

// kept returns what hosts keep without the links that go down, and that of p. A link that is in its test, or
// that an earlier plan isolates, which may be applied yet, keeps nothing.
func (x *decider) kept(ctx context.Context, p *fabric.Port) (*change.KeptPorts, error) {
	return change.KeepPorts(ctx, x.Fabric, x.downWith(p), x.PKeys, func(_, other *fabric.Port) string {
		switch past := x.State.Of(other); {
		case past == nil:
		case Pending(past.Planned, x.Now):
			return other.Name() + " is planned to be isolated"
		case !past.Testing.IsZero():
			return other.Name() + " is in its test after a repair"
		}
		return ""
	})
}

// Sets returns the Sets of the decisions, in their order.
func Sets(list []Decision) (sets []certificate.Change) {
	for i := range list {
		d := &list[i]
		if d.Kind == Ticket || d.Rule != "" || d.Kept {
			continue
		}
		to := mad.PortPhysicalStatePolling
		if d.Kind == Isolate {
			to = mad.PortPhysicalStateDisabled
		}
		c := certificate.Change{Attr: mad.AttrPortInfo, Modifier: uint32(d.Port.Num()), Node: d.Port.Node().GUID(), Line: d.Remedy}
		sets = append(sets, c.With(stateField, uint64(d.Port.PhysicalState()), uint64(to)))
	}
	return sets
}

// stateField is the field of PortInfo that plans of remedies change.
const stateField = "port_physical_state"

// Entries returns the log entries of decisions at a time. of is the time of the findings.
func Entries(list []Decision, now, of time.Time) []Entry {
	entries := []Entry{{At: now, Kind: KindRun, Of: of}}
	for i := range list {
		d := &list[i]
		e := Entry{At: now, Kind: KindDecision, Remedy: d.Remedy, Action: d.Kind, Name: d.Name, Step: d.Step, Reason: d.Reason, Rule: d.Rule, Why: d.Why, Kept: d.Kept}
		if d.Port != nil {
			if e.Port = PlaceOf(d.Port); d.Port.Peer() != nil {
				e.Peer = PlaceOf(d.Port.Peer())
			}
		}
		if d.Step != "" {
			e.Port, e.Peer = placesOf(&d.Action)
		}
		if d.Kind == Ticket && d.Subject.Kind != audit.KindFabric {
			e.Subject = d.Subject.Key()
		}
		entries = append(entries, e)
	}
	return entries
}

// Rule is a rule that holds for every remedy, including remedies of users.
type Rule struct {
	Name     string
	Sentence string // for people: what is declined
	// Kinds are the kinds of actions that it judges.
	Kinds []ActionKind
	// judge returns why the action is declined; "": it is not.
	// It is nil for tickets.
	judge func(x *decider, ctx context.Context, p *fabric.Port) (string, error)
}

var down = []ActionKind{Isolate, Reset} // these take a link down

// weekRule is the rule about steps of repair.
const weekRule = "week"

// Rules returns all rules, in the order in which they are judged.
func Rules() []Rule {
	return []Rule{
		{"twice", "A link is not isolated twice, and one plan has one action for it.", []ActionKind{Isolate, Restore, Reset}, (*decider).twice},
		{"link", "Only a link that is up is isolated or reset.", down, (*decider).link},
		{"switch", "Only ports of switches are disabled: the port of a host may be enabled again by its host alone.", down, (*decider).ofSwitch},
		{"manager", "No link of a node with a subnet manager, or of this host, goes down.", down, (*decider).manager},
		{"host", "No host loses its last link: one may go down if another that is active has its partitions (P_Keys).", down, (*decider).host},
		{"split", "No two nodes lose the last path between them.", down, (*decider).split},
		{"limit", "A plan takes down at most 10 links, or 0.5 % of the ports with a link if that is more.", down, (*decider).limit},
		{"effect", "No link goes down if ports of hosts would lose a path, except ports whose host keeps another, or if the new tables could deadlock, as predicted.", down, (*decider).effect},
		{"foreign", "Only ports that fabsh isolated are enabled, never one that another disabled.", []ActionKind{Restore}, (*decider).foreign},
		{weekRule, "No ticket proposes a step of repair that was proposed or done for the link within the last week.", []ActionKind{Ticket}, nil},
	}
}

// twice implements the rule "twice".
func (x *decider) twice(_ context.Context, p *fabric.Port) (string, error) {
	if x.taken[p] {
		return "the plan has an action for this link already", nil
	}
	if past := x.State.Of(p); x.kind == Isolate && past != nil && !past.Isolated.IsZero() && p.Peer() == nil {
		return "isolated since " + past.Isolated.UTC().Format(timeFormat), nil
	}
	return "", nil
}

// link implements the rule "link".
func (x *decider) link(_ context.Context, p *fabric.Port) (string, error) {
	if p.Peer() == nil || p.Num() == 0 {
		return "no link is up at this port", nil
	}
	return "", nil
}

// ofSwitch implements the rule "switch".
func (x *decider) ofSwitch(_ context.Context, p *fabric.Port) (string, error) {
	if !p.Node().IsSwitch() {
		return "neither end of the link is a switch", nil
	}
	return "", nil
}

// manager implements the rule "manager".
func (x *decider) manager(_ context.Context, p *fabric.Port) (string, error) {
	for _, end := range []*fabric.Port{p, p.Peer()} {
		n := end.Node()
		switch {
		case x.Host != nil && x.Host.Node() == n:
			return fmt.Sprintf("%s is this host", n.Label()), nil
		case x.Manager != nil && x.Manager.Node() == n, runsManager(n):
			return fmt.Sprintf("%s has a subnet manager", n.Label()), nil
		}
	}
	return "", nil
}

// runsManager reports whether a node announces a subnet manager, in charge or not.
func runsManager(n *fabric.Node) bool {
	ports := func(p *fabric.Port) bool {
		return p != nil && p.Info() != nil && p.Info().CapabilityMask&mad.CapabilityMaskIsSM != 0
	}
	if n.IsSwitch() {
		return ports(n.Port(0))
	}
	for p := range n.Ports() {
		if ports(p) {
			return true
		}
	}
	return false
}

// host implements the rule "host". It also judges the links that go down already: the one of p may be what
// their hosts keep.
func (x *decider) host(ctx context.Context, p *fabric.Port) (string, error) {
	kept, err := x.kept(ctx, p)
	if err != nil {
		return "", err
	}
	for _, of := range append([]*fabric.Port{p}, x.order...) {
		for _, end := range []*fabric.Port{of, of.Peer()} {
			n := end.Node()
			if n.IsSwitch() || kept.By[end] != nil {
				continue
			}
			left := 0
			for q := range n.Ports() {
				if q != end && q.Peer() != nil && !x.down[q] && q != p && q != p.Peer() {
					left++
				}
			}
			if left > 0 {
				continue // the rule "effect" judges the paths of the port
			}
			why := fmt.Sprintf("it is the last link of %s", n.Label())
			if of != p {
				why = fmt.Sprintf("%s goes down already, and this is what its host keeps", end.Name())
			}
			if text := kept.Why(end); text != "" {
				why += "; no other port of the host keeps its paths: " + text
			}
			return why, nil
		}
	}
	return "", nil
}

// split implements the rule "split".
func (x *decider) split(ctx context.Context, p *fabric.Port) (string, error) {
	kept, err := x.kept(ctx, p)
	if err != nil {
		return "", err
	}
	return change.CutOff(x.Fabric, x.downWith(p), kept), nil
}

// limit implements the rule "limit".
func (x *decider) limit(context.Context, *fabric.Port) (string, error) {
	if most := change.MaxDown(x.Fabric); len(x.down)/2+1 > most {
		return fmt.Sprintf("the plan takes down %d links already", most), nil
	}
	return "", nil
}

// effect implements the rule "effect".
func (x *decider) effect(ctx context.Context, p *fabric.Port) (string, error) {
	if x.Effect == nil {
		return "the forwarding tables are unknown, so the effect cannot be predicted", nil
	}
	ports := append(x.order[:len(x.order):len(x.order)], p)
	refusal, cost, err := x.Effect(ctx, ports)
	if err == nil && refusal == "" {
		x.cost = cost
	}
	return refusal, err
}

// foreign implements the rule "foreign".
func (x *decider) foreign(_ context.Context, p *fabric.Port) (string, error) {
	past := x.State.Of(p)
	if past == nil || past.Isolated.IsZero() && past.Testing.IsZero() {
		return "fabsh did not isolate it", nil
	}
	return "", nil
}
