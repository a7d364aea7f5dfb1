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

// subscription is the value `subscription`, a source of future events.
type subscription struct {
	sub   *sa.Subscription
	infos []mad.InformInfo
}

// SubscriptionType is the type of subscription values.
var SubscriptionType *lang.Type[*subscription]

func init() {
	SubscriptionType = lang.NewType("subscription", "Future events, from sa_subscribe. It ends with the session.",
		lang.Member[*subscription]{Method: &nextEventMethod},
		lang.Member[*subscription]{Method: &closeSubscriptionMethod},
	)
}

// String returns the traps.
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

// nextEventMethod is the method next, which waits for an event.
var nextEventMethod = lang.Builtin{
	Name:   "next",
	Params: []lang.Param{{Name: "timeout", Kind: lang.KindDuration, Default: "None", Doc: `maximum time to wait: "30s", or a number of seconds; None: unlimited`}},
	Doc: `Waits for the next event and returns it; returns None after the timeout.
An event is a notice or a lost. A notice has the fields of Notice, those of data_details for its trap number, such as n.lid_addr and n.gid_addr, and source, the LID that sent it. A lost, type(n) == "lost", means that notices may be missing. At most 1024 events are queued; a lost has the number of those that came after that. Other items of parallel continue meanwhile, and Ctrl-C stops the wait.`,
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
			return nil, lang.Errorf("the subscription is closed; sa_subscribe makes a new one")
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

// closeSubscriptionMethod is the method close, which ends a subscription.
var closeSubscriptionMethod = lang.Builtin{
	Name: "close",
	Doc: `Ends the subscription.
It unsubscribes at the subnet administrator, for at most 1 s. next returns the events that have already come, and then fails. The end of the session closes all subscriptions.`,
	Example: `
> sub = sa_subscribe(trap=128)
> sub.close()
> len(sa_gettable("InformInfoRecord"))
0
`,
	Run: lang.Do(func(c *lang.Call, _ *struct{}) (starlark.Value, error) {
		sub := c.Recv.(*subscription).sub
		err := c.Block(func(ctx context.Context) error {
			sub.Close(ctx) // if the request is lost, later Reports are dropped
			return nil
		})
		return starlark.None, err
	}),
}

// LostType describes the event that reports missing events.
var LostType = &lang.ResultType{
	Name: "lost",
	Doc:  "The result of next() of a subscription if notices may be missing.",
	Members: []lang.ResultMember{
		{Name: "reason", Doc: "why"},
		{Name: "count", Doc: "the number of missing notices; None: unknown"},
		{Name: "trap_number", Doc: "always None, to distinguish it from a notice"},
	},
}

// lostOf returns the value of an event that reports lost events.
func lostOf(ev sa.Event) *lang.Result {
	var count starlark.Value = starlark.None
	if ev.Count > 0 {
		count = starlark.MakeUint64(ev.Count)
	}
	return lang.NewResult(LostType, starlark.String(ev.Lost), count, starlark.None)
}

// Subscribers deliver a session's events. They do nothing until a script subscribes.
type Subscribers struct{ reports, traps, poll *sa.Subscriber }

// NewSubscribers returns the subscribers of a session that has an engine.
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
