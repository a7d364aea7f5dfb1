package builtins

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// audited runs audits on the fixture's fabric; "--deep" among the words is the
// command's.
func audited(t *testing.T, f *fixture, o audits.RunOptions, words ...string) *audit.Report {
	t.Helper()
	deep := slices.Contains(words, "--deep")
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--deep" })
	set, err := audits.LoadAudits(context.Background(), f.Interpreter, words, nil, deep)
	if err != nil {
		t.Fatal(err)
	}
	r, err := set.Run(context.Background(), f.Interpreter, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range r.Failures {
		t.Errorf("audit %s: %s", x.Audit, f.Explain(x.Err))
	}
	return r
}

// idsOf are the IDs of findings, sorted.
func idsOf(list []audit.Finding) []string {
	var ids []string
	for i := range list {
		ids = append(ids, list[i].ID())
	}
	slices.Sort(ids)
	return ids
}

// healthy are fabrics of every generator.
var healthy = []string{
	"fattree", "fattree:k=8,levels=3", "pgft:m=4/4,w=1/2,p=1/2", "ring:n=2", "ring:n=7", "mesh", "torus", "hyperx", "dragonfly", "dragonfly+", "slimfly", "random",
}

// healthyLarge are healthy fabrics of 1,000 nodes and more.
var healthyLarge = []string{
	"fattree:k=16,levels=3", "pgft:m=18/18/4,w=1/6/6,p=1/1/1", "ring:n=101,hosts=9", "mesh:dims=8/6/6", "torus:dims=6/6/6", "hyperx:dims=6/6/6", "dragonfly:a=8,p=4,h=4", "random:n=260,hosts=4",
}

// smKey is the SM_Key of the simulated subnet administrator, which reports the members of groups
// only to clients that have it.
var smKey = &engine.Keys{SA: 1}

// TestHealthyFabrics: no finding, and all that is asked is answered; with whole
// tables, and with multicast groups that all hosts are in, too. With FABSH_SOAK there
// are large ones.
func TestHealthyFabrics(t *testing.T) {
	specs := healthy
	if testing.Short() {
		specs = healthy[:1]
	} else if os.Getenv("FABSH_SOAK") != "" {
		specs = append(slices.Clone(healthy), healthyLarge...)
	}
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			onSimWith(t, spec, smKey, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
				well := func(words ...string) {
					t.Helper()
					r := audited(t, f, audits.RunOptions{Job: "x"}, words...)
					begun := slices.Equal(idsOf(r.Findings), []string{"audit.window:fabric"}) && slices.Contains(words, "last")
					complete := r.Complete() || slices.Contains(words, "--deep") && !slices.ContainsFunc(r.Unjudged, func(u audit.Unjudged) bool { return u.Audit != "health" }) // no device has registers
					if len(r.Findings) > 0 && !begun || !r.Answered() || !begun && !complete || len(r.Notes) > 0 {
						t.Errorf("%q: %s\nmissing %v, notes %q", words, told(r), r.Coverage.Missing(), r.Notes)
					}
					time.Sleep(betweenRuns)
				}
				well()
				well("--over", "last")
				well("--over", "last")
				f.run(fmt.Sprintf(writeRoutes, "updn")) // the simulator's subnet manager makes credit loops, but on trees
				well("--deep")
				swept, err := topology.SweepQuietly(context.Background(), f.Runtime)
				if err != nil {
					t.Fatal(err)
				}
				b := &bench{t: t, subnet: f.Env.Sim, fabric: swept}
				b.group(mad.MCMemberRecord{MGID: allHosts}, mad.JoinStateFullMember, b.hosts()...)
				b.group(mad.MCMemberRecord{MGID: otherGroup(1)}, mad.JoinStateFullMember, b.hosts()[:2]...)
				b.group(mad.MCMemberRecord{MGID: broadcast}, mad.JoinStateFullMember, b.hosts()...)
				well("--deep")
			})
		})
	}
}

