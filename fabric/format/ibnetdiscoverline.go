package format

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// node parses the first line of a record after its type: ` 36 "S-..." # "name" enhanced port 0 lid 3 lmc 0`.
func (r *recordReader) node(t mad.NodeType, s string) error {
	ports, rest := number(skipBlanks(s))
	id, rest, ok := quoted(rest)
	if ports < 1 || ports > 254 || !ok || id == "" {
		return r.expected("the number of ports, 1 to 254, and a node id, as in Switch 36 \"S-0002c90300100000\": %q", fabric.Clip(s))
	}
	if strings.ContainsAny(id, "#@") {
		return r.expected("a node id without # and @, not %q", id)
	}
	if err := r.countPorts(r.at, ports, r.bytes); err != nil {
		return err
	}
	own := isGUIDID(id)
	if len(r.nodes) == 0 {
		r.dump = own
	}
	if !own && r.unknown != nil {
		return r.unknown
	}
	id = r.qualify(id)
	if k, ok := r.ids[id]; ok {
		return r.expected("a node id of its own, but %q is that of the record at %s", id, r.nodes[k].at)
	}
	n := node{at: r.at, id: id, name: id}
	g := r.guids[t]
	if system := g.next; r.portGUID != nil && system != *r.portGUID && r.ofSystem(id) {
		g.next = *r.portGUID
		if r.image == nil {
			r.image = &system
		}
	}
	n.info = mad.NodeInfo{
		BaseVersion: 1, ClassVersion: 1, NodeType: t, NumPorts: uint8(ports), NodeGUID: g.next,
		VendorID: r.vendor, DeviceID: r.device, PartitionCap: 1,
	}
	switch {
	case r.image != nil:
		n.info.SystemImageGUID = *r.image
	case !own:
		n.info.SystemImageGUID = g.next
	}
	if t == mad.NodeTypeSwitch {
		n.info.PortGUID = g.next
		if r.portGUID != nil {
			n.info.PortGUID = *r.portGUID
		}
		g.next++
	} else {
		g.next += mad.GUID(ports) + 1
	}
	r.vendor, r.image, r.portGUID = 0, nil, nil
	_, comment, _ := strings.Cut(rest, "#")
	if err := n.comment(r, strings.TrimSpace(comment), own); err != nil {
		return err
	}
	r.add(n)
	r.inRecord = true
	return nil
}

// ofSystem reports whether the first GUID of the line above is that of the system, and the one
// in parentheses that of the node: ibdiagnet writes switchguid=0xSYSTEM(NODE), and
// ibnetdiscover switchguid=0xNODE(PORT). The node id, which has the GUID of the node, shows which.
func (r *recordReader) ofSystem(id string) bool {
	if !isGUIDID(id) {
		return false
	}
	guid, _, ok := hexDigits([]byte(id[2:18]))
	return ok && mad.GUID(guid) == *r.portGUID
}

