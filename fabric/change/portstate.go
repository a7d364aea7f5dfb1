package change

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

// PortAction is what is done to a port's link.
type PortAction uint8

const (
	DisablePort PortAction = iota // the link goes down and stays down
	EnablePort                    // a port that is disabled polls for its neighbour
	ResetPort                     // the link trains again
)

// PortChange takes a port's link down or up.
type PortChange struct {
	PortTarget
	Action PortAction
	// Force goes ahead where a CautionError would be the answer.
	Force bool
	// Wait is how long the link may take to settle.
	Wait time.Duration
}

// ChangePorts makes all changes at once; what became of each is in its Err.
//
// A change of state goes alone: all other fields are as they were read, or say
// that nothing is to change (IBA 14.2.5.6; rdma-core
// infiniband-diags/ibportstate.c main). It is sent once. When no answer comes,
// the port is asked what became of it. The error is the end of ctx.
func ChangePorts(ctx context.Context, e *engine.Engine, changes ...*PortChange) error {
	targets := make([]*PortTarget, len(changes))
	for i, c := range changes {
		targets[i] = &c.PortTarget
	}
	if err := lookAtPorts(ctx, e, targets); err != nil {
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
	var open []*PortChange
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
	if err := Apply(ctx, e, sets...); err != nil {
		return err
	}
	return settle(ctx, e, open, sets)
}

// idle: there is nothing to do. Polling, asked for where there is a link,
// would take it down.
func (c *PortChange) idle() bool {
	i := c.PortInfo()
	disabled := i.PortPhysicalState == mad.PortPhysicalStateDisabled
	switch c.Action {
	case DisablePort:
		return disabled
	case EnablePort:
		return !disabled && i.PortPhysicalState != mad.PortPhysicalStateSleep
	}
	return false
}

// takesDown: a link that is up goes down.
func (c *PortChange) takesDown() bool {
	return c.Action != EnablePort && c.PortInfo().PortState != mad.PortStateDown
}

// set is the change of PortPhysicalState. Polling takes a link down that is
// up, and lets it train again: so a reset is one Set, and nothing stays
// disabled when the second of two is lost.
func (c *PortChange) set() *Set {
	to := mad.PortPhysicalStatePolling
	if c.Action == DisablePort {
		to = mad.PortPhysicalStateDisabled
	}
	return &Set{
		Dest: c.Dest, GUID: c.GUID, Attr: mad.AttrPortInfo, Modifier: uint32(c.Num), Once: true, Named: []string{"port_physical_state"},
		Edit: func(data []byte) { mad.AttrPortInfo.Field("port_physical_state").SetUint(data, uint64(to)) },
	}
}

// settle waits until the links are as wanted.
func settle(ctx context.Context, e *engine.Engine, open []*PortChange, sets []*Set) error {
	start, pause := time.Now(), 20*time.Millisecond
	unheard := map[*PortChange]error{}
	for i, c := range open {
		var key *KeyError
		if c.Err = sets[i].Err; sets[i].Before != nil && errors.Is(c.Err, engine.ErrTimeout) && !errors.As(c.Err, &key) {
			unheard[c], c.Err = c.Err, nil
		}
	}
	open = slices.DeleteFunc(open, func(c *PortChange) bool { return c.Err != nil })
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
		var waiting []*PortChange
		for i, c := range open {
			c.Err = calls[i].Err
			if c.Err == nil {
				c.After = slices.Clone(calls[i].Data()[:mad.AttrPortInfo.Size])
			}
			switch late := time.Since(start) >= c.Wait; {
			case c.Err == nil && c.settled():
			case !late:
				waiting = append(waiting, c)
			case unheard[c] != nil:
				c.Err = fmt.Errorf("%w; it was not sent again, and %s", unheard[c], c.now())
			case c.Err != nil:
				c.Err = fmt.Errorf("the Set was answered, but the port is silent now: %w", c.Err)
			default:
				c.Err = c.unsettled()
			}
		}
		open = waiting
	}
	return nil
}

// settled: the link is as wanted.
func (c *PortChange) settled() bool {
	i := c.PortInfo()
	if c.Action == DisablePort {
		return i.PortPhysicalState == mad.PortPhysicalStateDisabled
	}
	return i.PortPhysicalState == mad.PortPhysicalStateLinkUp && i.PortState != mad.PortStateDown
}

// unsettled is why a link that is not as wanted is a failure. A port that is
// enabled may have no neighbour.
func (c *PortChange) unsettled() error {
	i := c.PortInfo()
	var before mad.PortInfo
	before.Decode(c.Before)
	switch {
	case c.Action == DisablePort:
		return fmt.Errorf("the Set was answered, but after %v %s", c.Wait, c.now())
	case c.Action == EnablePort && i.PortPhysicalState != mad.PortPhysicalStateDisabled,
		c.Action == ResetPort && before.PortState == mad.PortStateDown:
		return nil
	}
	return fmt.Errorf("the link is not up after %v: %s", c.Wait, c.now())
}

// now is how the link is, as far as that is known.
func (c *PortChange) now() string {
	if c.Err != nil {
		return fmt.Sprintf("the port does not say what became of it: %v", c.Err)
	}
	i := c.PortInfo()
	return fmt.Sprintf("the port is %v and %v", i.PortState, i.PortPhysicalState)
}
