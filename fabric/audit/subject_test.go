package audit

import (
	"fmt"
	"testing"
	"time"

	"fabsh/fabric/sim"
	"fabsh/mad"
)

// TestIDs: an ID is of GUIDs and port numbers, and a link has one whichever end
// it is seen from.
func TestIDs(t *testing.T) {
	f, _, err := sim.Parse("ring:n=2")
	if err != nil {
		t.Fatal(err)
	}
	p := f.Nodes()[0].Port(1)
	for _, test := range []struct {
		s    Subject
		want string
	}{
		{OfFabric(), "x.y:fabric"},
		{OfNode(p.Node()), "x.y:" + p.Node().GUID().String()},
		{OfPort(p.Peer()), "x.y:" + p.Peer().Node().GUID().String() + "/1"},
		{OfLink(p, p.Peer()), "x.y:" + p.Node().GUID().String() + "/1"},
		{OfLink(p.Peer(), p), "x.y:" + p.Node().GUID().String() + "/1"},
	} {
		if got := (&Finding{Check: "x.y", Subject: test.s}).ID(); got != test.want {
			t.Errorf("%s: ID %s, want %s", test.s.Name(), got, test.want)
		}
	}
}

func port(node mad.GUID, num int) Subject { return OfGUID(node, num, fmt.Sprintf("n%d", node)) }

func link(a mad.GUID, an int, b mad.GUID, bn int) Subject {
	return Subject{KindLink, []End{port(a, an).Ends[0], port(b, bn).Ends[0]}}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
