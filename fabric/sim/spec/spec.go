// Package spec reads the text that describes a simulated subnet: a topology and its options.
//
// ParseFiles returns a fabric.Fabric, of a generated TopologyKind or from a file, and its
// SubnetOptions. A kind has keys of its own; the keys of CommonKeys are valid for each
// topology. Equipment (a generation of devices, planes, split ports) is added to a generated
// topology, and parts are removed from any.
//
// The same text, including the seed, gives the same fabric and options. A topology that does
// not fit into a subnet is an error. All functions are safe for concurrent use.
package spec

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/sim/state"
)

// ParseFiles reads what follows "sim:" on the command line:
//
//	KIND[:KEY=VALUE,...]    a generated topology
//	FILE[:KEY=VALUE,...]    one from a file of ibnetdiscover or ibsim
//	KEY=VALUE,...           the default one, a small fat tree
//
// Kinds and CommonKeys list the kinds and the keys, each with a default. open opens files, and
// included the files that they name.
func ParseFiles(spec string, open, included format.Opener) (*fabric.Fabric, SubnetOptions, error) {
	f, o, err := parse(spec, open, included)
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("simulated fabric %q: %w", spec, err)
	}
	return f, o, nil
}

func parse(spec string, open, included format.Opener) (*fabric.Fabric, SubnetOptions, error) {
	name, keys, _ := strings.Cut(spec, ":")
	if name == "" {
		name = kinds[0].Name
	}
	if k := slices.IndexFunc(kinds, func(k TopologyKind) bool { return k.Name == name }); k >= 0 {
		return kinds[k].generate(keys)
	}
	f, keys, err := load(spec, open, included)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, SubnetOptions{}, err
	case strings.Contains(name, "="): // the kind was omitted
		return kinds[0].generate(spec)
	default:
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		for _, k := range commonKeys {
			if k.Name == name {
				return nil, SubnetOptions{}, fmt.Errorf("%q is a key, not a kind; write sim:%s", name, k.Example)
			}
		}
		return nil, SubnetOptions{}, fmt.Errorf("%w, and no such file", unknown("kind", name, names))
	}
	v, err := parseValues(keys)
	if err != nil {
		return nil, SubnetOptions{}, err
	}
	return v.finish(f)
}

