// Package handler is the table of the attributes that an agent of a simulated subnet
// answers, and functions that several classes share. Each class has its own request type,
// with what its handlers may read and change.
//
//	handler.go  Handler, Table, and how answers are made
package handler

import (
	"slices"

	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// Handler answers requests for one attribute. R is the request type of the class: its
// data is the attribute of the request, and afterwards that of the answer. Gets run
// concurrently; a Set runs alone.
type Handler[R any] struct {
	Attr *mad.Attribute       // nil: each attribute of the class that on admits
	On   func(r R) bool       // the requests that it answers; nil: all of the attribute
	Get  func(r R) mad.Status // nil: the agent has no Get of it
	Set  func(r R) mad.Status // nil: no Set
}

// Table has the handlers of a class.
type Table[R any] []Handler[R]

// Run answers a Get, or with set a Set, of an attribute.
func (t Table[R]) Run(r R, attr *mad.Attribute, set bool) mad.Status {
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
func (t Table[R]) Lookup(c mad.Class, id mad.AttributeID) *mad.Attribute {
	for i := range t {
		if attr := t[i].Attr; attr != nil && attr.ID == id {
			return attr
		}
	}
	return mad.Lookup(c, id)
}

// Allowed reports whether an attribute is known and has the method.
func Allowed(a *mad.Attribute, m mad.Method) bool { return a != nil && slices.Contains(a.Methods, m) }

// Encoder is a struct of an attribute.
type Encoder interface{ Encode([]byte) }

// Answer encodes an attribute as the data of an answer, and returns its status.
func Answer(data []byte, e Encoder, modifier uint32) mad.Status {
	clear(data)
	e.Encode(data)
	return CheckModifier(modifier)
}

// CheckModifier returns the status of a request whose modifier has no meaning.
func CheckModifier(modifier uint32) mad.Status {
	if modifier != 0 {
		return mad.StatusBadValue
	}
	return mad.StatusOK
}

// ClassPortInfo returns the ClassPortInfo of a class without capabilities.
func ClassPortInfo(c mad.Class) *mad.ClassPortInfo {
	return &mad.ClassPortInfo{BaseVersion: 1, ClassVersion: c.Version(), RespTimeValue: state.LifeTime}
}

// ApplySet changes image, the attribute on the wire, as a Set with data requests:
// read-only fields stay unchanged, and so do fields of value 0 for which 0 means no
// change; in fields that are cleared by 1 the bits that are set are cleared.
func ApplySet(a *mad.Attribute, image, data []byte) {
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
