package spec

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/sim/state"
	"fabsh/mad"
)

// SubnetOptions are the faults and settings of a simulated subnet. The zero value has
// no faults.
type SubnetOptions struct {
	// Loss is the probability that a MAD is lost, in each direction.
	Loss float64
	// Delay is the time from a request to its answer. A random time up to Jitter
	// is added for each MAD, so that answers may come in another order.
	Delay, Jitter time.Duration
	// Dup is the probability that a MAD arrives twice, in each direction.
	Dup float64
	// Busy is the probability that an agent answers BUSY.
	Busy float64
	// VL15, if not 0, is how many answers to SMPs may wait for a program at a time:
	// the others are lost, as virtual lane 15 has no flow control.
	VL15 int
	// Seed is the seed of all random choices.
	Seed int64
	// Dead ports lose all MADs, in both directions, while their links are up.
	Dead []*fabric.Port
	// LMC is the LMC of ports of CAs and routers that have no LID: they get 1<<LMC LIDs.
	LMC uint8
	// SM is the node of the subnet manager; nil: the first CA.
	SM *fabric.Node
	// Engines are the routing engines of OpenSM, whose tables the subnet manager makes and
	// changes; nil: tables of its own.
	Engines []string
	// MKey, if not 0, is the M_Key of all ports, with protection level MKeyLevel:
	// 0 and 1 protect against Sets, 2 and 3 against Gets too.
	MKey      uint64
	MKeyLevel uint8
	// Redirects are nodes whose performance management is on another node.
	Redirects []Redirect
	// Speed and Width, such as "edr" and "2x", apply to all links; "": as in the fabric.
	Speed, Width string
	// Errors are ports whose SymbolErrorCounter grows, by a number a second.
	Errors []PortRate
	// Traffic, if not 0, is what each CA sends to the CA that is half of all CAs further
	// on, in bytes per second.
	Traffic float64
	// Registers gives the devices registers, as Mellanox devices have them; RegisterFaults
	// are the faults that they show.
	Registers      bool
	RegisterFaults []RegisterFault
	// Adaptive is what is set up of adaptive routing; nil: switches do not support it.
	// AdaptiveFaults are its faults.
	Adaptive       *state.AdaptiveSettings
	AdaptiveFaults []adaptiveFault
	// VirtualPorts is the number of virtual ports of each port of an adapter.
	VirtualPorts int
	// Bare is set if no subnet manager has brought the subnet up: links are in state
	// Initialize, ports have no LIDs, switches have no routes, and this process has no
	// subnet manager.
	Bare bool
	// NoSM is set if the subnet manager has stopped: the subnet is up, with LIDs and
	// tables, and this process has no subnet manager.
	NoSM bool
}

// WithoutFaults returns the options without the faults that hide a part of the subnet from a
// sweep, or make the sweep long.
func (o SubnetOptions) WithoutFaults() SubnetOptions {
	o.Loss, o.Dup, o.Busy, o.Delay, o.Jitter, o.VL15 = 0, 0, 0, 0, 0, 0
	o.Dead, o.MKey = nil, 0
	return o
}

// Redirect redirects requests for the performance management of Node to a queue pair of
// At. If both are one node, it redirects to itself: such requests never get an answer.
type Redirect struct{ Node, At *fabric.Node }

// RegisterFault is a fault that state.Hardware.Break accepts, at a port, or with Num 0 at the
// node.
type RegisterFault struct {
	Fault string
	Node  *fabric.Node
	Num   int
}

// adaptiveFault is a fault of the adaptive routing of a switch.
type adaptiveFault struct {
	Fault state.AdaptiveFault
	Node  *fabric.Node
}

// PortRate is a number per second at a port.
type PortRate struct {
	Port *fabric.Port
	Rate float64
}

// managerNone is the value of sm= for a subnet manager that has stopped.
const managerNone = "none"

// managerOpenSM is the value of sm= for a subnet manager that routes like OpenSM.
const managerOpenSM = "opensm"

