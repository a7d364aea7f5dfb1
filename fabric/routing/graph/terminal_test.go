package graph_test

import (
	"testing"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

func TestClasses(t *testing.T) {
	b := fabric.NewBuilder()
	for i, n := range []struct {
		kind mad.NodeType
		name string
		caps mad.CapabilityMask
	}{
		{mad.NodeTypeCA, "node-1 HCA-1", 0},
		{mad.NodeTypeCA, "node-2 HCA-1", mad.CapabilityMaskIsSM},
		{mad.NodeTypeCA, "Mellanox Technologies Aggregation Node", 0},
		{mad.NodeTypeCA, "rack3/Storage-7", mad.CapabilityMaskIsSM},
		{mad.NodeTypeCA, "MF0;skyway-1:MGA100/GW", 0},
		{mad.NodeTypeRouter, "router", 0},
		{mad.NodeTypeCA, "", 0},
	} {
		h := b.AddNode(fabric.NodeSpec{Name: n.name, Info: mad.NodeInfo{NodeType: n.kind, NumPorts: 1, NodeGUID: mad.GUID(i + 1), PortGUID: mad.GUID(0x100 + i), LocalPortNum: 1, DeviceID: uint16(i)}})
		b.SetPort(h, 1, &mad.PortInfo{CapabilityMask: n.caps})
	}
	f := b.Build()
	for _, x := range []struct {
		name  string
		rules []graph.Rule
		want  string
	}{
		{"default", graph.DefaultRules(), "cn cn+sm an io+sm gateway cn gateway"},
		{"own", []graph.Rule{{Class: graph.ClassIO, Device: 6}, {Class: graph.ClassAN, Name: "N?DE*1"}, {Class: graph.ClassSM, SM: true}}, "an an  sm  io "},
	} {
		var got string
		for i := range f.Ports() {
			if i > 0 {
				got += " "
			}
			got += graph.Classify(x.rules, &f.Ports()[i]).String()
		}
		if got != x.want {
			t.Errorf("%s:\n got %s\nwant %s", x.name, got, x.want)
		}
	}
	for _, x := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"a*b*c", "aXbXbXc", true}, {"a*b*c", "aXbXbX", false}, {"*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
		{"MF0;*/U?", "mf0;sw-1:MQM8700/u1", true}, {"?", "", false}, {"a?", "ab", true}, {"**", "x", true},
	} {
		if got := graph.Glob(x.pattern, x.s); got != x.want {
			t.Errorf("glob(%q, %q) = %v", x.pattern, x.s, got)
		}
	}
	if c, err := graph.ParseClass("cn+an"); c != graph.ClassCN|graph.ClassAN || err != nil {
		t.Error(c, err)
	}
	if _, err := graph.ParseClass("sharp"); err == nil || err.Error() != `unknown class "sharp"; supported: cn, io, an, gateway, sm, switch` {
		t.Error(err)
	}
}