// comment parses what follows # in the first line of a record: the name, with
// or without quotes around it, which may contain quotes itself, and LID and LMC
// of a switch. own: the node id is one of ibnetdiscover's.
func (n *node) comment(r *recordReader, s string, own bool) error {
	name, rest := s, ""
	if strings.HasPrefix(s, `"`) {
		if i := strings.LastIndexByte(s, '"'); i > 0 {
			name, rest = s[1:i], s[i+1:]
		} else {
			return r.expected("a name in quotes: %q", fabric.Clip(s))
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
	for w := range strings.FieldsSeq(rest) {
		if w == "enhanced" || w == "base" {
			n.port0, n.enhanced = true, w == "enhanced"
		}
	}
	return r.address(rest, &n.lid, &n.lmc)
}

// address parses "lid 3 lmc 0". The LID is unknown where its number is missing, or above
// those of ports: 65535 stands for none.
func (r *recordReader) address(text string, lid *mad.LID, lmc *uint8) error {
	var few [8]string
	words := slices.AppendSeq(few[:0], strings.FieldsSeq(text))
	for i := 0; i < len(words); i++ {
		key, value := words[i], ""
		switch {
		case key != "lid" && key != "lmc":
			continue
		case i+1 < len(words):
			value = words[i+1]
		}
		switch {
		case key == "lid" && value == "lmc":
			r.noLID(r.at)
		case key == "lid" && len(value) == 5 && value > "49151" && value <= "65535" && strings.Trim(value, "0123456789") == "":
			r.noLID(r.at)
			i++
		case !setAddress(key, value, lid, lmc):
			return r.expected("lid to be 0 to %d and lmc 0 to 7: %q", mad.MaxUnicastLID, fabric.Clip(text))
		default:
			i++
		}
	}
	return nil
}

// port parses a port line: `[1](guid) "H-..."[2](guid) w=2 # lid 3 lmc 0 "name" lid 4 4xHDR`.
func (r *recordReader) port(s string) error {
	if !r.inRecord {
		return r.expected("a record (Switch, Ca, Rt) before the port line %q", fabric.Clip(s))
	}
	n := &r.nodes[len(r.nodes)-1]
	p := portLine{at: r.at, rate: r.rate}
	text, alias := strings.CutPrefix(s, "@")
	p.alias = alias
	var ok bool
	if p.num, text, ok = bracketed(text); !ok || p.num < 1 || p.num > int(n.info.NumPorts) {
		return r.expected("a port from 1 to %d in brackets, as in [1]: %q", n.info.NumPorts, fabric.Clip(s))
	}
	for _, q := range n.lines {
		if q.num == p.num {
			return r.expected("one line for port %d, but %s is one too", p.num, q.at)
		}
	}
	if p.guid, text, ok = parenthesised(text); !ok {
		return r.expected("a port GUID in parentheses, in hexadecimal: %q", fabric.Clip(s))
	}
	if p.far, text, ok = quoted(text); !ok || p.far == "" {
		return r.expected("the id of the node that port %d is connected to, in quotes: %q", p.num, fabric.Clip(s))
	}
	p.farPort = 1
	if alias {
		if strings.ContainsAny(p.far, "#@") {
			return r.expected("an alias without # and @, not %q", p.far)
		}
		p.far = r.module + "@" + p.far
		if _, ok := r.alias[p.far]; ok {
			return r.expected("an alias of its own, but %q is taken", p.far)
		}
		r.alias[p.far] = lineRef{len(r.nodes) - 1, len(n.lines)}
	} else {
		p.far = r.qualify(p.far)
		if strings.HasPrefix(text, "[") {
			if p.farPort, text, ok = bracketed(text); !ok || p.farPort < 1 || p.farPort > 254 {
				return r.expected("the port of %q that port %d is connected to, in brackets: %q", p.far, p.num, fabric.Clip(s))
			}
		}
	}
	if p.farGUID, text, ok = parenthesised(text); !ok {
		return r.expected("a port GUID in parentheses, in hexadecimal: %q", fabric.Clip(s))
	}
	options, comment, _ := strings.Cut(text, "#")
	if err := r.rates(&p, options, strings.TrimSpace(comment), n.info.NodeType != mad.NodeTypeSwitch); err != nil {
		return err
	}
	n.lines = append(n.lines, p)
	if r.grouped && strings.HasPrefix(p.far, "R-") && isGUIDID(p.far) {
		r.routers = append(r.routers, routerLine{lineRef{len(r.nodes) - 1, len(n.lines) - 1}, comment})
	}
	return nil
}

// routerLine is a port line that leads to a router, and its comment.
type routerLine struct {
	lineRef
	comment string
}

// addRouters adds the routers that have no record: ibnetdiscover -g leaves out
// those in a chassis (rdma-core infiniband-diags/ibnetdiscover.c,
// dump_topology). Port lines that lead to them give their name and LID, and the
// numbers, GUIDs and rates of their connected ports.
func (r *recordReader) addRouters(name string) {
	made := map[string]bool{}
	for _, e := range r.routers {
		p := &r.nodes[e.node].lines[e.line]
		k, ok := r.ids[p.far]
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
			k = r.add(node{at: p.at, id: p.far, name: label, info: mad.NodeInfo{BaseVersion: 1, ClassVersion: 1, NodeType: mad.NodeTypeRouter, NodeGUID: mad.GUID(guid), PartitionCap: 1}})
			r.problems = append(r.problems, fabric.Problem{Kind: fabric.ProblemLeftOut, Text: fmt.Sprintf("%s has no record of router %q (%s), which is derived from its links: ibnetdiscover -g leaves out routers in a chassis; make the file without -g", name, label, mad.GUID(guid))})
		}
		router := &r.nodes[k]
		router.info.NumPorts = max(router.info.NumPorts, uint8(p.farPort))
		router.lines = append(router.lines, portLine{at: p.at, num: p.farPort, far: r.nodes[e.node].id, farPort: p.num, guid: p.farGUID, lid: lid, rate: p.rate})
	}
}

// rates parses the options of a port line, and its comment: of a port that has
// a LID (hasLID) first its LID and LMC; then name and LID of the other node, and
// width and speed.
func (r *recordReader) rates(p *portLine, options, comment string, hasLID bool) error {
	near, tail := comment, comment
	if i := strings.IndexByte(comment, '"'); i >= 0 {
		near, tail = comment[:i], comment[strings.LastIndexByte(comment, '"')+1:]
	}
	var few [8]string
	if hasLID && near != tail {
		if err := r.address(near, &p.lid, &p.lmc); err != nil {
			return err
		}
	}
	words := slices.AppendSeq(few[:0], strings.FieldsSeq(tail))
	if len(words) >= 2 && words[0] == "lid" {
		if _, ok := parseRate(words[1]); ok { // the LID of the other end is missing, as in its own line
			words = slices.Insert(words, 1, "")
		}
	}
	if len(words) >= 3 && words[0] == "lid" {
		active, ok := parseRate(words[2])
		if !ok {
			return r.expected("width and speed, as in 4xHDR, not %q", fabric.Clip(words[2]))
		}
		p.rate = active
		words = words[3:]
	} else {
		words = nil
	}
	for _, w := range slices.AppendSeq(words, strings.FieldsSeq(options)) {
		if strings.Contains(w, "=") && !p.rate.option(w) {
			return r.expected("an option w=, s= or e= with a mask of widths or speeds, not %q", fabric.Clip(w))
		}
	}
	return nil
}

// qualify puts the module's name before a node id or alias, unless that names a
// module itself.
func (r *recordReader) qualify(id string) string {
	switch {
	case strings.HasPrefix(id, "@"):
		return r.module + id
	case r.module == "" || strings.ContainsAny(id, "#@"):
		return id
	}
	return r.module + "#" + id
}
