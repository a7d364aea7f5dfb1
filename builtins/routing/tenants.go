package routing

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/tenant"
	"fabsh/mad"
)

// LoadTenants is load_tenants(): who the tenants of a subnet are.
var LoadTenants = lang.Builtin{
	Name:    "load_tenants",
	Returns: "tenants",
	Group:   topology.GroupFabric,
	Params:  []lang.Param{{Name: "path", Kind: lang.KindPath, Doc: "tenants as YAML or CSV; OpenSM's partitions.conf; or UFM's partitions as JSON (/ufmRest/resources/pkeys?guids_data=true)"}},
	Doc: `Reads the tenants of a subnet, their ports and partitions, from a file.
A CSV file has a header with tenant, and any of hosts (Slurm's notation), guids (of ports, adapters or virtual ports), pkeys (0x0012, 0x0012=limited), member (full, limited, both), shared (yes: a service that tenants may reach) and serves (the tenants that may). YAML has a list tenants with the same words. In partitions.conf and UFM's JSON each partition but the default one is a tenant, and a port in several is a shared service of them.`,
	Example: `
> t = load_tenants("tenants.csv")
> [(x.name, x.hosts) for x in t.tenants]
[("red", ["node-0001", "node-0002"]), ("blue", ["node-0003", "node-0004"])]
`,
	Run: lang.Do(func(c *lang.Call, a *struct{ Path string }) (starlark.Value, error) {
		var file *tenant.File
		err := c.Block(func(ctx context.Context) error {
			f, err := c.Runtime().Files.Open(ctx, a.Path)
			if err != nil {
				return err
			}
			defer f.Close()
			file, err = tenant.Read(f, a.Path)
			return err
		})
		if err != nil {
			return nil, lang.Errorf("%w", err)
		}
		return wrapTenants(file), nil
	}),
}

// TenantsType is the type of the result of load_tenants().
var TenantsType = &lang.ResultType{
	Name: "tenants",
	Doc:  "The tenants of a file.",
	Members: []lang.ResultMember{
		{Name: "num_tenants", Type: "int", Doc: "number of tenants, with shared services"},
		{Name: "tenants", Type: "list of tenant", Doc: "the tenants, in the order of the file", Long: true},
		{Name: "notes", Type: "list of string", Doc: "what of the file does not count, and why"},
	},
}

// TenantType is the type of a tenant.
var TenantType = &lang.ResultType{
	Name: "tenant",
	Doc:  "Who has hosts in a subnet.",
	Members: []lang.ResultMember{
		{Name: "name", Type: "string", Doc: "its name"},
		{Name: "hosts", Type: "list of string", Doc: "names of its hosts"},
		{Name: "guids", Type: "list of string", Doc: "its GUIDs: of ports, adapters or virtual ports"},
		{Name: "pkeys", Type: "list of string", Doc: `its partitions: "0x0012=full"`},
		{Name: "shared", Type: "bool", Doc: "whether it is a service that tenants may reach"},
		{Name: "serves", Type: "list of string", Doc: "the tenants that may reach the service; empty: all"},
	},
}

// Tenants is the value tenants.
type Tenants struct {
	*lang.Result
	File *tenant.File
}

var kindTenants = &lang.Kind{Type: reflect.TypeFor[*tenant.File](), Convert: func(v starlark.Value) (any, error) {
	if t, ok := v.(*Tenants); ok {
		return t.File, nil
	}
	return nil, lang.WantType(v, "tenants of load_tenants()")
}}

func wrapTenants(f *tenant.File) starlark.Value {
	list := lang.List(f.Tenants, func(t tenant.Tenant) starlark.Value {
		guids := lang.List(t.GUIDs, func(g mad.GUID) starlark.Value { return topology.GUIDValue(g) })
		keys := lang.List(t.Keys, func(k tenant.Key) starlark.Value { return starlark.String(k.String()) })
		return lang.NewResult(TenantType, starlark.String(t.Name), lang.Texts(t.Hosts), guids, keys, starlark.Bool(t.Shared), lang.Texts(t.Serves))
	})
	return &Tenants{lang.NewResult(TenantsType, starlark.MakeInt(len(f.Tenants)), list, lang.Texts(f.Notes)), f}
}

