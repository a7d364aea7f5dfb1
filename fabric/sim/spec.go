package sim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

// Options say how the simulated subnet misbehaves. The zero value is perfect.
type Options struct {
	// Loss is the probability that a MAD is lost, on each of its two ways.
	Loss float64
	// Delay is the time from a request to its answer; up to Jitter is added,
	// differently for each MAD, so that answers may overtake.
	Delay, Jitter time.Duration
	// Dup is the probability that a MAD arrives twice, on each way.
	Dup float64
	// Busy is the probability that an agent answers BUSY.
	Busy float64
	// Seed decides all that is decided by chance.
	Seed int64
	// Dead ports lose all MADs, both ways, although their links look up.
	Dead []*fabric.Port
	// SM is where the subnet manager sits; nil: on the first CA.
	SM *fabric.Node
	// MKey, if not 0, is every port's M_Key, with protection level 1.
	MKey uint64
}

// kind is a sort of topology that a spec can ask for.
type kind struct {
	name  string
	keys  map[string]string // with their defaults
	build func(v *values) (*fabric.Fabric, error)
}

var kinds = []kind{
	{"fattree", map[string]string{"k": "8", "levels": "2"}, func(v *values) (*fabric.Fabric, error) {
		k, levels := v.number("k", 2, maxSwitchPorts), v.number("levels", 1, 15)
		if k%2 != 0 {
			v.fail("k", "is odd, but half of a switch's ports go up and half go down")
		}
		return v.tree(fatTree(k, levels))
	}},
	{"pgft", map[string]string{"m": "4/8", "w": "1/4", "p": "1/1"}, func(v *values) (*fabric.Fabric, error) {
		t := tree{v.numbers("m"), v.numbers("w"), v.numbers("p")}
		if len(t.m) != len(t.w) || len(t.m) != len(t.p) {
			v.fail("m", fmt.Sprintf("has %d levels, but w has %d and p has %d", len(t.m), len(t.w), len(t.p)))
		}
		if t.w[0] != 1 {
			v.fail("w", "gives hosts several parents; what they are in would be as many subnets")
		}
		return v.tree(t)
	}},
	{"ring", map[string]string{"n": "4", "hosts": "1"}, func(v *values) (*fabric.Fabric, error) {
		n, hosts := v.number("n", 1, maxLIDs), v.number("hosts", 0, maxSwitchPorts)
		if v.err != nil {
			return nil, v.err
		}
		return ring(n, hosts)
	}},
}

// faultKeys are the keys that go with every kind.
var faultKeys = map[string]string{
	"loss": "0", "delay": "0s", "jitter": "0s", "dup": "0", "busy": "0", "seed": "1", "dead": "", "sm": "", "mkey": "0",
}

// Parse reads what follows "sim:" on the command line:
//
//	KIND[:KEY=VALUE,...]    a generated topology
//	FILE[:KEY=VALUE,...]    one from a file of ibnetdiscover or ibsim
//	KEY=VALUE,...           the default one, a small fat tree
//
// Every key has a default. Kinds and their keys:
//
//	fattree  k=8       ports of a switch
//	         levels=2  of switches; k=8,levels=3 has 128 hosts
//	pgft     m=4/8     children of the switches of each level, hosts first
//	         w=1/4     parents of the hosts, of the lowest switches, ...
//	         p=1/1     parallel cables
//	ring     n=4       switches in a circle
//	         hosts=1   on each of them
//
// With every kind, and with a file:
//
//	loss=0     probability (0.05 or 5%) that a MAD is lost, on each way
//	dup=0      that it arrives twice
//	busy=0     that an agent answers BUSY
//	delay=0s   from a request to its answer; jitter=0s is added at random
//	seed=1     decides what chance decides
//	dead=      ports that lose everything: NODE, NODE/PORT, several with +; or
//	           a number or a share (1%) of the hosts, chosen by the seed
//	sm=        the node that the subnet manager sits on: the first CA
//	mkey=0     an M_Key that guards all ports against Sets
func Parse(spec string) (*fabric.Fabric, Options, error) {
	f, o, err := parse(spec)
	if err != nil {
		return nil, Options{}, fmt.Errorf("simulated fabric %q: %w", spec, err)
	}
	return f, o, nil
}

func parse(spec string) (*fabric.Fabric, Options, error) {
	name, keys, _ := strings.Cut(spec, ":")
	if name == "" {
		name = kinds[0].name
	}
	if k := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); k >= 0 {
		return generate(&kinds[k], keys)
	}
	f, keys, err := load(spec)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return nil, Options{}, err
	case strings.Contains(name, "="): // the kind was left out
		return generate(&kinds[0], spec)
	default:
		var names []string
		for _, k := range kinds {
			names = append(names, k.name)
		}
		return nil, Options{}, fmt.Errorf("%w, and no such file", unknown("kind", name, names))
	}
	v, err := parseValues(keys, nil)
	if err != nil {
		return nil, Options{}, err
	}
	o, err := v.options(f)
	return f, o, err
}

func generate(k *kind, keys string) (*fabric.Fabric, Options, error) {
	v, err := parseValues(keys, k.keys)
	if err != nil {
		return nil, Options{}, fmt.Errorf("%s: %w", k.name, err)
	}
	f, err := k.build(v)
	if err != nil {
		return nil, Options{}, fmt.Errorf("%s: %w", k.name, err)
	}
	o, err := v.options(f)
	return f, o, err
}

