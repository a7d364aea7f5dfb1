package format

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// line takes in one line. A record is a line that begins with the type of the
// node, and the port lines after it, which begin with [ or @.
func (l *loader) line(s string) error {
	s = strings.TrimRight(s, " \t\r")
	switch {
	case s == "":
		l.inNode = false
		return nil
	case s[0] == '#':
		if rest, ok := strings.CutPrefix(s, "# Initiated from node "); ok {
			l.from = rest
		}
		return nil
	case s[0] == '[', s[0] == '@':
		return l.port(s)
	}
	l.inNode = false
	for _, k := range records {
		if strings.HasPrefix(s, k.word) && len(s) > len(k.word) && strings.IndexByte(" \t", s[len(k.word)]) >= 0 {
			return l.node(k.t, s[len(k.word):])
		}
	}
	return l.setting(s)
}

var records = []struct {
	word string
	t    mad.NodeType
}{
	{"Switch", mad.NodeTypeSwitch}, {"Hca", mad.NodeTypeCA}, {"Ca", mad.NodeTypeCA}, {"Rt", mad.NodeTypeRouter}, {"???", 0},
}

// setting takes in a line that is about what follows.
func (l *loader) setting(s string) error {
	for _, word := range []string{"Chassis ", "Hostname:", "Non-Chassis Nodes"} { // of ibnetdiscover -g
		if strings.HasPrefix(s, word) {
			l.grouped = true
			return nil
		}
	}
	if s == "do" || strings.HasPrefix(s, "do ") || strings.HasPrefix(s, "do\t") || strings.HasPrefix(s, "pdebug") {
		return nil // of ibsim's console
	}
	i := strings.IndexAny(s, "=+ \t\"")
	if i < 0 {
		i = len(s)
	}
	key, rest := s[:i], skipBlanks(s[i:])
	switch key {
	case "include":
		return l.include(rest)
	case "module":
		name, _, ok := quoted(rest)
		if !ok || strings.ContainsAny(name, "#@") {
			return l.expected("a name, as in module=\"name\", without # and @: %q", s)
		}
		l.prefix = name
		return nil
	}
	if rest == "" || rest[0] != '=' && rest[0] != '+' {
		return l.expected("a record of a node (Switch, Ca, Rt), a port line ([1] ...), a setting (vendid=...) or a comment (#): %q", clip(s))
	}
	relative := rest[0] == '+'
	value := strings.TrimSpace(rest[1:])
	switch key {
	case "switchguid":
		return l.guid(mad.NodeTypeSwitch, value, relative)
	case "caguid", "caguids", "hcaguid", "hcaguids":
		return l.guid(mad.NodeTypeCA, value, relative)
	case "rtguid", "rtguids":
		return l.guid(mad.NodeTypeRouter, value, relative)
	case "???guid":
		return l.guid(0, value, relative)
	}
	bits := 0
	switch key {
	case "vendid":
		bits = 24
	case "devid":
		bits = 16
	case "sysimgguid":
		bits = 64
	case "width", "speed", "extspeed":
		bits = 8
	default:
		return l.expected("one of vendid, devid, sysimgguid, switchguid, caguid, rtguid, width, speed, extspeed, module, include, not %q", clip(key))
	}
	value, _, _ = strings.Cut(value, "\t") // a comment of ibnetdiscover -g
	v, err := strconv.ParseUint(strings.TrimSpace(value), 0, bits)
	if err != nil {
		return l.expected("%s to be a number of %d bits, not %q", key, bits, clip(value))
	}
	switch key {
	case "vendid":
		l.vendor = uint32(v)
	case "devid":
		l.device = uint16(v)
	case "sysimgguid":
		g := mad.GUID(v)
		l.image = &g
	default: // width, speed, extspeed: the port options of that letter, for all ports
		if !l.rate.option(key[:1] + "=" + strconv.FormatUint(v, 10)) {
			return l.expected("%s to be a mask of those that ports may use, not %d", key, v)
		}
	}
	return nil
}

// guid sets the GUID of the next node of type t, and of those after it. The
// port GUID of a switch may follow in parentheses.
func (l *loader) guid(t mad.NodeType, value string, relative bool) error {
	text, rest, _ := strings.Cut(value, "(")
	text, _, _ = strings.Cut(text, "\t")
	v, err := strconv.ParseUint(strings.TrimSpace(text), 0, 64)
	if err != nil {
		return l.expected("a GUID, as in 0x2c90300100000, not %q", clip(value))
	}
	g := l.guids[t]
	if relative {
		g.next = g.base + mad.GUID(v)
	} else {
		*g = guidBase{mad.GUID(v), mad.GUID(v)}
	}
	l.portGUID = nil
	if rest != "" {
		text, _, _ = strings.Cut(rest, ")")
		v, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return l.expected("a port GUID in hexadecimal, not %q", clip(text))
		}
		p := mad.GUID(v)
		l.portGUID = &p
	}
	return nil
}

