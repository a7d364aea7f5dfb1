package datagrams

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/table"
	"fabsh/mad"
)

// GroupPort is the heading in the overview of what changes the state of ports.
const GroupPort = "Links"

// Parameters of what takes links down.
var (
	linkTarget = lang.Param{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; of a node that is no switch, the port where the request comes in"}
	linkForce  = lang.Param{Name: "force", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "also where this session or the subnet manager reaches the node through the port, or may do so"}
	linkWait   = lang.Param{Name: "wait", Kind: lang.KindDuration, Default: `"10s"`, Keyword: true, Doc: "how long the link may take to settle"}
)

// linkDoc is the end of the help on all of them.
const linkDoc = ` It returns PortInfo as it is when the link has settled, or a list of them for a list of targets. The Set is sent once; where no answer comes, the port is asked what became of it. What is refused is as with smp_set.`

// linkGuardDoc is the help on what force is for.
const linkGuardDoc = ` A port is left alone (and that is an error) where this session or the subnet manager reaches its node, or one of them the other, through it, by its route or by the forwarding tables as they are, and where that cannot be known: name ports by the latest discover(). force=True goes ahead.`

// linkArgs are the arguments of what takes links down or up.
type linkArgs struct {
	portArgs
	Wait time.Duration // for the link to settle
}

// forcedLinkArgs are those of what takes links down.
type forcedLinkArgs struct {
	linkArgs
	Force bool
}

// PortDisable is port_disable: links down until PortEnable.
var PortDisable = lang.Builtin{
	Name:    "port_disable",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkForce, linkWait},
	Doc: `Takes the link of a port down, until port_enable.
A disabled port of a CA may come back only by its host: disable the switch's port at the other end of the cable.` + linkGuardDoc + linkDoc,
	Example: `
> p = discover().switches[0].ports[2]
> port_disable(p).port_physical_state
"disabled"
> smp_get("PortInfo", p).port_state
"down"
`,
	Run: lang.Do(func(c *lang.Call, a *forcedLinkArgs) (starlark.Value, error) {
		return changePorts(c, table.Disable, &a.linkArgs, a.Force)
	}),
}

// PortEnable is port_enable: links that were disabled up again.
var PortEnable = lang.Builtin{
	Name:    "port_enable",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkWait},
	Doc: `Lets a disabled port look for its neighbour again.
Of a port that is not disabled nothing is changed.` + linkDoc,
	Example: `
> p = discover().switches[0].ports[2]
> _ = port_disable(p)
> port_enable(p).port_physical_state
"link_up"
`,
	Run: lang.Do(func(c *lang.Call, a *linkArgs) (starlark.Value, error) {
		return changePorts(c, table.Enable, a, false)
	}),
}

// PortReset is port_reset: links train again.
var PortReset = lang.Builtin{
	Name:    "port_reset",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkForce, linkWait},
	Doc: `Has the link of a port train again.
It then runs at the best of the widths and speeds that both ends have enabled (see port_set). A link that was up and does not come back is an error.` + linkGuardDoc + linkDoc,
	Example: `
> port_reset(discover().switches[0].ports[2]).port_physical_state
"link_up"
`,
	Run: lang.Do(func(c *lang.Call, a *forcedLinkArgs) (starlark.Value, error) {
		return changePorts(c, table.Reset, &a.linkArgs, a.Force)
	}),
}

// changePorts takes the links of ports down or up, all at once.
func changePorts(c *lang.Call, action table.Action, a *linkArgs, force bool) (starlark.Value, error) {
	targets, at, many, err := portTargets(c, &a.portArgs)
	if err != nil {
		return nil, err
	}
	e, err := topology.MayChange(c, mad.AttrPortInfo)
	if err != nil {
		return nil, err
	}
	changes := make([]*table.PortState, len(at))
	var open []*table.PortState
	for i := range at {
		changes[i] = &table.PortState{Port: at[i], Action: action, Force: force, Wait: a.Wait}
		if at[i].Err == nil {
			open = append(open, changes[i])
		}
	}
	if err := topology.Change(c, func(ctx context.Context) error { return table.SetPortStates(ctx, e, open...) }); err != nil {
		return nil, err
	}
	results := make([]*table.Port, len(changes))
	for i, one := range changes {
		results[i] = &one.Port
		if action == table.Disable && one.Err == nil && !one.IsSwitch() {
			c.Fiber().Warn("%s: %s: a disabled port of a CA may come back only by its host", c.Name, targets[i].Label)
		}
	}
	return portResults(c, targets, results, many)
}

