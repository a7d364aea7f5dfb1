//go:build linux

package builtins

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fabsh/builtins/lang"
	"fabsh/fabric"
	"fabsh/fabric/discover"
	"fabsh/mad/engine"
	"fabsh/mad/ibsim"
	"fabsh/mad/ibsim/ibsimtest"
)

// peerNet is a fabric on which fabsh is compared with the C tools.
type peerNet struct {
	name, net, sm string
	conf          string // of OpenSM
}

// peerNets are a tree, and irregular ones, whose subnet managers differ in
// what they set up.
func peerNets(t *testing.T) []peerNet {
	t.Helper()
	// 40 partitions take two blocks of a P_Key table.
	partitions := "Default=0x7fff, ipoib : ALL=full ;\n"
	for i := range 39 {
		partitions += fmt.Sprintf("p%d=%#04x : ALL_CAS=%s ;\n", i, 0x100+i, []string{"full", "limited"}[i%2])
	}
	file := filepath.Join(t.TempDir(), "partitions")
	if err := os.WriteFile(file, []byte(partitions), 0o666); err != nil {
		t.Fatal(err)
	}
	const lanes = `qos TRUE
qos_max_vls 4
qos_high_limit 12
qos_vlarb_high 0:64,1:32,2:0,3:255
qos_vlarb_low 0:1,1:2,2:3,3:4,0:5,1:6,2:7,3:8
qos_sl2vl 0,1,2,3,0,1,2,3,3,2,1,0,15,1,15,0
qos_swe_max_vls 8
qos_swe_high_limit 200
qos_swe_vlarb_high 7:1,6:2,5:3
qos_swe_vlarb_low 0:255,1:254,2:253
qos_swe_sl2vl 7,6,5,4,3,2,1,0,0,1,2,3,4,5,6,7
`
	return []peerNet{
		{"tree", ibsimtest.FatTree(4, 2, 4), "host-3-3", "partition_config_file " + file + "\n"},
		{"ring", ibsimtest.Net(t, "ring"), "h1", lanes},
		{"mesh", ibsimtest.Net(t, "mesh"), "n3", "m_key 0x0123456789abcdef\nm_key_lease_period 60\n"},
		{"names", ibsimtest.Net(t, "names"), "a3", "lmc 2\nsubnet_prefix 0xfec0000000000017\n"},
	}
}

// onPeerNets runs fn for each of them, with a session on the first node of the
// net file, where the C tools are, too.
func onPeerNets(t *testing.T, adapt func(*SessionOptions), fn func(t *testing.T, f *peerFixture)) {
	for _, n := range peerNets(t) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			fn(t, onIbsim(t, n.net, ibsimtest.FixtureOptions{SM: n.sm, SMArgs: quiet, SMConf: n.conf}, adapt))
		})
	}
}

// quiet keeps OpenSM from sweeping again: what it sends moves counters.
var quiet = []string{"-s", "0"}

// peerFixture is a session on a private ibsim.
type peerFixture struct {
	*fixture
	peer *ibsimtest.Fixture
	net  string
}

// onIbsim waits for answers as long as a busy machine takes.
func onIbsim(t *testing.T, net string, o ibsimtest.FixtureOptions, adapt func(*SessionOptions)) *peerFixture {
	t.Helper()
	return onIbsimFor(t, 5*time.Second, net, o, adapt)
}

