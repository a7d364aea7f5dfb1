// Package handler is the table of the attributes that an agent of a simulated subnet
// answers, and functions that several classes share. Each class has its own request type,
// with what its handlers may read and change.
//
//	handler.go  Handler, Table, and how answers are made

package agent

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// handler answers requests for one attribute. R is the request type of the class: its
// data is the attribute of the request, and afterwards that of the answer. Gets run
// concurrently; a Set runs alone.
type handler[R any] struct {
	Attr *mad.Attribute       // nil: each attribute of the class that on admits
	On   func(r R) bool       // the requests that it answers; nil: all of the attribute
	Get  func(r R) mad.Status // nil: the agent has no Get of it
	Set  func(r R) mad.Status // nil: no Set
}

// handlerTable has the handlers of a class.
type handlerTable[R any] []handler[R]

// Run answers a Get, or with set a Set, of an attribute.
func (t handlerTable[R]) Run(r R, attr *mad.Attribute, set bool) mad.Status {
	for i := range t {
		h := &t[i]
		if h.Attr != nil && h.Attr != attr || h.On != nil && !h.On(r) {
			continue
		}
		if set && h.Set != nil {
			return h.Set(r)
		}
		if !set && h.Get != nil {
			return h.Get(r)
		}
	}
	return mad.StatusBadMethodAttribute
}

// Lookup is mad.Lookup, without its map for attributes with a handler.
func (t handlerTable[R]) Lookup(c mad.Class, id mad.AttributeID) *mad.Attribute {
	for i := range t {
		if attr := t[i].Attr; attr != nil && attr.ID == id {
			return attr
		}
	}
	return mad.Lookup(c, id)
}

// methodAllowed reports whether an attribute is known and has the method.
func methodAllowed(a *mad.Attribute, m mad.Method) bool {
	return a != nil && slices.Contains(a.Methods, m)
}

// Encoder is a struct of an attribute.
type Encoder interface{ Encode([]byte) }

// encodeAnswer encodes an attribute as the data of an answer, and returns its status.
func encodeAnswer(data []byte, e Encoder, modifier uint32) mad.Status {
	clear(data)
	e.Encode(data)
	return checkModifier(modifier)
}

// checkModifier returns the status of a request whose modifier has no meaning.
func checkModifier(modifier uint32) mad.Status {
	if modifier != 0 {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}

// classPortInfo returns the classPortInfo of a class without capabilities.
func classPortInfo(c mad.Class) *mad.ClassPortInfo {
	return &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: c.Version(), RespTimeValue: state.LifeTime}
}

// applySet changes image, the attribute on the wire, as a Set with data requests:
// read-only fields stay unchanged, and so do fields of value 0 for which 0 means no
// change; in fields that are cleared by 1 the bits that are set are cleared.
func applySet(a *mad.Attribute, image, data []byte) {
	for i := range a.Fields {
		f := &a.Fields[i]
		if f.ReadOnly {
			continue
		}
		for e := range f.Count {
			v := f.UintAt(data, e)
			switch {
			case f.NoChange && v == 0:
			case f.W1C:
				f.SetUintAt(image, e, f.UintAt(image, e)&^v)
			default:
				f.SetUintAt(image, e, v)
			}
		}
	}
}