// healthySpec is a random fabric of 13 kinds without a fault; some have the tables of OpenSM.
func healthySpec(r *rand.Rand) string {
	two := func() int { return 2 + r.IntN(3) }
	specs := []string{
		fmt.Sprintf("fattree:k=%d,levels=2", 4+2*r.IntN(4)),
		"fattree:k=4,levels=3",
		fmt.Sprintf("fattree:k=8,levels=2,rails=%d", 2+2*r.IntN(2)),
		fmt.Sprintf("fattree:k=4,levels=%d,planes=%d,generation=xdr", 2+r.IntN(2), 2+2*r.IntN(2)),
		fmt.Sprintf("pgft:m=%d/%d,w=1/%d,p=1/%d", two(), 2*two(), two(), 1+r.IntN(2)),
		fmt.Sprintf("dragonfly:a=%d,p=%d,h=1", two(), two()),
		fmt.Sprintf("dragonfly+:leaves=%d,spines=%d,p=%d", two(), two(), two()),
		fmt.Sprintf("torus:dims=%d/%d,hosts=%d", 1+two(), 1+two(), two()),
		fmt.Sprintf("hyperx:dims=%d/%d,hosts=%d", two(), two(), two()),
		fmt.Sprintf("mesh:dims=%d/%d,hosts=%d", two(), two(), two()),
		fmt.Sprintf("ring:n=%d,hosts=%d", 3+r.IntN(6), two()),
		fmt.Sprintf("random:n=%d,degree=3,hosts=%d", 6+2*r.IntN(6), two()),
		fmt.Sprintf("fattree:k=8,split=yes,generation=%s", []string{"hdr", "ndr"}[r.IntN(2)]),
	}
	spec := fmt.Sprintf("%s,seed=%d", specs[r.IntN(len(specs))], 1+r.IntN(1000))
	if r.IntN(2) == 0 && strings.HasPrefix(spec, "fattree") && !strings.Contains(spec, "planes") {
		spec += ",sm=opensm/updn" // on others its tables have credit loops
	}
	return spec
}

// director makes one chassis of the fabric: nodes with its name, and its SystemImageGUID.
func (b *bench) director() {
	switches := b.fabric.OfType(mad.NodeTypeSwitch)
	for i := range switches {
		b.node(&switches[i], func(name *string, info *mad.NodeInfo) {
			*name, info.SystemImageGUID = fmt.Sprintf("MF0;director:CS8500/L%02d/U1", i+1), switches[0].GUID()
		})
	}
}

// older makes a part of the hosts, with all their adapters, or of the leaves with their hosts,
// an older generation.
func (b *bench) older() {
	of := map[mad.GUID]bool{}
	host := map[mad.GUID]bool{} // by SystemImageGUID
	for _, p := range b.hosts() {
		system := p.Node().Info().SystemImageGUID
		if _, ok := host[system]; !ok {
			host[system] = b.rand.IntN(2) == 0
		}
		if leaf := p.Peer().Node(); host[system] {
			of[p.Node().GUID()] = true
		} else if b.rand.IntN(4) == 0 {
			of[leaf.GUID()] = true
		}
	}
	old := func(p *fabric.Port) bool { return of[p.Node().GUID()] }
	nodes := b.fabric.Nodes()
	for i := range nodes {
		for p := range nodes[i].Ports() {
			if p.Peer() == nil || !old(p) && !old(p.Peer()) {
				continue
			}
			b.port(p, func(i *mad.PortInfo) {
				i.LinkSpeedExtActive = mad.LinkSpeedExtEDR
				if old(p) {
					i.LinkSpeedExtSupported &^= mad.LinkSpeedExtHDR
					i.LinkSpeedExtEnabled &^= mad.LinkSpeedExtHDR
				}
			})
		}
		if of[nodes[i].GUID()] {
			b.node(&nodes[i], func(_ *string, info *mad.NodeInfo) {
				info.DeviceID = map[bool]uint16{true: 0xcf08, false: 0x1017}[nodes[i].IsSwitch()] // Switch-IB 2, ConnectX-5
			})
		}
	}
}

