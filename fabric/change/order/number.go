package order

import (
	"bytes"
	"slices"

	"fabsh/fabric/change/certificate"
	"fabsh/fabric/routing/routes"
	"fabsh/mad"
)

// place is a block of the forwarding table of a switch.
type place struct{ s, number int }

// number finds the places of the changes. It has no effect if they are known.
func (in *Input) number() {
	if in.at != nil {
		return
	}
	g := in.Old.Graph()
	if in.Changes == nil {
		in.Changes = in.differences()
	}
	in.at, in.of = make([]place, len(in.Changes)), map[place]int{}
	for i := range in.Changes {
		c := &in.Changes[i]
		in.at[i] = place{-1, int(c.Modifier)}
		if s := g.SwitchByGUID(c.Node); c.Attr == mad.AttrLinearForwardingTable && s >= 0 {
			in.at[i].s, in.of[place{s, int(c.Modifier)}] = s, i
		}
	}
}

// differences returns the blocks and rows of SL2VL by which New differs from Old.
func (in *Input) differences() []certificate.Change {
	g := in.Old.Graph()
	changes := []certificate.Change{}
	for _, sd := range in.New.Diff(in.Old).Switches {
		for _, b := range sd.Blocks {
			changes = append(changes, certificate.Change{Attr: mad.AttrLinearForwardingTable, Modifier: uint32(b), Node: g.Switches()[sd.Switch].GUID(), Old: blockOf(in.Old.Row(sd.Switch), b), New: blockOf(in.New.Row(sd.Switch), b)})
		}
	}
	for s, n := range g.Switches() {
		for place := range (n.NumPorts() + 1) * (n.NumPorts() + 1) {
			if in.sameLanes() {
				break
			}
			inPort, outPort := uint8(place/(n.NumPorts()+1)), uint8(place%(n.NumPorts()+1))
			if old, new := rowOf(in.Old.SL2VL, s, inPort, outPort), rowOf(in.New.SL2VL, s, inPort, outPort); !bytes.Equal(old, new) {
				changes = append(changes, certificate.Change{Attr: mad.AttrSLtoVLMappingTable, Modifier: uint32(inPort)<<8 | uint32(outPort), Node: n.GUID(), Old: old, New: new})
			}
		}
	}
	return changes
}

// rowOf returns a row of SL2VL.
func rowOf(lanes *routes.SL2VL, s int, in, out uint8) []byte {
	var row mad.SLtoVLMappingTable
	for sl := range row.SLtoVL {
		row.SLtoVL[sl] = lanes.VL(s, in, out, uint8(sl))
	}
	data := make([]byte, mad.AttrSLtoVLMappingTable.Size)
	row.Encode(data)
	return data
}

// blockOf returns a block of a forwarding table.
func blockOf(row routes.Row, number int) []byte {
	block := bytes.Repeat([]byte{mad.NoPort}, mad.LFTBlock)
	if first := number * mad.LFTBlock; first < len(row) {
		copy(block, row[first:])
	}
	return block
}

// write returns the write of a block.
func (in *Input) write(s, number int, data []byte) certificate.Write {
	if i, ok := in.of[place{s, number}]; ok {
		return certificate.Write{Change: i, Data: data}
	}
	return certificate.Write{Change: -1, Data: data} // which no proof accepts
}

// lanes returns the round that writes SL2VL.
func (in *Input) lanes() (r certificate.Round) {
	for i := range in.Changes {
		if c := &in.Changes[i]; c.Attr == mad.AttrSLtoVLMappingTable && !bytes.Equal(c.Old, c.New) {
			r.Writes = append(r.Writes, certificate.Write{Change: i, Data: c.New})
		}
	}
	return r
}

// switchLanes returns the round that writes SL2VL of switches; without writes if it stays.
func (in *Input) switchLanes() (r certificate.Round) {
	if in.sameLanes() {
		return r
	}
	return in.lanes()
}

// disable returns the round that disables adaptive routing.
func (in *Input) disable() (r certificate.Round) {
	for _, i := range in.Disable {
		r.Writes = append(r.Writes, certificate.Write{Change: i, Data: blockOf(in.Old.Row(in.at[i].s), in.at[i].number)})
	}
	return r
}

// complete adds the writes that no proof needs: of SL2VL of channel adapters, which are
// written with that of switches, or first; and of entries that no path uses, as of LIDs that no
// port has, which are written last.
func (in *Input) complete(s *Schedule) {
	if lanes := in.lanes(); in.sameLanes() && lanes.Writes != nil {
		s.Rounds = slices.Insert(s.Rounds, 0, lanes)
		if s.Figures.OldCycleUntil > 0 {
			s.Figures.OldCycleUntil++
		}
	}
	now := make([][]byte, len(in.Changes))
	for i := range in.Changes {
		now[i] = in.Changes[i].Old
	}
	for _, r := range s.Rounds {
		for _, w := range r.Writes {
			now[w.Change] = w.Data
		}
	}
	var last certificate.Round
	for i := range in.Changes {
		if c := &in.Changes[i]; in.at[i].s >= 0 && now[i] != nil && !bytes.Equal(now[i], c.New) {
			last.Writes = append(last.Writes, certificate.Write{Change: i, Data: c.New})
		}
	}
	if last.Writes != nil {
		s.Rounds = append(s.Rounds, last)
	}
}
