package builtins

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/fabric/sa"
	"fabsh/mad"
)

// subscription is the value `subscription`: events to come.
type subscription struct {
	sub   *sa.Subscription
	infos []mad.InformInfo
}

var (
	_ starlark.HasAttrs = (*subscription)(nil)
	_ documented        = (*subscription)(nil)
)

var subscriptionType *valueType[*subscription]

func init() {
	subscriptionType = newType("subscription", "Events to come, from sa_subscribe. It ends with the session.",
		member[*subscription]{method: &nextEventMethod},
		member[*subscription]{method: &closeSubscriptionMethod},
	)
}

func (s *subscription) String() string {
	var traps []string
	for _, i := range s.infos {
		if i.TrapNumber == mad.AllTraps {
			return "subscription(all traps)"
		}
		traps = append(traps, fmt.Sprint(i.TrapNumber))
	}
	noun := "trap "
	if len(traps) > 1 {
		noun = "traps "
	}
	return "subscription(" + noun + strings.Join(traps, ", ") + ")"
}

func (s *subscription) Type() string          { return "subscription" }
func (s *subscription) Freeze()               {}
func (s *subscription) Truth() starlark.Bool  { return true }
func (s *subscription) Hash() (uint32, error) { return 0, unhashable(s) }
func (s *subscription) AttrNames() []string   { return subscriptionType.names }
func (s *subscription) typeDoc() typeDoc      { return subscriptionType.typeDoc() }

func (s *subscription) Attr(name string) (starlark.Value, error) {
	return subscriptionType.attr(s, name)
}

var nextEventMethod = Builtin{
	Name:   "next",
	Params: []Param{{Name: "timeout", Kind: KindDuration, Default: "None", Doc: `how long to wait: "30s", or a number of seconds; None: for ever`}},
	Doc: `Waits for the next event, and returns it; None after the timeout.
An event is a notice, whose fields are those of Notice with what its trap number makes of data_details: n.lid_addr, n.gid_addr; or a lost, which says that notices may be missing: type(n) == "lost". 1024 wait at most; of what comes then, a lost tells the number. Other items of parallel go on meanwhile, and Ctrl-C ends the waiting.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sub.next(timeout="10ms")
> sim.unlink("leaf-1/2")
> n = sub.next(timeout="10s")
> if type(n) != "lost": print("a link of the switch with LID %d has changed" % n.lid_addr)
a link of the switch with LID 1 has changed
`,
	fn: func(c *call) (starlark.Value, error) {
		sub := c.recv.(*subscription).sub
		var ev sa.Event
		err := c.wait(func(ctx context.Context) (err error) {
			if c.Has("timeout") {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, c.Duration("timeout"), errNoEvent)
				defer cancel()
			}
			ev, err = sub.Next(ctx)
			return err
		})
		switch {
		case errors.Is(err, errNoEvent):
			return starlark.None, nil
		case c.fiber().stopped() != nil:
			return nil, err
		case errors.Is(err, sa.ErrUnsubscribed):
			return nil, errors.New("next: the subscription is closed: sa_subscribe makes another")
		case err != nil:
			return nil, fmt.Errorf("next: %w", err)
		case ev.Lost != "":
			return lostOf(ev), nil
		case ev.Class == mad.ClassSubn:
			return answered(mad.AttrSubnNotice, 0, ev.Notice[:mad.AttrSubnNotice.Size]), nil
		}
		return answered(mad.AttrSubnAdmNotice, 0, ev.Notice[:]), nil
	},
}

var closeSubscriptionMethod = Builtin{
	Name: "close",
	Doc: `Ends the subscription.
The subnet administrator is told, for a second at most. What has come can still be taken by next, which then fails. The end of the session closes all.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sub.close()
> len(sa_gettable("InformInfoRecord"))
0
`,
	fn: func(c *call) (starlark.Value, error) {
		sub := c.recv.(*subscription).sub
		err := c.wait(func(ctx context.Context) error {
			sub.Close(ctx) // it may fail to be heard, and then its reports are dropped
			return nil
		})
		return starlark.None, err
	},
}

// lostType describes the event that tells of others missing.
var lostType = &resultType{
	name: "lost",
	doc:  "What next() of a subscription returns where notices may be missing.",
	members: []resultMember{
		{name: "reason", doc: "why"},
		{name: "count", doc: "how many; None: not known"},
		{name: "trap_number", doc: "None, unlike a notice's"},
	},
}

func lostOf(ev sa.Event) *result {
	var count starlark.Value = starlark.None
	if ev.Count > 0 {
		count = starlark.MakeUint64(ev.Count)
	}
	return newResult(lostType, starlark.String(ev.Lost), count, starlark.None)
}

// subscribers hand out a session's events. They do nothing until a script
// subscribes.
type subscribers struct{ reports, traps *sa.Subscriber }

// Unsubscribe ends all subscriptions, within a second or so. It may be called
// while a script runs.
func (s *Session) Unsubscribe() {
	if s.o.Engine != nil {
		s.subscribers.reports.Close()
		s.subscribers.traps.Close()
	}
}
