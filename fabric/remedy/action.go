// Package remedy decides which actions of remedies become a plan, and logs the decisions.
//
// Scripts return each Action. Decide judges them by the Rules, which hold for every remedy, and
// Sets returns the Sets of the plan. The Log of a subnet is a file of entries; its State is the
// sum of the entries: the ports that are isolated, and the history of each. Journals of
// change apply show which planned actions were confirmed.
//
// The package sends nothing, and runs no script.
package remedy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// ActionKind is what an action does.
type ActionKind string

// The kinds of actions.
const (
	Isolate ActionKind = "isolate" // disables a link at the end of a switch
	Restore ActionKind = "restore" // enables a port that fabsh disabled, and ends its test
	Reset   ActionKind = "reset"   // trains a link again
	Ticket  ActionKind = "ticket"  // a text for people
)

// Action is one action that a remedy returns.
type Action struct {
	Kind   ActionKind
	Remedy string // the name of the remedy
	// Port is an end of the link, or the port; nil for a ticket.
	Port *fabric.Port
	// Subject is what a ticket is about.
	Subject audit.Subject
	// Step is the step of the repair ladder that a ticket proposes; "": none.
	Step Step
	// Reason is why, or the text of a ticket.
	Reason string
	// Declined is the rule of the remedy itself by which it does not want the action, with the
	// reason: "budget: 10 links are isolated"; "": it wants the action.
	Declined string
}

// Place is a port across runs: the GUID of its node, and its number.
type Place struct {
	GUID mad.GUID
	Num  int
}

// PlaceOf returns the place of p.
func PlaceOf(p *fabric.Port) Place { return Place{p.Node().GUID(), p.Num()} }

// String returns the text of p: "0x0002c90300000001/7".
func (p Place) String() string { return p.GUID.String() + "/" + strconv.Itoa(p.Num) }

// MarshalText returns the text of p; "" for no port.
func (p Place) MarshalText() ([]byte, error) {
	if p == (Place{}) {
		return nil, nil
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (p *Place) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Place{}
		return nil
	}
	guid, num, _ := strings.Cut(string(text), "/")
	g, err := strconv.ParseUint(guid, 0, 64)
	n, err2 := strconv.ParseUint(num, 10, 8)
	if err = cmp.Or(err, err2); err != nil {
		return fmt.Errorf("port %.40q: want GUID/PORT", text)
	}
	*p = Place{mad.GUID(g), int(n)}
	return nil
}

// In returns the port of f at p; nil: it is not there, or the GUID is not unique.
func (p Place) In(f *fabric.Fabric) *fabric.Port {
	nodes := f.NodeByGUID(p.GUID)
	if len(nodes) != 1 {
		return nil
	}
	return nodes[0].Port(p.Num)
}

// linkEnd returns the port at which the link of p is disabled: the port of the switch, and between
// two switches the port of the one nearer to this host, which reaches it without the link. It
// returns p if it has no link.
func linkEnd(p *fabric.Port) *fabric.Port {
	q := p.Peer()
	if q == nil {
		return p
	}
	if p.Node().IsSwitch() != q.Node().IsSwitch() {
		if q.Node().IsSwitch() {
			return q
		}
		return p
	}
	switch order := cmp.Compare(p.Node().Route().Hops(), q.Node().Route().Hops()); {
	case p.Node().Route() == nil || q.Node().Route() == nil || order == 0:
		if q.ID() < p.ID() {
			return q
		}
	case order > 0:
		return q
	}
	return p
}

// nameOf returns the name of the link of p, or of p without one.
func nameOf(p *fabric.Port) string {
	if p.Peer() == nil {
		return audit.OfPort(p).Name()
	}
	return audit.OfLink(p, p.Peer()).Name()
}
