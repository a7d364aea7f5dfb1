package change

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// Switch is a switch whose adaptive routing a plan disables.
type Switch struct {
	GUID mad.GUID
	Name string
}

// Judge notes where p disables adaptive routing, which is on at the switches on. The error
// is a *RefusalError if static routing was not requested.
func (p *Plan) Judge(on []*fabric.Node) error {
	p.Disables = nil
	changed := map[mad.GUID]bool{} // also by a write that changes no entry, where static routing was requested
	for _, c := range p.Changes() {
		changed[c.Node] = changed[c.Node] || c.Attr == mad.AttrLinearForwardingTable
	}
	for i := range p.Sets {
		s := &p.Sets[i]
		changed[s.Node] = changed[s.Node] || p.Static && s.Attr == mad.AttrLinearForwardingTable
	}
	var names []string
	for _, n := range on {
		if changed[n.GUID()] {
			p.Disables = append(p.Disables, Switch{n.GUID(), n.Name()})
			names = append(names, n.Label())
		}
	}
	if len(names) == 0 || p.Static {
		return nil
	}
	p.Disables = nil
	return &RefusalError{AdaptiveOn(names)}
}

// Stale describes the switches where adaptive routing is on although it was off when p was
// made: p writes their forwarding tables, and does not disable it.
func (p *Plan) Stale(on []*fabric.Node) (since []string) {
	writes := map[mad.GUID]bool{}
	for _, c := range p.Changes() {
		writes[c.Node] = writes[c.Node] || c.Attr == mad.AttrLinearForwardingTable
	}
	for _, s := range p.Disables {
		delete(writes, s.GUID)
	}
	for _, n := range on {
		if writes[n.GUID()] {
			since = append(since, fmt.Sprintf("adaptive routing is on at %s, and the plan does not disable it", n.Label()))
		}
	}
	return since
}

// Unrestored describes the adaptive routing of n switches that a change has disabled and that
// its reversal does not restore; "": none.
func Unrestored(n int) string {
	if n == 0 {
		return ""
	}
	return "adaptive routing, which the change disables at " + plural.Count(n, "switch", "switches") + ", is not restored"
}

// AdaptiveOn returns the reason why forwarding tables of switches are not planned.
func AdaptiveOn(names []string) string {
	return fmt.Sprintf("adaptive routing is on at %s, so packets do not follow the forwarding table, and a write of it may disable adaptive routing; to plan static routing, give --static (plan(static=True), routes.plan(static=True))", someOf(names))
}

// SetAdaptivity sets what is known of adaptive routing; choices are the result of
// device.ReadChoices, nil if they were not read.
func (t *Tables) SetAdaptivity(a *device.Adaptivity, choices []*adaptive.Switch) {
	t.Adaptive, t.Notes = choices, nil
	if choices == nil && len(a.On) > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("adaptive routing is on at %s, such as %s: packets are assumed to follow the forwarding tables", plural.Count(len(a.On), "switch", "switches"), a.On[0].Label()))
	}
	if n := len(a.Undetermined); n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("adaptive routing of %s could not be determined, such as %s: assumed to be off: %v", plural.Count(n, "switch", "switches"), a.Undetermined[0].Switch.Label(), a.Undetermined[0].Err))
	}
}

// someOf lists the first of some names, and how many more there are.
func someOf(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += " and " + plural.Count(more, "more switch", "more switches")
	}
	return text
}

// Disabled describes where p disables adaptive routing; "": nowhere.
func (p *Plan) Disabled() string {
	if len(p.Disables) == 0 {
		return ""
	}
	return "adaptive routing is disabled at " + plural.Count(len(p.Disables), "switch", "switches") + ", and a revert does not restore it"
}

// disableNote states what is assumed, not proven, of a write that disables adaptive routing.
const disableNote = "adaptive routing: a write of a forwarding table is assumed to disable it by the time that AdaptiveRoutingInfo reads back as off; until then a switch may use any of its choices, or its table"

// adaptiveNotes describes what the proof of in assumes of adaptive routing.
func (t *Tables) adaptiveNotes(in *order.Input) (notes []string) {
	stays, first := 0, ""
	for s, a := range t.Adaptive {
		if !a.Active() || slices.ContainsFunc(in.Disable, func(i int) bool { return in.Changes[i].Node == in.Old.Graph().Switches()[s].GUID() }) {
			continue
		}
		if stays++; stays == 1 {
			first = in.Old.Graph().Switches()[s].Label()
		}
	}
	if stays > 0 {
		notes = append(notes, fmt.Sprintf("adaptive routing stays on at %s, such as %s: all their choices are judged, but no later change of them", plural.Count(stays, "switch", "switches"), first))
	}
	if len(in.Disable) > 0 {
		notes = append(notes,
			disableNote,
			"largest load before the change: counted by the forwarding tables, which packets do not follow")
	}
	return notes
}

// unknownChoices returns the refusal of a change of tables where adaptive routing is on and
// its choices are unknown; nil: they are known.
func (t *Tables) unknownChoices() error {
	for s, a := range t.Adaptive {
		if a != nil && a.Unknown != "" {
			return &order.Refusal{Round: -1, Reason: fmt.Sprintf("the choices of adaptive routing at %s are unknown, so nothing is proven: %s", t.Live.Graph().Switches()[s].Label(), a.Unknown)}
		}
	}
	return nil
}

// disable returns the numbers of the changes that are written first to disable adaptive
// routing: of each switch where it is on, the first block that is written.
func (t *Tables) disable(changes []certificate.Change) (list []int) {
	at := map[int]int{} // in list, by switch
	for n := range changes {
		w := &changes[n]
		s := t.Live.Graph().SwitchByGUID(w.Node)
		if w.Attr != mad.AttrLinearForwardingTable || s < 0 || t.Adaptive == nil || !t.Adaptive[s].Active() {
			continue
		}
		if i, ok := at[s]; !ok {
			at[s] = len(list)
			list = append(list, n)
		} else if w.Modifier < changes[list[i]].Modifier {
			list[i] = n
		}
	}
	return list
}
