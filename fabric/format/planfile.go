package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// Plans of cables that are not tables. All of them are added to a planBook.

// KindTopoConfig is a static topology of NVIDIA's OpenSM and UFM.
const KindTopoConfig FormatName = "topoconfig"

var topoConfig = fileFormat{
	kind:  KindTopoConfig,
	about: "a static topology of OpenSM (topoconfig.conf)",
	file:  "`topoconfig.conf`, the static topology of NVIDIA's OpenSM and UFM",
	sniff: func(l *headLine) bool { _, _, ok := topoConfigEnds(l.text); return ok },
	load:  planLoader(KindTopoConfig, readTopoConfig),
	plan:  readTopoConfig,
}

// topoConfigEnds parses a line: SrcGUID,SrcPort,DstGUID,DstPort,DeviceType,LinkState.
func topoConfigEnds(line []byte) (ends [2]fabricEnd, state string, ok bool) {
	fields := strings.Split(string(line), ",")
	if len(fields) != 6 {
		return ends, "", false
	}
	for i := range ends {
		guid, rest, isGUID := hex(bytes.TrimSpace([]byte(fields[2*i])))
		num, err := strconv.Atoi(strings.TrimSpace(fields[2*i+1]))
		if !isGUID || len(rest) > 0 || err != nil {
			return ends, "", false
		}
		ends[i] = fabricEnd{mad.GUID(guid), num}
	}
	return ends, strings.ToLower(strings.TrimSpace(fields[5])), true
}

// fabricEnd is an end by GUID and port.
type fabricEnd struct {
	guid mad.GUID
	num  int
}

// readTopoConfig reads a static topology: a line for each direction of a cable between switches, one from
// the switch for a cable to a host.
func readTopoConfig(b *planBook, r io.Reader) error {
	l := newLines(r, b.file)
	sources := map[mad.GUID]bool{} // only switches have lines of their own
	for l.next() {
		text := bytes.TrimSpace(bytes.TrimPrefix(l.text, []byte(byteOrderMark)))
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		b.bytes = l.bytes
		ends, state, ok := topoConfigEnds(text)
		if !ok {
			return l.expected("SrcGUID,SrcPort,DstGUID,DstPort,DeviceType,LinkState: %q", l.shown())
		}
		sources[ends[0].guid] = true
		switch {
		case state != "active" && state != "activ":
			b.out++
			continue
		case ends[1].guid == 0:
			b.open++
			continue
		}
		row := planRow{at: l.at, source: b.line(l.at.line)}
		for i, e := range ends {
			row.ends[i] = b.plainEnd(e.guid.String(), strconv.Itoa(e.num), []string{"SrcPort", "DstPort"}[i])
		}
		row.ends[0].device.isSwitch = true
		if err := b.add(row); err != nil {
			return err
		}
	}
	for i := range b.rows {
		if e := &b.rows[i].ends[1]; !e.device.isSwitch {
			e.device.isHost = true
		}
	}
	return l.err
}

// line returns what a plan calls a line of the file that is being read.
func (b *planBook) line(num int) string {
	source := "line " + strconv.Itoa(num)
	if b.many {
		source = b.file + " " + source
	}
	return source
}

// plainEnd returns the end that a device and a port name.
func (b *planBook) plainEnd(device, port, column string) planEnd {
	e := planEnd{device: b.device(device), text: port, column: column}
	e.name, e.cause = parsePlanPort(device, port)
	return e
}

// KindPlanJSON is the cables of NetBox or Nautobot.
const KindPlanJSON FormatName = "netbox"

var planJSON = fileFormat{
	kind:  KindPlanJSON,
	about: "cables of NetBox (JSON)",
	file:  "cables of NetBox or Nautobot, as JSON of `GET /api/dcim/cables/`; several pages may follow one another in the file",
	sniff: func(l *headLine) bool { return l.num == 1 && isNetBox(l.raw) }, // recognise tries more than a line
	load:  planLoader(KindPlanJSON, readNetBox),
	plan:  readNetBox,
}

// isNetBox reports whether a file begins with cables of NetBox.
func isNetBox(head []byte) bool {
	head = bytes.TrimSpace(head)
	has := func(member string) bool { return bytes.Contains(head, []byte(member)) }
	return len(head) > 0 && (head[0] == '{' || head[0] == '[') && (has(`"count"`) && has(`"results"`) || has(`"a_terminations"`) || has(`"termination_a_type"`))
}

