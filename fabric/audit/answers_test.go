package audit

import (
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
)

// TestWanted: PortCounters is read where nothing else has what it has.
func TestWanted(t *testing.T) {
	for _, test := range []struct {
		name  string
		info  *mad.ClassPortInfo
		lacks uint
		want  uint
	}{
		{"errors of 64 bits", full, 0, 1 << 1},
		{"which it refuses", full, 1 << 1, 1 << 0},
		{"32 bits", old, 0, 1 << 0},
		{"64 bits without errors", &mad.ClassPortInfo{CapabilityMask: uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported)}, 0, 1<<0 | 1<<1},
	} {
		if got := Wanted(test.info, test.lacks); got != test.want {
			t.Errorf("%s: %b, want %b", test.name, got, test.want)
		}
	}
}

// TestAgents: what agents said counts for a day, while the node is what it was.
func TestAgents(t *testing.T) {
	build := func(revision uint32) []*fabric.Port {
		var b fabric.Builder
		sw := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NodeGUID: 7, PortGUID: 7, NumPorts: 2, Revision: revision}})
		ca := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NodeGUID: 8, PortGUID: 9, NumPorts: 1, LocalPortNum: 1, Revision: revision}})
		f := b.Build()
		return []*fabric.Port{f.Nodes()[sw].Port(1), f.Nodes()[sw].Port(2), f.Nodes()[ca].Port(1)}
	}
	ports, other := build(1), build(2)
	info := &mad.ClassPortInfo{CapabilityMask: 0x300, CapabilityMask2: 2}
	dir := t.TempDir()
	st := openState(t, dir)
	st.Agents().Keep([]AgentAnswer{{ports[0], info}, {ports[2], info}}, noon)
	if err := st.Save(); err != nil {
		t.Fatal(err)
	}
	st = openState(t, dir)
	if st.Read(); st.Reset != nil {
		t.Fatal(st.Reset)
	}
	a := st.Agents()
	known := func(p *fabric.Port, after time.Duration) bool {
		got := a.Of(p, noon.Add(after))
		if got != nil && *got != *info {
			t.Errorf("%+v", got)
		}
		return got != nil
	}
	for _, p := range ports { // all ports of a switch have one agent
		if !known(p, 0) || !known(p, 24*time.Hour) || known(p, 25*time.Hour) || known(p, -time.Hour) {
			t.Errorf("port %d of %v: not what was kept", p.Num(), p.Node().GUID())
		}
	}
	for _, p := range other {
		if known(p, 0) {
			t.Errorf("port %d of %v has other firmware, and is not asked", p.Num(), p.Node().GUID())
		}
	}
	a.Forget(ports[1:2])
	if known(ports[0], 0) || !known(ports[2], 0) {
		t.Error("not what was to be forgotten")
	}
	a.Keep([]AgentAnswer{{ports[0], info}}, noon.Add(23*time.Hour))
	if !known(ports[0], 23*time.Hour) || known(ports[0], 25*time.Hour) {
		t.Error("what was asked later does not count as long as the rest")
	}
	a.Keep([]AgentAnswer{{ports[0], info}}, noon.Add(25*time.Hour))
	if !known(ports[0], 25*time.Hour) || known(ports[2], 25*time.Hour) {
		t.Error("after a day not all are asked")
	}
}