// TestRandomHealthy: no finding of warning or above on random healthy fabrics, 200 with FABSH_SOAK,
// before and after a subnet manager has brought them up; some are a director, or of two generations.
func TestRandomHealthy(t *testing.T) {
	n := 12
	if testing.Short() {
		n = 2
	} else if os.Getenv("FABSH_SOAK") != "" {
		n = 200
	}
	for i := range n {
		r := rand.New(rand.NewPCG(8, uint64(i)))
		spec := healthySpec(r)
		kind := ""
		if plain := !strings.Contains(spec, "planes") && !strings.Contains(spec, "generation"); plain && strings.Contains(spec, "opensm") {
			kind = []string{"", "older"}[r.IntN(2)]
		} else if plain {
			kind = []string{"", "older", "director", "director older"}[r.IntN(4)]
		}
		shape := func(t *testing.T, f *fixture) {
			swept, err := topology.SweepQuietly(context.Background(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(9, uint64(i)))}
			if strings.Contains(kind, "director") {
				b.director()
			}
			if strings.Contains(kind, "older") {
				b.older()
			}
		}
		judge := func(t *testing.T, r *audit.Report, words ...string) {
			for _, x := range r.Findings {
				if unmanaged := len(r.Failures) > 0 && x.Check == "sm.none"; x.Severity >= audit.Warning && !unmanaged {
					t.Errorf("%q: %s %s: %s", words, x.Severity, x.ID(), x.Message)
				}
			}
		}
		t.Run(fmt.Sprint(i, " ", spec, " ", kind), func(t *testing.T) {
			onSimWith(t, "bare "+spec, smKey, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
				shape(t, f)
				set, err := audits.LoadAudits(context.Background(), f.Interpreter, nil, nil, false)
				if err != nil {
					t.Fatal(err)
				}
				r, err := set.Run(context.Background(), f.Interpreter, audits.RunOptions{})
				if err != nil || len(r.Failures) == 0 {
					t.Fatal(err, r.Failures) // of those that need a subnet manager
				}
				judge(t, r, "bare")
			})
			onSimWith(t, spec, smKey, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
				shape(t, f)
				for _, words := range [][]string{nil, {"--deep"}} {
					if words != nil && !strings.Contains(spec, "opensm") && !strings.Contains(spec, "planes") {
						f.run(fmt.Sprintf(writeRoutes, "updn"))
					}
					judge(t, audited(t, f, audits.RunOptions{Job: "x"}, words...), words...)
				}
			})
		})
	}
}

// bench is a fabric that faults are put into.
type bench struct {
	t      *testing.T
	subnet *sim.Subnet
	fabric *fabric.Fabric
	rand   *rand.Rand
	used   map[mad.GUID]bool // nodes that have a fault already, or are the tester's own
	f      *fixture
	run    audits.RunOptions // what the fault needs besides
	words  []string          // which audits run, and their options; none: the standard set
}

// host is a CA without a fault, on a leaf that has none; its port and the leaf's.
func (b *bench) host() (ca, leaf *fabric.Port) {
	cas := b.fabric.OfType(mad.NodeTypeCA)
	for _, i := range b.rand.Perm(len(cas)) {
		p := cas[i].Port(1)
		if q := p.Peer(); q != nil && !b.used[cas[i].GUID()] && !b.used[q.Node().GUID()] {
			b.used[cas[i].GUID()], b.used[q.Node().GUID()] = true, true
			return p, q
		}
	}
	return nil, nil
}

func (b *bench) port(p *fabric.Port, change func(*mad.PortInfo)) {
	if err := b.subnet.Edit.Port(p.Node().GUID(), p.Num(), change); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) node(n *fabric.Node, change func(name *string, info *mad.NodeInfo)) {
	if err := b.subnet.Edit.Node(n.GUID(), func(name *string, info *mad.NodeInfo, _ *mad.SwitchInfo) { change(name, info) }); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) must(err error) {
	if err != nil {
		b.t.Fatal(err)
	}
}

func id(check string, s audit.Subject) string {
	return (&audit.Finding{Check: check, Subject: s}).ID()
}

// fault is a way to break a fabric, and what must be found then.
type fault struct {
	name string
	once bool // a fabric can have it once
	// alone: it needs options, a plan or tables of its own.
	alone bool
	// on is the only fabric that it can be put in; "": any.
	on string
	// untold: without the SM_Key.
	untold bool
	// sweeps: the subnet manager notices, and drops what was silent before.
	sweeps bool
	do     func(b *bench, ca, leaf *fabric.Port) (ids []string)
	// counts: it is one of counters, seen between two runs; before is what was so
	// at the first, nil: nothing.
	counts bool
	before func(b *bench, ca, leaf *fabric.Port)
}

// both changes both ends of a link.
func both(check string, change func(*mad.PortInfo)) fault {
	return fault{name: check, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.port(ca, change)
		b.port(leaf, change)
		return []string{id(check, audit.OfLink(ca, leaf))}
	}}
}

// atCA changes the CA's end; the finding is about the link, or the port.
func atCA(name, check string, ofLink bool, change func(*mad.PortInfo)) fault {
	return fault{name: name, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.port(ca, change)
		if ofLink {
			return []string{id(check, audit.OfLink(ca, leaf))}
		}
		return []string{id(check, audit.OfPort(ca))}
	}}
}

// astray changes the CA's LID, so that nobody reaches its agents by it.
func astray(check string, change func(*mad.PortInfo)) fault {
	return fault{name: check, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.port(ca, change)
		return []string{id(check, audit.OfPort(ca)), id("ctr.absent", audit.OfPort(ca))}
	}}
}

