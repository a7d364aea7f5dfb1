package datagrams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric/sa"
	"fabsh/mad"
)

// subscription is the value `subscription`: events to come.
type subscription struct {
	sub   *sa.Subscription
	infos []mad.InformInfo
}

// SubscriptionType is the type of subscription values.
var SubscriptionType *lang.Type[*subscription]

func init() {
	SubscriptionType = lang.NewType("subscription", "Events to come, from sa_subscribe. It ends with the session.",
		lang.Member[*subscription]{Method: &nextEventMethod},
		lang.Member[*subscription]{Method: &closeSubscriptionMethod},
	)
}

// String names the traps.
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
func (s *subscription) Hash() (uint32, error) { return 0, lang.Unhashable(s) }
func (s *subscription) AttrNames() []string   { return SubscriptionType.Names }
func (s *subscription) TypeDoc() lang.TypeDoc { return SubscriptionType.TypeDoc() }

func (s *subscription) Attr(name string) (starlark.Value, error) {
	return SubscriptionType.Attr(s, name)
}

// nextEventMethod is the method next: it waits for an event.
var nextEventMethod = lang.Builtin{
	Name:   "next",
	Params: []lang.Param{{Name: "timeout", Kind: lang.KindDuration, Default: "None", Doc: `how long to wait: "30s", or a number of seconds; None: for ever`}},
	Doc: `Waits for the next event, and returns it; None after the timeout.
An event is a notice, whose fields are those of Notice with what its trap number makes of data_details: n.lid_addr, n.gid_addr, and source, the LID that it came from; or a lost, which says that notices may be missing: type(n) == "lost". 1024 wait at most; of what comes then, a lost tells the number. Other items of parallel go on meanwhile, and Ctrl-C ends the waiting.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sub.next(timeout="10ms")
> sim.unlink("leaf-1/2")
> n = sub.next(timeout="10s")
> if type(n) != "lost": print("a link of the switch with LID %d has changed" % n.lid_addr)
a link of the switch with LID 1 has changed
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Timeout *time.Duration }) (starlark.Value, error) {
		sub := c.Recv.(*subscription).sub
		var ev sa.Event
		err := c.Block(func(ctx context.Context) (err error) {
			if a.Timeout != nil {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, *a.Timeout, errNoEvent)
				defer cancel()
			}
			ev, err = sub.Next(ctx)
			return err
		})
		switch {
		case errors.Is(err, errNoEvent):
			return starlark.None, nil
		case c.Fiber().Stopped() != nil:
			return nil, err
		case errors.Is(err, sa.ErrUnsubscribed):
			return nil, lang.Errorf("the subscription is closed: sa_subscribe makes another")
		case err != nil:
			return nil, lang.Errorf("%w", err)
		case ev.Lost != "":
			return lostOf(ev), nil
		case ev.Class == mad.ClassSubn:
			return records.NewAnswer(mad.AttrSubnNotice, 0, ev.Notice[:mad.AttrSubnNotice.Size]).From(ev.Source), nil
		}
		return records.NewAnswer(mad.AttrSubnAdmNotice, 0, ev.Notice[:]).From(ev.Source), nil
	}),
}

// closeSubscriptionMethod is the method close: no more events.
var closeSubscriptionMethod = lang.Builtin{
	Name: "close",
	Doc: `Ends the subscription.
The subnet administrator is told, for a second at most. What has come can still be taken by next, which then fails. The end of the session closes all.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sub.close()
> len(sa_gettable("InformInfoRecord"))
0
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		sub := c.Recv.(*subscription).sub
		err := c.Block(func(ctx context.Context) error {
			sub.Close(ctx) // it may fail to be heard, and then its reports are dropped
			return nil
		})
		return starlark.None, err
	}),
}

// LostType describes the event that tells of others missing.
var LostType = &lang.ResultType{
	Name: "lost",
	Doc:  "What next() of a subscription returns where notices may be missing.",
	Members: []lang.ResultMember{
		{Name: "reason", Doc: "why"},
		{Name: "count", Doc: "how many; None: not known"},
		{Name: "trap_number", Doc: "None, unlike a notice's"},
	},
}

// lostOf is the value of an event that says that others are lost.
func lostOf(ev sa.Event) *lang.Result {
	var count starlark.Value = starlark.None
	if ev.Count > 0 {
		count = starlark.MakeUint64(ev.Count)
	}
	return lang.NewResult(LostType, starlark.String(ev.Lost), count, starlark.None)
}

// Subscribers hand out a session's events. They do nothing until a script
// subscribes.
type Subscribers struct{ reports, traps, poll *sa.Subscriber }

// NewSubscribers are those of a session that has an engine.
func NewSubscribers(r *lang.Runtime) *Subscribers {
	env, s := topology.EnvOf(r), lang.StateOf[Subscribers](r)
	s.reports = sa.NewSubscriber(env.SA)
	s.traps = sa.NewTrapSubscriber(env.Engine)
	s.poll = sa.NewPollSubscriber(env.SA)
	return s
}

// Close ends all subscriptions, within a second or so. It may be called while a
// script runs.
func (s *Subscribers) Close() {
	if s.reports != nil {
		s.reports.Close()
		s.traps.Close()
		s.poll.Close()
	}
}