// IsolationType is the type of the result of fabric.isolation().
var IsolationType = &lang.ResultType{
	Name: "isolation",
	Doc:  "Whether tenants are isolated from each other.",
	Members: []lang.ResultMember{
		{Name: "isolated", Type: "bool", Doc: "whether each two tenants are isolated, except from shared services"},
		{Name: "summary", Type: "string", Doc: "how many pairs are isolated, reach each other, or are not judged"},
		{Name: "pairs", Type: "list of tenant_pair", Doc: "each two tenants, in both directions"},
		{Name: "outsiders", Type: "list of tenant_outsider", Doc: "full members of partitions of tenants that belong to no tenant: tenants are isolated except from these"},
		{Name: "deviations", Type: "list of tenant_deviation", Doc: "ports of tenants whose P_Keys differ from those of the file"},
		{Name: "index0", Type: "list of port", Doc: "ports of tenants whose entry 0 is not the default partition", Long: true},
		{Name: "unchecked", Type: "list of port", Doc: "ports of tenants in front of which no switch port checks P_Keys in both directions", Long: true},
		{Name: "unread", Type: "list of string", Doc: "ports of tenants whose P_Key tables are unknown"},
		{Name: "missing", Type: "list of string", Doc: "hosts and GUIDs of tenants that are not in the fabric"},
		{Name: "ports", Type: "list of port", Doc: "the ports of tenants, without shared services", Long: true},
	},
}

// TenantPairType is the type of the judgment on two tenants.
var TenantPairType = &lang.ResultType{
	Name:      "tenant_pair",
	Doc:       "The judgment on packets from one tenant to another.",
	Important: []string{"source", "target", "verdict", "reason"},
	Members: []lang.ResultMember{
		{Name: "source", Type: "string", Doc: "the tenant that sends"},
		{Name: "target", Type: "string", Doc: "the tenant that would receive"},
		{Name: "verdict", Type: "string", Doc: "isolated; reaches; or unknown: what was read does not decide", Words: []string{"isolated", "reaches", "unknown"}},
		{Name: "allowed", Type: "bool", Doc: "whether one of both is a shared service for the other"},
		{Name: "reason", Type: "string", Doc: "a proof, a counterexample, or what is unknown"},
		{Name: "port", Type: "port", Doc: "the sending port of the counterexample; None without", Long: true},
		{Name: "peer", Type: "port", Doc: "its receiving port; None likewise", Long: true},
	},
}

// TenantOutsiderType is the type of full members that belong to no tenant.
var TenantOutsiderType = &lang.ResultType{
	Name: "tenant_outsider",
	Doc:  "Full members of a partition of tenants that belong to no tenant.",
	Members: []lang.ResultMember{
		{Name: "pkey", Type: "string", Doc: "the partition, without the bit of full members"},
		{Name: "ports", Type: "list of port", Doc: "the full members"},
		{Name: "tenants", Type: "int", Doc: "number of tenants in the partition"},
	},
}

// TenantDeviationType is the type of a port with other P_Keys than its tenant.
var TenantDeviationType = &lang.ResultType{
	Name: "tenant_deviation",
	Doc:  "A port of a tenant whose P_Keys differ from those of the file. The default partition counts only if the file has it.",
	Members: []lang.ResultMember{
		{Name: "port", Type: "port", Doc: "the port"},
		{Name: "tenant", Type: "string", Doc: "its tenant"},
		{Name: "missing", Type: "list of string", Doc: "partitions of the file that it lacks"},
		{Name: "extra", Type: "list of string", Doc: "partitions that it has besides, or with another membership"},
	},
}

