package search

import (
	"context"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
	"fabsh/mad"
)

// interrupted is a context that ends at the given read of its error.
type interrupted struct {
	context.Context
	reads, end int
}

func (c *interrupted) Err() error {
	if c.reads++; c.reads >= c.end {
		return context.Canceled
	}
	return nil
}

// TestLinksInterrupted: the search for links that make room ends at the next link when its context does.
func TestLinksInterrupted(t *testing.T) {
	g := routingtest.Graph(t, "torus:dims=4/4,hosts=1", graph.BuildOptions{})
	r := routes.New(g, 0)
	n := newNueSearch(r, verify.NewDependencyGraph(g, 1), verify.UpDownOrder(g, graph.RanksFrom(g, []int{0})), settings{})
	n.addTree(0)
	for d := range g.Switches() {
		for _, dest := range g.DestsOf(d) {
			n.route(d, dest)
		}
	}
	begin := func() *room {
		a := &patching{addition: addition{r: r}}
		d, err := verify.Dependencies(t.Context(), r, a.onLane(0))
		if err != nil {
			t.Fatal(err)
		}
		m := &room{patching: a, d: d, users: map[dependency][]mad.LID{}, gone: map[mad.LID]bool{}, work: maxRoomWork}
		m.findUsers(0)
		for s := range g.Switches() { // each is a tree of its own
			m.at, m.tree = append(m.at, int32(s)), append(m.tree, graph.NoChannel)
		}
		return m
	}
	whole := begin()
	ctx := &interrupted{t.Context(), 0, len(g.Channels()) + 1}
	if links := whole.links(ctx, maxLinks); len(links) != maxLinks || ctx.reads != len(g.Channels()) {
		t.Fatalf("%d links, %d of %d channels", len(links), ctx.reads, len(g.Channels()))
	}
	m := begin()
	ctx = &interrupted{t.Context(), 0, 8}
	links := m.links(ctx, maxLinks)
	if done, all := maxRoomWork-m.work, maxRoomWork-whole.work; links != nil || ctx.reads != ctx.end || done > all/4 {
		t.Errorf("%d links after the end; %d reads of it, want %d; work %d of %d", len(links), ctx.reads, ctx.end, done, all)
	}
}
