package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	values "fabsh/builtins/history"
	"fabsh/builtins/lang"
	"fabsh/builtins/routing"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/history"
	"fabsh/mad"
)

// endpoint is an address of the API.
type endpoint struct {
	name   string
	schema string // of the value, or of the items of a list
	list   bool
	past   bool // it takes at=
	params []string
	doc    string
	make   func(s *Site, v *view) (any, error) // a document, or []starlark.Value of a list
}

// endpoints are all addresses of the API.
var endpoints = []endpoint{
	{"audit_report", "audit_report/1", false, false, nil, "the report of the last cycle: findings, coverage, what was not judged", (*Site).apiReport},
	{"findings", "finding/1", true, true, nil, "open findings; with at, history_finding of that time", (*Site).apiFindings},
	{"nodes", "node/1", true, true, []string{"name", "type"}, "nodes; name: a part of the name; type: switch, ca or router", (*Site).apiNodes},
	{"links", "link/2", true, true, []string{"node"}, "links; node: those of a node, by name or GUID", (*Site).apiLinks},
	{"path", "path/1", false, true, []string{"from", "to"}, "the path of packets by the forwarding tables that were read; ends are hosts, ports, GUIDs or LIDs; sl and vls are 0 where lanes were not read", (*Site).apiPath},
	{"impact", "impact/1", false, true, []string{"without"}, "the predicted effect of parts that go, separated by commas", (*Site).apiImpact},
	{"events", "history_event/1", true, true, []string{"span", "kind", "node", "port"}, "events of the history in the last 24h (span: 7d, 90d, 1y); kind: link, node, cable, sm or change; node, port: of a node or a port", (*Site).apiEvents},
	{"port", "history_port/1", false, true, []string{"node", "port", "span"}, "the life of a port and its link in the history", (*Site).apiPort},
	{"cable", "history_cable_life/1", false, false, []string{"serial"}, "the life of a cable in the history", (*Site).apiCable},
}

// pageSize is how many items of a list an answer has at most.
const pageSize = 1000

// raw is a document that is JSON.
type raw []byte

// answer returns the handler of an address of the API.
func (s *Site) answer(f func(*view) ([]byte, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, done := s.begin(w, r)
		if v == nil {
			return
		}
		defer done()
		err := v.open()
		var data []byte
		if err == nil {
			data, err = f(v)
		}
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			v.fail(err)
			w.WriteHeader(v.status)
			json.NewEncoder(w).Encode(map[string]string{"schema": "error/1", "error": v.Error.text})
			return
		}
		w.Write(data)
	}
}

// apiIndex lists the addresses.
func (s *Site) apiIndex(*view) ([]byte, error) {
	type address struct {
		Address    string   `json:"address"`
		Schema     string   `json:"value"`
		List       bool     `json:"list"`
		Parameters []string `json:"parameters"`
		Doc        string   `json:"doc"`
	}
	list := []address{}
	for _, e := range endpoints {
		a := address{"/api/" + e.name, e.schema, e.list, e.accepted(), e.doc}
		list = append(list, a)
	}
	return json.Marshal(struct {
		Schema    string    `json:"schema"`
		Version   string    `json:"version"`
		Addresses []address `json:"addresses"`
	}{"api/1", s.Version, list})
}

// accepted returns the parameters of an address.
func (e *endpoint) accepted() []string {
	list := slices.Clone(e.params)
	if e.past {
		list = append(list, "at")
	}
	if e.list {
		list = append(list, "offset", "limit")
	}
	return append([]string{}, list...)
}

// api answers with the JSON of existing schemas.
func (s *Site) api(v *view) ([]byte, error) {
	what := v.request.PathValue("what")
	i := slices.IndexFunc(endpoints, func(e endpoint) bool { return e.name == what })
	if i < 0 {
		return nil, notFound("unknown value %q; /api lists them", fabric.Clip(what))
	}
	e := &endpoints[i]
	for key := range v.query {
		if !slices.Contains(e.accepted(), key) {
			return nil, badRequest("unsupported parameter %q; supported: %s", fabric.Clip(key), strings.Join(e.accepted(), ", "))
		}
	}
	x, err := e.make(s, v)
	if err != nil {
		var none *noTables
		if errors.As(err, &none) || errors.Is(err, errPending) {
			err = &pageError{status: http.StatusServiceUnavailable, text: err.Error()}
		}
		return nil, err
	}
	switch x := x.(type) {
	case raw:
		return x, nil
	case []starlark.Value:
		return v.listed(e, x)
	}
	return lang.EncodeJSON(x.(starlark.Value))
}

