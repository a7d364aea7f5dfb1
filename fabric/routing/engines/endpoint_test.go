package engines

import (
	"errors"
	"slices"
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// TestHostsWithoutLIDs: the tables and lanes of each engine are those of the network without the hosts
// that have no LID: all of a switch, and some of others.
func TestHostsWithoutLIDs(t *testing.T) {
	for _, net := range []string{
		"pgft:m=3/4/2,w=1/2/3,p=1/1/2", "fattree:k=6,levels=3,remove_links=10%,seed=3", "torus:dims=3/4,hosts=2",
		"hyperx:dims=3/4,hosts=2", "dragonfly:a=4,p=2,h=1", "random:n=20,degree=4,hosts=2",
	} {
		without := func(p *fabric.Port) bool {
			return !p.Node().IsSwitch() && p.Peer() != nil && (p.Peer().Node().ID()%5 == 1 || p.Node().ID()%7 == 2)
		}
		o := graph.BuildOptions{LIDs: func(p *fabric.Port) (mad.LID, int) {
			if without(p) {
				return 0, 0
			}
			return mad.LID(p.ID() + 1), 0
		}}
		with := routingtest.Graph(t, net, o)
		o.Exclude = without
		bare := routingtest.Graph(t, net, o)
		for _, e := range All() {
			r, err := Compute(t.Context(), with, e.Name, Options{})
			want, other := Compute(t.Context(), bare, e.Name, Options{})
			if p := new(Precondition); errors.As(err, &p) || errors.As(other, &p) {
				if err == nil || other == nil || err.Error() != other.Error() {
					t.Errorf("%s, %s: %v, without the hosts: %v", net, e.Name, err, other)
				}
				continue
			} else if err = errors.Join(err, other); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(routingtest.Tables(r), routingtest.Tables(want)) || !slices.Equal(levelsOf(r), levelsOf(want)) {
				t.Errorf("%s, %s: other tables than without the hosts", net, e.Name)
			}
			if v := routingtest.Verified(t, r, verify.Options{}); v.Unreachable > 0 || v.Loops > 0 || e.Acyclic && !v.Acyclic {
				t.Errorf("%s, %s: %+v", net, e.Name, v)
			}
		}
	}
}

// levelsOf are the service levels of all paths between endpoints.
func levelsOf(r *routes.Routes) (list []uint8) {
	g := r.Graph()
	for i := range g.Terminals() {
		for _, lid := range g.LIDs(graph.ClassCN) {
			if g.Terminals()[i].IsEndpoint(0) {
				list = append(list, r.SL.Of(i, lid))
			}
		}
	}
	return list
}
