package audit

import (
	"errors"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
)

// ReadOf makes a read of the answers in a file. The error is the reason why it cannot.
func ReadOf(f *fabric.Fabric) (*Read, error) {
	a := NewAnswers(f.CountersRead(), len(f.Ports()))
	for i := range f.Nodes() {
		a.addNode(&f.Nodes()[i], f.AnswersOf(i))
	}
	switch _, read := a.Read(); {
	case read.Len() == 0:
		return nil, errors.New("the file has no counters; write it with snapshot FILE --all")
	case read.Began.IsZero():
		return nil, errors.New("the file has no time of its counters; write it with snapshot FILE --all")
	default:
		return read, nil
	}
}

// addNode adds the ports of a node, whose answers are list.
func (a *Answers) addNode(n *fabric.Node, list []fabric.Answer) {
	agents, modes := map[int16]*mad.ClassPortInfo{}, map[int16]*mad.FECMode{}
	for _, x := range list {
		switch {
		case len(x.Data) == 0:
		case x.Class == mad.ClassPerf && x.ID == mad.AttrPerfClassPortInfo.ID:
			agents[x.Port] = new(mad.ClassPortInfo)
			agents[x.Port].Decode(sized(x.Data, mad.AttrPerfClassPortInfo))
		case x.Class == mad.ClassSubn && x.ID == mad.AttrPortInfoExtended.ID:
			var info mad.PortInfoExtended
			info.Decode(sized(x.Data, mad.AttrPortInfoExtended))
			if info.CapabilityMask&mad.ExtendedCapabilityMaskIsFECModeSupported != 0 {
				modes[int16(x.Modifier&0xff)] = &info.FECModeActive
			}
		}
	}
	index := map[int16]int{}
	for _, x := range list {
		attr := slices.IndexFunc(CounterAttributes[:], func(attr *mad.Attribute) bool { return attr.ID == x.ID })
		p := n.Port(int(x.Port))
		if x.Class != mad.ClassPerf || attr < 0 || p == nil {
			continue
		}
		agent := x.Port
		if n.IsSwitch() {
			agent = 0
		}
		info := agents[agent]
		if info == nil {
			info = new(mad.ClassPortInfo)
		}
		i, ok := index[x.Port]
		if !ok {
			key, _ := KeyOf(p)
			i = a.AddPort(key, n.GUID(), n.Info().SystemImageGUID)
			index[x.Port] = i
		}
		if len(x.Data) == 0 {
			a.Silent(i, attr, info)
			continue
		}
		a.Answered(i, attr, info, modes[x.Port], sized(x.Data, CounterAttributes[attr]), a.began)
	}
}

// sized is data with the size of attr: files may have less.
func sized(data []byte, attr *mad.Attribute) []byte {
	if len(data) >= attr.Size {
		return data
	}
	return append(slices.Clone(data), make([]byte, attr.Size-len(data))...)
}
