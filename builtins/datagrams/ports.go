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
	"fabsh/fabric/device"
	"fabsh/mad"
)

// GroupPort is the heading of changes of the state of ports in the overview.
const GroupPort = "Links"

// Parameters of functions that take links down.
var (
	linkTarget = lang.Param{Name: "target", Kind: topology.KindTarget, Doc: "a port, or an iterable of them; for a node that is not a switch, the port that receives the request"}
	linkForce  = lang.Param{Name: "force", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "change the port even if this session or the subnet manager reaches, or may reach, the node through it"}
	linkWait   = lang.Param{Name: "wait", Kind: lang.KindDuration, Default: `"10s"`, Keyword: true, Doc: "maximum time for the link to reach a stable state"}
)

// linkDoc is the end of the help of the functions that take links down or up.
const linkDoc = ` It returns PortInfo after the link has reached a stable state, or a list of them for a list of targets. The Set is sent once; if it is not answered, the port is read to determine its effect. The same requests are refused as with smp_set.`

// linkGuardDoc is the help of the parameter force.
const linkGuardDoc = ` A port is not changed, which is an error, if this session or the subnet manager reaches its node through it, or they reach each other through it, by directed route or by the current forwarding tables, or if this is unknown: name ports of the latest discover(). force=True skips this check.`

// linkArgs are the arguments of functions that take links down or up.
type linkArgs struct {
	portArgs
	Wait time.Duration // for a stable state of the link
}

// forcedLinkArgs are the arguments of functions that take links down.
type forcedLinkArgs struct {
	linkArgs
	Force bool
}

// PortDisable is port_disable, which takes links down until PortEnable.
var PortDisable = lang.Builtin{
	Name:    "port_disable",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkForce, linkWait},
	Doc: `Takes the link of a port down, until port_enable.
A disabled port of a CA may come back only from its host; disable the switch port at the other end of the cable instead.` + linkGuardDoc + linkDoc,
	Example: `
> p = discover().switches[0].ports[2]
> port_disable(p).port_physical_state
"disabled"
> smp_get("PortInfo", p).port_state
"down"
`,
	Run: lang.Do(func(c *lang.Call, a *forcedLinkArgs) (starlark.Value, error) {
		return changePorts(c, device.Disable, &a.linkArgs, a.Force)
	}),
}

// PortEnable is port_enable, which brings disabled links up again.
var PortEnable = lang.Builtin{
	Name:    "port_enable",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkWait},
	Doc: `Enables a disabled port, so that its link trains again.
A port that is not disabled is not changed.` + linkDoc,
	Example: `
> p = discover().switches[0].ports[2]
> _ = port_disable(p)
> port_enable(p).port_physical_state
"link_up"
`,
	Run: lang.Do(func(c *lang.Call, a *linkArgs) (starlark.Value, error) {
		return changePorts(c, device.Enable, a, false)
	}),
}

// PortReset is port_reset, which makes links train again.
var PortReset = lang.Builtin{
	Name:    "port_reset",
	Returns: "port_info",
	Group:   GroupPort,
	Params:  []lang.Param{linkTarget, portOfTable, linkForce, linkWait},
	Doc: `Makes the link of a port train again.
It then runs at the best width and speed that both ends have enabled (see port_set). It fails if a link that was up does not come up again.` + linkGuardDoc + linkDoc,
	Example: `
> port_reset(discover().switches[0].ports[2]).port_physical_state
"link_up"
`,
	Run: lang.Do(func(c *lang.Call, a *forcedLinkArgs) (starlark.Value, error) {
		return changePorts(c, device.Reset, &a.linkArgs, a.Force)
	}),
}

// changePorts takes the links of ports down or up, all at once.
func changePorts(c *lang.Call, action device.Action, a *linkArgs, force bool) (starlark.Value, error) {
	targets, at, many, err := portTargets(c, &a.portArgs)
	if err != nil {
		return nil, err
	}
	e, err := topology.MayChange(c, mad.AttrPortInfo)
	if err != nil {
		return nil, err
	}
	changes := make([]*device.PortState, len(at))
	var open []*device.PortState
	for i := range at {
		changes[i] = &device.PortState{PortTarget: at[i], Action: action, Force: force, Wait: a.Wait}
		if at[i].Err == nil {
			open = append(open, changes[i])
		}
	}
	if err := topology.Change(c, func(ctx context.Context) error { return device.SetPortStates(ctx, e, open...) }); err != nil {
		return nil, err
	}
	results := make([]*device.PortTarget, len(changes))
	for i, one := range changes {
		results[i] = &one.PortTarget
		if action == device.Disable && one.Err == nil && !one.IsSwitch() {
			c.Fiber().Warn("%s: %s: a disabled port of a CA may come back only from its host", c.Name, targets[i].Label)
		}
	}
	return portResults(c, targets, results, many, records.Change{Link: true, Reset: action == device.Reset})
}

