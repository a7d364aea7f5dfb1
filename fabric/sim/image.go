package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Image returns everything in the subnet that a request may change, as text. Tests compare it.
func (s *Subnet) Image() string {
	s.state.Lock()
	defer s.state.Unlock()
	s.state.EnsureTables()
	var b strings.Builder
	name := func(p *state.Port) string { return fmt.Sprintf("%s/%d", p.Node.Label, p.Num) }
	for i := range s.state.Nodes {
		n := &s.state.Nodes[i]
		fmt.Fprintf(&b, "%s %x %x %x %d %x %v %v\n", n.Label, n.Info, n.Description, n.SwitchInfo, n.FDBTop, bytes.TrimRight(n.LFT, "\xff"), n.Off, n.Busy.Load())
		if n.Measurement != nil {
			fmt.Fprintf(&b, "samples %+v\n", n.Measurement.Control)
		}
		for j := range n.Ports {
			p := &n.Ports[j]
			fmt.Fprintf(&b, "%s %x %v %v %v %d %d %d %d %d %d %x %v %v\n", name(p), p.Info, p.Up, p.Unplugged, p.State, p.LMC, p.KeyLevel, p.MTU, p.Rate, p.LID, p.MKey, uint64(p.GUID), p.Light, p.InService)
			for _, key := range counterKeys() {
				if v := p.Counters.Value(key, time.Time{}); v != 0 {
					fmt.Fprintf(&b, "%v %d\n", key, v)
				}
			}
		}
	}
	var lines []string
	for key, data := range s.state.Blocks {
		lines = append(lines, fmt.Sprintf("%s %s %#x %x", name(key.Port), key.Attr.Name, key.Block, *data))
	}
	for key, data := range s.Edit.CongestionSettings {
		lines = append(lines, fmt.Sprintf("%s %s %#x %x", name(key.Port), key.Attr.Name, key.Block, data))
	}
	slices.Sort(lines)
	for lid, p := range s.state.LIDs {
		if p != nil {
			lines = append(lines, fmt.Sprintf("LID %d %s", lid, name(p)))
		}
	}
	for _, x := range s.Notices.Subscriptions {
		lines = append(lines, fmt.Sprintf("subscription %s %+v", name(x.To), x.Info))
	}
	for _, g := range s.state.Groups {
		lines = append(lines, fmt.Sprintf("group %+v, members %d %v", g.MCMemberRecord, len(g.Members), g.WellKnown))
	}
	lines = append(lines, fmt.Sprintf("services %+v sweeps %d traps %d", s.SA.Services, s.SM.Sweeps, s.Notices.LastTrap))
	return b.String() + strings.Join(lines, "\n")
}

// counterKeys are all counters.
var counterKeys = sync.OnceValue(func() (keys []state.CounterKey) {
	for _, a := range mad.Attributes() {
		for _, c := range state.CounterViews()[a] {
			for e := range c.Count {
				keys = append(keys, state.CounterKey{Name: c.Name, Element: e})
			}
		}
	}
	return keys
})