// onIbsimFor is onIbsim with another timeout.
func onIbsimFor(t *testing.T, timeout time.Duration, net string, o ibsimtest.FixtureOptions, adapt func(*SessionOptions)) *peerFixture {
	t.Helper()
	f := &peerFixture{new(fixture), ibsimtest.Start(t, net, o), net}
	tr, err := ibsim.Attach(ibsim.Options{Socket: f.peer.Name})
	if err != nil {
		t.Fatal(err)
	}
	opts := SessionOptions{Format: lang.FormatJSON, Dir: t.TempDir(), Stdout: &f.stdout, Stderr: &f.stderr}
	if adapt != nil {
		adapt(&opts)
	}
	opts.Engine = engine.New(tr, engine.Options{Write: opts.Write, Timeout: timeout})
	t.Cleanup(func() { opts.Engine.Close() })
	if f.Session, err = NewSession(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// sweep discovers the fabric of the session.
func (f *peerFixture) sweep(t *testing.T) *fabric.Fabric {
	t.Helper()
	fab, err := discover.Sweep(t.Context(), f.Env.Engine, discover.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !fab.Complete() {
		t.Fatalf("%v", fab)
	}
	return fab
}

// eval evaluates an expression, and fills v from its JSON.
func (f *peerFixture) eval(t *testing.T, v any, format string, args ...any) {
	t.Helper()
	expr := fmt.Sprintf(format, args...)
	out, explained, status := f.run(expr)
	if status != 0 {
		t.Fatalf("%.200s: status %d: %s", expr, status, explained)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v in %s", expr, err, out)
	}
}

// question is one thing that a C tool and ours are asked.
type question struct {
	tool  []string
	exprs []string // each makes a record
	// check says where the tool's output and the records differ.
	check func(out string, ours []attributes) []string
}

// ask asks all questions and fails the test where the answers differ.
func (f *peerFixture) ask(t *testing.T, questions []question) {
	t.Helper()
	var exprs []string
	for _, q := range questions {
		exprs = append(exprs, q.exprs...)
	}
	records := f.records(t, exprs)
	for _, q := range questions {
		problems := q.check(f.peer.Run(t, q.tool[0], q.tool[1:]...), records[:len(q.exprs)])
		// OpenSM sweeps again when a peer has kept it waiting, and then
		// knows a switch's PortInfo by another port (its LocalPortNum):
		// a difference that is gone soon after is not one.
		for again := 0; len(problems) > 0 && again < 3; again++ {
			t.Logf("%s: once more, for %s", strings.Join(q.tool, " "), strings.Join(problems, "; "))
			problems = q.check(f.peer.Run(t, q.tool[0], q.tool[1:]...), f.records(t, q.exprs))
		}
		if len(problems) > 0 {
			t.Errorf("%s\nand %s:\n\t%s", strings.Join(q.exprs, "\n"), strings.Join(q.tool, " "), strings.Join(problems, "\n\t"))
		}
		records = records[len(q.exprs):]
	}
	t.Logf("%d answers of C tools compared", len(questions))
}

// records evaluates expressions that each make a record.
func (f *peerFixture) records(t *testing.T, exprs []string) (records []attributes) {
	t.Helper()
	f.eval(t, &records, "[%s]", strings.Join(exprs, ",\n"))
	return records
}

// attributes is a record as its JSON shows it.
type attributes map[string]any

func (a attributes) text(name string) string { return fmt.Sprint(a[name]) }

// uint is a field's number.
func (a attributes) Uint(name string) (n uint64) {
	for _, v := range []any{a[name+"_code"], a[name]} {
		if v == nil {
			continue
		}
		if _, err := fmt.Sscan(fmt.Sprint(v), &n); err == nil {
			return n
		}
	}
	return 1<<64 - 1
}

// uints are an array's numbers.
func (a attributes) uints(name string) []uint64 {
	var list []uint64
	for _, v := range a[name].([]any) {
		list = append(list, attributes{"": v}.Uint(""))
	}
	return list
}

// column is a field as a C tool shows it and as ours.
type column struct {
	peer string                                 // "": the tool does not show it
	ours string                                 // "": ours has none, because it is reserved
	want func(a attributes, ours string) string // what the tool should show
}

// fields compares a dump of fields, one a line.
func fields(columns []column) func(out string, ours []attributes) []string {
	return func(out string, ours []attributes) []string {
		theirs, err := parseDump(out)
		if err != nil {
			return []string{err.Error()}
		}
		return compare(columns, theirs, ours[0])
	}
}

// dump is what a C tool shows of one attribute: its fields, in order.
type dump []struct{ name, value string }

// dots are between a field's name and its value.
var dots = regexp.MustCompile(`^\s*([^.]*[^.:]):?(\.+)(.*)$`)

// parseDump reads such a dump. Words below a mask go to its value.
func parseDump(out string) (d dump, err error) {
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := dots.FindStringSubmatch(line); m != nil {
			d = append(d, struct{ name, value string }{m[1], m[3]})
			continue
		}
		if len(d) == 0 || !strings.HasPrefix(line, "\t\t\t\t") {
			return nil, fmt.Errorf("what is %q in\n%s", line, out)
		}
		d[len(d)-1].value += " " + strings.TrimSpace(line)
	}
	return d, nil
}

// compare returns the differences between a dump of a C tool and a record of ours. Every field must
// be in columns, also our fields that the tool does not show.
func compare(columns []column, theirs dump, ours attributes) (problems []string) {
	shown := map[string]bool{}
	for _, field := range theirs {
		i := slices.IndexFunc(columns, func(c column) bool { return c.peer == field.name })
		if i < 0 {
			problems = append(problems, fmt.Sprintf("the tool's field %s is not known: it is %s", field.name, field.value))
			continue
		}
		c := columns[i]
		shown[c.peer] = true
		if got := c.want(ours, c.ours); got != field.value {
			problems = append(problems, fmt.Sprintf("%s is %q, our %s would be %q", c.peer, field.value, c.ours, got))
		}
	}
	for _, c := range columns {
		if c.peer != "" && !shown[c.peer] {
			problems = append(problems, fmt.Sprintf("the tool does not show %s", c.peer))
		}
	}
	return append(problems, unknown(columns, ours)...)
}

// notFields are members of a record that are no fields: what it is, and of whom.
var notFields = []string{"schema", "of", "lid", "port"}

// unknown are our fields that are not in columns, and columns that are no
// fields of ours.
func unknown(columns []column, ours attributes) (problems []string) {
	for _, c := range columns {
		if _, ok := ours[c.ours]; !ok && c.ours != "" {
			problems = append(problems, fmt.Sprintf("we have no field %s", c.ours))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		known := func(c column) bool { return c.ours == name || c.ours+"_code" == name }
		if !slices.Contains(notFields, name) && !slices.ContainsFunc(columns, known) {
			problems = append(problems, fmt.Sprintf("our field %s is not known: it is %v", name, ours[name]))
		}
	}
	return problems
}

// settle takes the tool's value for those fields of ours that move, where we
// had a smaller one before and have a greater one after.
func settle(columns []column, moving []string, theirs dump, before, after attributes) {
	for _, field := range theirs {
		i := slices.IndexFunc(columns, func(c column) bool { return c.peer == field.name })
		if i < 0 || !slices.Contains(moving, columns[i].ours) {
			continue
		}
		ours := columns[i].ours
		if v := numbersIn(field.value); len(v) == 1 && before.Uint(ours) <= v[0] && v[0] <= after.Uint(ours) {
			before[ours] = field.value
		}
	}
}

// How the tools write values.

func plainly(a attributes, name string) string { return a.text(name) }

func asHex(digits int) func(attributes, string) string {
	return func(a attributes, name string) string { return fmt.Sprintf("0x%0*x", digits, a.Uint(name)) }
}

// word translates a word of ours.
func word(theirs map[string]string) func(attributes, string) string {
	return func(a attributes, name string) string { return translated(theirs, a.text(name)) }
}

// wordsOr translates a mask; none is what stands for an empty one.
func wordsOr(none string, theirs map[string]string) func(attributes, string) string {
	return func(a attributes, name string) string {
		var list []string
		for _, w := range a[name].([]any) {
			list = append(list, translated(theirs, w.(string)))
		}
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, " or ")
	}
}

func translated(theirs map[string]string, ours string) string {
	if w, ok := theirs[ours]; ok {
		return w
	}
	return "no word for " + ours
}

// maskAndWords is a mask's number, and its words below.
func maskAndWords(theirs map[string]string) func(attributes, string) string {
	return func(a attributes, name string) string {
		text := fmt.Sprintf("0x%x", a.Uint(name))
		for _, w := range a[name].([]any) {
			text += " " + translated(theirs, w.(string))
		}
		return text
	}
}
