package suspect

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/routing/graph"
	"fabsh/mad"
)

// ends finds the ends of measurements in a network.
type ends struct {
	g     *graph.Graph
	hosts map[string][]int  // terminals by host, by the names of their ports
	short map[string]string // the host with a short name in lower case; "" if there are several
	known map[string][]end
}

// end is a port that packets come from or go to.
type end struct {
	terminal int
	lid      mad.LID // the LID that packets go to; 0: all that the port has
	rail     int     // its place among the ports of its host; -1: unknown
}

var lidWord, guidWord = regexp.MustCompile(`^(0[xX][0-9a-fA-F]{1,4}|[0-9]{1,5})$`), regexp.MustCompile(`^0[xX][0-9a-fA-F]{5,16}$`)

func newEnds(g *graph.Graph) *ends {
	e := &ends{g: g, hosts: map[string][]int{}, short: map[string]string{}, known: map[string][]end{}}
	for i := range g.Terminals() {
		t := &g.Terminals()[i]
		if !t.IsEndpoint(0) || t.Class&graph.ClassAN != 0 {
			continue
		}
		if host, ok := fabric.HostName(t.Port.Node().Name()); ok {
			e.hosts[host] = append(e.hosts[host], i)
		}
	}
	for host, list := range e.hosts {
		slices.SortFunc(list, func(a, b int) int {
			return fabric.CompareNames(g.Terminals()[a].Port.Name(), g.Terminals()[b].Port.Name())
		})
		short := shortName(host)
		if _, several := e.short[short]; several {
			host = ""
		}
		e.short[short] = host
	}
	return e
}

// shortName returns a host's name without its domain, in lower case.
func shortName(name string) string {
	name, _, _ = strings.Cut(name, ".")
	return strings.ToLower(name)
}

// find returns the ports that a word names; none: it is unknown.
func (e *ends) find(word string) []end {
	list, ok := e.known[word]
	if !ok {
		list = e.search(word)
		e.known[word] = list
	}
	return list
}

func (e *ends) search(word string) []end {
	f := e.g.Fabric()
	switch {
	case lidWord.MatchString(word):
		n, err := strconv.ParseUint(word, 0, 16)
		if err != nil {
			n, err = strconv.ParseUint(strings.TrimLeft(word, "0"), 10, 16)
		}
		if err != nil || n == 0 {
			return nil
		}
		if t := e.g.TerminalByLID(mad.LID(n)); t >= 0 && e.g.Terminals()[t].IsEndpoint(0) {
			return []end{{t, mad.LID(n), e.rail(t)}}
		}
		return nil
	case guidWord.MatchString(word):
		n, err := strconv.ParseUint(word[2:], 16, 64)
		if err != nil {
			return nil
		}
		if ports := f.PortByGUID(mad.GUID(n)); len(ports) == 1 {
			if list := e.of(ports[0]); list != nil {
				return list
			}
		}
		if nodes := f.NodeByGUID(mad.GUID(n)); len(nodes) == 1 {
			return e.ofNode(nodes[0])
		}
		return nil
	}
	if nodes := f.NodeByName(word); len(nodes) == 1 {
		return e.ofNode(nodes[0])
	}
	host := word
	if e.hosts[host] == nil {
		host = e.short[shortName(word)]
	}
	if list := e.hosts[host]; list != nil {
		found := make([]end, len(list))
		for i, t := range list {
			found[i] = end{t, 0, i}
		}
		return found
	}
	if i := strings.LastIndexByte(word, '/'); i > 0 {
		num, err := strconv.Atoi(word[i+1:])
		if nodes := f.NodeByName(word[:i]); len(nodes) == 1 && err == nil {
			if p := nodes[0].Port(num); p != nil {
				return e.of(p)
			}
		}
	}
	return nil
}

// of returns the end that a port is; nil: it is not the port of a CA or router, or has no LID.
func (e *ends) of(p *fabric.Port) []end {
	if t := e.g.TerminalOf(p); t >= 0 && e.g.Terminals()[t].IsEndpoint(0) {
		return []end{{t, 0, e.rail(t)}}
	}
	return nil
}

func (e *ends) ofNode(n *fabric.Node) (list []end) {
	if n.IsSwitch() {
		return nil
	}
	for p := range n.Ports() {
		list = append(list, e.of(p)...)
	}
	return list
}

// rail returns the place of a terminal among those of its host; -1: its host is unknown.
func (e *ends) rail(t int) int {
	host, _ := fabric.HostName(e.g.Terminals()[t].Port.Node().Name())
	return slices.Index(e.hosts[host], t)
}

// flow is the traffic from one port to another.
type flow struct{ from, to end }

// flows returns the flows of a measurement, or the reason why it has no flow.
func (e *ends) flows(m *Measurement) (list []flow, unknown []string, reason string) {
	names := m.Group
	if names == nil {
		names = []string{m.From, m.To}
	}
	members := make([][]end, len(names))
	for i, name := range names {
		if members[i] = e.find(name); members[i] == nil {
			unknown = append(unknown, name)
		}
		if m.Rail > 0 && len(members[i]) > 1 {
			if m.Rail > len(members[i]) {
				return nil, nil, fmt.Sprintf("%s has no adapter port %d", name, m.Rail)
			}
			members[i] = members[i][m.Rail-1 : m.Rail]
		}
	}
	if unknown != nil {
		return nil, unknown, ""
	}
	add := func(a, b int) {
		list = append(list, between(members[a], members[b])...)
	}
	switch {
	case m.Group == nil:
		add(0, 1)
		if m.Both {
			add(1, 0)
		}
	case m.AllToAll:
		for a := range members {
			for b := range members {
				if a != b {
					add(a, b)
				}
			}
		}
	default:
		for a := range members {
			add(a, (a+1)%len(members))
		}
	}
	list = slices.DeleteFunc(list, func(f flow) bool { return f.from.terminal == f.to.terminal })
	if len(list) == 0 {
		return nil, nil, "both ends are the same port"
	}
	return list, nil, ""
}

// between returns the flows from one member to another: between ports of equal rails. A port
// of one end alone has the other's port of its rail.
func between(a, b []end) (list []flow) {
	single := func(one end, of []end) end {
		if one.rail >= 0 && one.rail < len(of) {
			return of[one.rail]
		}
		return of[0]
	}
	switch {
	case len(a) == 1 && len(b) > 1:
		return []flow{{a[0], single(a[0], b)}}
	case len(b) == 1 && len(a) > 1:
		return []flow{{single(b[0], a), b[0]}}
	}
	for i := range min(len(a), len(b)) {
		list = append(list, flow{a[i], b[i]})
	}
	return list
}