// options reads the common keys.
func (v *values) options(f *fabric.Fabric) (SubnetOptions, error) {
	o := SubnetOptions{
		Loss: v.share("loss"), Dup: v.share("dup"), Busy: v.share("busy"),
		Delay: v.duration("delay"), Jitter: v.duration("jitter"),
	}
	var err error
	o.Seed = v.seed()
	if o.MKey, err = strconv.ParseUint(v.text["mkey"], 0, 64); err != nil {
		v.fail("mkey", "is not a number of 64 bits, as 0x1234")
	}
	o.MKeyLevel, o.LMC = uint8(v.number("mkey_level", 0, 3)), uint8(v.number("lmc", 0, 7))
	if text := v.text["redirect"]; text != "" {
		for pair := range strings.SplitSeq(text, "+") {
			node, at, _ := strings.Cut(pair, "@")
			var r Redirect
			if r.Node, err = findNode(f, node); err == nil {
				r.At, err = findNode(f, at)
			}
			if err != nil {
				v.fail("redirect", err.Error()+": write NODE@NODE")
				break
			}
			o.Redirects = append(o.Redirects, r)
		}
	}
	name := v.text["sm"]
	o.Bare = v.yes("bare")
	if name == managerNone {
		name, o.NoSM = "", true
	}
	if o.Bare && v.text["sm"] != "" {
		v.fail("bare", "excludes sm=: a bare fabric has no subnet manager")
	}
	if engine, ok := strings.CutPrefix(name, managerOpenSM); ok && (engine == "" || engine[0] == '/' || engine[0] == '@') {
		var at bool
		if engine, name, at = strings.Cut(engine, "@"); at && name == "" {
			v.fail("sm", "names no node after @")
		}
		if o.Engines = []string{opensm.MinHop}; engine != "" {
			o.Engines = []string{engine[1:]}
		}
		switch {
		case !opensm.IsEngine(o.Engines[0]):
			v.fail("sm", "names an unsupported engine of OpenSM; supported: "+strings.Join(opensm.Engines(), ", "))
		case v.text["ar"] != "no" || v.text["ar_with"] != "" || v.text["vports"] != "0" || v.text["planes"] != "" && v.text["planes"] != "1":
			v.fail("sm", "does not support ar=, ar_with=, vports= and planes=")
		}
	}
	if name != "" {
		if o.SM, err = findNode(f, name); err != nil {
			v.fail("sm", err.Error())
		} else if !HasCable(o.SM) {
			v.fail("sm", "is a node without a cable")
		}
	}
	o.Dead = v.deadPorts(f, &o)
	v.hardware(f, &o)
	v.registers(f, &o)
	v.adaptive(f, &o)
	o.VirtualPorts = v.number("vports", 0, state.MaxVirtualPorts)
	return o, v.err
}

// HasCable reports whether a program on n reaches other nodes, or n is a switch.
func HasCable(n *fabric.Node) bool {
	for p := range n.Ports() {
		if p.Peer() != nil {
			return true
		}
	}
	return n.IsSwitch()
}

// hardware reads the keys of speeds, errors and traffic.
func (v *values) hardware(f *fabric.Fabric, o *SubnetOptions) {
	o.VL15 = v.number("vl15", 0, 1<<20)
	if o.Speed = v.text["speed"]; o.Speed != "" && state.LaneRate(o.Speed) == 0 {
		v.fail("speed", fmt.Sprintf("is no speed: there are %q", slices.DeleteFunc(mad.Speeds(), func(s string) bool { return state.LaneRate(s) == 0 })))
	}
	if o.Width = v.text["width"]; o.Width != "" && mad.WidthLanes(o.Width) == 0 {
		v.fail("width", fmt.Sprintf("is no width: there are %q", mad.Widths()))
	}
	var ok bool
	if o.Traffic, ok = ParseBandwidth(v.text["traffic"]); !ok {
		v.fail("traffic", "is not a number of bytes a second, as 10GB/s, or of bits, as 100Gb/s")
	}
	places, rate, given := strings.Cut(v.text["errors"], "@")
	if places == "" && !given {
		return
	}
	each := 1.0
	if given {
		if each, ok = ParseRate(rate); !ok {
			v.fail("errors", "does not end in a rate, as @10/s")
		}
	}
	for _, p := range v.ports("errors", places, f, o.Seed) {
		o.Errors = append(o.Errors, PortRate{p, each})
	}
}

// registers reads the key of the devices' registers.
func (v *values) registers(f *fabric.Fabric, o *SubnetOptions) {
	text := v.text["registers"]
	if o.Registers = text != "no"; !o.Registers || text == "yes" {
		return
	}
	for one := range strings.SplitSeq(text, "+") {
		fault, name, _ := strings.Cut(one, "@")
		n, num, err := findPort(f, name)
		if err == nil && num > 0 && n.Port(num) == nil {
			err = fmt.Errorf("%s has no port %d", n.Label(), num)
		}
		if err == nil {
			err = state.NewHardware(n.GUID(), n.IsSwitch()).Break(fault, max(num, 0))
		}
		if err != nil {
			v.fail("registers", "is invalid: "+err.Error()+"; write yes, no, or FAULT@NODE/PORT")
			return
		}
		o.RegisterFaults = append(o.RegisterFaults, RegisterFault{fault, n, max(num, 0)})
	}
}

