package device

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// ErrNotInFile reports that the file has no answer to a request, because the request was
// not made when the file was written, or failed.
var ErrNotInFile = errors.New("not in the file")

// StoredTransport is an engine.Transport to the answers in a file, so that a snapshot can be
// queried like a live fabric. It answers as the nodes of the fabric, and its subnet
// administrator, answered: with NodeInfo, NodeDescription, PortInfo and SwitchInfo, and with
// fabric.Answers. What failed when the file was written fails again, at once.
type StoredTransport struct {
	engine.Basic

	f     *fabric.Fabric
	order []int32 // of f.Answers(): by node, class, attribute, modifier, port

	wake   chan struct{} // to Recv: out has grown
	closed chan struct{}
	close  sync.Once

	mu  sync.Mutex // guards out
	out []engine.Datagram
}

// NewStoredTransport returns a transport to the answers of f.
func NewStoredTransport(f *fabric.Fabric) *StoredTransport {
	t := &StoredTransport{f: f, order: make([]int32, len(f.Answers())), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	all := f.Answers()
	slices.SortFunc(t.order, func(i, j int32) int { return compareAnswers(&all[i], &all[j]) })
	return t
}

// StoredRecords are the records of the subnet administrator in a file that has its
// ClassPortInfo: a kind without records in the file was read, and was empty.
var StoredRecords = []*mad.Attribute{mad.AttrNodeRecord, mad.AttrLinkRecord, mad.AttrMCMemberRecord, mad.AttrServiceRecord, mad.AttrInformInfoRecord, mad.AttrSMInfoRecord}

func compareAnswers(a, b *fabric.Answer) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Modifier, b.Modifier), cmp.Compare(a.Port, b.Port))
}

// anyPort is the port of a key that matches an answer with any port, because the modifier
// names the port.
const anyPort = -2

// answer returns the answer that key names; nil: there is no such answer.
func (t *StoredTransport) answer(key fabric.Answer) *fabric.Answer {
	all := t.f.Answers()
	i, _ := slices.BinarySearchFunc(t.order, &key, func(i int32, key *fabric.Answer) int { return compareAnswers(&all[i], key) })
	if i == len(t.order) {
		return nil
	}
	a := &all[t.order[i]]
	if key.Port == anyPort {
		key.Port = a.Port
	}
	if compareAnswers(a, &key) != 0 {
		return nil
	}
	return a
}

// Traits reports that the outcome of every request is known at once.
func (t *StoredTransport) Traits() engine.Traits {
	return engine.Traits{Name: "file", RMPP: true, NoACK: true, Recorded: true}
}

// Port returns the port where the sweep began, else the first with a LID.
func (t *StoredTransport) Port() (engine.Port, error) {
	p := t.f.From()
	for i := range t.f.Ports() {
		if q := &t.f.Ports()[i]; p == nil && q.LID() != 0 {
			p = q
		}
	}
	if p == nil {
		return engine.Port{Device: "file", PKeys: []uint16{mad.DefaultPKey}}, nil
	}
	if p.Node().IsSwitch() {
		p = p.Node().Port(0)
	}
	local := engine.Port{Device: "file", Num: uint8(p.Num()), NodeGUID: p.Node().GUID(), PortGUID: p.GUID(), LID: p.LID(), LMC: uint8(p.LMC()), PKeys: []uint16{mad.DefaultPKey}}
	if i := p.Info(); i != nil {
		local.SMLID, local.State, local.GIDPrefix = i.MasterSMLID, i.PortState, i.GIDPrefix
	}
	if local.SMLID == 0 && len(t.f.AnswersOf(fabric.NoNode)) > 0 { // of a dump beside a topology that lacks it
		local.SMLID = local.LID
	}
	return local, nil
}

// returning is D, the top bit of a directed-route SMP's status (IBA 14.2.1.2).
const returning = 0x8000

// Send answers d.
func (t *StoredTransport) Send(d *engine.Datagram) error {
	m := make([]byte, max(mad.Size, len(d.MAD)))
	copy(m, d.MAD)
	h := mad.ParseHeader(m)
	back := engine.Datagram{Address: d.Address, MAD: m, Took: 1}
	var data []byte
	err := ErrNotInFile
	if h.Class == mad.ClassSubnAdm {
		var answer []byte
		if answer, err = t.records(&h, m); err == nil {
			back.MAD = answer
		}
	} else if h.Method == mad.MethodGet {
		if data, err = t.attribute(&h, d.LID, m); err == nil {
			at := h.Class.DataOffset()
			clear(m[at:mad.Size])
			copy(m[at:mad.Size], data)
		}
	}
	switch {
	case errors.Is(err, engine.ErrTimeout):
		back.Undelivered = true
	case err != nil:
		return &engine.SendError{Err: err}
	default:
		h.Method |= mad.Response
		if h.Class == mad.ClassSubnDirected {
			h.Status |= returning
		}
		h.Put(back.MAD)
	}
	t.mu.Lock()
	t.out = append(t.out, back)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}