func named(check, name string) fault {
	return fault{name: check, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.node(ca.Node(), func(n *string, _ *mad.NodeInfo) { *n = name })
		return []string{id(check, audit.OfNode(ca.Node()))}
	}}
}

// allFaults are the faults that the shipped audits claim to find.
func allFaults() []fault {
	return slices.Concat(standardFaults, settingFaults, partitionFaults, groupFaults, planFaults, tableFaults, registerFaults, adaptiveFaults, adaptiveCases, keyFaults, confFaults)
}

// standardFaults are faults in the data that a sweep reads, and of subnet managers.
var standardFaults = []fault{
	{name: "port.unresponsive", do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Cables.Silence(ca.Node().GUID(), 1, true))
		return []string{id("node.silent", audit.OfNode(ca.Node()))} // which absorbs the finding of leaf
	}},
	{name: "port.unresponsive, no PortInfo", do: func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.Faults.LosePackets(sim.End{Node: ca.Node().ID(), Num: 1}, 100, mad.AttrPortInfo.ID))
		return []string{id("port.unresponsive", audit.OfPort(ca))}
	}},
	{name: "port.disabled", sweeps: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.must(b.subnet.Cables.Unlink(leaf.Node().GUID(), leaf.Num()))
		b.port(leaf, func(i *mad.PortInfo) { i.PortPhysicalState = mad.PortPhysicalStateDisabled })
		return []string{id("port.disabled", audit.OfPort(leaf))}
	}},
	both("link.init", func(i *mad.PortInfo) { i.PortState = mad.PortStateInitialize }),
	both("link.width", func(i *mad.PortInfo) { i.LinkWidthActive = mad.LinkWidth1x }),
	both("link.speed", func(i *mad.PortInfo) { i.LinkSpeedExtActive = mad.LinkSpeedExtFDR }),
	atCA("link.enabled width", "link.enabled", false, func(i *mad.PortInfo) { i.LinkWidthEnabled = mad.LinkWidth1x }),
	atCA("link.enabled speed", "link.enabled", false, func(i *mad.PortInfo) { i.LinkSpeedExtEnabled = mad.LinkSpeedExtFDR }),
	atCA("link.potential", "link.potential", true, func(i *mad.PortInfo) {
		i.LinkWidthSupported |= mad.LinkWidth12x
		i.LinkWidthEnabled |= mad.LinkWidth12x
	}),
	atCA("link.asymmetric", "link.asymmetric", true, func(i *mad.PortInfo) { i.LinkWidthActive = mad.LinkWidth1x }),
	{name: "link.siblings", once: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		if len(b.fabric.OfType(mad.NodeTypeCA)) < 11 {
			return nil
		}
		for _, p := range []*fabric.Port{ca, leaf} {
			b.port(p, func(i *mad.PortInfo) {
				i.LinkSpeedExtActive = mad.LinkSpeedExtEDR
				i.LinkSpeedExtSupported &^= mad.LinkSpeedExtHDR
				i.LinkSpeedExtEnabled &^= mad.LinkSpeedExtHDR
			})
		}
		return []string{id("link.siblings", audit.OfLink(ca, leaf))}
	}},
	{name: "link.uplinks", once: true, sweeps: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		for p := range leaf.Node().Ports() {
			q := p.Peer()
			if q == nil || !q.Node().IsSwitch() {
				continue
			}
			for r := range q.Node().Ports() {
				if r.Peer() != nil && !r.Peer().Node().IsSwitch() {
					return nil // no tree: every switch has hosts
				}
			}
			b.must(b.subnet.Cables.Unlink(leaf.Node().GUID(), p.Num()))
			if b.run.Job != "" { // the previous run has read the link as up, so that it is one fault
				return []string{id("link.down", audit.OfLink(p, q))}
			}
			return []string{id("link.uplinks", audit.OfNode(leaf.Node()))}
		}
		return nil
	}},
	{name: "guid.dup", do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.NodeGUID = other.Node().GUID() })
		return []string{id("guid.dup", audit.OfNode(other.Node()))}
	}},
	{name: "guid.zero", once: true, do: func(b *bench, ca, leaf *fabric.Port) []string {
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.NodeGUID = 0 })
		return []string{id("guid.zero", audit.OfPort(leaf))}
	}},
	{name: "lid.dup", do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.port(ca, func(i *mad.PortInfo) { i.LID = other.LID() })
		second := ca
		if other.ID() > ca.ID() {
			second = other
		}
		return []string{id("lid.dup", audit.OfPort(second))}
	}},
	astray("lid.zero", func(i *mad.PortInfo) { i.LID = 0 }),
	astray("lid.range", func(i *mad.PortInfo) { i.LID = 0xc123 }),
	{name: "lmc.uniform", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if len(b.fabric.OfType(mad.NodeTypeCA)) < 11 {
			return nil
		}
		b.port(ca, func(i *mad.PortInfo) { i.LID, i.LMC = 0x8000, 2 })
		return []string{id("lmc.uniform", audit.OfPort(ca)), id("ctr.absent", audit.OfPort(ca))}
	}},
	{name: "name.dup", do: func(b *bench, ca, _ *fabric.Port) []string {
		other, _ := b.host()
		if other == nil {
			return nil
		}
		b.node(ca.Node(), func(n *string, _ *mad.NodeInfo) { *n = other.Node().Name() })
		first := ca.Node()
		if other.ID() < ca.ID() {
			first = other.Node()
		}
		return []string{id("name.dup", audit.OfNode(first))}
	}},
	named("name.default", "MT4129 ConnectX7   Mellanox Technologies"),
	named("name.empty", ""),
	named("name.blank", "trailing, \"quoted\"\n\x1b[2J "),
	{name: "fw.outlier", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if len(b.fabric.OfType(mad.NodeTypeCA)) < 11 {
			return nil
		}
		b.node(ca.Node(), func(_ *string, i *mad.NodeInfo) { i.Revision = 7 })
		return []string{id("fw.outlier", audit.OfNode(ca.Node()))}
	}},
	atCA("mtu.neighbor critical", "mtu.neighbor", true, func(i *mad.PortInfo) { i.MTUCap, i.NeighborMTU = mad.MTU2048, mad.MTU2048 }),
	both("mtu.neighbor", func(i *mad.PortInfo) { i.NeighborMTU = mad.MTU1024 }),
	atCA("vl.oper", "vl.oper", true, func(i *mad.PortInfo) { i.OperationalVLs = mad.OperationalVLs0To3 }),
	{name: "hoq.infinite", do: func(b *bench, _, leaf *fabric.Port) []string {
		b.port(leaf, func(i *mad.PortInfo) { i.HOQLife = 20 })
		return []string{id("hoq.infinite", audit.OfPort(leaf))}
	}},
	{name: "hoq.uniform", once: true, do: func(b *bench, _, leaf *fabric.Port) []string {
		if len(b.fabric.OfType(mad.NodeTypeCA)) < 20 {
			return nil
		}
		b.port(leaf, func(i *mad.PortInfo) { i.HOQLife = 10 })
		return []string{id("hoq.uniform", audit.OfPort(leaf))}
	}},
	{name: "timers", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		if len(b.fabric.Nodes()) < 11 {
			return nil
		}
		b.port(ca, func(i *mad.PortInfo) { i.SubnetTimeOut = 10 })
		return []string{id("timers", audit.OfPort(ca))}
	}},
	{name: "sm.none", once: true, do: func(b *bench, _, _ *fabric.Port) []string {
		sm := b.fabric.OfType(mad.NodeTypeCA)[0].Port(1)
		b.must(b.subnet.SM.Add(sm.Node().GUID(), 1, mad.SMInfo{GUID: sm.GUID(), SMState: mad.SMStateStandby}))
		return []string{id("sm.none", audit.OfFabric())}
	}},
	{name: "sm.none, without IsSM", once: true, do: func(b *bench, _, _ *fabric.Port) []string {
		sm := b.fabric.OfType(mad.NodeTypeCA)[0].Port(1)
		b.must(b.subnet.SM.Add(sm.Node().GUID(), 1, mad.SMInfo{GUID: sm.GUID(), SMState: mad.SMStateStandby}))
		b.port(sm, func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsSM })
		return []string{id("sm.none", audit.OfFabric())}
	}},
	// OpenSM sets IsSM with the device that it holds open. Where it may not, there is a subnet manager nevertheless.
	{name: "a master without IsSM", do: func(b *bench, _, _ *fabric.Port) []string {
		b.port(b.fabric.OfType(mad.NodeTypeCA)[0].Port(1), func(i *mad.PortInfo) { i.CapabilityMask &^= mad.CapabilityMaskIsSM })
		return []string{}
	}},
	{name: "sm.many", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.SM.Add(ca.Node().GUID(), 1, mad.SMInfo{GUID: ca.GUID(), SMState: mad.SMStateMaster}))
		return []string{id("sm.many", audit.OfFabric())}
	}},
	{name: "sm.priority", once: true, do: func(b *bench, ca, _ *fabric.Port) []string {
		b.must(b.subnet.SM.Add(ca.Node().GUID(), 1, mad.SMInfo{GUID: ca.GUID(), SMState: mad.SMStateStandby, Priority: 15}))
		return []string{id("sm.priority", audit.OfPort(ca))}
	}},
	atCA("sm.lid", "sm.lid", false, func(i *mad.PortInfo) { i.MasterSMLID = 0x7777 }),
	{name: "sa.answers", once: true, do: func(b *bench, _, _ *fabric.Port) []string {
		b.subnet.SA.Mute(true)
		return []string{id("sa.answers", audit.OfFabric())}
	}},
}

