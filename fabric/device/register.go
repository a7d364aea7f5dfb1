package device

import (
	"context"
	"errors"
	"slices"

	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ReadRegisters reads the registers of an inventory: MGIR of devices of NVIDIA; of those that answer, MTMP, of
// switches MSGI, and of their ports with a link the page of PDDR on the module. Devices that do not have
// registers get no request, by their GeneralInfo. The result is like that of ReadAnswers.
func ReadRegisters(ctx context.Context, c *sa.Client, f *fabric.Fabric) (fabric.Reading, error) {
	return readRegisters(ctx, c, f, "MTMP", "MSGI", "PDDR")
}

// ReadLabels reads what identifies devices: MGIR of devices of NVIDIA, and MSGI of switches. It is like
// ReadRegisters otherwise.
func ReadLabels(ctx context.Context, c *sa.Client, f *fabric.Fabric) (fabric.Reading, error) {
	return readRegisters(ctx, c, f, "MSGI")
}

// ReadErrorRates reads the bit error rates of ports with a link: the statistical counters of PPCNT, of devices of
// NVIDIA that answer MGIR. The result is like that of ReadRegisters.
func ReadErrorRates(ctx context.Context, c *sa.Client, f *fabric.Fabric) (fabric.Reading, error) {
	return readRegisters(ctx, c, f, "PPCNT")
}

// readRegisters reads MGIR, and of the devices that have it the registers of these names.
func readRegisters(ctx context.Context, c *sa.Client, f *fabric.Fabric, names ...string) (fabric.Reading, error) {
	r := answerReader{ctx: ctx, client: c, f: f}
	c.Engine.KnowNodes(f.NodeInfos())
	var agents []*fabric.Port // which have the LIDs of nodes
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if !mad.IsNVIDIA(n.Info().VendorID, n.GUID()) {
			continue
		}
		if n.IsSwitch() {
			if n.LID() != 0 {
				agents = append(agents, n.Port(0))
			}
			continue
		}
		for p := range n.Ports() {
			if p.LID() != 0 && p.Peer() != nil {
				agents = append(agents, p)
				break
			}
		}
	}
	local, err := r.learn(agents)
	if err != nil {
		return r.Reading, r.unlessEnded("MGIR", err)
	}
	have, err := r.registers(&local, "MGIR", agents, agents)
	if err != nil {
		return fabric.Reading{}, err
	}
	var switches, ports, through []*fabric.Port
	for _, a := range have {
		if a.Node().IsSwitch() {
			switches = append(switches, a)
		}
		for p := range a.Node().Ports() {
			if p.Peer() != nil {
				ports, through = append(ports, p), append(through, a)
			}
		}
	}
	for _, x := range []struct {
		name           string
		ports, through []*fabric.Port
	}{{"MTMP", have, have}, {"MSGI", switches, switches}, {"PDDR", ports, through}, {"PPCNT", ports, through}} {
		if !slices.Contains(names, x.name) {
			continue
		}
		if _, err := r.registers(&local, x.name, x.ports, x.through); err != nil {
			return fabric.Reading{}, err
		}
	}
	return r.Reading, nil
}

// registers reads a register of ports, through the ports that have the LIDs of their nodes. It returns
// those that have it.
func (r *answerReader) registers(local *engine.Port, name string, ports, through []*fabric.Port) (have []*fabric.Port, err error) {
	layout := mad.RegisterNamed(name)
	for first := 0; first < len(ports); first += registerBatch {
		batch := ports[first:min(first+registerBatch, len(ports))]
		calls, open := make([]engine.Call, len(batch)), make([]*engine.Call, len(batch))
		for i, p := range batch {
			content := make([]byte, layout.Size)
			if f := layout.Field("local_port"); f != nil {
				f.SetUint(content, uint64(p.Num()&0xff))
				layout.Field("pnat").SetUint(content, uint64(mad.PortAccessIBPort))
			}
			if f := layout.Field("page_select"); f != nil {
				f.SetUint(content, uint64(mad.DiagnosticPageModule))
			}
			if f := layout.Field("grp"); f != nil {
				f.SetUint(content, uint64(mad.CounterGroupStatistical))
			}
			calls[i].PutMAD(mad.Header{Class: mad.ClassVendor0A, ClassVersion: 1, Method: mad.MethodGet, Attribute: mad.AttrAccessRegister.ID, Modifier: uint32(layout.Register)}, nil)
			mad.PutRegister(calls[i].MAD[:], layout, content)
			if err := r.client.PutGMP(&calls[i], local, through[first+i].LID()); err != nil {
				return nil, r.unlessEnded(name, err)
			}
			open[i] = &calls[i]
		}
		if err := r.client.Engine.Do(r.ctx, open...); err != nil {
			return nil, err
		}
		for i, p := range batch {
			a := fabric.Answer{Node: int32(p.Node().ID()), Port: int16(p.Num()), Class: mad.ClassVendor0A, ID: mad.AttrAccessRegister.ID, Modifier: uint32(layout.Register)}
			if layout.Field("local_port") == nil {
				a.Port = 0
			}
			switch err := calls[i].Err; {
			case errors.Is(err, engine.ErrUnsupported), errors.Is(err, ErrNotInFile):
			case err != nil:
				r.failed(fabric.Answer{}, name, err)
			default:
				if content, status, ok := mad.RegisterContent(calls[i].MAD[:], layout); ok && status == mad.RegisterStatusOK {
					a.Data = slices.Clone(content[:layout.Size])
					r.Answers, have = append(r.Answers, a), append(have, p)
				}
			}
		}
	}
	return have, nil
}

// registerBatch is how many registers are read at once: it bounds memory.
const registerBatch = 4096