// portTargets are the ports that the call names; Err is set where one cannot
// be asked.
func portTargets(c *lang.Call, a *portArgs) (targets []topology.Target, at []table.Port, many bool, err error) {
	targets, many, err = (&topology.Resolver{Call: c}).Targets(a.Target)
	if err != nil {
		return nil, nil, many, err
	}
	at = make([]table.Port, len(targets))
	for i := range targets {
		t := &targets[i]
		p := &at[i]
		*p = table.Port{Dest: t.Dest(), GUID: t.GUID(), Err: t.Reachable()}
		if p.Num, err = portsTable(c, a.Port, t); err != nil {
			return nil, nil, many, err
		}
		if t.Node != nil && p.Num >= 0 {
			p.Known = t.Node.Port(p.Num)
		}
	}
	return targets, at, many, nil
}

// portResults is what the builtins return.
func portResults(c *lang.Call, targets []topology.Target, at []*table.Port, many bool) (starlark.Value, error) {
	values := make([]starlark.Value, len(at))
	for i, p := range at {
		if p.Err != nil {
			values[i] = topology.Failed(c, &targets[i], p.Err)
		} else {
			values[i] = targets[i].Answer(records.New(mad.AttrPortInfo, p.After), p.Num)
		}
	}
	return topology.Results(values, many)
}

// portSetArgs are the arguments of port_set.
type portSetArgs struct {
	portArgs
	Speed, Width starlark.Value
	Force        bool
}

// PortSet is port_set: the speeds and widths that a link may run at.
var PortSet = lang.Builtin{
	Name:    "port_set",
	Returns: "port_info",
	Group:   GroupPort,
	Params: []lang.Param{
		linkTarget, portOfTable,
		{Name: "speed", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the fastest that the link may run at: sdr, ddr, qdr, fdr, edr, hdr, ndr or xdr; or a list of just those that it may"},
		{Name: "width", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "the widest that the link may run at: 1x, 2x, 4x, 8x or 12x; or a list of just those that it may"},
		{Name: "force", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "also where the neighbour has nothing of it enabled, so that the link would not come up again"},
	},
	Doc: `Sets at which speeds and widths a link may run.
It takes effect when the link trains again: port_reset(port). What the port does not support is an error. It returns PortInfo as the port then says it is, or a list of them for a list of targets. The Set is sent once. What is refused is as with smp_set.`,
	Example: `
> p = discover().switches[0].ports[2]
> port_set(p, speed="edr", width=["1x"]).link_speed_ext_enabled
("fdr", "edr")
> i = port_reset(p)
> i.link_width_active, i.link_speed_ext_active
("1x", "edr")
`,
	Run: lang.Do(func(c *lang.Call, a *portSetArgs) (starlark.Value, error) {
		speed, err := choiceOf("speed", a.Speed, fabric.LinkSpeeds)
		if err != nil {
			return nil, err
		}
		width, err := choiceOf("width", a.Width, fabric.LinkWidths)
		if err != nil {
			return nil, err
		}
		if len(speed.Words)+len(width.Words) == 0 {
			return nil, lang.Errorf(`nothing to set: name speed="hdr", or width="4x", or both`)
		}
		targets, at, many, err := portTargets(c, &a.portArgs)
		if err != nil {
			return nil, err
		}
		e, err := topology.MayChange(c, mad.AttrPortInfo)
		if err != nil {
			return nil, err
		}
		results := make([]*table.Port, len(at))
		var open []*table.LinkSettings
		for i := range at {
			link := &table.LinkSettings{Port: at[i], Speed: speed, Width: width, Force: a.Force}
			if results[i] = &link.Port; link.Err == nil {
				open = append(open, link)
			}
		}
		if err := topology.Change(c, func(ctx context.Context) error { return table.SetLinks(ctx, e, open...) }); err != nil {
			return nil, err
		}
		return portResults(c, targets, results, many)
	}),
}

// choiceOf reads an argument that is one of the words, or a list of some; nil:
// it was not given.
func choiceOf(param string, v starlark.Value, all []string) (choice table.Choice, err error) {
	if v == nil {
		return choice, nil
	}
	list := []starlark.Value{v}
	if it, ok := v.(starlark.Iterable); ok {
		list = lang.Collect(it)
	} else {
		choice.UpTo = true
	}
	for _, v := range list {
		s, ok := starlark.AsString(v)
		if !ok {
			return choice, lang.ParamError(param, "got %s, want one of %s, or a list of some", v.Type(), strings.Join(all, ", "))
		}
		i := slices.IndexFunc(all, func(word string) bool { return strings.EqualFold(word, s) })
		if i < 0 {
			return choice, lang.ParamError(param, "%q is none of %s", s, strings.Join(all, ", "))
		}
		choice.Words = append(choice.Words, all[i])
	}
	if len(list) == 0 {
		return choice, lang.ParamError(param, "the list is empty")
	}
	return choice, nil
}