func (k *TopologyKind) generate(keys string) (*fabric.Fabric, SubnetOptions, error) {
	v, err := parseValues(keys, k.Keys, generatedKeys)
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	f, err := k.build(v)
	if err == nil && v.word("numbering", "order", "random") == 1 {
		f = renumber(f, v.seed())
	}
	if err == nil {
		f, err = v.equip(f)
	}
	if err != nil {
		return nil, SubnetOptions{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	return v.finish(f)
}

// load reads the file that spec names, with keys behind a colon or without keys.
func load(spec string, open, included format.Opener) (f *fabric.Fabric, keys string, err error) {
	path := spec
	r, err := open(path)
	if colon := strings.LastIndexByte(spec, ':'); errors.Is(err, fs.ErrNotExist) && colon >= 0 {
		path, keys = spec[:colon], spec[colon+1:]
		r, err = open(path)
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	f, err = format.Load(r, path, included)
	return f, keys, err
}

// TopologyKind is a kind of generated topology.
type TopologyKind struct {
	Name, Doc string
	Keys      []Key // of this kind alone
	build     func(v *values) (*fabric.Fabric, error)
}

// Kinds returns the kinds of generated topologies; the first is the default.
func Kinds() []TopologyKind { return slices.Clone(kinds) }

// Keys that several kinds have.
var (
	hostsOfSwitch = Key{"hosts", "4", "hosts of each switch", "hosts=2"}
	railsOfHosts  = Key{"rails", "1", "adapters of each host: HCA-1 at the first leaf of a group of as many, HCA-2 at the second, and so on", "rails=2"}
	cablesOfLink  = Key{"links", "1", "parallel cables of each link", "links=2"}
)

var kinds = []TopologyKind{
	{"fattree", "a fat tree: k=8,levels=3 has 128 hosts", []Key{
		{"k", "8", "ports of a switch, an even number", "k=16"},
		{"levels", "2", "levels of switches", "levels=3"},
		railsOfHosts,
	}, func(v *values) (*fabric.Fabric, error) {
		k, levels := v.number("k", 2, maxSwitchPorts), v.number("levels", 1, 15)
		if k%2 != 0 {
			v.fail("k", "is odd, but half of a switch's ports go up and half go down")
		}
		return v.tree(fatTree(k, levels))
	}},
	{"pgft", "a parallel generalized fat tree, by level, hosts first", []Key{
		{"m", "4/8", "children of the switches of each level", "m=4/8"},
		{"w", "1/4", "parents of the hosts, of the lowest switches, and so on", "w=1/4"},
		{"p", "1/1", "parallel cables of each level", "p=1/2"},
		railsOfHosts,
	}, func(v *values) (*fabric.Fabric, error) {
		t := tree{M: v.numbers("m"), W: v.numbers("w"), P: v.numbers("p")}
		if len(t.M) != len(t.W) || len(t.M) != len(t.P) {
			v.fail("m", fmt.Sprintf("has %d levels, but w has %d and p has %d", len(t.M), len(t.W), len(t.P)))
		}
		if t.W[0] != 1 {
			v.fail("w", "gives hosts several parents; what they are in would be as many subnets")
		}
		return v.tree(t)
	}},
	{"ring", "switches in a circle", []Key{
		{"n", "4", "switches", "n=6"},
		{"hosts", "1", hostsOfSwitch.Doc, hostsOfSwitch.Example},
	}, func(v *values) (*fabric.Fabric, error) {
		n, hosts := v.number("n", 1, maxLIDs), v.number("hosts", 0, maxSwitchPorts)
		if v.err != nil {
			return nil, v.err
		}
		return ring(n, hosts)
	}},
	{"mesh", "switches in lines", []Key{{"dims", "4/4", "switches in each dimension", "dims=3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(mesh)
	}},
	{"torus", "switches in circles", []Key{{"dims", "4/4/4", "switches in each dimension", "dims=3/3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(torus)
	}},
	{"hyperx", "all switches of a line linked to each other, in each dimension", []Key{{"dims", "4/4", "switches in each dimension", "dims=3/3"}, hostsOfSwitch, cablesOfLink}, func(v *values) (*fabric.Fabric, error) {
		return v.lattice(hyperX)
	}},
	{"dragonfly", "groups of switches, all of a group linked to each other", []Key{
		{"a", "4", "switches of a group", "a=3"},
		{"p", "2", "hosts of a switch", "p=1"},
		{"h", "2", "cables of a switch to other groups", "h=1"},
		{"groups", "0", "groups; 0: a*h+1", "groups=5"},
		{"arrangement", "absolute", "to which groups the cables of a group lead, in their order: absolute, to the first, the second ...; relative, to the next group, the next but one ...; circulant, to the next, the one before, the next but one ...; random, in an order of each group, chosen by seed=", "arrangement=relative"},
	}, func(v *values) (*fabric.Fabric, error) {
		a, p := v.number("a", 1, maxSwitchPorts), v.number("p", 0, maxSwitchPorts)
		h, groups := v.number("h", 0, maxSwitchPorts), v.number("groups", 0, maxLIDs)
		if v.err != nil {
			return nil, v.err
		}
		var names []string
		for _, x := range arrangements {
			names = append(names, x.name)
		}
		arrange, seed := arrangements[v.word("arrangement", names...)], v.seed()
		if v.err != nil {
			return nil, v.err
		}
		return dragonfly(a, p, h, groups, arrange, seed)
	}},
	{"dragonfly+", "groups of leaves and spines, all leaves of a group linked to all its spines, and spines to those of other groups", []Key{
		{"leaves", "4", "leaves of a group", "leaves=2"},
		{"spines", "4", "spines of a group", "spines=3"},
		{"p", "2", "hosts of a leaf", "p=1"},
		{"h", "1", "cables of a spine to other groups", "h=2"},
		{"groups", "0", "groups; 0: spines*h+1", "groups=3"},
	}, func(v *values) (*fabric.Fabric, error) {
		leaves, spines := v.number("leaves", 1, maxSwitchPorts), v.number("spines", 1, maxSwitchPorts)
		p, h, groups := v.number("p", 0, maxSwitchPorts), v.number("h", 0, maxSwitchPorts), v.number("groups", 0, maxLIDs)
		if v.err != nil {
			return nil, v.err
		}
		return dragonflyPlus(leaves, spines, p, h, groups)
	}},
	{"slimfly", "two halves of q*q switches, any two of which are at most two links apart", []Key{
		{"q", "5", "an odd prime: switches have (3q-1)/2 links to others, or (3q+1)/2", "q=3"},
		{"hosts", "2", hostsOfSwitch.Doc, hostsOfSwitch.Example},
	}, func(v *values) (*fabric.Fabric, error) {
		q, hosts := v.number("q", 1, maxSwitchPorts), v.number("hosts", 0, maxSwitchPorts)
		if v.err != nil {
			return nil, v.err
		}
		return slimFly(q, hosts)
	}},
	{"random", "switches with random cables, chosen by seed=", []Key{
		{"n", "16", "switches", "n=8"},
		{"degree", "4", "cables of each switch to others", "degree=3"},
		hostsOfSwitch,
	}, func(v *values) (*fabric.Fabric, error) {
		n, degree, hosts := v.number("n", 1, maxLIDs), v.number("degree", 0, maxSwitchPorts), v.number("hosts", 0, maxSwitchPorts)
		seed := v.seed()
		if v.err != nil {
			return nil, v.err
		}
		return randomRegular(n, degree, hosts, seed)
	}},
}

// Key is a key of a spec.
type Key struct {
	Name, Default string
	Doc           string
	Example       string // KEY=VALUE, on the default topology of its kind
}

// CommonKeys returns the keys of all kinds of topologies, and of files.
func CommonKeys() []Key { return slices.Clone(commonKeys) }

// GeneratedKeys returns the keys of all kinds of topologies, but not of files.
func GeneratedKeys() []Key { return slices.Clone(generatedKeys) }

var generatedKeys = []Key{
	{"generation", "", "devices and speed of all links: hdr (Quantum, ConnectX-6), ndr (Quantum-2 with two ports in a cage, ConnectX-7) or xdr (Quantum-3, ConnectX-8)", "generation=ndr"},
	{"split", "no", "yes: adapters are at halves of a switch's ports, 2n-1 and 2n of port n, with half its lanes; other ports have the number 2n-1", "split=yes"},
	{"aggregation", "no", "yes: each switch has an aggregation node (SHARP) at its next port", "aggregation=yes"},
	{"numbering", "order", "random: GUIDs, and the ports of switches that cables are in, at random, chosen by seed=", "numbering=random"},
	{"planes", "1", "planes: 2 or 4 networks alike, and in each a port of every adapter, with a share of the lanes; the last ports of switches (FNM) link the planes for management", "planes=4"},
}

var commonKeys = []Key{
	{"remove_links", "0", "cables between switches to remove: a number or a share, chosen by seed=", "remove_links=5%"},
	{"remove_switches", "0", "switches to remove, with their hosts: a number or a share, chosen by seed=", "remove_switches=1"},
	{"loss", "0", "probability that a datagram is lost, in each direction", "loss=5%"},
	{"dup", "0", "probability that a datagram arrives twice", "dup=0.01"},
	{"busy", "0", "probability that an agent answers BUSY", "busy=10%"},
	{"delay", "0s", "time from a request to its answer", "delay=20ms"},
	{"jitter", "0s", "random time added to delay=", "jitter=5ms"},
	{"seed", "1", "seed of everything random", "seed=7"},
	{"dead", "", "ports that answer nothing: NODE or NODE/PORT, several with +; or a number or a share of the hosts, chosen by seed=, without the subnet manager's", "dead=leaf-3+leaf-4/1"},
	{"lmc", "0", "LMC of the ports of CAs, in a file of those without a LID: each gets 2^lmc LIDs", "lmc=2"},
	{"bare", "no", "yes: the state after power-on: no LIDs, tables or subnet manager, links in INIT", "bare=yes"},
	{"sm", "", "node of the subnet manager (default: the first CA); none: it has stopped, LIDs and tables remain; or opensm, opensm/ENGINE, opensm/ENGINE@NODE: its tables are those that OpenSM makes, and keeps after a loss", "sm=node-0002 HCA-1"},
	{"mkey", "0", "M_Key of all ports", "mkey=0x1234"},
	{"mkey_level", "1", "what the M_Key protects: 0 and 1 Sets, 2 and 3 Gets too", "mkey_level=2"},
	{"speed", "", "speed of all links", "speed=edr"},
	{"width", "", "width of all links", "width=2x"},
	{"errors", "", "ports whose symbol errors grow: NODE/PORT, several with +; or a number or a share of the ports with a cable, chosen by seed=; @RATE is errors per time (default 1/s). A bad cable", "errors=leaf-2/6@20/s"},
	{"traffic", "0", "what each host sends to another, in bytes or bits per second", "traffic=10GB/s"},
	{"vl15", "0", "how many answers to SMPs may wait for a program at a time; further ones are lost; 0: any number", "vl15=8"},
	{"redirect", "", "NODE@NODE, several with +: performance management of the first is redirected to the second", "redirect=leaf-1@leaf-2"},
	{"ar", "no", "adaptive routing: " + strings.Join(state.LFTEngines, ", ") + ", the engine that determines which ports may be chosen", "ar=updn"},
	{"ar_with", "", "more of adaptive routing (ar=updn without ar=), several with +: " + AdaptiveOptionsDoc(), "ar_with=hbf+pfrn"},
	{"ar_faults", "", "faults of adaptive routing: FAULT@SWITCH, several with +: " + state.AdaptiveFaultDoc(), "ar_faults=empty@leaf-1"},
	{"vports", "0", "virtual ports of each port of an adapter; those with an odd index have a LID of their own", "vports=4"},
	{"registers", "no", "registers of Mellanox devices: yes; or faults hot@NODE/PORT, hot@NODE, ber@NODE/PORT, dark@NODE/PORT, fan@NODE, supply@NODE, firmware@NODE, several with +", "registers=hot@leaf-1/2"},
}

func (v *values) tree(t tree) (*fabric.Fabric, error) {
	t.Rails = v.number("rails", 1, maxLIDs)
	if v.err != nil {
		return nil, v.err
	}
	return t.Build()
}

func (v *values) lattice(s latticeShape) (*fabric.Fabric, error) {
	l := lattice{
		Dims:  v.numbers("dims"),
		Hosts: v.number("hosts", 0, maxSwitchPorts),
		Links: v.number("links", 1, maxSwitchPorts),
		Shape: s,
	}
	if v.err != nil {
		return nil, v.err
	}
	return l.Build()
}

// equip returns f with the equipment of the keys.
func (v *values) equip(f *fabric.Fabric) (*fabric.Fabric, error) {
	e := equipment{
		Generation:  generation(v.word("generation", "", "hdr", "ndr", "xdr")),
		Split:       v.yes("split"),
		Aggregation: v.yes("aggregation"),
		Planes:      1 << v.word("planes", "1", "2", "4"),
	}
	if v.err != nil {
		return nil, v.err
	}
	return equip(f, e)
}

// remove returns f without what remove_switches and remove_links remove.
func (v *values) remove(f *fabric.Fabric) *fabric.Fabric {
	if v.text["remove_switches"] == "0" && v.text["remove_links"] == "0" {
		return f
	}
	return removeParts(f, v.seed(),
		func(all int) int { return v.countOrShare("remove_switches", "switches", all) },
		func(all int) int { return v.countOrShare("remove_links", "cables between switches", all) })
}

// values are the values of a spec's keys, given or default, and the first error.
type values struct {
	text map[string]string
	err  error
}

// parseValues reads text, whose keys are commonKeys and the keys of the groups.
func parseValues(text string, groups ...[]Key) (*values, error) {
	v := &values{text: map[string]string{}}
	groups = append(groups, commonKeys)
	for _, k := range slices.Concat(groups...) {
		v.text[k.Name] = k.Default
	}
	if text == "" {
		return v, nil
	}
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		_, known := v.text[key]
		switch {
		case !known:
			return nil, unknown("key", key, sortedNames(groups))
		case !ok:
			return nil, fmt.Errorf("key %q has no value: write %s=%s", key, key, v.text[key])
		case given[key]:
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		given[key] = true
		v.text[key] = value
	}
	return v, nil
}

// sortedNames are the names of keys, sorted within each group.
func sortedNames(groups [][]Key) (names []string) {
	for _, keys := range groups {
		first := len(names)
		for _, k := range keys {
			names = append(names, k.Name)
		}
		slices.Sort(names[first:])
	}
	return names
}

// unknown is the error of an unknown name, with the valid ones.
func unknown(what, name string, valid []string) error {
	return fmt.Errorf("unknown %s %q%s; there are %s", what, name, fabric.DidYouMean(name, valid), strings.Join(valid, ", "))
}

func (v *values) fail(key, why string) {
	if v.err == nil {
		text := v.text[key]
		if quoted := strconv.Quote(text); strings.Contains(quoted, `\`) { // it may contain terminal escapes
			text = quoted
		}
		v.err = fmt.Errorf("%s=%s %s", key, text, why)
	}
}

func (v *values) number(key string, low, high int) int {
	n, err := strconv.Atoi(v.text[key])
	if err != nil || n < low || n > high {
		v.fail(key, fmt.Sprintf("is not a number from %d to %d", low, high))
		return low
	}
	return n
}

func (v *values) numbers(key string) (list []int) {
	for text := range strings.SplitSeq(v.text[key], "/") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLIDs {
			v.fail(key, "is not a list of numbers with slashes between them, as in 18/18/36")
			n = 1
		}
		list = append(list, n)
	}
	return list
}

// word returns the index of the value among words.
func (v *values) word(key string, words ...string) int {
	i := slices.Index(words, v.text[key])
	if i < 0 {
		v.fail(key, "is not one of "+strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", "))
		return 0
	}
	return i
}

func (v *values) yes(key string) bool { return v.word(key, "no", "yes") == 1 }

func (v *values) seed() int64 {
	n, err := strconv.ParseInt(v.text["seed"], 0, 64)
	if err != nil {
		v.fail("seed", "is not a number")
	}
	return n
}

func (v *values) share(key string) float64 {
	p, ok := parseShare(v.text[key])
	if !ok {
		v.fail(key, "is not a probability, as 0.05 or 5%")
	}
	return p
}

func parseShare(text string) (float64, bool) {
	number, percent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(number, 64)
	if percent {
		p /= 100
	}
	return p, err == nil && p >= 0 && p <= 1
}

func (v *values) duration(key string) time.Duration {
	d, err := time.ParseDuration(v.text[key])
	if err != nil || d < 0 {
		v.fail(key, "is not a duration, as 20ms")
		return 0
	}
	return d
}

// countOrShare reads a number, or a share of all in per cent.
func (v *values) countOrShare(key, what string, all int) int {
	n, err := strconv.Atoi(v.text[key])
	if share, ok := parseShare(v.text[key]); ok && strings.HasSuffix(v.text[key], "%") {
		n, err = int(math.Ceil(share*float64(all))), nil
	}
	if err != nil || n < 0 || n > all {
		v.fail(key, fmt.Sprintf("is not a number or a share of %s, of which there are %d", what, all))
		return 0
	}
	return n
}

// finish returns f without the parts to remove, and the options.
func (v *values) finish(f *fabric.Fabric) (*fabric.Fabric, SubnetOptions, error) {
	f = v.remove(f)
	if v.err != nil {
		return nil, SubnetOptions{}, v.err
	}
	o, err := v.options(f)
	return f, o, err
}
