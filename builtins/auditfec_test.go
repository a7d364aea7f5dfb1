package builtins

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/topology"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// fecAgents is a transport to agents that have the counters of FEC, Reed-Solomon's,
// which those of the simulator have not.
type fecAgents struct {
	engine.Transport

	mu     sync.Mutex
	counts map[fecKey]uint64
}

type fecKey struct {
	lid   mad.LID
	port  int
	field string
	lane  int
}

func (f *fecAgents) Recv(d *engine.Datagram) error {
	if err := f.Transport.Recv(d); err != nil {
		return err
	}
	h := mad.ParseHeader(d.MAD)
	switch {
	case h.Class == mad.ClassPerf && h.Attribute == mad.AttrPerfClassPortInfo.ID:
		d.MAD = bytes.Clone(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		var info mad.ClassPortInfo
		info.Decode(data)
		info.CapabilityMask |= uint16(mad.PerfCapabilityMaskIsRSFECModeSupported)
		info.Encode(data)
	case h.Class == mad.ClassPerf && h.Attribute == mad.AttrPortExtendedSpeedsCounters.ID:
		d.MAD = bytes.Clone(d.MAD)
		data := d.MAD[h.Class.DataOffset():]
		f.mu.Lock()
		defer f.mu.Unlock()
		attr := mad.AttrPortExtendedSpeedsCounters.WithVariant("rs_fec")
		port := int(attr.Field("port_select").Uint(data))
		for key, n := range f.counts {
			if key.lid == d.LID && key.port == port {
				attr.Field(key.field).SetUintAt(data, key.lane, n)
			}
		}
	case h.Class.Family() == mad.ClassSubn && h.Attribute == mad.AttrPortInfoExtended.ID:
		d.MAD = bytes.Clone(d.MAD)
		h.Status &^= 0x7fff // all but the direction
		h.Put(d.MAD)
		(&mad.PortInfoExtended{CapabilityMask: mad.ExtendedCapabilityMaskIsFECModeSupported, FECModeActive: mad.FECModeRS}).Encode(d.MAD[64:128])
	}
	return nil
}

// TestFECCounters: what FEC could not mend; a link that it mends far more on than on
// others; a lane.
func TestFECCounters(t *testing.T) {
	agents := &fecAgents{counts: map[fecKey]uint64{}}
	onSim(t, "fattree", func(o *SessionOptions) {
		o.Engine.Close()
		o.Env.Sim, agents.Transport = attachSubnet(t, "fattree")
		o.Engine = engine.New(agents, engine.Options{Write: true})
		o.State = t.TempDir()
	}, func(t *testing.T, f *fixture) {
		defer f.Env.Engine.Close()
		fab, err := topology.SweepQuietly(t.Context(), f.Runtime)
		if err != nil {
			t.Fatal(err)
		}
		count := func(name string, num int, field string, lane int, n uint64) {
			p := fab.NodeByName(name)[0].Port(num)
			agents.counts[fecKey{p.LID(), num, field, lane}] += n
		}
		normal := func() {
			for i := range fab.Nodes() {
				n := &fab.Nodes()[i]
				for num := 1; num <= n.NumPorts(); num++ {
					count(n.Name(), num, "port_fec_corrected_symbol_ctr", 0, 4000)
					for lane := range 4 {
						count(n.Name(), num, "fec_correctable_symbol_ctr_lane", lane, 1000+uint64(lane))
					}
				}
			}
		}
		normal()
		if r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last"); len(r.Findings) > 0 {
			t.Errorf("%v", told(r))
		}
		time.Sleep(15 * time.Minute)
		normal()
		if r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last"); len(r.Findings) > 0 || !r.Answered() {
			t.Errorf("healthy: %v, %v", told(r), r.Coverage.Rows())
		}
		time.Sleep(15 * time.Minute)
		normal()
		count("leaf-1", 1, "port_fec_uncorrectable_block_ctr", 0, 1)
		count("leaf-2", 2, "unknown_block_counter", 0, 3)
		count("leaf-3", 3, "port_fec_corrected_symbol_ctr", 0, 400_000)
		count("leaf-4", 4, "fec_correctable_symbol_ctr_lane", 2, 90_000)
		r := ran(t, f, audits.RunOptions{}, "counters", "--over", "last")
		want := `error ctr.fec.uncorrectable leaf-1/1 - node-0001 HCA-1/1: leaf-1/1: 1 block not corrected by FEC in 15 min
error ctr.fec.uncorrectable leaf-2/2 - node-0006 HCA-1/1: leaf-2/2: 3 unknown blocks in 15 min
warning ctr.fec.corrected leaf-3/3 - node-0011 HCA-1/1: leaf-3/3: FEC corrected 404000 symbols in 15 min; median of similar links: 4000
warning ctr.fec.corrected leaf-4/4 - node-0016 HCA-1/1: leaf-4/4: FEC corrected 91002 symbols on lane 2 in 15 min; median of the other lanes: 1001
`
		if diff := cmp.Diff(want, told(r)); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
