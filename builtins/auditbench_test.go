package builtins

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/afero"

	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/sim"
	"fabsh/mad"
)

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