// netBoxPage is a page of an answer, with the members that the reader uses.
type netBoxPage struct {
	Count   *int
	Next    *string
	Results []netBoxCable
}

type netBoxCable struct {
	ID           any
	Label        string
	Length       json.Number
	LengthUnit   netBoxChoice  `json:"length_unit"`
	Status       netBoxChoice  `json:"status"`
	A            []netBoxEnd   `json:"a_terminations"`
	B            []netBoxEnd   `json:"b_terminations"`
	AType        string        `json:"termination_a_type"`
	BType        string        `json:"termination_b_type"`
	ATermination *netBoxObject `json:"termination_a"`
	BTermination *netBoxObject `json:"termination_b"`
}

type netBoxEnd struct {
	ObjectType string       `json:"object_type"`
	Object     netBoxObject `json:"object"`
}

// netBoxObject is an interface, netBoxDevice its device. Where Nautobot is not requested with ?depth=2,
// they are addresses, or objects without a name.
type netBoxObject struct {
	Name   string
	Device *netBoxDevice
}

type netBoxDevice struct {
	Name     string
	Display  string
	Rack     netBoxChoice
	Position json.Number
}

func (o *netBoxObject) UnmarshalJSON(data []byte) error {
	type object netBoxObject
	return unlessAddress(data, (*object)(o))
}

func (d *netBoxDevice) UnmarshalJSON(data []byte) error {
	type object netBoxDevice
	return unlessAddress(data, (*object)(d))
}

// unlessAddress decodes an object; an address is left out.
func unlessAddress(data []byte, to any) error {
	if len(data) > 0 && data[0] == '"' {
		return nil
	}
	return json.Unmarshal(data, to)
}

// netBoxChoice is a choice: an object with a value, or a name, or the word alone. An address is not one.
type netBoxChoice struct{ text string }

func (c *netBoxChoice) UnmarshalJSON(data []byte) error {
	var word string
	if json.Unmarshal(data, &word) == nil {
		if !strings.Contains(word, "://") {
			c.text = word
		}
		return nil
	}
	var object struct{ Value, Name string }
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	c.text = cmp.Or(object.Value, object.Name)
	return nil
}

// readNetBox reads pages of cables. A page that names a next one, which is not there, leaves the plan
// incomplete.
func readNetBox(b *planBook, r io.Reader) error {
	in := json.NewDecoder(r)
	in.UseNumber()
	count, read, num := 0, 0, 0
	for {
		var raw json.RawMessage
		err := in.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: the JSON is damaged after byte %d: %w", b.file, in.InputOffset(), err)
		}
		b.bytes = in.InputOffset()
		var pages []netBoxPage
		var page netBoxPage
		switch raw = bytes.TrimSpace(raw); {
		case raw[0] != '[':
			err = json.Unmarshal(raw, &page)
			pages = append(pages, page)
		case bytes.Contains(raw, []byte(`"results"`)):
			err = json.Unmarshal(raw, &pages)
		default: // the results alone
			err = json.Unmarshal(raw, &page.Results)
			pages = append(pages, page)
		}
		if err != nil {
			return fmt.Errorf("%s: expected cables of NetBox, as GET /api/dcim/cables/ returns them: %w", b.file, err)
		}
		for _, page := range pages {
			if page.Count != nil {
				count = max(count, *page.Count)
			}
			read += len(page.Results)
			for i := range page.Results {
				num++
				if err := b.netBoxCable(&page.Results[i], num); err != nil {
					return err
				}
			}
		}
	}
	b.netBox[0], b.netBox[1] = max(b.netBox[0], count), b.netBox[1]+read
	return nil
}

