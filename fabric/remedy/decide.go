package remedy

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/mad"
)

const timeFormat = time.RFC3339

// MaxActions is how many actions a remedy may return.
const MaxActions = 5_000

// Case is what actions are judged by.
type Case struct {
	Fabric *fabric.Fabric // just swept
	State  *State
	// Host is the port of this host, and Manager that of the subnet manager; nil: unknown, or
	// missing.
	Host, Manager *fabric.Port
	// Effect predicts what happens if links go down, of each of which ports has an end: why
	// they must not ("": they may), and what it costs. Nil: it is unknown.
	Effect func(ctx context.Context, ports []*fabric.Port) (refusal, cost string, err error)
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
	cost  string
}

// Decide judges actions in their order. An action that is declined does not affect later ones.
func Decide(ctx context.Context, c *Case, actions []Action) ([]Decision, error) {
	x := &decider{Case: c, down: map[*fabric.Port]bool{}, taken: map[*fabric.Port]bool{}}
	rules := Rules()
	list := make([]Decision, 0, len(actions))
	for _, a := range actions {
		d := Decision{Action: a}
		if a.Kind == Ticket {
			d.Name = a.Subject.Name()
			list = append(list, d)
			continue
		}
		d.Port = End(a.Port)
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
			if !slices.Contains(r.Kinds, a.Kind) {
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

// take notes that an action is done.
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

// downWith returns both ends of the links that go down, and of that of p.
func (x *decider) downWith(p *fabric.Port) map[*fabric.Port]bool {
	all := maps.Clone(x.down)
	all[p], all[p.Peer()] = true, true
	return all
}

// Sets returns the Sets of the decisions, in their order.
func Sets(list []Decision) (sets []change.Set) {
	for i := range list {
		d := &list[i]
		if d.Kind == Ticket || d.Rule != "" || d.Kept {
			continue
		}
		to := mad.PortPhysicalStatePolling
		if d.Kind == Isolate {
			to = mad.PortPhysicalStateDisabled
		}
		sets = append(sets, change.Set{
			Attr: mad.AttrPortInfo, Modifier: uint32(d.Port.Num()),
			Target: change.Target{GUID: d.Port.Node().GUID()},
			Fields: []change.Field{{Name: stateField, Old: uint64(d.Port.PhysicalState()), New: uint64(to)}},
			Line:   d.Remedy,
		})
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
		e := Entry{At: now, Kind: KindDecision, Remedy: d.Remedy, Action: d.Kind, Name: d.Name, Reason: d.Reason, Rule: d.Rule, Why: d.Why, Kept: d.Kept}
		if d.Port != nil {
			if e.Port = PlaceOf(d.Port); d.Port.Peer() != nil {
				e.Peer = PlaceOf(d.Port.Peer())
			}
		}
		if d.Kind == Ticket && d.Subject.Kind != audit.KindFabric {
			e.Subject = d.Subject.Key()
		}
		entries = append(entries, e)
	}
	return entries
}
