package apply_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"fabsh/fabric/change/apply"
	"fabsh/mad"
)

// TestBranches: branches of multicast are taken away in a round before the one in which
// new ones come: in between no switch has one that is not in both trees, and so no
// packet goes round, whatever the order within a round.
func TestBranches(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 0))
	for range 200 {
		var cells []*apply.Cell
		var now, want [][]byte
		for s := range 4 {
			from, to := make([]byte, 64), make([]byte, 64)
			for i := range from {
				from[i] = byte(random.Uint32() & random.Uint32())
				to[i] = from[i] ^ byte(random.Uint32()&random.Uint32()&random.Uint32())*byte(random.IntN(2))
			}
			cells = append(cells, &apply.Cell{Node: mad.GUID(s), Attr: mad.AttrMulticastForwardingTable})
			now, want = append(now, from), append(want, to)
		}
		old, taken := slices.Clone(now), false
		for c := range old {
			for i, b := range old[c] {
				taken = taken || b&^want[c][i] != 0
			}
		}
		rounds, err := apply.Ordered(cells, nil, nil)(t.Context(), now, want)
		if err != nil || len(rounds) > 2 || taken && len(rounds) < 2 {
			t.Fatalf("%d rounds, %v", len(rounds), err)
		}
		for k, r := range rounds {
			for _, step := range r.Steps {
				if bytes.Equal(now[step.Cell], step.Data) {
					t.Fatal("a write changes nothing")
				}
				now[step.Cell] = step.Data
			}
			for c := range now {
				for i, b := range now[c] {
					if k == 0 && len(rounds) == 2 && b&^(old[c][i]&want[c][i]) != 0 {
						t.Fatal("a branch is left after the first round that is not in both trees")
					}
				}
			}
		}
		for c := range now {
			if !bytes.Equal(now[c], want[c]) {
				t.Fatal("it does not end at the new tables")
			}
		}
	}
}

// TestKinds: what makes ways comes before the forwarding tables, and what takes them
// after.
func TestKinds(t *testing.T) {
	port := func(from, to mad.PortPhysicalState) (*apply.Cell, []byte, []byte) {
		a, b := make([]byte, mad.AttrPortInfo.Size), make([]byte, mad.AttrPortInfo.Size)
		f := mad.AttrPortInfo.Field("port_physical_state")
		f.SetUint(a, uint64(from))
		f.SetUint(b, uint64(to))
		return &apply.Cell{Attr: mad.AttrPortInfo, Fields: []string{"port_physical_state"}, Old: a, New: b}, a, b
	}
	off, offNow, offWant := port(mad.PortPhysicalStateLinkUp, mad.PortPhysicalStateDisabled)
	on, onNow, onWant := port(mad.PortPhysicalStateDisabled, mad.PortPhysicalStatePolling)
	lft := &apply.Cell{Attr: mad.AttrLinearForwardingTable}
	rounds, err := apply.Ordered([]*apply.Cell{off, lft, on}, func(context.Context, [][]byte, [][]byte) ([]apply.Round, error) {
		return []apply.Round{{Steps: []apply.Step{{Cell: 1}}}}, nil
	}, nil)(t.Context(), [][]byte{offNow, make([]byte, 64), onNow}, [][]byte{offWant, bytes.Repeat([]byte{1}, 64), onWant})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, r := range rounds {
		for _, step := range r.Steps {
			got = append(got, step.Cell)
		}
	}
	if len(rounds) != 3 || len(got) != 3 || got[0] != 2 || got[1] != 1 || got[2] != 0 {
		t.Errorf("%d rounds, cells %v; want the port that comes, the table, the port that goes", len(rounds), got)
	}
}
