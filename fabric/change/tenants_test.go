package change_test

import (
	"encoding/binary"

	"slices"
	"strings"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/discover"
	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/sim"
	"fabsh/fabric/tenant"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// TestJoinedTenants: a plan that lets tenants reach each other is found: by P_Keys, by switch ports
// that check less, or by a path; whether the facts were read before or after its writes.
func TestJoinedTenants(t *testing.T) {
	spec, o, err := sim.Parse("fattree:k=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	transport, err := sim.New(spec, o).Attach(spec.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(transport, engine.Options{})
	defer e.Close()
	f, err := discover.Sweep(t.Context(), e, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := engines.Compute(t.Context(), g, "minhop", engines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	port := func(name string) *fabric.Port {
		n, err := f.FindNode(name)
		if err != nil {
			t.Fatal(err)
		}
		return n.Port(1)
	}
	red, blue := port("node-0001"), port("node-0003")
	leaf := blue.Peer()
	m, err := (&tenant.File{Tenants: []tenant.Tenant{{Name: "red", GUIDs: []mad.GUID{red.GUID()}}, {Name: "blue", GUIDs: []mad.GUID{blue.GUID()}}}}).On(f)
	if err != nil {
		t.Fatal(err)
	}
	block := func(keys []uint16) []byte {
		data := make([]byte, 2*mad.PKeyBlock)
		for i, k := range keys {
			binary.BigEndian.PutUint16(data[2*i:], k)
		}
		return data
	}
	// keys writes the P_Keys of a port.
	keys := func(p *fabric.Port, old, after []uint16) certificate.Change {
		c := certificate.Change{Attr: mad.AttrPKeyTable, Node: p.Node().GUID(), Old: block(old), New: block(after)}
		if p.Node().IsSwitch() {
			c.Modifier = uint32(p.Num()) << 16
		} else {
			c.Port = p.Num()
		}
		return c
	}
	checks := func(p *fabric.Port, field string, old, after uint64) certificate.Change {
		return certificate.Change{Attr: mad.AttrPortInfo, Node: p.Node().GUID(), Modifier: uint32(p.Num())}.With(field, old, after)
	}
	type state struct {
		red, blue, leaf []uint16
		checks          bool // the leaf checks what it sends to blue
		noPath          bool // from red to blue, and back
	}
	isolated := state{red: []uint16{0x7fff, 0x8012}, blue: []uint16{0x7fff, 0x8013}, leaf: []uint16{0x7fff, 0x8013}}
	checked, joined, cut := isolated, isolated, isolated
	checked.blue, checked.checks = []uint16{0x7fff, 0x8013, 0x8012}, true
	joined.blue = checked.blue
	cut.blue, cut.noPath = checked.blue, true
	lid, s := blue.LID(), int(g.SwitchOf(red.Peer().Node()))
	row := make([]byte, mad.LFTBlock) // of the leaf of red, which has all LIDs of this subnet in block 0
	for i := range row {
		row[i] = mad.NoPort
		if i <= int(r.Top()) {
			row[i] = r.Row(s).Port(mad.LID(i))
		}
	}
	dropped := slices.Clone(row)
	dropped[lid] = mad.NoPort
	for name, test := range map[string]struct {
		state
		sets []certificate.Change
		want string
	}{
		"a key of red for blue":      {isolated, []certificate.Change{keys(blue, isolated.blue, joined.blue)}, "red to blue, blue to red"},
		"another key":                {isolated, []certificate.Change{keys(blue, isolated.blue, []uint16{0x7fff, 0x8013, 0x8014})}, ""},
		"given and taken":            {isolated, []certificate.Change{keys(blue, isolated.blue, joined.blue), keys(blue, joined.blue, isolated.blue)}, ""},
		"joined before":              {joined, []certificate.Change{keys(red, joined.red, []uint16{0x7fff, 0x8012, 0x8014})}, ""},
		"taken":                      {joined, []certificate.Change{keys(blue, joined.blue, isolated.blue)}, ""},
		"checked, another key":       {checked, []certificate.Change{keys(blue, checked.blue, []uint16{0xffff, 0x8013, 0x8012})}, "red to blue"},
		"no longer checked":          {checked, []certificate.Change{checks(leaf, "partition_enforcement_outbound", 1, 0)}, "red to blue"},
		"checks what it receives":    {checked, []certificate.Change{checks(leaf, "partition_enforcement_inbound", 0, 1)}, ""},
		"the leaf lets red's pass":   {checked, []certificate.Change{keys(leaf, checked.leaf, []uint16{0x7fff, 0x8013, 0x8012})}, "red to blue"},
		"a path":                     {cut, []certificate.Change{{Attr: mad.AttrLinearForwardingTable, Node: g.Switches()[s].GUID(), Old: dropped, New: row}}, "red to blue"},
		"a path less":                {joined, []certificate.Change{{Attr: mad.AttrLinearForwardingTable, Node: g.Switches()[s].GUID(), Old: row, New: dropped}}, ""},
		"a node that does not exist": {isolated, []certificate.Change{{Attr: mad.AttrPKeyTable, Node: 0x1234, Port: 1, Old: block(nil), New: block(joined.blue)}}, ""},
	} {
		p := &change.Plan{Sets: test.sets}
		for _, after := range []bool{false, true} { // of its writes, were the facts read
			tables := r.Clone()
			if test.noPath {
				tables.EditRow(s)[lid] = mad.NoPort
				tables.EditRow(int(g.SwitchOf(leaf.Node())))[red.LID()] = mad.NoPort
			}
			facts := &tenant.Facts{Routes: tables, Groups: []tenant.Group{}, Tables: map[*fabric.Port][]uint16{red: block16(test.red), blue: block16(test.blue), leaf: block16(test.leaf)},
				Checks: map[*fabric.Port]tenant.Directions{leaf: {Outbound: test.checks}}}
			if after {
				for _, c := range test.sets {
					if c.Attr != mad.AttrPKeyTable {
						continue
					}
					for _, q := range []*fabric.Port{red, blue, leaf} {
						if q.Node().GUID() == c.Node && (!q.Node().IsSwitch() || int(c.Modifier>>16) == q.Num()) {
							for i := range facts.Tables[q] {
								facts.Tables[q][i] = binary.BigEndian.Uint16(c.New[2*i:])
							}
						}
					}
				}
			}
			pairs, err := p.JoinedTenants(t.Context(), m, facts)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range pairs {
				got = append(got, m.File.Tenants[x.From].Name+" to "+m.File.Tenants[x.To].Name)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%s: %v, want %s", name, got, test.want)
			}
		}
	}
	ports := (&change.Plan{Sets: []certificate.Change{keys(leaf, nil, isolated.leaf)}}).TenantPorts(f)
	if !slices.Contains(ports, leaf) || !slices.Contains(ports, blue) {
		t.Errorf("the ports of the plan: %d, without those that it changes", len(ports))
	}
}

// block16 is a table with keys, and room for others.
func block16(keys []uint16) []uint16 {
	return append(slices.Clone(keys), make([]uint16, mad.PKeyBlock-len(keys))...)
}