// ports returns the ports that a key selects: NODE/PORT, several with +; or a number or a
// share of the ports with a cable, which the seed chooses.
func (v *values) ports(key, text string, f *fabric.Fabric, seed int64) (ports []*fabric.Port) {
	var all []*fabric.Port
	for i := range f.Ports() {
		if p := &f.Ports()[i]; p.Peer() != nil {
			all = append(all, p)
		}
	}
	count, err := strconv.Atoi(text)
	if share, ok := parseShare(text); ok && strings.HasSuffix(text, "%") {
		count, err = int(math.Ceil(share*float64(len(all)))), nil
	}
	if err == nil {
		if count < 0 || count > len(all) {
			v.fail(key, fmt.Sprintf("is not a number of ports: %d have a cable", len(all)))
			return nil
		}
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:count]
	}
	for name := range strings.SplitSeq(text, "+") {
		n, num, err := findPort(f, name)
		switch {
		case err != nil:
			v.fail(key, err.Error())
			return nil
		case num < 0 || n.Port(num) == nil:
			v.fail(key, fmt.Sprintf("names no port of %s: write NODE/PORT, with a port from 1 to %d", n.Label(), n.NumPorts()))
			return nil
		}
		ports = append(ports, n.Port(num))
	}
	return ports
}

// deadPorts chooses the dead ports.
func (v *values) deadPorts(f *fabric.Fabric, o *SubnetOptions) (ports []*fabric.Port) {
	text := v.text["dead"]
	if text == "" {
		return nil
	}
	var hosts []*fabric.Node
	sm := o.SM
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		if sm == nil && !n.IsSwitch() && HasCable(n) {
			sm = n
		}
		if n != sm && n.Kind() != fabric.KindAggregation && !n.IsSwitch() {
			hosts = append(hosts, n)
		}
	}
	count, err := strconv.Atoi(text)
	if share, ok := parseShare(text); ok && strings.HasSuffix(text, "%") {
		count, err = int(math.Ceil(share*float64(len(hosts)))), nil
	}
	if err == nil {
		if count < 0 || count > len(hosts) {
			v.fail("dead", fmt.Sprintf("is not a number of hosts: beside the subnet manager's there are %d", len(hosts)))
			return nil
		}
		r := rand.New(rand.NewPCG(uint64(o.Seed), 0))
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		for _, n := range hosts[:count] {
			ports = slices.AppendSeq(ports, n.Ports())
		}
		return ports
	}
	for name := range strings.SplitSeq(text, "+") {
		n, num, err := findPort(f, name)
		switch {
		case err != nil:
			v.fail("dead", err.Error())
			return nil
		case num < 0:
			ports = slices.AppendSeq(ports, n.Ports())
		case n.Port(num) == nil:
			v.fail("dead", fmt.Sprintf("means port %d of %s, which has ports up to %d", num, n.Label(), n.NumPorts()))
			return nil
		default:
			ports = append(ports, n.Port(num))
		}
	}
	return ports
}

// findPort finds NODE or NODE/PORT. It tries NODE first, as names may contain
// slashes; its port number is -1.
func findPort(f *fabric.Fabric, name string) (*fabric.Node, int, error) {
	n, err := findNode(f, name)
	if slash := strings.LastIndexByte(name, '/'); err != nil && slash >= 0 {
		if num, bad := strconv.ParseUint(name[slash+1:], 10, 8); bad == nil {
			n, err = findNode(f, name[:slash])
			return n, int(num), err
		}
	}
	return n, -1, err
}