// IsolationMethod is fabric.isolation(): the judgment on tenants.
var IsolationMethod = lang.Builtin{
	Name:    "isolation",
	Returns: "isolation",
	Params: []lang.Param{
		{Name: "tenants", Kind: kindTenants, Doc: "tenants of load_tenants()"},
		{Name: "tables", Kind: kindDict("a dict of port to P_Keys"), Doc: "P_Key tables of end ports and of switch ports that check P_Keys: a dict of port to pkeys of get_pkeys(), or to a list of P_Keys; other ports are unknown"},
		{Name: "groups", Kind: lang.KindAny, Default: "None", Doc: "multicast groups: a list of (MGID, P_Key, list of ports); None: unknown"},
		{Name: "routes", Kind: lang.KindAny, Default: "None", Doc: "the tables in force, of get_routes(fabric, adaptive=True); None: which paths exist is unknown"},
		{Name: "virtual_ports", Kind: lang.KindAny, Default: "None", Doc: "a dict of port to its number of virtual ports (VirtualizationInfo); None: unknown"},
	},
	Doc: `Judges whether tenants are isolated from each other, by what was read; it sends no request.
A packet is accepted if a P_Key of the sender is in the table of the receiver, and one of both is a full member (IBA 10.9.3), switch ports that check P_Keys have it in their tables, and a path exists. What is unknown is never taken for isolation.`,
	Example: `
> f = discover()
> f.isolation(load_tenants("tenants.csv"), {p: [0x7fff] for n in f.cas for p in n.ports}).isolated
True
`,
	Run: lang.Do(func(c *lang.Call, a *struct {
		Tenants      *tenant.File
		Tables       *starlark.Dict
		Groups       starlark.Value
		Routes       starlark.Value
		VirtualPorts starlark.Value
	}) (starlark.Value, error) {
		f := c.Recv.(*topology.Fabric).Fabric
		facts := &tenant.Facts{}
		var err error
		if facts.Tables, err = pkeyTables(f, a.Tables); err != nil {
			return nil, lang.ParamError("tables", "%w", err)
		}
		if facts.Groups, err = tenantGroups(a.Groups); err != nil {
			return nil, lang.ParamError("groups", "%w", err)
		}
		if a.Routes != nil && a.Routes != starlark.None {
			r, ok := a.Routes.(*Routes)
			if !ok {
				return nil, lang.ParamError("routes", "got %s, want routes or None", a.Routes.Type())
			}
			facts.Routes = r.Tables
		}
		if facts.VirtualPorts, err = virtualNumbers(a.VirtualPorts); err != nil {
			return nil, lang.ParamError("virtual_ports", "%w", err)
		}
		var r *tenant.Report
		err = c.Block(func(ctx context.Context) (err error) {
			r, err = JudgeTenants(ctx, f, a.Tenants, facts)
			return err
		})
		if err != nil {
			return nil, computeError(c, err)
		}
		return WrapIsolation(r), nil
	}),
}

// JudgeTenants judges the tenants of a file on f.
func JudgeTenants(ctx context.Context, f *fabric.Fabric, file *tenant.File, facts *tenant.Facts) (*tenant.Report, error) {
	m, err := file.On(f)
	if err != nil {
		return nil, err
	}
	return tenant.Judge(ctx, m, facts)
}

func portOf(v starlark.Value) (*fabric.Port, error) {
	p, ok := v.(topology.Port)
	if !ok {
		return nil, fmt.Errorf("got %s, want port", v.Type())
	}
	return p.Port, nil
}

// pkeyTables converts the tables; an error value or None is an unknown table.
func pkeyTables(f *fabric.Fabric, d *starlark.Dict) (map[*fabric.Port][]uint16, error) {
	tables := map[*fabric.Port][]uint16{}
	for _, kv := range d.Items() {
		p, err := portOf(kv[0])
		if err != nil {
			return nil, err
		}
		if p.Node().Fabric() != f {
			return nil, fmt.Errorf("%s: a port of another fabric", p.Name())
		}
		it, ok := kv[1].(starlark.Iterable)
		if !ok {
			if kv[1] == starlark.None || !bool(kv[1].Truth()) {
				continue
			}
			return nil, fmt.Errorf("%s: got %s, want P_Keys", p.Name(), kv[1].Type())
		}
		keys := []uint16{}
		for _, x := range lang.Collect(it) {
			if x == starlark.None {
				keys = append(keys, 0)
				continue
			}
			n, err := lang.ToInt(x)
			if err != nil || n < 0 || n > 0xffff {
				return nil, fmt.Errorf("%s: got %s, want P_Keys", p.Name(), lang.Brief(x))
			}
			keys = append(keys, uint16(n))
		}
		tables[p] = keys
	}
	return tables, nil
}

