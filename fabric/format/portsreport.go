package format

import (
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/mad"
)

// KindPortsReport is the list of ports that ibnetdiscover -p prints.
const KindPortsReport FormatName = "ibnetdiscover-p"

var portsReport = fileFormat{
	kind:       KindPortsReport,
	about:      "a list of ports (ibnetdiscover -p)",
	file:       "list of ports of `ibnetdiscover -p`, which lacks models and states",
	beginnings: []string{"CA  ", "SW  ", "RT  "},
	load: func(r io.Reader, name string, _ Opener) (*fabric.Fabric, error) {
		return loadPortList(r, name, (*portList).reportRow)
	},
}

var reportTypes = map[string]mad.NodeType{"CA": mad.NodeTypeCA, "SW": mad.NodeTypeSwitch, "RT": mad.NodeTypeRouter}

// reportRow parses a line (rdma-core infiniband-diags/ibnetdiscover.c, dump_ports_report):
// `SW     3  8 0x0002c90300001030 4x FDR - CA     7  2 0x0002c90300002022 ( 'leaf 1' - 'node-1 HCA-1' )`,
// or of a port without a cable `SW     3  8 0x0002c90300001030 4x SDR       'leaf 1'`.
func (p *portList) reportRow(line string) error {
	r := portRow{at: p.at}
	r.rate.inUse = true
	text, ok := reportEnd(line, &r.near)
	if !ok {
		return p.expected("a port as in CA     3  1 0x0002c90300000011 4x EDR - SW     1  5 0x0002c90300001000 ( 'node-1 HCA-1' - 'leaf 1' ): %q", p.shown())
	}
	width, text, _ := strings.Cut(text, " ")
	speed, text, _ := strings.Cut(skipBlanks(text), " ")
	if !r.rate.setWidth(width) || !r.rate.setSpeed(strings.ToLower(speed)) {
		return p.expected("width and speed, as in 4x HDR, not %q", fabric.Clip(width+" "+speed))
	}
	text = skipBlanks(text)
	if far, ok := strings.CutPrefix(text, "- "); ok {
		r.connected = true
		text, ok = reportEnd(far, &r.far)
		names, opened := strings.CutPrefix(text, "( '")
		names, closed := strings.CutSuffix(names, "' )")
		parts := strings.Split(names, "' - '")
		if !ok || !opened || !closed || len(parts) != 2 {
			return p.expected("the other end, and the names of both, as in - SW     1  5 0x0002c90300001000 ( 'node-1 HCA-1' - 'leaf 1' ): %q", p.shown())
		}
		r.near.name, r.far.name = parts[0], parts[1]
	} else {
		name, opened := strings.CutPrefix(text, "'")
		name, closed := strings.CutSuffix(name, "'")
		if !opened || !closed {
			return p.expected("the name of the node in single quotes: %q", p.shown())
		}
		r.near.name = name
	}
	p.rows = append(p.rows, r)
	return nil
}

// reportEnd parses `CA     3  1 0x0002c90300000011 `.
func reportEnd(s string, e *portEnd) (rest string, ok bool) {
	word, rest, _ := strings.Cut(s, " ")
	if e.t, ok = reportTypes[word]; !ok {
		return s, false
	}
	if e.lid, e.num, rest, ok = lidNumber(rest); !ok {
		return s, false
	}
	e.guid, rest, ok = listGUID(rest)
	return rest, ok
}
