package hosts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
)

// healthNetwork is two leaves below a spine; hosts a and b have a port at each leaf, c one at the
// first, d one at the second.
type healthNetwork struct {
	f     *fabric.Fabric
	nodes map[string]*fabric.Node
}

func newHealthNetwork(names ...string) *healthNetwork {
	b := fabric.NewBuilder()
	guid := mad.GUID(0x10)
	add := func(kind mad.NodeType, ports uint8, name string) int {
		guid++
		return b.AddNode(fabric.NodeSpec{Name: name, Info: mad.NodeInfo{NodeType: kind, NumPorts: ports, NodeGUID: guid, SystemImageGUID: guid}})
	}
	spine, one, two := add(mad.NodeTypeSwitch, 8, "spine"), add(mad.NodeTypeSwitch, 8, "leaf-1"), add(mad.NodeTypeSwitch, 8, "leaf-2")
	b.Link(spine, 1, one, 8)
	b.Link(spine, 2, two, 8)
	for i, name := range []string{"a", "b"} {
		n := add(mad.NodeTypeCA, 2, name+" HCA-1")
		b.Link(one, i+1, n, 1)
		b.Link(two, i+1, n, 2)
	}
	b.Link(one, 3, add(mad.NodeTypeCA, 1, "c HCA-1"), 1)
	b.Link(two, 3, add(mad.NodeTypeCA, 1, "d HCA-1"), 1)
	for i, name := range names {
		b.Link(one, i+4, add(mad.NodeTypeCA, 1, name), 1)
	}
	n := &healthNetwork{b.Build(), map[string]*fabric.Node{}}
	for i := range n.f.Nodes() {
		name, _, _ := strings.Cut(n.f.Nodes()[i].Name(), " ")
		n.nodes[name] = &n.f.Nodes()[i]
	}
	return n
}

func (n *healthNetwork) port(node string, num int) *fabric.Port { return n.nodes[node].Port(num) }

// report is a run that judged links.
func (n *healthNetwork) report(found ...audit.Finding) *audit.Report {
	return &audit.Report{Model: n.f, Findings: found, Audits: []string{"links"}, Judged: []string{"link.width"}}
}

func finding(check string, s audit.Subject, severity audit.Severity) audit.Finding {
	return audit.Finding{Check: check, Subject: s, Severity: severity, Message: "m"}
}

