package datagrams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// SASubscribe is sa_subscribe, which subscribes to events.
var SASubscribe = lang.Builtin{
	Name:    "sa_subscribe",
	Returns: "subscription",
	Group:   GroupMAD,
	Params: []lang.Param{
		{Name: "trap", Kind: lang.KindAny, Default: "None", Doc: "the number of a trap, or an iterable of them; None: all"},
		{Name: "generic", Kind: lang.KindBool, Default: "True", Keyword: true, Doc: "traps of the specification; False: traps of a vendor, selected by vendor_id and device_id"},
		{Name: "source", Kind: lang.KindChoice, Default: `"reports"`, Keyword: true, Doc: `"reports", from the subnet administrator; "traps", which agents send to this port (requires --trap-agent); or "poll", notices read from devices that send no traps`},
		{Name: "**components", Kind: records.KindFields, Doc: `further conditions for notices, by the names of InformInfo: producer_type="switch", type="urgent", gid=, lid_range_begin=, lid_range_end= (of the port that sent the trap)`},
	},
	Doc: `Subscribes to events of the fabric and returns a subscription, whose next() waits for an event.
The subnet administrator forwards traps and reports its own: 64 and 65, a port came into or went out of service; 66 and 67, a multicast group was created or deleted; 128, the state of a link changed at a port of a switch; 144, capabilities or names changed. There can be several subscriptions, also to the same event.
Subscriptions last as long as the session. If the subnet manager has changed, restarted or lost them, they are made again, and next() returns a lost: notices may be missing. The subnet manager's identity is checked every 5 s, the subscriptions every minute. Security traps (256 to 259) require the SM_Key.
Only Reports from the subnet administrator, and only traps from the port that they name as issuer, are accepted; others are neither returned nor answered, and stats() counts them as foreign. A subscription changes nothing in the fabric and does not require --write. The kernel delivers all Reports to a port to one program. With --trap-agent, which requires --write, source="traps" returns the traps that agents send to this port because they take it for the subnet manager's port, and answers them by TrapRepress. It is refused if a subnet manager runs on the port. source="poll" reads every 5 s the latest notice of each device that keeps notices and sends no traps, by its capability_mask, and changes nothing there; where more than one came in between, next() returns a lost with their number.`,
	Example: `
> sub = sa_subscribe(trap=[64, 65, 128])
> sim.unlink("leaf-1/2")
> n = sub.next(timeout="1s")
> (n.trap_number, n.type, n.lid_addr)
(128, "urgent", 1)
> n = sub.next(timeout="1s")
> (n.trap_number, n.gid_addr)
(65, "fe80::2:c903:1000:11")
> sub.close()
`,
	Run: lang.Do(func(c *lang.Call, a *subscribeArgs) (starlark.Value, error) {
		if err := topology.MayNotPlan(c); err != nil {
			return nil, err
		}
		if topology.EnvOf(c.Runtime()).Confined {
			return nil, c.Refuse("refused: this server has no subscriptions; audit(over=\"10s\") and diff find what has changed")
		}
		infos, err := a.informInfos(c)
		if err != nil {
			return nil, err
		}
		from, err := subscriberOf(c, a.Source)
		if err != nil {
			return nil, err
		}
		var sub *sa.Subscription
		err = c.Block(func(ctx context.Context) (err error) {
			sub, err = from.Subscribe(ctx, infos...)
			return err
		})
		if stopped := c.Fiber().Stopped(); stopped != nil {
			return nil, stopped
		}
		if err != nil {
			topology.CountUnanswered(c, err)
			return nil, notSubscribed(c, a.Source, infos, err)
		}
		return &subscription{sub: sub, infos: infos}, nil
	}),
}

// subscribeArgs are the arguments of sa_subscribe.
type subscribeArgs struct {
	Trap       starlark.Value
	Generic    bool
	Source     string
	Components []starlark.Tuple
}

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

// Sources of the notices of a subscription.
const (
	fromReports = "reports"
	fromTraps   = "traps"
	fromPoll    = "poll"
)

// notSubscribed returns the error of a failed subscription.
func notSubscribed(c *lang.Call, source string, infos []mad.InformInfo, err error) error {
	label := "InformInfo of the subnet administrator"
	switch source {
	case fromTraps:
		label = "traps to this port"
	case fromPoll:
		label = "PortInfoRecord of the subnet administrator"
	}
	err = topology.FailedRequest(c, &topology.Target{Label: label}, err)
	security := slices.ContainsFunc(infos, func(i mad.InformInfo) bool { return i.TrapNumber >= 256 && i.TrapNumber <= 259 })
	var me *engine.Error
	var re *topology.RequestError
	if security && errors.As(err, &me) && me.Status == mad.StatusRequestInvalid && errors.As(err, &re) {
		re.Advice = "security traps require the SM_Key; give it with --keys FILE, in a line sa_key"
	}
	return err
}