// tenantGroups converts multicast groups.
func tenantGroups(v starlark.Value) ([]tenant.Group, error) {
	if v == nil || v == starlark.None {
		return nil, nil
	}
	it, ok := v.(starlark.Iterable)
	if !ok {
		return nil, lang.WantType(v, "a list of (MGID, P_Key, list of ports)")
	}
	groups := []tenant.Group{}
	for i, x := range lang.Collect(it) {
		t, ok := x.(starlark.Tuple)
		if !ok || len(t) != 3 {
			return nil, fmt.Errorf("element %d: got %s, want (MGID, P_Key, list of ports)", i, x.Type())
		}
		mgid, isText := starlark.AsString(t[0])
		key, err := lang.ToInt(t[1])
		members, isList := t[2].(starlark.Iterable)
		if !isText || err != nil || key < 0 || key > 0xffff || !isList {
			return nil, fmt.Errorf("element %d: want (MGID, P_Key, list of ports)", i)
		}
		g := tenant.Group{MGID: mgid, Key: uint16(key)}
		for _, m := range lang.Collect(members) {
			p, err := portOf(m)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			g.Members = append(g.Members, p)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// virtualNumbers converts numbers of virtual ports.
func virtualNumbers(v starlark.Value) (map[*fabric.Port]int, error) {
	if v == nil || v == starlark.None {
		return nil, nil
	}
	d, ok := v.(*starlark.Dict)
	if !ok {
		return nil, lang.WantType(v, "a dict of port to number")
	}
	numbers := map[*fabric.Port]int{}
	for _, kv := range d.Items() {
		p, err := portOf(kv[0])
		if err != nil {
			return nil, err
		}
		if numbers[p], err = lang.ToInt(kv[1]); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// WrapIsolation returns r as a value for scripts.
func WrapIsolation(r *tenant.Report) starlark.Value {
	tenants := r.Members.File.Tenants
	name := func(t int) starlark.String { return starlark.String(tenants[t].Name) }
	ports := func(list []tenant.Member) starlark.Value {
		return lang.List(list, func(m tenant.Member) starlark.Value { return topology.PortOf(m.Port) })
	}
	pairs := lang.List(r.Pairs, func(p tenant.Pair) starlark.Value {
		var from, to starlark.Value = starlark.None, starlark.None
		if p.Example != nil {
			from, to = topology.PortOf(p.Example.From.Port), topology.PortOf(p.Example.To.Port)
		}
		return lang.NewResult(TenantPairType, name(p.From), name(p.To), starlark.String(p.Verdict.String()), starlark.Bool(p.Allowed), starlark.String(p.Reason), from, to)
	})
	outsiders := lang.List(r.Outsiders, func(o tenant.Outsider) starlark.Value {
		list := lang.List(o.Ports, func(p *fabric.Port) starlark.Value { return topology.PortOf(p) })
		return lang.NewResult(TenantOutsiderType, starlark.String(fmt.Sprintf("0x%04x", o.Key)), list, starlark.MakeInt(o.Tenants))
	})
	deviations := lang.List(r.Deviations, func(d tenant.Deviation) starlark.Value {
		return lang.NewResult(TenantDeviationType, topology.PortOf(d.Member.Port), name(d.Member.Tenant), lang.Texts(d.Missing), lang.Texts(d.Extra))
	})
	unread := lang.List(r.Unread, func(m tenant.Member) starlark.Value { return starlark.String(m.String()) })
	var missing []string
	for t, list := range r.Members.Missing {
		for _, x := range list {
			missing = append(missing, tenants[t].Name+": "+x)
		}
	}
	own := slices.DeleteFunc(slices.Clone(r.Members.List), func(m tenant.Member) bool { return tenants[m.Tenant].Shared || m.Virtual != 0 })
	isolated := r.Count(tenant.Reaches) == 0 && r.Count(tenant.Unknown) == 0
	return &Isolation{lang.NewResult(IsolationType, starlark.Bool(isolated), starlark.String(r.Line()), pairs, outsiders, deviations, ports(r.Index0), ports(r.Unchecked), unread, lang.Texts(missing), ports(own)), r}
}

// Isolation is the value isolation. It is shown as text with a line for each pair.
type Isolation struct {
	*lang.Result
	report *tenant.Report
}

// Display implements lang.Displayed.
func (v *Isolation) Display() string { return isolationText(v.report) }

// isolationText shows r: the summary, pairs that are not isolated first, and full members.
func isolationText(r *tenant.Report) string {
	var b strings.Builder
	b.WriteString(r.Line() + "\n")
	for _, v := range []tenant.Verdict{tenant.Reaches, tenant.Unknown, tenant.Isolated} {
		for i := range r.Pairs {
			if p := &r.Pairs[i]; p.Verdict == v && !p.Allowed {
				b.WriteString(p.Reason + "\n")
			}
		}
	}
	for _, o := range r.Outsiders {
		names := make([]string, 0, 4)
		for _, p := range o.Ports[:min(len(o.Ports), 4)] {
			names = append(names, p.Name())
		}
		if more := len(o.Ports) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(&b, "isolated except from full members of 0x%04x, which are of no tenant: %s\n", o.Key, strings.Join(names, ", "))
	}
	return b.String()
}