// netBoxCable adds a cable.
func (b *planBook) netBoxCable(c *netBoxCable, num int) error {
	source := fmt.Sprintf("cable %v", c.ID)
	if c.ID == nil {
		source = fmt.Sprintf("cable number %d", num)
	}
	if b.many {
		source = b.file + " " + source
	}
	at := pos{b.file, num}
	if c.ATermination != nil {
		c.A = []netBoxEnd{{c.AType, *c.ATermination}}
	}
	if c.BTermination != nil {
		c.B = []netBoxEnd{{c.BType, *c.BTermination}}
	}
	switch state := strings.ToLower(c.Status.text); {
	case state != "" && state != "connected" && state != "planned":
		b.out++
		return nil
	case len(c.A) == 0 || len(c.B) == 0:
		b.open++
		return nil
	}
	r := planRow{at: at, source: source, label: cleanCell(c.Label), length: strings.TrimSpace(c.Length.String() + " " + c.LengthUnit.text)}
	for i, ends := range [][]netBoxEnd{c.A, c.B} {
		e := &ends[0]
		switch {
		case e.ObjectType != "" && e.ObjectType != "dcim.interface":
			b.other++
			return nil
		case len(ends) > 1:
			return b.fail(at, source, "one interface at each end, not %d: the ports of a breakout cable are unknown", len(ends))
		case e.Object.Device == nil || cmp.Or(e.Object.Device.Name, e.Object.Device.Display) == "":
			return b.fail(at, source, "a device with its name at each end; request the cables with ?depth=2 (Nautobot), or export them as CSV")
		}
		d := e.Object.Device
		name := cleanCell(cmp.Or(d.Name, d.Display))
		if name == "" || len(name) > maxPlanName {
			return b.fail(at, source, "a device with a name of 1 to %d bytes, not %q", maxPlanName, fabric.Clip(name))
		}
		r.ends[i] = b.plainEnd(name, cleanCell(e.Object.Name), []string{"a_terminations", "b_terminations"}[i])
		r.ends[i].device.stay(fabric.Place{Rack: d.Rack.text, Unit: d.Position.String()})
	}
	return b.add(r)
}

// KindPlanXML is a topology of Cornelis' (Intel's) tools.
const KindPlanXML FormatName = "opaxml"

var planXML = fileFormat{
	kind:       KindPlanXML,
	about:      "a topology of opareport or opaxlattopology (XML)",
	file:       "topology of Cornelis' `opareport` and `opaxlattopology`, as XML",
	beginnings: []string{"<?xml", "<Topology", "<Report"},
	load:       planLoader(KindPlanXML, readPlanXML),
	plan:       readPlanXML,
}

// xmlLink is a link of a topology as XML, with the elements that the reader uses.
type xmlLink struct {
	Cable struct {
		Length string `xml:"CableLength"`
		Label  string `xml:"CableLabel"`
	}
	Ports []xmlPort `xml:"Port"`
}

type xmlPort struct {
	NodeGUID, PortNum, NodeDesc, PortGUID, NodeType string
}

// readPlanXML reads the links of a topology. Encoding, entities and references of XML other than the
// predefined are refused by package xml.
func readPlanXML(b *planBook, r io.Reader) error {
	in := xml.NewDecoder(r)
	topology := false
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) && topology {
			return nil
		}
		line, _ := in.InputPos()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: expected a topology in XML, with <Topology> or <Report>", b.file)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: the XML is damaged: %w", b.file, line, err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		b.bytes = in.InputOffset()
		switch start.Name.Local {
		case "Topology", "Report":
			topology = true
		case "SM":
			var sm xmlPort
			if err := in.DecodeElement(&sm, &start); err == nil && cmp.Or(sm.NodeDesc, sm.NodeGUID) != "" {
				b.plan.Managers = append(b.plan.Managers, cmp.Or(sm.NodeDesc, sm.NodeGUID))
			}
		case "Link":
			var l xmlLink
			if err := in.DecodeElement(&l, &start); err != nil {
				return fmt.Errorf("%s:%d: the XML is damaged: %w", b.file, line, err)
			}
			if err := b.xmlLink(&l, line); err != nil {
				return err
			}
		}
	}
}

// xmlLink adds a link. A port matches by whatever is given: its description, or a GUID.
func (b *planBook) xmlLink(l *xmlLink, line int) error {
	r := planRow{at: pos{b.file, line}, source: b.line(line), label: cleanCell(l.Cable.Label), length: cleanCell(l.Cable.Length)}
	if len(l.Ports) != 2 {
		return b.fail(r.at, r.source, "two ports of a link, not %d", len(l.Ports))
	}
	for i := range l.Ports {
		p := &l.Ports[i]
		name := cleanCell(cmp.Or(p.NodeDesc, p.NodeGUID))
		if name == "" || len(name) > maxPlanName {
			return b.fail(r.at, r.source, "a NodeDesc or a NodeGUID of each port")
		}
		e := b.plainEnd(name, cleanCell(p.PortNum), "PortNum")
		e.device.state(strings.ToLower(p.NodeType))
		r.ends[i] = e
	}
	return b.add(r)
}