// listed returns a part of a list.
func (v *view) listed(e *endpoint, all []starlark.Value) ([]byte, error) {
	number := func(key string, least, most, usual int) (int, error) {
		text := v.query.Get(key)
		if text == "" {
			return usual, nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, badRequest("%s=%q: want %d to %d", key, fabric.Clip(text), least, most)
		}
		return n, nil
	}
	offset, err := number("offset", 0, 1<<30, 0)
	if err != nil {
		return nil, err
	}
	limit, err := number("limit", 1, pageSize, pageSize)
	if err != nil {
		return nil, err
	}
	offset = min(offset, len(all))
	end := min(len(all), offset+limit)
	var b bytes.Buffer
	next := "null"
	if end < len(all) {
		text, err := json.Marshal(string(v.with("offset", strconv.Itoa(end))))
		if err != nil {
			return nil, err
		}
		next = string(text)
	}
	b.WriteString(`{"schema":"api_list/1","time":` + strconv.Quote(iso(v.moment.time)) + `,"total":` + strconv.Itoa(len(all)) + `,"offset":` + strconv.Itoa(offset) + `,"next":` + next + `,"items":[`)
	for i, x := range all[offset:end] {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := lang.EncodeJSON(x)
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteString("]}")
	return b.Bytes(), nil
}

func (s *Site) apiReport(v *view) (any, error) {
	data, err := s.Report(v.moment.report)
	return raw(data), err
}

// elements returns the elements of a list.
func elements(list starlark.Value) []starlark.Value { return lang.Collect(list.(starlark.Iterable)) }

func (s *Site) apiFindings(v *view) (any, error) {
	if r := v.moment.report; r != nil {
		return elements(audits.WrapFindings(r.Findings)), nil
	}
	return elements(values.Findings(v.moment.found)), nil
}

func (s *Site) apiNodes(v *view) (any, error) {
	kind, err := v.one("type", "", "switch", "ca", "router")
	if err != nil {
		return nil, err
	}
	if v.moment.fabric == nil {
		return nil, notFound("the fabric was not read")
	}
	list := []starlark.Value{}
	nodes := v.moment.fabric.Nodes()
	name := strings.ToLower(v.query.Get("name"))
	for i := range nodes {
		n := &nodes[i]
		if strings.Contains(strings.ToLower(n.Name()), name) && (kind == "" || n.Type().String() == kind) {
			list = append(list, topology.NodeOf(n))
		}
	}
	return list, nil
}

func (s *Site) apiLinks(v *view) (any, error) {
	if v.moment.fabric == nil {
		return nil, notFound("the fabric was not read")
	}
	var of *fabric.Node
	if name := v.query.Get("node"); name != "" {
		n, err := v.findNode(name)
		if err != nil {
			return nil, err
		}
		of = n
	}
	list := []starlark.Value{}
	ports := v.moment.fabric.Ports()
	for i := range ports {
		p := &ports[i]
		q := p.Peer()
		if q != nil && i < q.ID() && (of == nil || p.Node() == of || q.Node() == of) {
			list = append(list, topology.LinkOf(p))
		}
	}
	return list, nil
}

func (s *Site) apiPath(v *view) (any, error) {
	t, err := s.tablesOf(v)
	if err != nil {
		return nil, err
	}
	p, err := s.trace(v, t)
	if err != nil {
		return nil, err
	}
	return routing.PathValue(p), nil
}

func (s *Site) apiImpact(v *view) (any, error) {
	t, err := s.tablesOf(v)
	if err != nil {
		return nil, err
	}
	targets, err := v.targets()
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return nil, badRequest("without: missing; want a link, a switch or a host")
	}
	for _, x := range targets {
		if _, _, err := topology.FindPart(t.Fabric(), starlark.String(x)); err != nil {
			return nil, notFound("without: %v", err)
		}
	}
	x, err := s.impact(v, t, targets)
	if err == nil {
		x, _, err = s.withJobs(v, t, x)
	}
	return x, err
}