// informInfos returns the InformInfo of the call for each trap number.
func (a *subscribeArgs) informInfos(c *lang.Call) ([]mad.InformInfo, error) {
	attr := mad.AttrInformInfo
	data := make([]byte, attr.Size)
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, TrapNumber: mad.AllTraps, Type: mad.InformTypeAll, ProducerType: mad.ProducerTypeAll}
	if a.Generic {
		info.IsGeneric = 1
	}
	info.Encode(data)
	given := map[string]bool{}
	for _, kv := range a.Components {
		name := string(kv[0].(starlark.String))
		switch name {
		case "subscribe", "qpn", "resp_time_value", "is_generic", "trap_number", "is_generic_code":
			return nil, lang.Errorf("unsupported condition %s; want %s", name, c.Signature())
		case "vendor_id", "device_id":
			if a.Generic {
				return nil, lang.Errorf("%s applies only to traps of a vendor; also give generic=False", name)
			}
		}
		f, err := records.SetNamed(attr, data, name, kv[1])
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		given[f.Script] = true
	}
	info.Decode(data)
	switch {
	case given["lid_range_end"] && !given["lid_range_begin"]:
		return nil, lang.Errorf("lid_range_end without lid_range_begin")
	case given["lid_range_begin"] && !given["lid_range_end"]: // for OpenSM the range 5 to 0 is empty
		info.LIDRangeEnd = info.LIDRangeBegin
	case given["lid_range_begin"] && info.LIDRangeEnd < info.LIDRangeBegin:
		return nil, lang.Errorf("no LID is between %d and %d", info.LIDRangeBegin, info.LIDRangeEnd)
	}
	if a.Trap == nil {
		return []mad.InformInfo{info}, nil
	}
	if given["trap_number"] || given["device_id"] { // one component
		return nil, lang.Errorf("trap and device_id are the same component; give one of them")
	}
	numbers, err := trapNumbers(a.Trap)
	if err != nil {
		return nil, err
	}
	var infos []mad.InformInfo
	for _, n := range numbers {
		info.TrapNumber = n
		infos = append(infos, info)
	}
	return infos, nil
}

// trapNumbers returns the numbers of the argument trap, in order.
func trapNumbers(trap starlark.Value) (numbers []uint16, err error) {
	list := []starlark.Value{trap}
	if it, ok := list[0].(starlark.Iterable); ok {
		list = lang.Collect(it)
	}
	if len(list) == 0 {
		return nil, lang.ParamError("trap", "the list is empty; leave it out for all traps")
	}
	for _, v := range list {
		n, err := lang.ToInt(v)
		if err != nil {
			return nil, lang.ParamError("trap", "got %s, want a number or an iterable of them", v.Type())
		}
		if n < 0 || n >= int(mad.AllTraps) {
			return nil, lang.ParamError("trap", "got %d, want 0..%d", n, mad.AllTraps-1)
		}
		numbers = append(numbers, uint16(n))
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil
}

// subscriberOf returns the subscriber for a source.
func subscriberOf(c *lang.Call, source string) (*sa.Subscriber, error) {
	e, err := topology.EngineOf(c)
	if err != nil {
		return nil, err
	}
	subs := lang.StateOf[Subscribers](c.Runtime())
	switch source {
	case fromReports:
		return subs.reports, nil
	case fromTraps:
		return subs.traps, checkTrapAgent(c, e)
	case fromPoll:
		return subs.poll, nil
	default:
		return nil, lang.ParamError("source", "got %q, want %q, %q or %q%s", source, fromReports, fromTraps, fromPoll, fabric.DidYouMean(source, []string{fromReports, fromTraps, fromPoll}))
	}
}

// checkTrapAgent checks that --trap-agent was given and that no subnet manager, for which
// the traps would be meant, runs on this port.
func checkTrapAgent(c *lang.Call, e *engine.Engine) error {
	switch {
	case !topology.EnvOf(c.Runtime()).TrapAgent:
		return c.Refuse("refused: traps to this port are received only with --trap-agent (and --write, because TrapRepress answers them)")
	case !e.Write():
		return c.Refuse("refused: TrapRepress answers traps, which requires --write")
	}
	var own engine.Call
	own.PutSMP(mad.MethodGet, mad.AttrPortInfo.ID, 0, nil)
	own.SetRoute(mad.DirectedRoute{0})
	if err := topology.SendProbes(c, []*engine.Call{&own}); err != nil {
		return err
	}
	if own.Err != nil {
		return topology.FailedRequest(c, &topology.Target{Label: "this port"}, own.Err)
	}
	var info mad.PortInfo
	info.Decode(own.Data())
	if info.CapabilityMask&mad.CapabilityMaskIsSM != 0 {
		return c.Refuse("refused: a subnet manager runs on this port and receives its traps; use another port (-C, -P)")
	}
	return nil
}

// errNoEvent ends next at the timeout.
var errNoEvent = errors.New("no event")