// load reads the file that spec names, with keys behind a colon or without.
func load(spec string) (f *fabric.Fabric, keys string, err error) {
	path := spec
	r, err := os.Open(path)
	if colon := strings.LastIndexByte(spec, ':'); errors.Is(err, fs.ErrNotExist) && colon >= 0 {
		path, keys = spec[:colon], spec[colon+1:]
		r, err = os.Open(path)
	}
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	f, err = format.LoadIncluding(r, path, func(name string) (io.ReadCloser, error) { return os.Open(name) })
	return f, keys, err
}

// values are the keys of a spec, defaults filled in. The first error stays.
type values struct {
	text map[string]string
	err  error
}

func parseValues(text string, own map[string]string) (*values, error) {
	v := &values{text: maps.Clone(faultKeys)}
	maps.Copy(v.text, own)
	if text == "" {
		return v, nil
	}
	given := map[string]bool{}
	for _, pair := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		_, known := v.text[key]
		switch {
		case !known:
			valid := append(slices.Sorted(maps.Keys(own)), slices.Sorted(maps.Keys(faultKeys))...)
			return nil, unknown("key", key, valid)
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

func (v *values) fail(key, why string) {
	if v.err == nil {
		v.err = fmt.Errorf("%s=%s %s", key, v.text[key], why)
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
	for _, text := range strings.Split(v.text[key], "/") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLIDs {
			v.fail(key, "is not a list of numbers with slashes between them, as in 18/18/36")
			n = 1
		}
		list = append(list, n)
	}
	return list
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

func (v *values) tree(t tree) (*fabric.Fabric, error) {
	if v.err != nil {
		return nil, v.err
	}
	return t.build()
}

// options reads the keys that are not the topology's.
func (v *values) options(f *fabric.Fabric) (Options, error) {
	o := Options{
		Loss: v.share("loss"), Dup: v.share("dup"), Busy: v.share("busy"),
		Delay: v.duration("delay"), Jitter: v.duration("jitter"),
	}
	var err error
	if o.Seed, err = strconv.ParseInt(v.text["seed"], 0, 64); err != nil {
		v.fail("seed", "is not a number")
	}
	if o.MKey, err = strconv.ParseUint(v.text["mkey"], 0, 64); err != nil {
		v.fail("mkey", "is not a number of 64 bits, as 0x1234")
	}
	if name := v.text["sm"]; name != "" {
		if o.SM, _, err = find(f, name); err != nil {
			v.fail("sm", err.Error())
		} else if !o.SM.IsSwitch() && !slices.ContainsFunc(slices.Collect(o.SM.Ports()), func(p *fabric.Port) bool { return p.Peer() != nil }) {
			v.fail("sm", "names a node without a cable")
		}
	}
	o.Dead = v.dead(f, o.Seed)
	return o, v.err
}

// dead chooses the dead ports.
func (v *values) dead(f *fabric.Fabric, seed int64) (ports []*fabric.Port) {
	text := v.text["dead"]
	if text == "" {
		return nil
	}
	var hosts []*fabric.Node
	for i := range f.Nodes() {
		if n := &f.Nodes()[i]; !n.IsSwitch() {
			hosts = append(hosts, n)
		}
	}
	count, err := strconv.Atoi(text)
	if share, ok := parseShare(text); ok && strings.HasSuffix(text, "%") {
		count, err = int(math.Ceil(share*float64(len(hosts)))), nil
	}
	if err == nil {
		if count < 0 || count > len(hosts) {
			v.fail("dead", fmt.Sprintf("is not a number of hosts: there are %d", len(hosts)))
			return nil
		}
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		r.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		for _, n := range hosts[:count] {
			ports = slices.AppendSeq(ports, n.Ports())
		}
		return ports
	}
	for _, name := range strings.Split(text, "+") {
		n, p, err := find(f, name)
		switch {
		case err != nil:
			v.fail("dead", err.Error())
			return nil
		case p != nil:
			ports = append(ports, p)
		default:
			ports = slices.AppendSeq(ports, n.Ports())
		}
	}
	return ports
}

// find looks NODE or NODE/PORT up; the exact name goes first, for names may
// contain slashes.
func find(f *fabric.Fabric, name string) (*fabric.Node, *fabric.Port, error) {
	if n := f.NodeByName(name); len(n) > 0 {
		return n[0], nil, nil
	}
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		num, err := strconv.Atoi(name[slash+1:])
		if n := f.NodeByName(name[:slash]); err == nil && len(n) > 0 {
			if p := n[0].Port(num); p != nil {
				return n[0], p, nil
			}
			return nil, nil, fmt.Errorf("names port %d of %s, which has ports up to %d", num, n[0].Label(), n[0].NumPorts())
		}
	}
	var names []string
	for i := range f.Nodes() {
		names = append(names, f.Nodes()[i].Name())
	}
	err := fmt.Errorf("names %q, which is no node", name)
	if near := nearest(name, names); near != "" {
		err = fmt.Errorf("%w; did you mean %q?", err, near)
	}
	return nil, nil, err
}

// unknown says what would have been known.
func unknown(what, name string, valid []string) error {
	hint := ""
	if near := nearest(name, valid); near != "" {
		hint = fmt.Sprintf(" (did you mean %s?)", near)
	}
	return fmt.Errorf("unknown %s %q%s; there are %s", what, name, hint, strings.Join(valid, ", "))
}

// nearest is the valid name that differs least from name; "" when none is near.
func nearest(name string, valid []string) string {
	best, distance := "", len(name)/2+1
	for _, v := range valid {
		if d := edits(name, v); d < distance {
			best, distance = v, d
		}
	}
	return best
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, above, row[j])
			}
			row[j+1], diagonal = cost, above
		}
	}
	return row[len(b)]
}
