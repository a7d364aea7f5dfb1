package format

import (
	"fmt"
	"strings"
)

// panelModel is a model of a switch whose panel names have known IB port numbers.
type panelModel struct {
	prefixes []string // of the name of the model, in upper case
	cages    int
	perCage  int // ports in a cage
	planes   int // ASICs, each with the same port numbers
	source   string
}

// panelModels are the models that are known. On all of them port p of cage c is port
// perCage*(c-1)+p of each ASIC. The numbers of split ports (1/c/p/s), and of management ports
// (FNM), are in no public source: rows with them are reported.
var panelModels = []panelModel{
	{[]string{"MQM97", "QM97"}, 32, 2, 1, "all 64 ports of nine switches in PORT_HIERARCHY_INFO of ibdiagnet; Mellanox/ufm_sdk_3.0 plugins/UFM_NDT_Plugin, port 1/16/1"},
	{[]string{"Q34"}, 72, 2, 4, "CVT manual, P2P File: sw1p1; Kubernetes-CNI-Service/http tools/ibdiagnet-analyze-tool lib/topology.py"},
	{[]string{"MQM87", "QM87"}, 40, 1, 1, "CVT manual, P2P File: 40 cages; the numbers of split ports are in no public source"},
}

// unknownModel is read where a plan states no model: pairs of numbers are cages of two ports.
var unknownModel = panelModel{cages: 72, perCage: 2}

// panelModelOf returns the model of that name; nil: its panel is unknown.
func panelModelOf(name string) *panelModel {
	if name == "" {
		return &unknownModel
	}
	name = strings.ToUpper(name)
	for i := range panelModels {
		for _, p := range panelModels[i].prefixes {
			if strings.HasPrefix(name, p) {
				return &panelModels[i]
			}
		}
	}
	return nil
}

// planPortName is the name of a port, taken apart.
type planPortName struct {
	form   portForm
	suffix string // after the name of the device: "/L6/U2", " mlx5_0"
	num    int    // of the IB port, or of the adapter (portAdapter, portRail)
	cage   int    // 0: no cage
	part   int
}

type portForm int

const (
	portUnknown portForm = iota
	portNumber           // the IB port
	portCage             // a cage and a port of it, of a switch
	portChip             // a port of a chip in a director
	portHCA              // an adapter by its driver's name, and a port of it
	portRail             // a rail of a host
	portNIC              // an adapter by the name of its network interface
)

// causeEthernet is why a port of another network is unknown.
const causeEthernet = "a port of Ethernet"

// parsePlanPort takes the name of a port apart:
//
//	21, Port 21, P21      the IB port
//	16/1, 1/16/1, sw16p1  cage and port, with the chip before it
//	Blade 06_Port 2/20    port 20 of chip 2 of leaf board 6 of a director (ibnetdiscover-to-ndt.py)
//	mlx5_0, mlx5_0/P1     an adapter of a host, and its port
//	HOST mlx5_0           the same, with the name of the device
//	rail5, ibp26s0        an adapter by its rail or its network interface
//
// An unknown name has the form portUnknown, and a cause if it is known what it is.
func parsePlanPort(device, text string) (p planPortName, cause string) {
	// By the bytes of text: its lower case may have another length.
	if n := len(device); n > 0 && len(text) > n && text[n] == ' ' && strings.EqualFold(text[:n], device) {
		if strings.Contains(text[n+1:], " ") {
			return p, ""
		}
		return planPortName{form: portHCA, suffix: text[n:], num: 1}, ""
	}
	lower := strings.ToLower(text)
	var blade, chip, split int
	hca, num := lower, 1
	if before, after, ok := strings.Cut(lower, "/"); ok && (scans(after, "p%d", &num) || scans(after, "port %d", &num) || isHCA(before) && scans(after, "%d", &num)) {
		hca = before
	}
	switch {
	case isHCA(hca):
		return planPortName{form: portHCA, suffix: " " + text[:len(hca)], num: num}, ""
	case scans(lower, "blade %d_port %d/%d", &blade, &chip, &p.num):
		p.form, p.suffix = portChip, fmt.Sprintf("/L%d/U%d", blade, chip)
	case scans(lower, "%d", &p.num), scans(lower, "port %d", &p.num), scans(lower, "p%d", &p.num):
		p.form = portNumber
	case scans(lower, "sw%dp%d", &p.cage, &p.part), scans(lower, "%d/%d", &p.cage, &p.part):
		p.form = portCage
	case scans(lower, "%d/%d/%d", &chip, &p.cage, &p.part), scans(lower, "port %d/%d/%d", &chip, &p.cage, &p.part):
		if chip != 1 {
			return p, "chips other than 1 are unknown"
		}
		p.form = portCage
	case scans(strings.TrimPrefix(lower, "port "), "%d/%d/%d/%d", &chip, &p.cage, &p.part, &split), scans(lower, "sw%dp%ds%d", &p.cage, &p.part, &split):
		return p, "the number of a split port is unknown; write the IB port"
	case scans(lower, "rail%d", &p.num), scans(lower, "rail %d", &p.num), scans(lower, "rail-%d", &p.num):
		p.form = portRail
	case strings.HasPrefix(lower, "fnm"):
		return p, "the number of a management port is unknown; write the IB port"
	case strings.HasPrefix(lower, "swp"), strings.HasPrefix(lower, "eth"):
		return p, causeEthernet
	case isInterface(lower):
		p.form, p.suffix = portNIC, text
	}
	return p, ""
}

// number returns the IB port number on a switch of the model that the plan names.
func (p *planPortName) number(model string) (num int, cause string) {
	if p.form != portCage {
		return p.num, ""
	}
	m := panelModelOf(model)
	switch {
	case m == nil:
		return 0, fmt.Sprintf("the panel of model %q is unknown; write the IB port", model)
	case m.perCage == 1:
		return 0, fmt.Sprintf("the numbers of split ports of %s are unknown; write the IB port", model)
	case p.cage < 1 || p.cage > m.cages || p.part < 1 || p.part > m.perCage:
		return 0, fmt.Sprintf("no cage from 1 to %d with a port from 1 to %d", m.cages, m.perCage)
	}
	return m.perCage*(p.cage-1) + p.part, ""
}

// isHCA reports whether a word, in lower case, is a driver's name of an HCA.
func isHCA(word string) bool {
	for _, form := range []string{"hca-%d", "mlx4_%d", "mlx5_%d", "hfi1_%d"} {
		if scans(word, form, new(int)) {
			return true
		}
	}
	return false
}

// isInterface reports whether a word, in lower case, is the name that Linux gives a network
// interface of InfiniBand: ibp26s0, ibs1, ib0, ibp26s0f1np0.
func isInterface(word string) bool {
	rest, ok := strings.CutPrefix(word, "ib")
	return ok && rest != "" && strings.Trim(rest, "0123456789pfsnd") == "" && strings.ContainsAny(rest, "0123456789")
}

// scans reports whether text has exactly the given format, with decimal numbers.
func scans(text, format string, numbers ...*int) bool {
	for i, part := range strings.Split(format, "%d") {
		if i > 0 {
			n, rest, ok := decimal([]byte(text))
			if !ok {
				return false
			}
			*numbers[i-1], text = n, string(rest)
		}
		var ok bool
		if text, ok = strings.CutPrefix(text, part); !ok {
			return false
		}
	}
	return text == ""
}
