package audits

import (
	"context"
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/localhost"
	"fabsh/mad"
)

// ThisHost is this_host(), which returns the ports of the host.
var ThisHost = lang.Builtin{
	Name:  "this_host",
	Group: GroupAudit,
	Params: []lang.Param{
		{Name: "expect", Kind: lang.KindText, Default: `""`, Doc: `the ports that the host should have: "8xNDR", "8xNDR,2x2xHDR"; or the path of a file with a line MODEL PORTS [FIRMWARE]... for each model, or of a manifest of GCM; as for fs.read`},
	},
	Doc: `Returns the ports of this host, as its kernel shows them, with the names of their neighbours.
It is for audits of the host, which define the global host = True and run without a fabric. Counters are compared with those of the previous run of the job. In other sessions it is an error.`,
	Example: `
> type(catch(this_host))
"error"
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Expect string }) (starlark.Value, error) {
		h := topology.EnvOf(c.Runtime()).Host
		if h != nil && len(h.Ports) == 0 && a.Expect == "" {
			topology.ObserveOne(c, mad.AttrPortInfo, nil, errNoDevice)
		}
		if h == nil {
			return nil, lang.Errorf("this session has a fabric, or none; the ports of the host are known in fabsh audit host, and in audits that define host = True")
		}
		expected, err := readExpected(c, a.Expect)
		if err != nil {
			return nil, err
		}
		rates, gone, why := hostRates(c, h)
		ports := make([]starlark.Value, len(h.Ports))
		for i := range h.Ports {
			observeOwn(c, &h.Ports[i])
			ports[i] = ownPort(&h.Ports[i], rates[i])
		}
		return lang.NewResult(ThisHostType, starlark.String(h.Name), lang.TextOrNone(h.Domain), starlark.NewList(ports), expected, gone, lang.TextOrNone(why)), nil
	}),
}

// ThisHostType is the type of the result of this_host().
var ThisHostType = &lang.ResultType{
	Name: "this_host",
	Doc:  "The host that the program runs on.",
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: "its name"},
		{Name: "domain", Doc: "the NVLink domain of its GPUs, ClusterUUID.CliqueID, by nvidia-smi -q; None if it is unknown, or the host is in none"},
		{Name: "ports", Doc: "its ports: a list of own_port"},
		{Name: "expected", Doc: "what expect stands for, None without it: dicts of model, devices, count, width, speed, firmware"},
		{Name: "gone", Doc: "ports of runs in the last 24 hours that the host no longer has: dicts of subject (GUID/PORT) and seconds (since they were last read); None if unknown: no earlier run has read ports, or the files of a port are invalid"},
		{Name: "uncompared", Doc: "why counters could not be compared with an earlier run; None if they were"},
	},
}

// OwnPortType is the type of a port of the host.
var OwnPortType = &lang.ResultType{
	Name:      "own_port",
	Doc:       "A port of this host, as its kernel shows it.",
	Important: []string{"name", "port", "error", "role", "pair", "model", "firmware"},
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: `device and number: "mlx5_0/1"`},
		{Name: "port", Type: "port", Doc: "the port, with its state, width and speed, LID and, if it is known, its peer; None if error is set"},
		{Name: "error", Doc: "why the kernel's files about the port are invalid; None if they are valid"},
		{Name: "network", Doc: `"infiniband", "roce" or "iwarp"`},
		{Name: "role", Doc: `the management datagrams that it sends: "smi", "gsi" or "both"; None if ib_umad does not serve it`},
		{Name: "pair", Doc: "the port that sends the others, None without one: they are one port"},
		{Name: "device", Type: "string", Doc: `"mlx5_0"`},
		{Name: "model", Doc: `type of the adapter: "MT4129"; None if unknown`},
		{Name: "board", Doc: `ID of the board: "MT_0000000838"; None if unknown`},
		{Name: "firmware", Doc: "version of the firmware, None if unknown"},
		{Name: "pcie", Doc: "the PCIe link of the adapter: a dict of width and max_width in lanes, speed and max_speed in GT/s; None if the kernel does not show it"},
		{Name: "functions", Doc: "virtual functions of the adapter: dicts of index, device, state (of its port), node_guid, port_guid and policy; None for what the kernel does not show"},
		{Name: "gbps", Doc: "data rate in Gb/s, None if unknown"},
		{Name: "sm_lid", Doc: "LID of its subnet manager, 0 if none"},
		{Name: "gid_prefix", Doc: "GID prefix of its subnet"},
		{Name: "pkeys", Doc: "its P_Key table, up to the last one in use: a list"},
		{Name: "rates", Type: "port_rates", Doc: "its counters since the previous run; None if unknown"},
		{Name: "counters_error", Doc: "why its counters are unknown, None if they are known"},
		{Name: "asked", Doc: "True if the name of its neighbour was requested"},
		{Name: "neighbor_error", Doc: "why its neighbour is unknown; None if it is known, or the link is down"},
	},
}

// ownPort returns the value of a port.
func ownPort(p *localhost.HostPort, rates starlark.Value) starlark.Value {
	text := func(err error) starlark.Value {
		if err == nil {
			return starlark.None
		}
		return starlark.String(err.Error())
	}
	port := starlark.Value(starlark.None)
	if p.Port != nil {
		port = topology.PortOf(p.Port)
	}
	keys := make([]starlark.Value, len(p.PKeys))
	for i, k := range p.PKeys {
		keys[i] = starlark.MakeInt(int(k))
	}
	err := p.Err
	if err == nil && p.Port == nil {
		err = errors.New("another port of the host has its device and GUID")
	}
	return lang.NewResult(OwnPortType, starlark.String(p.Name()), port, text(err), lang.TextOrNone(p.Link), lang.TextOrNone(p.Role), lang.TextOrNone(p.Pair),
		starlark.String(p.Device), lang.TextOrNone(p.Model), lang.TextOrNone(p.Board), lang.TextOrNone(p.Firmware), pcieOf(&p.PCI), functionsOf(&p.PCI), lang.OrNone(p.Gbps > 0, starlark.Float(p.Gbps)),
		starlark.MakeInt(int(p.SMLID)), topology.GUIDValue(mad.GUID(p.GIDPrefix)), starlark.NewList(keys), rates, text(p.CountersErr), starlark.Bool(p.NeighborRequested), text(p.NeighborErr))
}

// pcieOf returns the PCIe link of an adapter, None if it is unknown.
func pcieOf(p *localhost.PCI) starlark.Value {
	if p.Width == 0 || p.MaxWidth == 0 || p.Speed == 0 || p.MaxSpeed == 0 {
		return starlark.None
	}
	return lang.DictOf("width", starlark.MakeInt(p.Width), "max_width", starlark.MakeInt(p.MaxWidth), "speed", starlark.Float(p.Speed), "max_speed", starlark.Float(p.MaxSpeed))
}

// functionsOf returns the virtual functions of an adapter.
func functionsOf(p *localhost.PCI) starlark.Value {
	return lang.List(p.Functions, func(f localhost.VirtualFunction) starlark.Value {
		return lang.DictOf("index", starlark.MakeInt(f.Index), "device", lang.TextOrNone(f.Device), "state", lang.OrNone(f.State != 0, starlark.String(f.State.String())),
			"node_guid", lang.OrNone(f.NodeKnown, topology.GUIDValue(f.NodeGUID)), "port_guid", lang.OrNone(f.PortKnown, topology.GUIDValue(f.PortGUID)), "policy", lang.TextOrNone(f.Policy))
	})
}

// observeOwn counts the attributes that were read of a port in the coverage of the report.
func observeOwn(c *lang.Call, p *localhost.HostPort) {
	t := &topology.Target{Label: p.Name(), Port: topology.NoPortGiven}
	if p.Port != nil {
		t.Node, t.Port = p.Port.Node(), p.Port.Num()
	}
	topology.ObserveOne(c, mad.AttrPortInfo, t, p.Err)
	if p.Err == nil && p.Link == "infiniband" && p.CountersErr == nil {
		topology.ObserveOne(c, mad.AttrPortCounters, t, nil)
	}
	if p.NeighborRequested && p.NeighborErr == nil { // an audit of the host does not judge the neighbour
		topology.ObserveOne(c, mad.AttrNodeDescription, t, nil)
	}
}

// readExpected reads the ports that the host should have; None: none are expected.
func readExpected(c *lang.Call, text string) (starlark.Value, error) {
	if text == "" {
		return starlark.None, nil
	}
	var list []localhost.Expected
	var err error
	if localhost.IsExpectation(text) {
		list, err = localhost.ParseExpectation(text)
	} else {
		err = c.Block(func(ctx context.Context) error {
			data, err := c.Runtime().Files.Read(ctx, text)
			if err != nil {
				return lang.Errorf("%w; want ports such as 8xNDR, or the path of a file", err)
			}
			if list, err = localhost.ParseExpectationFile(data); err != nil {
				return lang.Errorf("%s: %w", text, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, lang.ParamError("expect", "%w", err)
	}
	return lang.List(list, func(x localhost.Expected) starlark.Value {
		return lang.DictOf("model", starlark.String(x.Model), "devices", lang.Texts(x.Devices), "count", starlark.MakeInt(x.Count),
			"width", starlark.String(x.Width), "speed", starlark.String(x.Speed), "firmware", lang.Texts(x.Firmware))
	}), nil
}

// hostRates returns the rates of the counters of all ports since the previous run, None if
// unknown; the ports of earlier runs that are gone; and why nothing was compared, "" if it was.
func hostRates(c *lang.Call, h *localhost.Host) (rates []starlark.Value, gone starlark.Value, why string) {
	gone = starlark.None
	rates = make([]starlark.Value, len(h.Ports))
	for i := range rates {
		rates[i] = starlark.None
	}
	x := collectorOf(c.Fiber()).job
	if x == nil {
		return rates, gone, "they are compared only in fabsh audit"
	}
	if err := x.open(c); errors.Is(err, format.ErrLockHeld) { // a prolog beside a health check
		x.ReadOnly = true
		err = x.open(c)
		if err != nil {
			return rates, gone, err.Error()
		}
	} else if err != nil {
		return rates, gone, err.Error()
	}
	x.needed = true
	answers := audit.NewAnswers(h.Began, len(h.Ports))
	var at []int // index in h.Ports
	for i := range h.Ports {
		p := &h.Ports[i]
		if p.Port == nil || p.CountersErr != nil {
			continue
		}
		info := new(mad.ClassPortInfo)
		if p.Counters.Wait {
			info.CapabilityMask |= uint16(mad.PerfCapabilityMaskPortCountersXmitWaitSupported)
		}
		if p.Counters.Extended != nil {
			info.CapabilityMask |= uint16(mad.PerfCapabilityMaskIsExtendedWidthSupported)
		}
		key, _ := audit.KeyOf(p.Port)
		n := answers.AddPort(key, p.NodeGUID, p.System)
		answers.Answered(n, 0, info, nil, p.Counters.Base, h.Began)
		if p.Counters.Extended != nil {
			answers.Answered(n, 1, info, nil, p.Counters.Extended, h.Began)
		}
		at = append(at, i)
	}
	after, read := answers.Read()
	x.join(read)
	earlier := x.earlier()
	compared := compareReads(read, earlier...)
	for gap := range compared.Gaps() {
		x.rate(gap)
	}
	all := make([]audit.PortRates, len(after))
	for i, p := range after {
		all[i] = audit.PortRates{Port: h.Ports[at[i]].Port, Read: p, Since: compared}
		rates[at[i]] = &portRates{PortRates: all[i]}
	}
	x.noteAll(all)
	return rates, goneSince(h, earlier), x.uncompared()
}

// goneSince returns the ports in earlier reads, the newest first, that the host no longer has;
// None if unknown.
func goneSince(h *localhost.Host, earlier []*audit.Read) starlark.Value {
	here := map[string]bool{}
	for i := range h.Ports {
		if h.Ports[i].Err != nil { // it may be any of them
			return starlark.None
		}
		here[fmt.Sprintf("%v/%d", h.Ports[i].NodeGUID, h.Ports[i].Num)] = true
	}
	if len(earlier) == 0 {
		return starlark.None
	}
	gone := []starlark.Value{}
	for _, r := range earlier {
		for key, node := range r.Ports() {
			subject := fmt.Sprintf("%v/%d", node, key.Num)
			if here[subject] {
				continue
			}
			here[subject] = true
			gone = append(gone, lang.DictOf("subject", starlark.String(subject), "seconds", seconds(h.Began.Sub(r.Began))))
		}
	}
	return starlark.NewList(gone)
}

// errNoDevice is the error of a host without RDMA devices of which nothing is expected.
var errNoDevice = errors.New("no InfiniBand device on this host")
