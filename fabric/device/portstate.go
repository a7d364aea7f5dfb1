package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// Action is what is done to a port's link.
type Action uint8

const (
	Disable Action = iota // the link goes down and stays down
	Enable                // a port that is disabled polls for its neighbour
	Reset                 // the link trains again
)

// PortState changes the state of a port's link.
type PortState struct {
	PortTarget
	Action Action
	// Force makes the change even where a CautionError would refuse it.
	Force bool
	// Wait is how long the link may take to get into that state.
	Wait time.Duration
}

// SetPortStates makes all changes at once; the outcome of each is in its Err.
//
// A Set changes nothing but the state: all other fields go out as they were read,
// or as "no change" (IBA 14.2.5.6; rdma-core infiniband-diags/ibportstate.c
// main). It is sent once. When no answer comes, the state of the port is read.
// The error is the end of ctx.
func SetPortStates(ctx context.Context, e *engine.Engine, changes ...*PortState) error {
	targets := make([]*PortTarget, len(changes))
	for i, c := range changes {
		targets[i] = &c.PortTarget
	}
	if err := readPorts(ctx, e, targets); err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, c := range changes {
		if c.Err == nil && c.takesDown() && !c.Force {
			all.Go(func() { c.Err = c.guard(ctx, e, changes) })
		}
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var sets []*Set
	var open []*PortState
	for _, c := range changes {
		switch {
		case c.Err != nil:
		case c.idle():
			c.After = c.Before
		default:
			open = append(open, c)
			sets = append(sets, c.set())
		}
	}
	if err := SetAttributes(ctx, e, sets...); err != nil {
		return err
	}
	if e.Interceptor() != nil { // nothing has happened that could be waited for
		for i, c := range open {
			c.Err, c.After = sets[i].Err, sets[i].After
		}
		return nil
	}
	return settle(ctx, e, open, sets)
}

// idle reports whether the port already is in the requested state. A Set of Polling would take
// down a link that is up.
func (c *PortState) idle() bool {
	i := c.PortInfo()
	disabled := i.PortPhysicalState == mad.PortPhysicalStateDisabled
	switch c.Action {
	case Disable:
		return disabled
	case Enable:
		return !disabled && i.PortPhysicalState != mad.PortPhysicalStateSleep
	}
	return false
}

// takesDown reports whether a link that is up goes down.
func (c *PortState) takesDown() bool {
	return c.Action != Enable && c.PortInfo().PortState != mad.PortStateDown
}

// set is the Set of PortPhysicalState. Polling takes down a link that is up, and
// lets it train again. So a reset is one Set: of two, the second could be lost,
// and the port would stay disabled.
func (c *PortState) set() *Set {
	to := mad.PortPhysicalStatePolling
	if c.Action == Disable {
		to = mad.PortPhysicalStateDisabled
	}
	return &Set{
		Dest: c.Dest, GUID: c.GUID, Attr: mad.AttrPortInfo, Modifier: uint32(c.Num), Once: true, Named: []string{"port_physical_state"},
		Edit: func(data []byte) { mad.AttrPortInfo.Field("port_physical_state").SetUint(data, uint64(to)) },
	}
}

// settle waits until the links are in the requested states.
func settle(ctx context.Context, e *engine.Engine, open []*PortState, sets []*Set) error {
	start, pause := time.Now(), 20*time.Millisecond
	lost := map[*PortState]error{}
	for i, c := range open {
		var key *KeyError
		if c.Err = sets[i].Err; sets[i].Before != nil && errors.Is(c.Err, engine.ErrTimeout) && !errors.As(c.Err, &key) {
			lost[c], c.Err = c.Err, nil
		}
	}
	open = slices.DeleteFunc(open, func(c *PortState) bool { return c.Err != nil })
	for len(open) > 0 {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause = min(2*pause, time.Second)
		calls := make([]engine.Call, len(open))
		gets := make([]*engine.Call, len(open))
		for i, c := range open {
			gets[i] = c.get(&calls[i], c.Num)
		}
		if err := e.Do(ctx, gets...); err != nil {
			return err
		}
		var waiting []*PortState
		for i, c := range open {
			c.Err = calls[i].Err
			if c.Err == nil {
				c.After = slices.Clone(calls[i].Data()[:mad.AttrPortInfo.Size])
			}
			switch late := time.Since(start) >= c.Wait; {
			case c.Err == nil && c.settled():
			case !late:
				waiting = append(waiting, c)
			case lost[c] != nil:
				c.Err = fmt.Errorf("%w; it was not sent again; %s", lost[c], c.now())
			case c.Err != nil:
				c.Err = fmt.Errorf("the Set was answered, but the port no longer answers: %w", c.Err)
			default:
				c.Err = c.unsettled()
			}
		}
		open = waiting
	}
	return nil
}

// settled reports whether the link is in the requested state.
func (c *PortState) settled() bool {
	i := c.PortInfo()
	if c.Action == Disable {
		return i.PortPhysicalState == mad.PortPhysicalStateDisabled
	}
	return i.PortPhysicalState == mad.PortPhysicalStateLinkUp && i.PortState != mad.PortStateDown
}

// unsettled is the error of a link that is not in the requested state; nil where
// that is not an error: a port that is enabled may have no peer.
func (c *PortState) unsettled() error {
	i := c.PortInfo()
	var before mad.PortInfo
	before.Decode(c.Before)
	switch {
	case c.Action == Disable:
		return fmt.Errorf("the Set was answered, but after %v %s", c.Wait, c.now())
	case c.Action == Enable && i.PortPhysicalState != mad.PortPhysicalStateDisabled,
		c.Action == Reset && before.PortState == mad.PortStateDown:
		return nil
	}
	return fmt.Errorf("the link is not up after %v: %s", c.Wait, c.now())
}

// now is the state of the link in messages.
func (c *PortState) now() string {
	if c.Err != nil {
		return fmt.Sprintf("the result is unknown: %v", c.Err)
	}
	i := c.PortInfo()
	return fmt.Sprintf("the port is %v and %v", i.PortState, i.PortPhysicalState)
}