func (l *loader) include(rest string) error {
	name, _, ok := quoted(rest)
	if !ok {
		return l.expected("a file, as in include \"name\": %q", clip(rest))
	}
	if l.opener == nil {
		return l.expected("no include, for only this file is at hand: %q", clip(name))
	}
	if !path.IsAbs(name) {
		name = path.Join(path.Dir(l.at.file), name)
	}
	f, err := l.opener(name)
	if err != nil {
		var e *fs.PathError
		if errors.As(err, &e) {
			err = e.Err
		}
		return fmt.Errorf("%s: include %q: %w", l.at, name, err)
	}
	defer f.Close()
	return l.read(f, name)
}

// node begins a record: ` 36 "S-..." # "name" enhanced port 0 lid 3 lmc 0`.
func (l *loader) node(t mad.NodeType, s string) error {
	ports, rest := number(skipBlanks(s))
	id, rest, ok := quoted(rest)
	if ports < 1 || ports > 254 || !ok || id == "" {
		return l.expected("the number of ports, 1 to 254, and a node id, as in Switch 36 \"S-0002c90300100000\": %q", clip(s))
	}
	if strings.ContainsAny(id, "#@") {
		return l.expected("a node id without # and @, not %q", id)
	}
	if err := l.room(l.at, ports); err != nil {
		return err
	}
	own := isGUIDID(id)
	id = l.qualify(id)
	if k, ok := l.ids[id]; ok {
		return l.expected("a node id of its own, but %q is that of the record at %s", id, l.nodes[k].at)
	}
	n := node{at: l.at, id: id, name: id, plugs: make([]plug, 0, min(ports, 64))}
	g := l.guids[t]
	n.info = mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: t, NumPorts: uint8(ports), NodeGUID: g.next,
		VendorID: l.vendor, DeviceID: l.device, PartitionCap: 1,
	}
	switch {
	case l.image != nil:
		n.info.SystemImageGUID = *l.image
	case !own:
		n.info.SystemImageGUID = g.next
	}
	if t == mad.NodeTypeSwitch {
		n.info.PortGUID = g.next
		if l.portGUID != nil {
			n.info.PortGUID = *l.portGUID
		}
		g.next++
	} else {
		g.next += mad.GUID(ports) + 1
	}
	l.vendor, l.image, l.portGUID = 0, nil, nil
	_, comment, _ := strings.Cut(rest, "#")
	if err := n.comment(l, strings.TrimSpace(comment), own); err != nil {
		return err
	}
	l.add(n)
	l.inNode = true
	return nil
}

// comment reads what follows # in the first line of a record: the name, with
// or without quotes, which may contain quotes, and of a switch port 0.
func (n *node) comment(l *loader, s string, own bool) error {
	name, rest := s, ""
	if strings.HasPrefix(s, `"`) {
		if i := strings.LastIndexByte(s, '"'); i > 0 {
			name, rest = s[1:i], s[i+1:]
		} else {
			return l.expected("a name in quotes: %q", clip(s))
		}
	} else {
		for _, word := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
			if i := strings.Index(" "+s, word); i >= 0 {
				name, rest = strings.TrimSpace(s[:max(i-1, 0)]), s[max(i-1, 0):]
				break
			}
		}
	}
	if own && s != "" || name != "" {
		n.name = name
	}
	if n.info.NodeType != mad.NodeTypeSwitch {
		return nil
	}
	words := strings.Fields(rest)
	for i, w := range words {
		switch {
		case w == "enhanced", w == "base":
			n.port0, n.enhanced = true, w == "enhanced"
		case w == "lid" || w == "lmc":
			if i+1 == len(words) || !setAddress(w, words[i+1], &n.lid, &n.lmc) {
				return l.expected("lid to be 0 to %d and lmc 0 to 7: %q", mad.MaxUnicastLID, clip(rest))
			}
		}
	}
	return nil
}