// exclusive are faults of which a fabric can have one: they hide others, or the
// finding is about the whole fabric.
var exclusive = []string{"sm.none", "sm.none, without IsSM", "sm.many", "sm.priority", "sa.answers", "port.unresponsive", "port.unresponsive, no PortInfo", "guid.dup", "guid.zero", "sm.lid"}

// elsewhere are checks whose faults other tests put in.
var elsewhere = []string{"ctr.fec.uncorrectable", "ctr.fec.corrected", "audit.state", "audit.window", "audit.load", "audit.changed_during", "sm.standby", "trap.storm", "key.traps", "key.update", "host.adapters", "host.planes", "node.gone", "topo.parts", "topo.conflict", "link.loss", "sa.path", "sa.rate", "sa.mtu", "sa.sl", "sa.lifetime", "sa.reversible", "sa.pkey", "sa.node", "sa.port", "sa.service", "tenant.reach", "tenant.keys", "tenant.default", "tenant.index0", "tenant.enforce", "tenant.missing", "tenant.mkey", "tenant.sm", "tenant.sa", "tenant.gmp", "tenant.traps", "tenant.profile"}

// claimed are the checks that the docstrings of the shipped audits name.
func claimed(t *testing.T) (checks []string) {
	for _, d := range script.Audits.Shipped() {
		if d.Host { // TestHostFaults puts its faults in
			continue
		}
		src, err := script.Audits.Source(d.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-z0-9]+(?:\.[a-z0-9_]+)+|timers|vlarb|sysimage) `).FindAllStringSubmatch(src, -1) {
			checks = append(checks, m[1])
		}
	}
	if len(checks) < 30 {
		t.Errorf("the docstrings of audits name %d checks: %v", len(checks), checks)
	}
	return checks
}

// expand replaces an ID that ends in * by the first of got that it means, and
// sorts.
func expand(want, got []string) []string {
	var out []string
	for _, id := range want {
		if check, ok := strings.CutSuffix(id, "*"); ok {
			if i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, check) }); i >= 0 {
				id = got[i]
			}
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestSeededFaults puts faults into fabrics, one, two and three at a time: each is
// found, at the right place, and nothing else is. It prints precision and
// recall of each check. With FABSH_SOAK there are four times as many, and each
// one at 50 random places.
func TestSeededFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	type score struct{ found, missed, wrong int }
	scores := map[string]*score{}
	of := func(id string) *score {
		check, _, _ := strings.Cut(id, ":")
		if scores[check] == nil {
			scores[check] = new(score)
		}
		return scores[check]
	}
	seeded := 0
	var wrong []string               // outside the bubble, where the first failure would end the test
	only := os.Getenv("FABSH_FAULT") // a part of the name of the faults to put in
	try := func(spec string, seed uint64, chosen []fault) {
		if only != "" && !strings.Contains(chosen[0].name, only) {
			return
		}
		keys := smKey
		if chosen[0].untold {
			keys = nil
		}
		onSimWith(t, spec, keys, nil, func(o *SessionOptions) { o.State = t.TempDir() }, func(t *testing.T, f *fixture) {
			fab, _, err := sim.Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			swept, err := topology.SweepQuietly(context.Background(), f.Runtime)
			if err != nil {
				t.Fatal(err)
			}
			own := fab.OfType(mad.NodeTypeCA)[0].Port(1)
			b := &bench{t: t, f: f, subnet: f.Env.Sim, fabric: swept, rand: rand.New(rand.NewPCG(seed, 1)), used: map[mad.GUID]bool{own.Node().GUID(): true}}
			if len(fab.OfType(mad.NodeTypeSwitch)) > 2 {
				b.used[own.Peer().Node().GUID()] = true
			}
			slices.SortStableFunc(chosen, func(x, y fault) int {
				if x.sweeps == y.sweeps {
					return 0
				} else if x.sweeps {
					return -1
				}
				return 1
			})
			var want []string
			var names []string
			places := make([][2]*fabric.Port, len(chosen))
			options, words := audits.RunOptions{}, []string(nil)
			for i, x := range chosen {
				places[i][0], places[i][1] = b.host()
				if x.before != nil && places[i][0] != nil {
					x.before(b, places[i][0], places[i][1])
				}
				if x.counts {
					words = []string{"--over", "last"}
				}
			}
			if words != nil {
				options.Job = "seeded"
				audited(t, f, options, "counters", "--over", "last")
				b.run.Job = options.Job
				time.Sleep(betweenRuns)
			}
			for i, x := range chosen {
				ca, leaf := places[i][0], places[i][1]
				if ca == nil {
					continue
				}
				ids := x.do(b, ca, leaf)
				if ids != nil {
					seeded++
					names = append(names, x.name)
				}
				want = append(want, ids...)
			}
			if words != nil {
				b.words = words
			}
			r := audited(t, f, b.run, b.words...)
			if asked := len(b.words) == 0 || words != nil; asked && !r.Answered() {
				want = append(want, id("audit.coverage", audit.OfFabric()))
			}
			got := idsOf(r.Findings)
			if strings.Contains(spec, "rails") { // a host that lacks an adapter of a model is another finding, and names a port that is disabled
				lacks := func(id string) bool { return strings.HasPrefix(id, "host.adapters:") }
				if slices.ContainsFunc(got, lacks) && !slices.ContainsFunc(got, func(id string) bool { return strings.HasPrefix(id, "port.disabled:") }) {
					want = slices.DeleteFunc(want, func(id string) bool { return strings.HasPrefix(id, "port.disabled:") })
				}
				got = slices.DeleteFunc(got, lacks)
			}
			want = expand(want, got)
			for _, id := range want {
				if slices.Contains(got, id) {
					of(id).found++
				} else {
					of(id).missed++
				}
			}
			for _, id := range got {
				if !slices.Contains(want, id) {
					of(id).wrong++
				}
			}
			if diff := cmp.Diff(want, got); !slices.Equal(want, got) {
				wrong = append(wrong, fmt.Sprintf("%s, seed %d, %v: -want +got\n%s", spec, seed, names, diff))
			}
		})
	}
	faults := slices.Concat(allFaults(), counterFaults)
	var mixed []fault // those that may be put in together
	for _, x := range faults {
		if !x.alone && x.on == "" && !x.untold {
			mixed = append(mixed, x)
		}
	}
	soak, mixes := os.Getenv("FABSH_SOAK") != "", 12
	if soak {
		mixes = 200
	}
	fabrics := []string{"fattree", "fattree:k=4,levels=3", "torus:dims=3/4,hosts=2", "pgft:m=3/4,w=1/3,p=1/2"}
	for i, x := range faults {
		if x.on != "" {
			try(x.on, uint64(i), []fault{x})
		}
	}
	for s, spec := range fabrics {
		for i, x := range faults {
			if x.on == "" && (s == 0 || !x.alone && (i%2 == s%2 || soak)) { // they take their time
				try(spec, uint64(s*1000+i), []fault{x})
			}
		}
		for i := range mixes {
			r := rand.New(rand.NewPCG(uint64(s), uint64(i)))
			var chosen []fault
			for len(chosen) < 2+i%2 {
				x := mixed[r.IntN(len(mixed))]
				same := func(y fault) bool { return y.name == x.name }
				alone := slices.Contains(exclusive, x.name) && slices.ContainsFunc(chosen, func(y fault) bool { return slices.Contains(exclusive, y.name) })
				if !(slices.ContainsFunc(chosen, same) && x.once) && !alone {
					chosen = append(chosen, x)
				}
			}
			try(spec, uint64(s*1000+500+i), chosen)
		}
	}
	if soak { // 50 random places of each
		for i, x := range mixed {
			for place := range 50 {
				r := rand.New(rand.NewPCG(uint64(i), uint64(place)))
				spec := healthySpec(r)
				for strings.Contains(spec, "planes") || x.name == "link.siblings" && strings.Contains(spec, "split") { // the faults are of adapters with one port of 4 lanes
					spec = healthySpec(r)
				}
				try(spec, uint64(10000+50*i+place), []fault{x})
			}
		}
	}
	var checks []string
	for check := range scores {
		checks = append(checks, check)
	}
	slices.Sort(checks)
	var b strings.Builder
	for _, check := range checks {
		s := scores[check]
		fmt.Fprintf(&b, "%-18s precision %.2f  recall %.2f  (%d)\n", check, float64(s.found)/float64(max(s.found+s.wrong, 1)), float64(s.found)/float64(max(s.found+s.missed, 1)), s.found)
	}
	t.Logf("%d faults seeded\n%s", seeded, b.String())
	for _, check := range claimed(t) {
		if only == "" && scores[check] == nil && !slices.Contains(elsewhere, check) {
			t.Errorf("no fault for %s", check)
		}
	}
	for _, text := range wrong {
		t.Error(text)
	}
	if seeded < 300 && only == "" {
		t.Errorf("%d faults seeded, want at least 300", seeded)
	}
}

// MGIDs of IPoIB in the default partition: the broadcast group, and 224.0.0.5.
var (
	broadcast = mad.MakeGID(0xff12401bffff0000, 0xffffffff)
	allHosts  = mad.MakeGID(0xff12401bffff0000, 5)
)

// otherGroup is an MGID that is not IPoIB's.
func otherGroup(n int) mad.GID { return mad.MakeGID(0xff12a01bfe800000, mad.GUID(n)) }

// group makes a group, by default in the default partition, with a MTU and a rate
// that all ports have, and an MLID by its MGID.
func (b *bench) group(rec mad.MCMemberRecord, state mad.JoinState, members ...*fabric.Port) {
	b.t.Helper()
	if rec.Rate == 0 {
		rec.Rate = mad.Rate100
	}
	if rec.MTU == 0 {
		rec.MTU = mad.MTU2048
	}
	if rec.PKey == 0 {
		rec.PKey = mad.DefaultPKey
	}
	if rec.MLID == 0 && rec.MGID != broadcast {
		rec.MLID = mad.MinMulticastLID + 1 + mad.LID(rec.MGID[15]) + mad.LID(rec.MGID[14]&1)<<8
	} else if rec.MLID == 0 {
		rec.MLID = mad.MinMulticastLID
	}
	rec.QKey, rec.Scope, rec.JoinState = 0xb1b, mad.ScopeLinkLocal, state
	rec.MTUSelector, rec.RateSelector, rec.PacketLifeTimeSelector = mad.SelectorExactly, mad.SelectorExactly, mad.LifeTimeSelectorExactly
	cables := make([]sim.Cable, len(members))
	for i, p := range members {
		cables[i] = sim.Cable{Node: p.Node().GUID(), Num: p.Num()}
	}
	b.must(b.subnet.Edit.AddGroup(rec, state, cables...))
}

// hosts are the ports of all CAs that have a cable, by LID.
func (b *bench) hosts() (ports []*fabric.Port) {
	cas := b.fabric.OfType(mad.NodeTypeCA)
	for i := range cas {
		for p := range cas[i].Ports() {
			if p.Peer() != nil {
				ports = append(ports, p)
			}
		}
	}
	slices.SortFunc(ports, func(p, q *fabric.Port) int { return int(p.LID()) - int(q.LID()) })
	return ports
}

// sweep finds out what the fabric is by now.
func (b *bench) sweep() *fabric.Fabric {
	b.t.Helper()
	f, err := topology.SweepQuietly(context.Background(), b.f.Runtime)
	b.must(err)
	return f
}

// file puts a file beside the audits, which an option names.
func (b *bench) file(name, content string) {
	b.t.Helper()
	b.must(afero.WriteFile(b.f.fs, "/work/"+name, []byte(content), 0o644))
}

// code runs a script.
func (b *bench) code(src string) string {
	b.t.Helper()
	out, explained, status := b.f.run(src)
	if status != 0 {
		b.t.Fatalf("%s\n%s", src, explained)
	}
	return out
}

// upLink is a port of a switch to a switch, of nodes that have no fault; nil:
// there is none.
func (b *bench) upLink() *fabric.Port {
	switches := b.fabric.OfType(mad.NodeTypeSwitch)
	for _, i := range b.rand.Perm(len(switches)) {
		for p := range switches[i].Ports() {
			if q := p.Peer(); q != nil && q.Node().IsSwitch() && !b.used[p.Node().GUID()] && !b.used[q.Node().GUID()] {
				b.used[p.Node().GUID()], b.used[q.Node().GUID()] = true, true
				return p
			}
		}
	}
	return nil
}

func cable(p *fabric.Port) sim.Cable { return sim.Cable{Node: p.Node().GUID(), Num: p.Num()} }

// texts is a dict of texts that an expression gives.
func (b *bench) texts(src string) (texts map[string]string) {
	b.t.Helper()
	b.must(json.Unmarshal([]byte(b.code("print(json.encode("+src+"))")), &texts))
	return texts
}