// recorded returns the history, and the time that a request is about.
func (s *Site) recorded(v *view) (h *history.Store, since, until time.Time, err error) {
	if h, err = s.historyStore(v.ctx); err != nil {
		return nil, since, until, notFound("no history is kept: %v", err)
	}
	span, err := v.one("span", "24h", "7d", "90d", "1y")
	if err != nil {
		return nil, since, until, err
	}
	until = v.moment.time.Add(time.Second)
	for _, x := range spans {
		if x.name == span {
			since = until.Add(-x.length)
		}
	}
	return h, since, until, nil
}

// place returns the node and the port that a request names; the node 0: none.
func (v *view) place() (e history.End, err error) {
	name := v.query.Get("node")
	e.Port = -1
	if name == "" {
		return e, nil
	}
	if guid, err := strconv.ParseUint(name, 0, 64); err == nil && strings.HasPrefix(name, "0x") {
		e.Node = mad.GUID(guid) // a node that is gone has a history too
	} else {
		n, err := v.findNode(name)
		if err != nil {
			return e, err
		}
		e.Node = n.GUID()
	}
	if text := v.query.Get("port"); text != "" {
		if e.Port, err = strconv.Atoi(text); err != nil || e.Port < 0 || e.Port > 255 {
			return e, badRequest("port=%q: want a number from 0 to 255", fabric.Clip(text))
		}
	}
	return e, nil
}

func (s *Site) apiEvents(v *view) (any, error) {
	h, since, until, err := s.recorded(v)
	if err != nil {
		return nil, err
	}
	kind, err := v.one("kind", "", "link", "node", "cable", "sm", "change")
	if err != nil {
		return nil, err
	}
	e, err := v.place()
	if err != nil {
		return nil, err
	}
	var kinds []string
	if kind != "" {
		kinds = []string{kind}
	}
	list, err := h.Changes(v.ctx, since, until, kinds...)
	if err != nil {
		return nil, err
	}
	if e.Node != 0 {
		list = slices.DeleteFunc(list, func(x history.Event) bool {
			is := func(node mad.GUID, port int) bool { return node == e.Node && (e.Port < 0 || port == e.Port) }
			return !is(x.Node, x.Port) && !is(x.PeerNode, x.PeerPort)
		})
	}
	return elements(values.Events(list, nil)), nil
}

func (s *Site) apiPort(v *view) (any, error) {
	h, since, until, err := s.recorded(v)
	if err != nil {
		return nil, err
	}
	e, err := v.place()
	if err != nil {
		return nil, err
	}
	if e.Node == 0 || e.Port < 0 {
		return nil, badRequest("want node and port, such as node=leaf-1&port=7")
	}
	if has, err := h.HasPort(v.ctx, e.Node, e.Port); err != nil || !has {
		if err == nil {
			err = notFound("nothing is recorded of %v", e)
		}
		return nil, err
	}
	l, err := h.LifeOf(v.ctx, e.Node, e.Port, since, until)
	if err != nil {
		return nil, err
	}
	return values.PortLife(&history.Named{Fabric: v.moment.fabric}, l), nil
}

func (s *Site) apiCable(v *view) (any, error) {
	h, err := s.historyStore(v.ctx)
	if err != nil {
		return nil, notFound("no history is kept: %v", err)
	}
	l, err := h.CableLife(v.ctx, v.query.Get("serial"))
	if err == nil && len(l.Spans) == 0 {
		err = errors.New("no cable or module has this serial number")
	}
	if err != nil {
		return nil, notFound("%v", err)
	}
	return values.CableLife(&history.Named{Fabric: v.moment.fabric}, l), nil
}
