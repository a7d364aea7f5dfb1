package remedy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change"
	"fabsh/fabric/discover"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// simulated returns the fabric of a specification.
func simulated(t *testing.T, spec string) *fabric.Fabric {
	t.Helper()
	f, _, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// swept returns the fabric of a specification as a sweep finds it: its ports are active.
func swept(t *testing.T, spec string) *fabric.Fabric {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sim.New(f, o).Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(conn, engine.Options{})
	defer e.Close()
	if f, err = discover.Sweep(t.Context(), e, discover.Options{}); err != nil {
		t.Fatal(err)
	}
	return f
}

// uplinks returns the ports of a node whose peers are switches.
func uplinks(n *fabric.Node) (list []*fabric.Port) {
	for p := range n.Ports() {
		if p.Peer() != nil && p.Peer().Node().IsSwitch() {
			list = append(list, p)
		}
	}
	return list
}

// step returns a ticket that proposes a step for the link of p.
func step(p *fabric.Port, s Step) Action {
	return Action{Kind: Ticket, Subject: audit.OfLink(p, p.Peer()), Step: s, Reason: "x"}
}

// TestRules: each rule declines what it names, and a declined action does not count for later
// ones.
func TestRules(t *testing.T) {
	f := simulated(t, "fattree:k=8,levels=2")
	big := simulated(t, "fattree:k=16,levels=2")
	fine := func(context.Context, []*fabric.Port) (string, string, error) { return "", "none", nil }
	up := uplinks(f.NodeByName("leaf-1")[0])
	hosts := f.OfType(mad.NodeTypeCA)
	var many []Action
	for i := range big.OfType(mad.NodeTypeSwitch)[:8] {
		for _, p := range uplinks(&big.OfType(mad.NodeTypeSwitch)[i])[:2] {
			many = append(many, Action{Kind: Isolate, Port: p})
		}
	}
	rails := swept(t, "fattree:k=8,levels=2,rails=4")
	railOf := func(host, adapter string) *fabric.Port {
		return rails.NodeByName("node-" + host + " HCA-" + adapter)[0].Port(1)
	}
	keys := func(limited ...*fabric.Port) change.PKeys {
		return func(_ context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
			tables := map[*fabric.Port][]uint16{}
			for _, p := range ports {
				if tables[p] = []uint16{0xffff}; slices.Contains(limited, p) {
					tables[p] = []uint16{0x7fff}
				}
			}
			return tables, nil
		}
	}
	isolate := func(ports ...*fabric.Port) (list []Action) {
		for _, p := range ports {
			list = append(list, Action{Kind: Isolate, Port: p})
		}
		return list
	}
	four := isolate(railOf("0002", "1"), railOf("0002", "2"), railOf("0002", "3"), railOf("0002", "4"))
	pending := &State{Ports: []*Past{{Port: PlaceOf(railOf("0002", "4").Peer()), Peer: PlaceOf(railOf("0002", "4")), Planned: noon}}}
	foreign := &State{Ports: []*Past{{Port: PlaceOf(up[0]), Peer: PlaceOf(up[0].Peer()), Isolated: noon, Times: 1}}}
	testing1 := &State{Ports: []*Past{{Port: PlaceOf(up[0]), Peer: PlaceOf(up[0].Peer()), Testing: noon, Times: 1}}}
	for _, test := range []struct {
		name    string
		c       Case
		actions []Action
		want    string
	}{
		{"planned", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: up[0]}, {Kind: Reset, Port: up[1]}}, "-, -"},
		{"twice", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: up[0]}, {Kind: Isolate, Port: up[0].Peer()}, {Kind: Reset, Port: up[0]}}, "-, twice, twice"},
		{"link", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: f.NodeByName("leaf-1")[0].Port(0)}}, "link"},
		{"host", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: hosts[5].Port(1)}}, "host"},
		{"a host that keeps another", Case{Fabric: rails, Effect: fine, PKeys: keys()}, four[:1], "-"},
		{"a host keeps its last", Case{Fabric: rails, Effect: fine, PKeys: keys()}, four, "-, -, -, host"},
		{"each host", Case{Fabric: rails, Effect: fine, PKeys: keys()}, isolate(railOf("0002", "1"), railOf("0003", "1"), railOf("0002", "3")), "-, -, -"},
		{"P_Keys unknown", Case{Fabric: rails, Effect: fine}, four[:1], "host"},
		{"a host keeps a limited member", Case{Fabric: rails, Effect: fine, PKeys: keys(railOf("0002", "2"), railOf("0002", "3"), railOf("0002", "4"))}, four[:2], "host, -"},
		{"what a host keeps stays up", Case{Fabric: rails, Effect: fine, PKeys: keys(railOf("0002", "3"), railOf("0002", "4"))}, four, "-, host, -, -"},
		{"planned by an earlier run", Case{Fabric: rails, Effect: fine, PKeys: keys(), State: pending, Now: noon}, four, "-, -, host, -"},
		{"planned long ago", Case{Fabric: rails, Effect: fine, PKeys: keys(), State: pending, Now: noon.Add(25 * time.Hour)}, four, "-, -, -, host"},
		{"this host", Case{Fabric: f, Effect: fine, Host: hosts[5].Port(1)}, []Action{{Kind: Isolate, Port: hosts[5].Port(1).Peer()}}, "manager"},
		{"the subnet manager", Case{Fabric: f, Effect: fine, Manager: hosts[6].Port(1)}, []Action{{Kind: Reset, Port: hosts[6].Port(1)}}, "manager"},
		{"the last uplink", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: up[0]}, {Kind: Isolate, Port: up[1]}, {Kind: Reset, Port: up[2]}, {Kind: Isolate, Port: up[3]}, {Kind: Isolate, Port: up[2]}}, "-, -, -, split, twice"},
		{"limit", Case{Fabric: big, Effect: fine}, many, strings.Repeat("-, ", 10) + strings.TrimSuffix(strings.Repeat("limit, ", 6), ", ")},
		{"tables unknown", Case{Fabric: f}, []Action{{Kind: Isolate, Port: up[0]}}, "effect"},
		{"deadlock", Case{Fabric: f, Effect: func(_ context.Context, ports []*fabric.Port) (string, string, error) {
			if len(ports) > 1 {
				return "packets could deadlock", "", nil
			}
			return "", "cheap", nil
		}}, []Action{{Kind: Isolate, Port: up[0]}, {Kind: Isolate, Port: up[1]}}, "-, effect"},
		{"not isolated", Case{Fabric: f, Effect: fine}, []Action{{Kind: Restore, Port: up[0]}}, "foreign"},
		{"isolated at the other end", Case{Fabric: f, Effect: fine, State: foreign}, []Action{{Kind: Restore, Port: up[0].Peer()}, {Kind: Restore, Port: up[0]}}, "kept, twice"},
		{"tested", Case{Fabric: f, Effect: fine, State: testing1}, []Action{{Kind: Restore, Port: up[0]}}, "kept"},
		{"declined by the remedy", Case{Fabric: f, Effect: fine}, []Action{{Kind: Isolate, Port: up[0], Declined: "budget: 3 links"}, {Kind: Isolate, Port: up[0], Remedy: "mine", Declined: "later"}, {Kind: Isolate, Port: up[0], Remedy: "mine", Declined: " : later"}, {Kind: Isolate, Port: up[0]}}, "budget, mine, mine, -"},
		{"step", Case{Fabric: f}, []Action{step(up[0], StepReset), step(up[0].Peer(), StepReset), step(up[0], StepClean), step(up[1], StepReset)}, "-, week, -, -"},
		{"ticket", Case{Fabric: f}, []Action{{Kind: Ticket, Subject: audit.OfFabric(), Reason: "x"}}, "-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.c.State == nil {
				test.c.State = new(State)
			}
			list, err := Decide(t.Context(), &test.c, test.actions)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			sets := 0
			for _, d := range list {
				switch {
				case d.Kept:
					got = append(got, "kept")
				case d.Rule != "":
					got = append(got, d.Rule)
				default:
					got = append(got, "-")
					if d.Kind != Ticket {
						sets++
					}
				}
				if d.Rule != "" && d.Why == "" {
					t.Errorf("%s declines without a reason", d.Rule)
				}
			}
			if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if n := len(Sets(list)); n != sets {
				t.Errorf("%d Sets, want %d", n, sets)
			}
		})
	}
	failed := errors.New("timed out")
	_, err := Decide(t.Context(), &Case{Fabric: f, State: new(State), Effect: func(context.Context, []*fabric.Port) (string, string, error) { return "", "", failed }}, []Action{{Kind: Isolate, Port: up[0]}})
	if !errors.Is(err, failed) {
		t.Error(err)
	}
}
