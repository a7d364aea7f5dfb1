package mad

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// tables are all layouts: attributes, attributes with each of their variants,
// headers.
func tables() (list []*Attribute) {
	for _, a := range attributes {
		list = append(append(list, a), a.derived().variants...)
	}
	return append(list, headers...)
}

// makeVectors writes MADs with every attribute that tshark may know: each
// field all ones and nothing else in a response, and random values by every
// method, requests and responses, SMPs by LID and by directed route.
func makeVectors(r *rand.Rand) (list []vector) {
	add := func(a *Attribute, c Class, m Method, data []byte) {
		mad := make([]byte, Size)
		h := Header{Class: c, ClassVersion: a.Version, Method: m, TID: r.Uint64(), Attribute: a.ID, Modifier: r.Uint32()}
		if m.IsResponse() {
			h.Status = Status(r.Uint32())
		}
		h.Put(mad)
		if c.Family() == ClassSubn {
			binary.BigEndian.PutUint64(mad[SMPKeyOffset:], r.Uint64())
		}
		if c == ClassSubnDirected {
			SetRoute(mad, DirectedRoute{0, 1, 2})
		}
		if c == ClassSubnAdm {
			sa := SAHeader{AttributeOffset: uint16(a.Size+7) / 8}
			sa.Encode(mad[SAKeyOffset:])
			rmpp := RMPPHeader{RMPPVersion: 1}
			if m == MethodGetTableResp {
				rmpp.RMPPType, rmpp.RMPPFlags, rmpp.SegmentNumber = RMPPTypeData, RMPPFlagsActive|RMPPFlagsFirst|RMPPFlagsLast, 1
				rmpp.PayloadLength = uint32(SADataOffset - SAKeyOffset + a.Size)
			}
			rmpp.Encode(mad[RMPPOffset:])
		}
		at := a.Offset()
		copy(mad[at:], data)
		list = append(list, vector{mad, a, at})
	}
	for _, a := range tables() {
		if a.Class == 0 || !dissected(a) || isUnknown(a) {
			continue
		}
		classes := []Class{a.Class}
		if a.Class == ClassSubn {
			classes = append(classes, ClassSubnDirected)
		}
		for _, c := range classes {
			for i := range a.Flat() {
				f := &a.Flat()[i]
				data := make([]byte, a.Size)
				for i := range f.Count {
					switch f.Type {
					case FieldTypeText:
						f.SetBytes(data, []byte("all in A row"))
					case FieldTypeBytes:
						f.SetBytes(data, slices.Repeat([]byte{0xff}, f.Bits/8))
					default:
						f.SetUintAt(data, i, ^uint64(0))
					}
				}
				makeValid(r, a, data)
				add(a, c, MethodGetResp, data)
			}
			for _, m := range a.Methods {
				for range 10 {
					request, response := randomAttribute(r, a), randomAttribute(r, a)
					add(a, c, m, request)
					if m == MethodSet {
						m = MethodGet // a Set is answered by GetResp
					}
					if m != MethodTrap && m != MethodTrapRepress {
						add(a, c, m|Response, response)
					}
				}
			}
		}
	}
	for range 40 { // headers, with a record behind them
		mad := make([]byte, Size)
		copy(mad, randomAttribute(r, LayoutMADHeader))
		h := ParseHeader(mad)
		h.Class, h.ClassVersion, h.Method, h.Attribute = ClassSubnAdm, 2, MethodGetTableResp, AttrLinkRecord.ID
		h.Put(mad)
		rmpp := randomAttribute(r, LayoutRMPPHeader)
		LayoutRMPPHeader.Field("rmpp_type").SetUint(rmpp, uint64(RMPPTypeData))
		copy(mad[RMPPOffset:], rmpp)
		copy(mad[SAKeyOffset:], randomAttribute(r, LayoutSAHeader))
		list = append(list, vector{mad, LayoutRMPPHeader, RMPPOffset}, vector{mad, LayoutSAHeader, SAKeyOffset}, vector{mad, LayoutMADHeader, 0})
	}
	for range 40 { // of a directed-route SMP, with NodeInfo between them
		mad := make([]byte, Size)
		copy(mad, randomAttribute(r, LayoutDirectedMADHeader))
		h := ParseHeader(mad)
		h.Class, h.ClassVersion, h.Method, h.Attribute = ClassSubnDirected, 1, MethodGetResp, AttrNodeInfo.ID
		h.Status |= Status(mad[StatusOffset]&0x80) << 8
		h.Put(mad)
		mad[HopCountOffset] &= 0x3f
		copy(mad[SMPKeyOffset:], randomAttribute(r, LayoutDirectedSMPHeader))
		copy(mad[SMPInitialPathOffset:], randomAttribute(r, LayoutDirectedPaths))
		list = append(list, vector{mad, LayoutDirectedMADHeader, 0}, vector{mad, LayoutDirectedSMPHeader, SMPKeyOffset}, vector{mad, LayoutDirectedPaths, SMPInitialPathOffset})
	}
	return list
}

// makeValid sets the fields of data on which its layout depends.
func makeValid(r *rand.Rand, a *Attribute, data []byte) {
	if a == AttrMultiPathRecord { // as many GIDs as there are
		a.Field("sgid_count").SetUint(data, 5)
		a.Field("dgid_count").SetUint(data, 6)
	}
	satisfy(r, a, data)
}

// satisfy sets the fields of data to what the conditions of a's variant ask for,
// and returns such a modifier.
func satisfy(r *rand.Rand, a *Attribute, data []byte) (modifier uint32) {
	base := LookupVersion(a.Class, a.Version, a.ID)
	if base == nil {
		return 0
	}
	for _, v := range base.Variants {
		if v.Name != a.Variant {
			continue
		}
		for _, c := range v.When {
			one := c.Values[r.IntN(len(c.Values))]
			n := one[0] + r.Uint64N(one[1]-one[0]+1)
			if c.Modifier {
				i := slices.IndexFunc(a.Modifier, func(p ModifierPart) bool { return p.Name == c.Name })
				modifier |= uint32(n) << a.Modifier[i].Shift
			} else {
				base.Field(c.Name).SetUint(data, n)
			}
		}
	}
	return modifier
}

// randomAttribute has random values in all fields, letters in texts.
func randomAttribute(r *rand.Rand, a *Attribute) []byte {
	random, data := randomBytes(r, a.Size), make([]byte, a.Size)
	copyFields(a, random, data)
	for i := range a.Flat() {
		if f := &a.Flat()[i]; f.Type == FieldTypeText {
			letters := make([]byte, 1+r.IntN(f.Bits/8))
			for i := range letters {
				letters[i] = 'a' + byte(r.IntN(26))
			}
			f.SetBytes(data, letters)
		}
	}
	if c := codecs[a]; c != nil { // through the struct, for it is what we send
		c.Decode(data)
		c.Encode(data)
	}
	makeValid(r, a, data)
	return data
}
