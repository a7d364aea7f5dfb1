// Package device reads and changes what switches, CAs and routers have, over an engine: read,
// modify, write, compare.
//
// Changes: a Set changes fields of one attribute, a Table is a table in blocks (its Kind says
// which: linear and multicast forwarding tables, SL2VL, VL arbitration, P_Keys, GUIDs), a
// PortState disables, enables or resets a link unless that would cut off what is still needed,
// and LinkSettings change speeds and widths. Reading: ReadRoutes, ReadLanes and ReadLevels for
// routing, AR, Adaptivity and PLFT for adaptive routing, ReadAnswers for audits, ReadKeys, and
// ReadExtended for devices of NVIDIA. StoredTransport answers requests from a snapshot.
//
// Functions take many targets at once, and do each step for all of them; the outcome of each
// is in its Err, and the error that they return is mostly the end of the context. Nothing here
// is safe for concurrent use, but a StoredTransport is as safe as every engine.Transport.
//
// Section numbers refer to the InfiniBand Architecture Specification, volume 1 (IBA).
package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Set changes a subnet management attribute: it reads, modifies the fields that
// are named, writes, and compares the response.
type Set struct {
	Dest     fabric.Dest
	Attr     *mad.Attribute
	Modifier uint32
	// GUID is the node GUID that must answer; 0: any.
	GUID mad.GUID
	// Named are the fields to change, by the names that scripts use, and Edit puts their
	// values into the attribute as it was read. All other fields are sent as they were read,
	// but fields by which a Set requests an action are sent as 0 (see mad.Attribute.WithoutActions).
	Named []string
	Edit  func(data []byte)
	// Once prevents that the Set is sent again when no answer comes.
	Once bool

	// Before is the attribute as it was read, After as the response has it. If the caller
	// gives Before, it was just read: unless a plan is made, neither the attribute nor the
	// GUID of the node is read again.
	Before, After []byte
	Err           error
}

// SetAttributes makes all changes; the outcome of each is in its Err. Each step is done for
// all of them at once, maxCalls at a time. The error is the end of ctx.
func SetAttributes(ctx context.Context, e *engine.Engine, sets ...*Set) error {
	first := map[nodeAt]*Set{} // the first Set to a node, which reads its GUID
	unread := map[*Set]bool{}
	for _, c := range sets {
		if c.Before != nil && e.Interceptor() == nil {
			continue
		}
		unread[c] = true
		if at := c.node(); first[at] == nil {
			first[at] = c
		}
	}
	steps := []struct {
		needed func(*Set) bool
		ask    func(*Set, *engine.Call)
		take   func(*Set, []byte) error
	}{
		{
			func(c *Set) bool { return c.GUID != 0 && first[c.node()] == c },
			func(c *Set, call *engine.Call) { c.Dest.Put(call, mad.MethodGet, mad.AttrNodeInfo, 0, nil) },
			func(c *Set, data []byte) error {
				var ni mad.NodeInfo
				ni.Decode(data)
				return checkGUID(c.Dest, c.GUID, ni.NodeGUID)
			},
		},
		{
			func(c *Set) bool { return unread[c] },
			func(c *Set, call *engine.Call) { c.Dest.Put(call, mad.MethodGet, c.Attr, c.getModifier(), nil) },
			func(c *Set, data []byte) error { c.Before = slices.Clone(data[:c.Attr.Size]); return nil },
		},
		{
			func(c *Set) bool { return true },
			func(c *Set, call *engine.Call) {
				c.Dest.Put(call, mad.MethodSet, c.Attr, c.setModifier(), c.request())
				if c.Once {
					call.Retries = -1
				}
			},
			func(c *Set, data []byte) error {
				c.After = slices.Clone(data[:c.Attr.Size])
				return c.compare()
			},
		},
	}
	for n, step := range steps {
		if n == 1 {
			for _, c := range sets {
				if c.GUID != 0 && unread[c] {
					c.Err = first[c.node()].Err
				}
			}
		}
		var needed []*Set
		for _, c := range sets {
			if c.Err == nil && step.needed(c) {
				needed = append(needed, c)
			}
		}
		calls := make([]engine.Call, min(len(needed), maxCalls))
		open := make([]*engine.Call, len(calls))
		for part := range slices.Chunk(needed, maxCalls) {
			clear(calls)
			for i, c := range part {
				open[i] = &calls[i]
				step.ask(c, open[i])
			}
			if err := e.Do(ctx, open[:len(part)]...); err != nil {
				return err
			}
			for i, c := range part {
				if c.Err = calls[i].Err; c.Err == nil {
					c.Err = step.take(c, calls[i].Data())
				}
			}
		}
	}
	var lost []unansweredSet
	for _, c := range sets {
		if c.Before != nil && c.After == nil && errors.Is(c.Err, engine.ErrTimeout) {
			lost = append(lost, unansweredSet{c.Dest, &c.Err})
		}
	}
	return checkKeys(ctx, e, lost)
}