// port takes in a port line: `[1](guid) "H-..."[2](guid) w=2 # lid 3 lmc 0 "name" lid 4 4xHDR`.
func (l *loader) port(s string) error {
	if !l.inNode {
		return l.expected("a record (Switch, Ca, Rt) before the port line %q", clip(s))
	}
	n := &l.nodes[len(l.nodes)-1]
	p := plug{at: l.at, rate: l.rate}
	text, alias := strings.CutPrefix(s, "@")
	p.alias = alias
	var ok bool
	if p.num, text, ok = bracketed(text); !ok || p.num < 1 || p.num > int(n.info.NumPorts) {
		return l.expected("a port from 1 to %d in brackets, as in [1]: %q", n.info.NumPorts, clip(s))
	}
	for _, q := range n.plugs {
		if q.num == p.num {
			return l.expected("one line for port %d, but %s is one too", p.num, q.at)
		}
	}
	if p.guid, text, ok = parenthesised(text); !ok {
		return l.expected("a port GUID in parentheses, in hexadecimal: %q", clip(s))
	}
	if p.far, text, ok = quoted(text); !ok || p.far == "" {
		return l.expected("the id of the node that port %d is connected to, in quotes: %q", p.num, clip(s))
	}
	p.farPort = 1
	if alias {
		if strings.ContainsAny(p.far, "#@") {
			return l.expected("an alias without # and @, not %q", p.far)
		}
		p.far = l.prefix + "@" + p.far
		if _, ok := l.alias[p.far]; ok {
			return l.expected("an alias of its own, but %q is taken", p.far)
		}
		l.alias[p.far] = plugRef{len(l.nodes) - 1, len(n.plugs)}
	} else {
		p.far = l.qualify(p.far)
		if strings.HasPrefix(text, "[") {
			if p.farPort, text, ok = bracketed(text); !ok || p.farPort < 1 || p.farPort > 254 {
				return l.expected("the port of %q that port %d is connected to, in brackets: %q", p.far, p.num, clip(s))
			}
		}
	}
	if p.farGUID, text, ok = parenthesised(text); !ok {
		return l.expected("a port GUID in parentheses, in hexadecimal: %q", clip(s))
	}
	options, comment, _ := strings.Cut(text, "#")
	if err := l.rates(&p, options, strings.TrimSpace(comment), n.info.NodeType != mad.NodeTypeSwitch); err != nil {
		return err
	}
	n.plugs = append(n.plugs, p)
	if l.grouped && strings.HasPrefix(p.far, "R-") && isGUIDID(p.far) {
		l.routers = append(l.routers, routerEnd{plugRef{len(l.nodes) - 1, len(n.plugs) - 1}, comment})
	}
	return nil
}

// routerEnd is a port line that leads to a router, and its comment.
type routerEnd struct {
	plugRef
	comment string
}

// addRouters makes the records of routers that are not there: ibnetdiscover -g
// leaves out those in a chassis (rdma-core infiniband-diags/ibnetdiscover.c,
// dump_topology). The lines of the other ends say the most of it.
func (l *loader) addRouters(name string) {
	made := map[string]bool{}
	for _, e := range l.routers {
		p := &l.nodes[e.node].plugs[e.plug]
		k, ok := l.ids[p.far]
		if ok && !made[p.far] {
			continue
		}
		label, lid := "", mad.LID(0)
		if i, j := strings.IndexByte(e.comment, '"'), strings.LastIndexByte(e.comment, '"'); i < j {
			label = e.comment[i+1 : j]
			if words := strings.Fields(e.comment[j+1:]); len(words) > 1 {
				setAddress(words[0], words[1], &lid, new(uint8))
			}
		}
		if !ok {
			guid, _, _ := hexDigits([]byte(p.far[2:18]))
			made[p.far] = true
			k = l.add(node{at: p.at, id: p.far, name: label, info: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeRouter, NodeGUID: mad.GUID(guid), PartitionCap: 1}})
			l.problems = append(l.problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s has no record of router %q (%s), which is made up from its links: ibnetdiscover -g leaves out routers in a chassis; make the file without -g", name, label, mad.GUID(guid))})
		}
		r := &l.nodes[k]
		r.info.NumPorts = max(r.info.NumPorts, uint8(p.farPort))
		r.plugs = append(r.plugs, plug{at: p.at, num: p.farPort, far: l.nodes[e.node].id, farPort: p.num, guid: p.farGUID, lid: lid, rate: p.rate})
	}
}

// rates reads the options of a port line, and its comment: of a port that has
// a LID, this first, then the other node's name, its LID, width and speed.
func (l *loader) rates(p *plug, options, comment string, hasLID bool) error {
	near, tail := comment, comment
	if i := strings.IndexByte(comment, '"'); i >= 0 {
		near, tail = comment[:i], comment[strings.LastIndexByte(comment, '"')+1:]
	}
	var few [8]string
	if hasLID && near != tail {
		words := appendFields(few[:0], near)
		for i := 0; i+1 < len(words); i += 2 {
			if !setAddress(words[i], words[i+1], &p.lid, &p.lmc) {
				return l.expected("lid to be 0 to %d and lmc 0 to 7: %q", mad.MaxUnicastLID, clip(near))
			}
		}
	}
	words := appendFields(few[:0], tail)
	if len(words) >= 3 && words[0] == "lid" {
		r, ok := parseRate(words[2])
		if !ok {
			return l.expected("width and speed, as in 4xHDR, not %q", clip(words[2]))
		}
		p.rate = r
		words = words[3:]
	} else {
		words = nil
	}
	for _, w := range appendFields(words, options) {
		if strings.Contains(w, "=") && !p.rate.option(w) {
			return l.expected("an option w=, s= or e= with a mask of widths or speeds, not %q", clip(w))
		}
	}
	return nil
}

// qualify gives a node id or alias the module's name, unless it names a module.
func (l *loader) qualify(id string) string {
	switch {
	case strings.HasPrefix(id, "@"):
		return l.prefix + id
	case l.prefix == "" || strings.ContainsAny(id, "#@"):
		return id
	}
	return l.prefix + "#" + id
}