// portTargets returns the ports that the call names; Err is set for a port that cannot
// be reached.
func portTargets(c *lang.Call, a *portArgs) (targets []topology.Target, at []device.PortTarget, many bool, err error) {
	targets, many, err = (&topology.Resolver{Call: c}).Targets(a.Target)
	if err != nil {
		return nil, nil, many, err
	}
	at = make([]device.PortTarget, len(targets))
	for i := range targets {
		t := &targets[i]
		p := &at[i]
		*p = device.PortTarget{Dest: t.Dest(), GUID: t.GUID(), Err: t.Reachable()}
		if p.Num, err = requiredTablePort(c, a.Port, t); err != nil {
			return nil, nil, many, err
		}
		if t.Node != nil && p.Num >= 0 {
			p.Known = t.Node.Port(p.Num)
		}
	}
	return targets, at, many, nil
}

// portResults returns the results of the builtins, which make a change.
func portResults(c *lang.Call, targets []topology.Target, at []*device.PortTarget, many bool, change records.Change) (starlark.Value, error) {
	values := make([]starlark.Value, len(at))
	change.Planned = topology.Planning(c)
	for i, p := range at {
		if p.Err != nil {
			values[i] = topology.Failed(c, &targets[i], p.Err)
		} else {
			change.Before = p.Before
			values[i] = targets[i].Answer(records.New(mad.AttrPortInfo, p.After), p.Num).ChangedBy(change)
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

// PortSet is port_set, which sets the speeds and widths that a link may run at.
var PortSet = lang.Builtin{
	Name:    "port_set",
	Returns: "port_info",
	Group:   GroupPort,
	Params: []lang.Param{
		linkTarget, portOfTable,
		{Name: "speed", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "maximum speed of the link: sdr, ddr, qdr, fdr, edr, hdr, ndr or xdr; or a list of the allowed speeds"},
		{Name: "width", Kind: lang.KindAny, Default: "None", Keyword: true, Doc: "maximum width of the link: 1x, 2x, 4x, 8x or 12x; or a list of the allowed widths"},
		{Name: "force", Kind: lang.KindBool, Default: "False", Keyword: true, Doc: "change the port even if the neighbour has none of them enabled, so that the link would not come up again"},
	},
	Doc: `Sets the speeds and widths that a link may run at.
It takes effect when the link trains again: port_reset(port). It fails if the port does not support a speed or width. It returns PortInfo, read back, or a list of them for a list of targets. The Set is sent once. The same requests are refused as with smp_set.`,
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
			return nil, lang.Errorf(`nothing to set; give speed="hdr", or width="4x", or both`)
		}
		targets, at, many, err := portTargets(c, &a.portArgs)
		if err != nil {
			return nil, err
		}
		e, err := topology.MayChange(c, mad.AttrPortInfo)
		if err != nil {
			return nil, err
		}
		results := make([]*device.PortTarget, len(at))
		var open []*device.LinkSettings
		for i := range at {
			link := &device.LinkSettings{PortTarget: at[i], Speed: speed, Width: width, Force: a.Force}
			if results[i] = &link.PortTarget; link.Err == nil {
				open = append(open, link)
			}
		}
		if err := topology.Change(c, func(ctx context.Context) error { return device.SetLinks(ctx, e, open...) }); err != nil {
			return nil, err
		}
		return portResults(c, targets, results, many, records.Change{})
	}),
}

// choiceOf converts an argument that is one of the words, or a list of some; nil: not
// given.
func choiceOf(param string, v starlark.Value, all []string) (choice device.LinkModes, err error) {
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
			return choice, lang.ParamError(param, "unknown %q; want one of %s", s, strings.Join(all, ", "))
		}
		choice.Words = append(choice.Words, all[i])
	}
	if len(list) == 0 {
		return choice, lang.ParamError(param, "the list is empty")
	}
	return choice, nil
}