// findNode finds a node by its name or GUID.
func findNode(f *fabric.Fabric, name string) (*fabric.Node, error) {
	n, err := f.FindNode(name)
	if err == nil {
		return n, nil
	}
	var e *fabric.NameError
	errors.As(err, &e)
	if len(e.Nodes) == 0 {
		if guid, err := strconv.ParseUint(name, 0, 64); err == nil {
			if nodes := f.NodeByGUID(mad.GUID(guid)); len(nodes) == 1 {
				return nodes[0], nil
			}
		}
		if near := e.Nearest(); near != "" {
			return nil, fmt.Errorf("names unknown node %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("names unknown node %q", name)
	}
	return nil, fmt.Errorf("names several nodes: %w", err)
}

// adaptiveOption is a word of ar_with.
type adaptiveOption struct {
	word, doc string
	set       func(*state.AdaptiveSettings)
}

var adaptiveOptions = []adaptiveOption{
	{"free", "a choice for each packet, not each flow", func(s *state.AdaptiveSettings) { s.State = adaptive.Free }},
	{"all", "UD and UC too, not only RC and DC", func(s *state.AdaptiveSettings) { s.AllTransports = true }},
	{"secondary", "a second sub-group, of ports up by which routes are longer", func(s *state.AdaptiveSettings) { s.Secondary = true }},
	{"hbf", "a choice by hashes for packets that are not routed adaptively", func(s *state.AdaptiveSettings) { s.HBF = true }},
	{"whbf", "hashes that favour the first sub-group", func(s *state.AdaptiveSettings) { s.HBF, s.WHBF = true, true }},
	{"plft", "a private LFT for packets from other switches", func(s *state.AdaptiveSettings) { s.Private = true }},
	{"rn", "routing notifications by strings", func(s *state.AdaptiveSettings) { s.Notification = true }},
	{"pfrn", "routing notifications by packets", func(s *state.AdaptiveSettings) { s.PFRN = true }},
}

// adaptive reads the keys of adaptive routing.
func (v *values) adaptive(f *fabric.Fabric, o *SubnetOptions) {
	engine, with, faults := v.text["ar"], v.text["ar_with"], v.text["ar_faults"]
	switch {
	case engine != "no":
	case with == "" && faults == "":
		return
	default:
		engine = state.LFTEngines[0]
	}
	var err error
	key := "ar_with"
	if !slices.Contains(state.LFTEngines, engine) {
		key = "ar"
	}
	if o.Adaptive, err = ParseAdaptive(engine, with); err != nil {
		v.fail(key, "is invalid: "+err.Error())
		return
	}
	if faults == "" {
		return
	}
	for one := range strings.SplitSeq(faults, "+") {
		word, name, _ := strings.Cut(one, "@")
		n, err := findNode(f, name)
		var fault state.AdaptiveFault
		if err == nil {
			fault, err = state.AdaptiveFaultNamed(word)
		}
		if err == nil && !(n.IsSwitch() && hasTwoCables(n)) {
			err = fmt.Errorf("%s is not a switch with cables", n.Label())
		}
		if err != nil {
			v.fail("ar_faults", "is invalid: "+err.Error()+"; write FAULT@SWITCH")
			return
		}
		o.AdaptiveFaults = append(o.AdaptiveFaults, adaptiveFault{fault, n})
	}
}

// ParseAdaptive returns the settings of a routing engine with options, several with +.
func ParseAdaptive(engine, with string) (*state.AdaptiveSettings, error) {
	if !slices.Contains(state.LFTEngines, engine) {
		return nil, fmt.Errorf("unknown engine %q; supported: %s", engine, strings.Join(state.LFTEngines, ", "))
	}
	set := &state.AdaptiveSettings{AdaptiveOptions: state.AdaptiveOptions{Engine: engine}}
	if with == "" {
		return set, nil
	}
	for word := range strings.SplitSeq(with, "+") {
		i := slices.IndexFunc(adaptiveOptions, func(o adaptiveOption) bool { return o.word == word })
		if i < 0 {
			var words []string
			for _, o := range adaptiveOptions {
				words = append(words, o.word)
			}
			return nil, fmt.Errorf("unknown option %q%s; supported: %s", word, fabric.DidYouMean(word, words), strings.Join(words, ", "))
		}
		adaptiveOptions[i].set(set)
	}
	return set, nil
}

// AdaptiveOptionsDoc is one line on all options of ParseAdaptive.
func AdaptiveOptionsDoc() string {
	var list []string
	for _, o := range adaptiveOptions {
		list = append(list, o.word+" ("+o.doc+")")
	}
	return strings.Join(list, ", ")
}

// hasTwoCables reports whether n has two cables or more.
func hasTwoCables(n *fabric.Node) bool {
	count := 0
	for p := range n.Ports() {
		if p.Peer() != nil {
			count++
		}
	}
	return count > 1
}

// ParseRate reads a number per second: "2/s", "5/m" (per minute), "1/h", or "2".
func ParseRate(text string) (float64, bool) {
	number, unit, given := strings.Cut(text, "/")
	seconds, ok := map[string]float64{"s": 1, "m": 60, "h": 3600, "d": 86400}[unit]
	if !given {
		seconds, ok = 1, true
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	return f / seconds, ok && err == nil && ValidRate(f/seconds)
}

// ParseBandwidth reads a number of bytes per second: "10GB/s", "100Gb/s" (bits), "1e9",
// with k, M, G or T.
func ParseBandwidth(text string) (float64, bool) {
	text, unit := strings.CutSuffix(text, "/s")
	per := 1.0
	if unit {
		var bytes, bits bool
		if text, bytes = strings.CutSuffix(text, "B"); !bytes {
			if text, bits = strings.CutSuffix(text, "b"); !bits {
				return 0, false
			}
			per = 1. / 8
		}
		for i, prefix := range []string{"k", "M", "G", "T"} {
			if rest, ok := strings.CutSuffix(text, prefix); ok {
				text, per = rest, per*math.Pow(1000, float64(i+1))
				break
			}
		}
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return f * per, err == nil && ValidRate(f*per)
}

// ValidRate reports whether a rate is valid. The largest fills a counter of 64 bits in
// seconds; sums and times of larger ones would no longer be numbers.
func ValidRate(rate float64) bool { return rate >= 0 && rate <= 1e18 }
