package spec

import (
	"fmt"
	"testing"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestFindNode: names that need not be good ones.
func TestFindNode(t *testing.T) {
	b := fabric.NewBuilder()
	for i, name := range []string{"a", "a", "", "b/1"} {
		b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 2, NodeGUID: mad.GUID(i + 1)}})
	}
	f := b.Build()
	for name, want := range map[string]string{
		"b/1":                "node 4, port -1",
		"b/1/2":              "node 4, port 2",
		"0x2":                "node 2, port -1",
		"0x0000000000000002": "node 2, port -1",
		"2/2":                "node 2, port 2",
		"a":                  `names several nodes: 2 nodes are named "a"; use a GUID, one of 0x0000000000000001, 0x0000000000000002`,
		"a/1":                `names several nodes: 2 nodes are named "a"; use a GUID, one of 0x0000000000000001, 0x0000000000000002`,
		"c":                  `names unknown node "c"`,
		"b/2":                `names unknown node "b"`,
		"b/x":                `names unknown node "b/x"; did you mean "b/1"?`,
	} {
		n, num, err := findPort(f, name)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("node %d, port %d", n.GUID(), num)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}