// Recv waits for the next answer.
func (t *StoredTransport) Recv(d *engine.Datagram) error {
	for {
		t.mu.Lock()
		if len(t.out) > 0 {
			m := append(d.MAD[:0], t.out[0].MAD...)
			*d = t.out[0]
			d.MAD = m
			t.out = t.out[1:]
			t.mu.Unlock()
			return nil
		}
		t.mu.Unlock()
		select {
		case <-t.closed:
			return engine.ErrClosed
		case <-t.wake:
		}
	}
}

// Close wakes Recv.
func (t *StoredTransport) Close() error {
	t.close.Do(func() { close(t.closed) })
	return nil
}

// attribute returns what the node to which m goes has answered.
func (t *StoredTransport) attribute(h *mad.Header, lid mad.LID, m []byte) ([]byte, error) {
	p := t.f.PortByLID(lid)
	if h.Class == mad.ClassSubnDirected {
		if route := mad.RouteOf(m); p != nil && mad.RouteSourceOf(m) != mad.PermissiveLID {
			p = p.Along(route)
		} else {
			p = t.f.PortAt(route)
		}
	}
	if p == nil {
		return nil, ErrNotInFile
	}
	n := p.Node()
	if n.IsSwitch() {
		p = n.Port(0)
	}
	key := fabric.Answer{Node: int32(n.ID()), Port: int16(p.Num()), Class: h.Class.Family(), ID: h.Attribute, Modifier: h.Modifier}
	attr := mad.Lookup(key.Class, h.Attribute)
	switch {
	case key.Class == mad.ClassSubn:
		if x := sweptAttribute(n, p, h); x != nil {
			data := make([]byte, mad.Size)
			x.Encode(data)
			return data, nil
		}
		if n.IsSwitch() {
			key.Port = anyPort
		}
	case key.Class == mad.ClassPerf && attr != nil && attr.Field("port_select") != nil:
		key.Port = int16(attr.Field("port_select").Uint(m[h.Class.DataOffset():]))
	}
	a := t.answer(key)
	if attr == mad.AttrAccessRegister {
		return t.register(n, h, m)
	}
	if a == nil && key.Class == mad.ClassSubn && !n.IsSwitch() {
		key.Port = fabric.NoPort
		a = t.answer(key)
	}
	switch {
	case a == nil && attr != nil && t.lacks(n, attr):
		h.Status = mad.StatusBadMethodAttribute
		return nil, nil
	case a == nil:
		return nil, ErrNotInFile
	}
	if len(a.Data) == 0 {
		return nil, engine.ErrTimeout
	}
	return a.Data, nil
}

// register returns the register of a node that m queries: the one whose fields that select have the
// values of the query.
func (t *StoredTransport) register(n *fabric.Node, h *mad.Header, m []byte) ([]byte, error) {
	layout := mad.LookupRegister(uint16(h.Modifier))
	if layout == nil || h.Modifier > 0xffff {
		return nil, ErrNotInFile
	}
	header := m[h.Class.DataOffset():][:registerHeader]
	asked := m[h.Class.DataOffset()+registerHeader:]
	for _, a := range t.f.AnswersOf(n.ID()) {
		if a.Class != mad.ClassVendor0A || a.ID != mad.AttrAccessRegister.ID || a.Modifier != h.Modifier || len(a.Data) < layout.Size {
			continue
		}
		if !slices.ContainsFunc(layout.Fields, func(f mad.Field) bool {
			return !f.ReadOnly && f.Type != mad.FieldTypeStruct && f.Uint(a.Data) != f.Uint(asked)
		}) {
			return append(slices.Clone(header), a.Data[:min(len(a.Data), mad.GMPRegisterSize)]...), nil
		}
	}
	return nil, ErrNotInFile
}

// registerHeader is the bytes of AccessRegister before the register.
const registerHeader = 12

// lacks reports whether a node is known not to announce an attribute of NVIDIA: it is of
// another vendor, or its GeneralInfo in the file is without the capability. The engine would
// not have requested it.
func (t *StoredTransport) lacks(n *fabric.Node, attr *mad.Attribute) bool {
	switch {
	case !attr.IsAnnounced(), n.Info().VendorID == mad.VendorBull:
		return false
	case !mad.IsNVIDIA(n.Info().VendorID, n.GUID()), attr.OnlyRouters && n.Type() != mad.NodeTypeRouter:
		return true
	}
	a := t.answer(fabric.Answer{Node: int32(n.ID()), Port: fabric.NoPort, Class: mad.ClassSubn, ID: mad.AttrGeneralInfo.ID, Modifier: mad.GeneralInfoFormCapabilities})
	if a == nil || len(a.Data) < mad.AttrGeneralInfo.Size || len(attr.Capabilities) == 0 {
		return false
	}
	var caps mad.GeneralInfoCapabilities
	caps.Decode(a.Data)
	return !slices.ContainsFunc(attr.Capabilities, caps.Has)
}