// shownHealth is a report in lines: host state: reasons by their check or text.
func shownHealth(r *HealthReport) (lines []string) {
	for _, h := range r.Hosts {
		line := h.Name + " " + h.State.String()
		for _, x := range h.Reasons {
			line += "; " + x.State.String() + " "
			if x.ID == "" {
				line += x.Text
			} else {
				line += x.ID
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// TestJudge: each place of a finding, with each severity that matters, and what was not judged.
func TestJudge(t *testing.T) {
	n := newHealthNetwork()
	node := func(name string) audit.Subject { return audit.OfNode(n.nodes[name]) }
	port := func(name string, num int) audit.Subject { return audit.OfPort(n.port(name, num)) }
	link := func(name string, num int) audit.Subject {
		return audit.OfLink(n.port(name, num), n.port(name, num).Peer())
	}
	gone := audit.OfGUID(0x99, audit.NoPort, "e HCA-1")
	all := func(reason string) []string {
		var lines []string
		for _, name := range []string{"a", "b", "c", "d"} {
			lines = append(lines, name+" unknown; unknown "+reason)
		}
		return lines
	}
	ok := []string{"a ok", "b ok", "c ok", "d ok"}
	but := func(lines ...string) []string {
		list := slices.Clone(ok)
		for _, line := range lines {
			i := slices.IndexFunc(list, func(x string) bool { return x[0] == line[0] })
			if i < 0 {
				list = append(list, line)
			} else {
				list[i] = line
			}
		}
		return list
	}
	missed := func(attribute string, s audit.Subject) *audit.Report {
		r := n.report()
		r.Coverage.Count("links", attribute, s, audit.TimedOut, 1)
		return r
	}
	with := func(change func(r *audit.Report)) *audit.Report {
		r := n.report()
		change(r)
		return r
	}
	for _, test := range []struct {
		name   string
		report *audit.Report
		want   []string
	}{
		{"nothing", n.report(), ok},
		{"adapter", n.report(finding("x.y", node("c"), audit.Warning)), but("c degraded; degraded x.y:" + node("c").Key())},
		{"port", n.report(finding("x.y", port("a", 2), audit.Error)), but("a unhealthy; unhealthy x.y:" + port("a", 2).Key())},
		{"port, info", n.report(finding("x.y", port("a", 2), audit.Info)), ok},
		{"link", n.report(finding("link.width", link("d", 1), audit.Error)), but("d unhealthy; unhealthy link.width:" + link("d", 1).Key())},
		{"link of one of two", n.report(finding("link.width", link("a", 1), audit.Critical)), but("a unhealthy; unhealthy link.width:" + link("a", 1).Key())},
		{"inventory", n.report(finding("fw.outlier", node("c"), audit.Warning), finding("lid.moved", port("d", 1), audit.Warning), finding("mkey.violated", port("c", 1), audit.Critical)), ok},
		{"far port of one of two", n.report(finding("x.y", port("leaf-1", 1), audit.Error)), but("a degraded; degraded x.y:" + port("leaf-1", 1).Key())},
		{"far port of the only one", n.report(finding("x.y", port("leaf-1", 3), audit.Error)), but("c unhealthy; unhealthy x.y:" + port("leaf-1", 3).Key())},
		{"far port, warning", n.report(finding("x.y", port("leaf-1", 3), audit.Warning)), ok},
		{"leaf", n.report(finding("x.y", node("leaf-1"), audit.Critical)), but("a degraded; degraded x.y:"+node("leaf-1").Key(), "b degraded; degraded x.y:"+node("leaf-1").Key(), "c unhealthy; unhealthy x.y:"+node("leaf-1").Key())},
		{"port 0 of a leaf", n.report(finding("x.y", port("leaf-2", 0), audit.Error)), but("a degraded; degraded x.y:"+port("leaf-2", 0).Key(), "b degraded; degraded x.y:"+port("leaf-2", 0).Key(), "d unhealthy; unhealthy x.y:"+port("leaf-2", 0).Key())},
		{
			"both leaves", n.report(finding("x.y", node("leaf-1"), audit.Error), finding("z", port("leaf-2", 2), audit.Error)),
			but("a degraded; degraded x.y:"+node("leaf-1").Key(), "b unhealthy; unhealthy x.y:"+node("leaf-1").Key()+"; unhealthy z:"+port("leaf-2", 2).Key(), "c unhealthy; unhealthy x.y:"+node("leaf-1").Key()),
		},
		{"spine, its links, the fabric", n.report(finding("x.y", node("spine"), audit.Critical), finding("x.y", link("spine", 1), audit.Critical), finding("rt.loop", audit.OfFabric(), audit.Critical)), ok},
		{"members", n.report(audit.Finding{Check: "x.y", Subject: node("a"), Members: []audit.Subject{node("d")}, Severity: audit.Error}), but("a unhealthy; unhealthy x.y:"+node("a").Key(), "d unhealthy; unhealthy x.y:"+node("a").Key())},
		{"merged", n.report(audit.Finding{Check: "x.y", Subject: node("spine"), Merged: []audit.Finding{finding("z", port("c", 1), audit.Error)}, Severity: audit.Error}), but("c unhealthy; unhealthy x.y:" + node("spine").Key())},
		{"gone", n.report(finding("node.gone", gone, audit.Warning)), but("e down; down node.gone:" + gone.Key())},
		{"silent", n.report(finding("node.silent", gone, audit.Error)), but("e unknown; unknown node.silent:" + gone.Key())},
		{"unresponsive", n.report(finding("port.unresponsive", port("a", 1), audit.Error)), but("a unknown; unknown port.unresponsive:" + port("a", 1).Key())},
		{"wrong and unknown", func() *audit.Report {
			r := missed("PortInfo", port("a", 1))
			r.Findings = []audit.Finding{finding("x.y", node("a"), audit.Warning)}
			return r
		}(), but("a degraded; degraded x.y:" + node("a").Key() + "; unknown PortInfo of links: no answer from a HCA-1/1")},
		{"no answer of the other end", missed("PortCounters", port("leaf-2", 3)), but("d unknown; unknown PortCounters of links: no answer from leaf-2/3")},
		{"no answer of a leaf", missed("SwitchInfo", node("leaf-1")), but("a unknown; unknown SwitchInfo of links: no answer from leaf-1", "b unknown; unknown SwitchInfo of links: no answer from leaf-1", "c unknown; unknown SwitchInfo of links: no answer from leaf-1")},
		{"no answer of the spine", missed("SwitchInfo", node("spine")), ok},
		{"no answer of something", missed("NodeRecord", audit.OfFabric()), all("NodeRecord of links: no answer")},
		{"an audit that fails", with(func(r *audit.Report) { r.Fail("links", errors.New("why\nmore")) }), all("audit links did not run: why")},
		{"an audit that is skipped", with(func(r *audit.Report) {
			r.Failures = []audit.Failure{{Audit: "sm", Skipped: true, Err: errors.New("x")}}
		}), all("audit sm did not run: it needs a live fabric; this is a file")},
		{"a sweep that is cut", with(func(r *audit.Report) { r.Fail("links", audit.ErrCut) }), all("audit links did not run: " + audit.ErrCut.Error())},
		{"a check that is not done", with(func(r *audit.Report) {
			r.Unjudged = []audit.Unjudged{{Audit: "links", Check: "link.speed", Lacked: "no speeds"}, {Audit: "x", Check: "ar.mixed", Lacked: "z"}, {Audit: "x", Check: "pkey.full", Lacked: "z", Answers: true}}
		}), all("link.speed not judged: no speeds")},
		{"an audit of registers that no device has", with(func(r *audit.Report) {
			r.Unjudged = []audit.Unjudged{{Audit: "health", Check: "cable.eeprom", Lacked: "no registers"}}
			r.Idle = []audit.Idle{{Audit: "health", Lacked: "no registers"}}
		}), ok},
		{"such an audit that was named", with(func(r *audit.Report) {
			r.Unjudged = []audit.Unjudged{{Audit: "health", Check: "cable.eeprom", Lacked: "no registers"}}
			r.Idle = []audit.Idle{{Audit: "health", Lacked: "no registers", Named: true}}
		}), all("cable.eeprom not judged: no registers")},
		{"no check of hosts", with(func(r *audit.Report) { r.Judged = []string{"sm.none", "audit.load"} }), all("no audit of the run judges hosts")},
		{"acknowledged silence", with(func(r *audit.Report) { r.Silent = []audit.Subject{port("leaf-1", 3)} }), but("c unknown; unknown leaf-1/3: acknowledged as not answering")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, shownHealth(Judge([]*audit.Report{test.report}, JudgeOptions{}))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestJudgePartial: a node that is missing after an incomplete sweep is unknown.
func TestJudgePartial(t *testing.T) {
	b := fabric.NewBuilder()
	b.AddNode(fabric.NodeSpec{Name: "a", Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: 1}})
	b.AddProblem(fabric.Problem{Kind: fabric.ProblemTimedOut, Text: "x"})
	r := &audit.Report{Model: b.Build(), Judged: []string{"link.width"}, Findings: []audit.Finding{finding("node.gone", audit.OfGUID(0x99, audit.NoPort, "e HCA-1"), audit.Error)}}
	if diff := cmp.Diff([]string{"a ok", "e unknown; unknown node.gone:0x0000000000000099"}, shownHealth(Judge([]*audit.Report{r}, JudgeOptions{}))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestJudgeHosts: names, a baseline, and several reports.
func TestJudgeHosts(t *testing.T) {
	n := newHealthNetwork("e HCA-1", "a b c", "", "x;y", "Mellanox Technologies Aggregation Node")
	same := newHealthNetwork("c HCA-1")
	broken := finding("x.y", audit.OfNode(n.nodes["c"]), audit.Error)
	run := func(o JudgeOptions, list ...*audit.Report) *HealthReport { return Judge(list, o) }
	for _, test := range []struct {
		name string
		got  *HealthReport
		want string
	}{
		{"unnamed", run(JudgeOptions{}, n.report()), "a ok|b ok|c ok|d ok|e ok|! \"\" (0x000000000000001a at \"leaf-1/6\") it is empty; \"a b c\" (0x0000000000000019 at \"leaf-1/5\") it is not that of a host and its adapter; \"x;y\" (0x000000000000001b at \"leaf-1/7\") it is not that of a host and its adapter;"},
		{"some", run(JudgeOptions{Names: []string{"c", "z", "-rf"}}, n.report(broken)), "-rf unknown; unknown not in the fabric|c unhealthy; unhealthy x.y:" + broken.Subject.Key() + "|z unknown; unknown not in the fabric|! \"\" (0x000000000000001a at \"leaf-1/6\") it is empty; \"a b c\" (0x0000000000000019 at \"leaf-1/5\") it is not that of a host and its adapter; \"x;y\" (0x000000000000001b at \"leaf-1/7\") it is not that of a host and its adapter;"},
		{"baseline", run(JudgeOptions{Baseline: n.f}, newHealthNetwork().report()), "a ok|b ok|c ok|d ok|e unknown; unknown not in the fabric, but in the baseline"},
		{"one name of two systems", run(JudgeOptions{}, same.report(finding("x.y", audit.OfNode(same.nodes["c"]), audit.Error))), "a ok|b ok|c unknown; unknown 0x0000000000000016 at \"leaf-1/3\" and 0x0000000000000018 at \"leaf-1/4\" have the same name: c HCA-1|d ok"},
		{"rails", run(JudgeOptions{}, newHealthNetwork().report(), n.report(broken)), "a ok|b ok|c unhealthy; unhealthy x.y:" + broken.Subject.Key() + "|d ok|e ok|! \"\" (0x000000000000001a at \"leaf-1/6\") it is empty; \"a b c\" (0x0000000000000019 at \"leaf-1/5\") it is not that of a host and its adapter; \"x;y\" (0x000000000000001b at \"leaf-1/7\") it is not that of a host and its adapter;"},
		{"a rail that is missing", run(JudgeOptions{Missing: []string{"port mlx5_1/1: not audited"}, Names: []string{"d"}}, newHealthNetwork().report()), "d unknown; unknown port mlx5_1/1: not audited"},
	} {
		got := strings.Join(shownHealth(test.got), "|")
		if test.got.Unnamed != nil {
			got += "|!"
			for _, u := range test.got.Unnamed {
				got += " " + u.String() + " " + u.Why + ";"
			}
		}
		if got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestJudgeDown: a host of the baseline that is not in the fabric is down if the ports that it was
// linked to have no link, and unknown if another host is there.
func TestJudgeDown(t *testing.T) {
	whole := func(state mad.PortPhysicalState, hosts ...string) *fabric.Fabric {
		b := fabric.NewBuilder()
		leaf := b.AddNode(fabric.NodeSpec{Name: "leaf-1", Info: mad.NodeInfo{NodeType: mad.NodeTypeSwitch, NumPorts: 4, NodeGUID: 1}})
		for i := range 4 {
			b.SetPort(leaf, i+1, &mad.PortInfo{PortPhysicalState: state})
		}
		for i, name := range hosts {
			if name == "" {
				continue
			}
			n := b.AddNode(fabric.NodeSpec{Name: name + " HCA-1", Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(name[0])}})
			if err := b.Link(n, 1, leaf, i+1); err != nil {
				t.Fatal(err)
			}
		}
		return b.Build()
	}
	before := whole(mad.PortPhysicalStateLinkUp, "a", "b")
	for _, test := range []struct {
		now  *fabric.Fabric
		want string
	}{
		{whole(mad.PortPhysicalStatePolling, "a"), "a ok|b down; down not in the fabric; no link at leaf-1/2"},
		{whole(mad.PortPhysicalStateLinkUp, "a"), "a ok|b unknown; unknown not in the fabric, but in the baseline"},
		{whole(mad.PortPhysicalStatePolling, "a", "c"), "a ok|b unknown; unknown not in the fabric, but in the baseline|c ok"},
	} {
		r := Judge([]*audit.Report{{Model: test.now, Judged: []string{"link.width"}}}, JudgeOptions{Baseline: before})
		if got := strings.Join(shownHealth(r), "|"); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// TestJudgeSystems: two adapters of one name are of one host only if both have its system GUID.
func TestJudgeSystems(t *testing.T) {
	for _, test := range []struct {
		systems [2]mad.GUID
		want    Health
	}{{[2]mad.GUID{7, 7}, OK}, {[2]mad.GUID{7, 8}, Unknown}, {[2]mad.GUID{7, 0}, Unknown}, {[2]mad.GUID{0, 0}, Unknown}} {
		b := fabric.NewBuilder()
		for i, system := range test.systems {
			b.AddNode(fabric.NodeSpec{Name: "a", Info: mad.NodeInfo{NodeType: mad.NodeTypeCA, NumPorts: 1, NodeGUID: mad.GUID(i + 1), SystemImageGUID: system}})
		}
		r := Judge([]*audit.Report{{Model: b.Build(), Judged: []string{"link.width"}}}, JudgeOptions{})
		if len(r.Hosts) != 1 || r.Hosts[0].State != test.want {
			t.Errorf("%v: %v, want %v", test.systems, shownHealth(r), test.want)
		}
	}
}

// TestJudgeRails: a leaf is at fault for a host only if its ports in all rails are behind such.
func TestJudgeRails(t *testing.T) {
	one, two := newHealthNetwork(), newHealthNetwork()
	bad := finding("x.y", audit.OfNode(one.nodes["leaf-1"]), audit.Error)
	got := shownHealth(Judge([]*audit.Report{one.report(bad), two.report()}, JudgeOptions{}))
	if want := "c degraded; degraded x.y:" + bad.Subject.Key(); got[2] != want {
		t.Errorf("got %s, want %s", got[2], want)
	}
}

// TestRules: the last rule is for all findings, states follow severities, and the documentation has
// each rule.
func TestRules(t *testing.T) {
	for _, at := range []location{own, link, allFar, someFar, away} {
		for i := range healthRules {
			for _, check := range append(strings.Fields(healthRules[i].Checks), "no.such") {
				if !slices.IsSorted(ruleFor(strings.TrimSuffix(check, "*"), at).states[:]) {
					t.Errorf("%s at %d: a worse finding makes a host better", check, at)
				}
			}
		}
	}
	doc := strings.Join(strings.Fields(HealthDoc()), " ")
	for _, r := range healthRules {
		if words := strings.Fields(r.Doc); !strings.Contains(doc, words[0]) {
			t.Errorf("%q is not in the documentation:\n%s", r.Doc, HealthDoc())
		}
	}
	if want := "at one of its adapters or their ports unhealthy: error, critical; degraded: warning"; !strings.Contains(doc, want) {
		t.Errorf("want %q in\n%s", want, HealthDoc())
	}
	if fmt.Sprint(HealthNames()) != "[down unhealthy degraded unknown ok]" {
		t.Error(HealthNames())
	}
}