// KindSlurm is a topology of Slurm's plug-in for trees.
const KindSlurm FormatName = "slurm"

var slurmTopology = fileFormat{
	kind:       KindSlurm,
	about:      "a topology of Slurm (topology.conf)",
	file:       "`topology.conf` of Slurm: hosts and the groups that share leaf switches; it has no ports",
	beginnings: []string{"SwitchName="},
	load:       planLoader(KindSlurm, readSlurm),
	plan:       readSlurm,
}

// readSlurm reads the groups of hosts. A line SwitchName=s Nodes=host[1-4] or Switches=s[1-2] may continue
// after a backslash.
func readSlurm(b *planBook, r io.Reader) error {
	l := newLines(r, b.file)
	var line string
	for l.next() {
		text := string(l.text)
		if i := strings.IndexByte(text, '#'); i >= 0 {
			text = text[:i]
		}
		if rest, more := strings.CutSuffix(strings.TrimRight(text, " \t"), "\\"); more {
			if line += rest; len(line) > maxLine {
				return l.expected("a line of at most %d bytes", maxLine)
			}
			continue
		}
		line += text
		words := strings.Fields(line)
		if line = ""; len(words) == 0 {
			continue
		}
		var g fabric.PlanGroup
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			switch strings.ToLower(key) {
			case "switchname":
				g.Name = value
			case "nodes", "switches":
				names, ok := hostList(value)
				if !ok {
					return l.expected("a list of hosts, as in node[1-4,7], of at most %d: %q", maxNodes, fabric.Clip(value))
				}
				if strings.EqualFold(key, "nodes") {
					g.Hosts = append(g.Hosts, names...)
				} else {
					g.Groups = append(g.Groups, names...)
				}
			}
		}
		if g.Name == "" {
			return l.expected("SwitchName=NAME and Nodes=LIST or Switches=LIST: %q", l.shown())
		}
		for _, host := range g.Hosts {
			if _, known := b.ids[host]; known {
				continue
			}
			d := b.device(host)
			d.isHost = true
			if err := b.countPorts(l.at, 1, l.bytes); err != nil {
				return err
			}
			b.topology.add(node{at: l.at, id: host, name: host, device: d, info: mad.NodeInfo{NumPorts: 1}})
		}
		b.plan.Groups = append(b.plan.Groups, g)
	}
	b.plan.Partial = "hosts by groups that share leaf switches; no ports and no cables"
	return l.err
}

// hostList returns the names of a list of hosts of Slurm: node[1-4,07],login. It is not ok where a bracket or
// a number is invalid, or there are too many.
func hostList(text string) (names []string, ok bool) {
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i < len(text) && text[i] == '[':
			depth++
		case i < len(text) && text[i] == ']':
			depth--
		case i == len(text) || text[i] == ',' && depth == 0:
			part := text[start:i]
			start = i + 1
			if names, ok = expandHosts(names, part); !ok {
				return nil, false
			}
		}
	}
	return names, depth == 0
}

// expandHosts adds the names of a name with brackets.
func expandHosts(names []string, text string) ([]string, bool) {
	before, rest, found := strings.Cut(text, "[")
	if !found {
		return append(names, text), text != "" && len(text) <= maxPlanName && !strings.Contains(text, "]")
	}
	ranges, after, found := strings.Cut(rest, "]")
	if !found {
		return nil, false
	}
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		lo, rest1, ok1 := decimal([]byte(first))
		hi, rest2, ok2 := decimal([]byte(last))
		if !ok1 || !ok2 || len(rest1)+len(rest2) > 0 || lo > hi || len(first) > 10 {
			return nil, false
		}
		for n := lo; n <= hi; n++ {
			var ok bool
			if names, ok = expandHosts(names, fmt.Sprintf("%s%0*d%s", before, len(first), n, after)); !ok || len(names) > maxNodes {
				return nil, false
			}
		}
	}
	return names, true
}