// UnsupportedError reports why a node cannot do what was requested: it is of another
// type, or has no such port or entry. The request is wrong, not the node.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, args...)}
}

// nodeAt is a node at an address.
type nodeAt struct {
	guid       mad.GUID
	lid, start mad.LID
	route      string
}

func (c *Set) node() nodeAt {
	return nodeAt{c.GUID, c.Dest.LID, c.Dest.Start, string(c.Dest.Route)}
}

// checkGUID returns an error unless the node that answers is the one to change.
func checkGUID(d fabric.Dest, want, got mad.GUID) error {
	switch {
	case want == 0 || got == want:
		return nil
	case d.Route != nil:
		return fmt.Errorf("the node at %v is now %v, not %v; run discover() again", d.Route, got, want)
	}
	return fmt.Errorf("the node at LID %d is now %v, not %v; run discover() again", d.LID, got, want)
}

// getModifier returns the modifier of the Get. The modifier of SMInfo is a command, in Sets
// alone (IBA 14.4.1, AttributeModifier of SubnSet(SMInfo)).
func (c *Set) getModifier() uint32 {
	if c.Attr == mad.AttrSMInfo {
		return 0
	}
	return c.Modifier
}

func (c *Set) setModifier() uint32 {
	if c.Attr == mad.AttrPortInfo {
		var pi mad.PortInfo
		pi.Decode(c.Before)
		// External ports of switches have no CapabilityMask: it is port 0's.
		if pi.CapabilityMask&mad.CapabilityMaskIsExtendedSpeedsSupported != 0 || pi.LinkSpeedExtSupported != 0 {
			return c.Modifier | mad.ExtendedSpeeds
		}
	}
	return c.Modifier
}

// request returns the attribute as the Set has it.
func (c *Set) request() []byte {
	data := c.Attr.WithoutActions(c.Before)
	c.Edit(data)
	return data
}

// compare returns an error unless the response has the named fields as sent. Fields by which
// the Set requests an action may differ: states move on, bits clear themselves, and "all that
// is supported" comes back as what that is.
func (c *Set) compare() error {
	sent := c.request()
	for _, name := range c.Named {
		f := c.Attr.Field(name)
		if f == nil || f.W1C || f.Type == mad.FieldTypeEnum && f.NoChange {
			continue
		}
		for i := range f.Count {
			want, got := f.UintAt(sent, i), f.UintAt(c.After, i)
			if want == got || f.NoChange && want == f.Max() || f.Key {
				continue
			}
			return fmt.Errorf("the Set of %s was answered, but %s is %s, not %s", c.Attr.Name, f.Script, fieldText(f, got), fieldText(f, want))
		}
	}
	return nil
}

func fieldText(f *mad.Field, v uint64) string {
	switch f.Type {
	case mad.FieldTypeEnum:
		return f.Words.Text(v)
	case mad.FieldTypeMask:
		return "[" + f.Words.Join(v) + "]"
	case mad.FieldTypeGUID:
		return mad.GUID(v).String()
	}
	return fmt.Sprint(v)
}
