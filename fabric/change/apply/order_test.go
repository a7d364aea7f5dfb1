package apply_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fabsh/fabric/change/apply"
	"fabsh/fabric/routing"
	"fabsh/mad"
)

// TestOrderOfKinds: virtual lanes are written before the forwarding tables that need
// them, and lanes get entries for arbitration before packets come and lose them after.
func TestOrderOfKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "fattree:k=4")
		e := r.engine(-1, nil)
		defer e.Close()
		first := r.cells[0]
		cell := func(attr *mad.Attribute, modifier uint32, before, after []byte) *apply.Cell {
			return &apply.Cell{Node: first.Node, Name: attr.Name, Routes: first.Routes, Attr: attr, Modifier: modifier, Old: before, New: after}
		}
		pad := func(b ...byte) []byte { return append(b, make([]byte, mad.AttrVLArbitrationTable.Size-len(b))...) }
		cells := slices.Concat(r.cells, []*apply.Cell{
			cell(mad.AttrSLtoVLMappingTable, 1<<8|2, []byte{0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67}, make([]byte, 8)),
			cell(mad.AttrVLArbitrationTable, 1<<16|1, pad(0, 4, 1, 0), pad(0, 4, 1, 4)), // lane 1 comes
			cell(mad.AttrVLArbitrationTable, 1<<16|2, pad(0, 4, 1, 4), pad(0, 4, 0, 0)), // it goes
		})
		lanes, comes, goes := len(r.cells), len(r.cells)+1, len(r.cells)+2
		p := apply.Prover{Engine: e, Fabric: r.f, Cells: cells, AcceptCreditLoops: true, Tell: func(string) {}, Back: true}
		states := func(of func(*apply.Cell) []byte) (all [][]byte) {
			for _, c := range cells {
				all = append(all, of(c))
			}
			return all
		}
		for _, back := range []bool{false, true} {
			now, want := states(before), states(after)
			if back {
				now, want, comes, goes = want, now, goes, comes
			}
			rounds, err := p.Order(t.Context(), now, want)
			if err != nil {
				t.Fatal(err)
			}
			at := func(cell int) int {
				return slices.IndexFunc(rounds, func(r apply.Round) bool {
					return slices.ContainsFunc(r.Steps, func(s apply.Step) bool { return s.Cell == cell })
				})
			}
			if at(comes) != 0 || at(goes) != len(rounds)-1 || at(lanes) < 1 || !back && at(lanes) > at(0) {
				t.Errorf("back %v: %d rounds: an entry comes in %d and goes in %d; lanes in %d, tables in %d", back, len(rounds), at(comes), at(goes), at(lanes), at(0))
			}
		}
	})
}

// TestBackPastCreditLoop: where no order back is free of credit loops, it is gone by
// itself only if switches drop what is stuck; it is said.
func TestBackPastCreditLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "ring:n=6,hosts=1")
		e := r.engine(-1, nil)
		defer e.Close()
		live, now, want := r.ringTables()
		said := ""
		p := apply.Prover{Engine: e, Fabric: r.f, Live: live, Cells: r.cells, Back: true, Tell: func(text string) { said = text }}
		if rounds, err := p.Order(t.Context(), now, want); err != nil || len(rounds) == 0 || !strings.Contains(said, "credit loop") {
			t.Errorf("%v, told %q", err, said)
		}
		for i := range r.f.Ports() {
			if port := &r.f.Ports()[i]; port.Node().IsSwitch() && port.Peer() != nil {
				port.Info().HOQLife = 31
			}
		}
		if _, err := p.Order(t.Context(), now, want); err == nil || !strings.Contains(err.Error(), "--accept-credit-loop-risk") {
			t.Errorf("without a bound: %v", err)
		}
		p.AcceptCreditLoops = true
		if _, err := p.Order(t.Context(), now, want); err != nil {
			t.Errorf("accepted: %v", err)
		}
	})
}

// ringTables has the cells lead from tables with a credit loop to ones without: now are
// these, and want those.
func (r *rig) ringTables() (live *routing.Routes, now, want [][]byte) {
	r.t.Helper()
	g, err := routing.NewGraph(r.f, routing.GraphOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	tables := map[string]*routing.Routes{}
	for _, engine := range []string{"minhop", "updn"} {
		if tables[engine], err = routing.Compute(r.t.Context(), g, engine, routing.Options{}); err != nil {
			r.t.Fatal(err)
		}
	}
	block := func(engine string, s int) []byte {
		b := bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock)
		copy(b, tables[engine].Row(s))
		return b
	}
	r.cells = nil
	for s, n := range g.Switches() {
		c := &apply.Cell{Node: n.GUID(), Name: n.Label(), Routes: []mad.DirectedRoute{n.Route()}, Attr: mad.AttrLinearForwardingTable, Old: block("minhop", s), New: block("updn", s)}
		r.cells, now, want = append(r.cells, c), append(now, c.New), append(want, c.Old)
	}
	return tables["updn"], now, want
}
