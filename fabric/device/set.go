// Package device reads and writes tables and ports: read, modify, write, compare.
//
//	set.go        Set, of one attribute
//	table.go      Table, a table in blocks; lft.go mft.go sl2vl.go vlarb.go
//	              pkeys.go guids.go are its kinds; block.go reads and writes
//	answers.go    what audits read beyond a sweep; answerrequests.go, by what requests
//	routes.go     the forwarding tables and lanes of all switches; adaptiveroutes.go, with
//	              adaptive routing; levels.go, the service levels of path records
//	adaptivity.go where it is on
//	ar.go         AR, the adaptive routing of a switch; archeck.go checks what was read
//	vendor.go     what NVIDIA's devices have beyond a sweep: ports, virtual ports, routers
//	plft.go       PLFT, its private forwarding tables
//	keyinfo.go    whether the keys of management classes protect
//	port.go       Port, and what is read before a change
//	portstate.go  PortState: disable, enable, reset; portguard.go, what that
//	              must not cut off
//	linksettings.go  LinkSettings: speeds and widths
//	error.go      what a node does not have; no answer for want of an M_Key
//
// Section numbers are those of the InfiniBand Architecture Specification,
// volume 1 (IBA).
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
	// Named are the fields to change, by the names that scripts use, and
	// Edit puts their values into the attribute as it was read. All other
	// fields go out as they were read, but for those where a Set asks for an
	// action: they go out as 0, for none.
	Named []string
	Edit  func(data []byte)
	// Once prevents that the Set is sent again when no answer comes.
	Once bool

	// Before is the attribute as it was read, After as the response has it. Where
	// Before is given it was read just before: neither is it read again, unless a
	// plan is made, nor the node asked for its GUID.
	Before, After []byte
	Err           error
}

// SetAttributes makes all changes; the outcome of each is in its Err. Each step is done for
// all of them at once, maxCalls at a time. The error is the end of ctx.
func SetAttributes(ctx context.Context, e *engine.Engine, sets ...*Set) error {
	first := map[nodeAt]*Set{} // of those to one node, which reads its GUID
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
		var asked []*Set
		for _, c := range sets {
			if c.Err == nil && step.needed(c) {
				asked = append(asked, c)
			}
		}
		calls := make([]engine.Call, min(len(asked), maxCalls))
		open := make([]*engine.Call, len(calls))
		for part := range slices.Chunk(asked, maxCalls) {
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
	var lost []lostSet
	for _, c := range sets {
		if c.Before != nil && c.After == nil && errors.Is(c.Err, engine.ErrTimeout) {
			lost = append(lost, lostSet{c.Dest, &c.Err})
		}
	}
	return checkKeys(ctx, e, lost)
}

// nodeAt is a node at an address.
type nodeAt struct {
	guid  mad.GUID
	lid   mad.LID
	route string
}

func (c *Set) node() nodeAt { return nodeAt{c.GUID, c.Dest.LID, string(c.Dest.Route)} }

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

// extendedSpeeds is the bit of PortInfo's modifier that says that the sender
// knows the extended speeds (IBA 14.2.5.6; opensm osm_link_mgr.c sets it where
// the port has them).
const extendedSpeeds = 1 << 31

// getModifier is the modifier of the Get. That of SMInfo is a command, of Sets
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
			return c.Modifier | extendedSpeeds
		}
	}
	return c.Modifier
}

// request is the attribute as the Set has it.
func (c *Set) request() []byte {
	data := slices.Clone(c.Before)
	for i := range c.Attr.Fields {
		f := &c.Attr.Fields[i]
		if f.NoChange || f.W1C {
			f.SetUint(data, 0)
		}
	}
	c.Edit(data)
	return data
}

// compare returns an error unless the response has the named fields as sent. Of
// fields whose Set asks for an action it may differ: states move on, bits clear
// themselves, and "all that is supported" comes back as what that is.
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