type encoder interface{ Encode([]byte) }

// sweptAttribute returns an attribute that the sweep has read; nil: it is another attribute, or was not
// read.
func sweptAttribute(n *fabric.Node, in *fabric.Port, h *mad.Header) encoder {
	switch h.Attribute {
	case mad.AttrNodeInfo.ID:
		info := *n.Info()
		if !n.IsSwitch() {
			info.LocalPortNum, info.PortGUID = uint8(in.Num()), in.GUID()
		}
		return &info
	case mad.AttrNodeDescription.ID:
		return nodeDescription(n.Name())
	case mad.AttrSwitchInfo.ID:
		if n.SwitchInfo() != nil {
			return n.SwitchInfo()
		}
	case mad.AttrPortInfo.ID:
		p := n.Port(int(h.Modifier & 0xff))
		if !n.IsSwitch() && h.Modifier&0xff == 0 {
			p = in
		}
		if p != nil && p.Info() != nil {
			info := *p.Info()
			info.MKey = 0
			return &info
		}
	}
	return nil
}

// nodeDescription is a NodeDescription.
type nodeDescription string

func (s nodeDescription) Encode(data []byte) { copy(data[:mad.AttrNodeDescription.Size], s) }

// records makes the answer of the subnet administrator to a request with header h.
func (t *StoredTransport) records(h *mad.Header, m []byte) ([]byte, error) {
	attr := mad.Lookup(mad.ClassSubnAdm, h.Attribute)
	if attr == nil || h.Method != mad.MethodGet && h.Method != mad.MethodGetTable {
		return nil, ErrNotInFile
	}
	places := mad.SAPlacesIn(m[mad.ClassVersionOffset])
	mask := binary.BigEndian.Uint64(m[places.Mask:])
	want := m[h.Class.DataOffset():]
	var found [][]byte
	known := h.Attribute != mad.AttrSubnAdmClassPortInfo.ID && slices.Contains(StoredRecords, attr) && t.answer(fabric.Answer{Node: fabric.NoNode, Port: anyPort, Class: mad.ClassSubnAdm, ID: mad.AttrSubnAdmClassPortInfo.ID}) != nil
	for _, a := range t.f.AnswersOf(fabric.NoNode) {
		switch {
		case a.Class != mad.ClassSubnAdm || a.ID != h.Attribute:
			continue
		case len(a.Data) == 0:
			return nil, engine.ErrTimeout
		}
		known = true
		record := make([]byte, attr.Size)
		copy(record, a.Data)
		if matchesRecord(attr, mask, record, want) {
			found = append(found, record)
		}
	}
	if !known {
		return nil, ErrNotInFile
	}
	if h.Method == mad.MethodGet {
		switch len(found) {
		case 0:
			h.Status = mad.StatusNoRecords
		case 1:
			clear(want[:mad.Size-h.Class.DataOffset()])
			copy(want, found[0])
		default:
			h.Status = mad.StatusTooManyRecords
		}
		return m, nil
	}
	step := (attr.Size + 7) &^ 7
	size := step * len(found)
	out := make([]byte, max(mad.Size, h.Class.DataOffset()+size))
	copy(out, m[:h.Class.DataOffset()])
	binary.BigEndian.PutUint16(out[places.AttrOffset:], uint16(step/8))
	if len(out) == mad.Size { // which says how much of it are records
		out[mad.RMPPVersionOffset], out[mad.RMPPTypeOffset] = 1, byte(mad.RMPPTypeData)
		out[mad.RMPPFlagsOffset] = byte(mad.RMPPFlagsActive | mad.RMPPFlagsFirst | mad.RMPPFlagsLast)
		binary.BigEndian.PutUint32(out[mad.PayloadLengthOffset:], uint32(mad.SegmentHeader+size))
	}
	for i, record := range found {
		copy(out[h.Class.DataOffset()+i*step:], record)
	}
	return out, nil
}

// matchesRecord reports whether the record has the components that mask chooses. A selector that is not
// "exactly" matches nothing.
func matchesRecord(attr *mad.Attribute, mask uint64, record, want []byte) bool {
	for i := range attr.Flat() {
		f := &attr.Flat()[i]
		if f.Mask()&mask == 0 {
			continue
		}
		if f.Bits > 64 {
			if !bytes.Equal(f.Bytes(record), f.Bytes(want)) {
				return false
			}
			continue
		}
		for e := range f.Count {
			if f.Components == f.Count && mask>>(f.Component+e)&1 == 0 {
				continue
			}
			if f.UintAt(record, e) != f.UintAt(want, e) {
				return false
			}
		}
	}
	return true
}
