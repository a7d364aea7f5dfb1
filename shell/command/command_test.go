package command

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/script"
	"fabsh/fabric/audit"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/shell/session"
)

// typedRoot is the root command of a line at the prompt of a session with these flags.
func typedRoot(t *testing.T, flags ...string) (*session.Program, *cobra.Command) {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(io.Discard, io.Discard)}
	root := rootOf(p)
	if err := root.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	typed := p.Typed(&session.Line{Context: t.Context()})
	c := rootOf(typed)
	typed.Settings.Inherit(p.Settings)
	return typed, c
}

// TestWordsAtPrompt: what may stand behind the commands that run at the prompt too.
func TestWordsAtPrompt(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"audit --lo", []string{"--load-cache", "--log"}},
		{"audit c", []string{"config", "counters"}},
		{"audit counters links co", []string{"config"}},
		{"audit counters --th", []string{"--thresholds"}},
		{"audit host --th", nil},
		{"audit counters links --over 5s --ma", []string{"--majority"}},
		{"report html --ma", []string{"--majority"}},
		{"change plan --routes up", []string{"updn"}},
		{"audit counters --baseline no", nil},
		{"audit --fail-on ", []string{"info", "warning", "error", "critical"}},
		{"audit a", []string{"ack", "adaptive"}},
		{"audit ack x --un", []string{"--until"}},
		{"change ap", []string{"apply"}},
		{"change g", nil},
		{"top --by e", []string{"errors"}},
		{"route ftree --ver", []string{"--verify"}},
		{"verify --wr", nil},
		{"sim r", nil},
		{"report html co", []string{"config", "counters"}},
		{"report html a", []string{"adaptive"}},
		{"report ibh", []string{"ibhosts"}},
		{"report ibtracert --m", []string{"--mlid"}},
	} {
		words := strings.Split(test.line, " ")
		p, root := typedRoot(t)
		got, _ := completeLine(p, root, words[:len(words)-1], words[len(words)-1])
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", test.line, diff)
		}
	}
}

// TestHereOrThere: each command runs at the prompt, or reports where it runs.
func TestHereOrThere(t *testing.T) {
	var here, there []string
	for _, c := range commands().Commands() {
		if _, ok := annotated(commands(), []string{c.Name()}); ok {
			here = append(here, c.Name())
			continue
		}
		there = append(there, c.Name())
		want := c.Name() + ": not available at the prompt; run `fabsh " + c.Name() + "` in a shell"
		p, root := typedRoot(t)
		if err := runLine(p, root, []string{c.Name()}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", c.Name(), err, want)
		}
	}
	if diff := cmp.Diff("accept audit cabling change decode diff evidence graph remedy report route snapshot top topology verify", strings.Join(here, " ")); diff != "" {
		t.Errorf("here: -want +got\n%s", diff)
	}
	if len(there) == 0 {
		t.Error("all commands run at the prompt")
	}
}

// TestFixedFlags: a line at the prompt changes no setting of its session but the format
// of the output.
func TestFixedFlags(t *testing.T) {
	for _, words := range [][]string{
		{"verify", "--write"}, {"verify", "-F", "sim"}, {"audit", "--write"}, {"audit", "links", "--override-sm"}, {"--write", "verify"},
		{"route", "ftree", "--keys=k"}, {"change", "apply", "x", "--write"}, {"change", "plan", "--write", "x.star", "--out", "y"}, {"report", "iblinkinfo", "--state", "x"},
		{"topology", "slurm", "--record", "x"}, {"graph", "--node-name-map", "x"}, {"diff", "x", "-q"}, {"snapshot", "x", "--plan", "y"},
	} {
		p, root := typedRoot(t, "--read-only")
		err := runLine(p, root, words)
		if err == nil || !strings.Contains(err.Error(), ": cannot be changed in an open session; start another one with fabsh --") {
			t.Errorf("%v: %v", words, err)
		}
	}
}

// testProgram is a program with session flags, that writes to out.
func testProgram(t *testing.T, out io.Writer, flags ...string) *session.Program {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(out, out)}
	p.Interrupts = session.WatchInterrupts(p.Console)
	t.Cleanup(p.Interrupts.Stop)
	f := pflag.NewFlagSet("fabsh", pflag.ContinueOnError)
	p.Settings.AddFlags(f, f)
	if err := f.Parse(flags); err != nil {
		t.Fatal(err)
	}
	return p
}

// commands are all commands below a root.
func commands() *cobra.Command {
	return rootOf(&session.Program{Settings: new(session.Settings), Console: session.NewConsole(io.Discard, io.Discard)})
}

// rootOf is the root command of a program.
func rootOf(p *session.Program) *cobra.Command {
	root := &cobra.Command{Use: "fabsh", SilenceErrors: true, SilenceUsage: true, TraverseChildren: true}
	root.SetFlagErrorFunc(FlagError)
	p.Settings.AddFlags(root.PersistentFlags(), root.Flags())
	root.AddCommand(All(p, rootOf)...)
	return root
}

// parseCase is a command line, and what is made of it.
type parseCase struct {
	line string // without the command's name
	want any    // the command's options
	err  string // "": none
}

// parsed parses the words of the lines as the command of a path does, and compares what comes out.
// options returns new options of the command, and what sets the other words.
func parsed[T any](t *testing.T, path string, lines []parseCase, options func() (*T, params, func(*cobra.Command, []string) error)) {
	t.Helper()
	for _, l := range lines {
		o, list, take := options()
		p := &session.Program{Settings: new(session.Settings)}
		root := &cobra.Command{Use: "fabsh", SilenceErrors: true, SilenceUsage: true, TraverseChildren: true}
		root.SetFlagErrorFunc(FlagError)
		p.Settings.AddFlags(root.PersistentFlags(), root.Flags())
		c := root
		for name := range strings.FieldsSeq(path) {
			sub := &cobra.Command{Use: name}
			c.AddCommand(sub)
			c = sub
		}
		list.addTo(c)
		c.RunE = take
		err := Execute(p, root, append(strings.Fields(path), strings.Fields(l.line)...))
		switch {
		case err != nil && err.Error() != path+": "+l.err:
			t.Errorf("%s:\ngot  %v\nwant %s: %s", l.line, err, path, l.err)
		case err == nil && l.err != "":
			t.Errorf("%s: no error, want %s", l.line, l.err)
		case err == nil:
			if diff := cmp.Diff(l.want, any(*o), cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got\n%s", l.line, diff)
			}
		}
	}
}

// auditLine are new options of audit, as parsed takes them.
func auditLine() (*auditOptions, params, func(*cobra.Command, []string) error) {
	o := newAuditOptions()
	return o, o.params(), o.take
}

func TestParseAudit(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.star")
	if err := os.WriteFile(own, []byte("LIMIT = True\ndef audit(fabric, *, max_wait = 5, strict = False, exact = LIMIT, name = \"\"):\n    pass\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	unknown := filepath.Join(t.TempDir(), "unknown.star")
	if err := os.WriteFile(unknown, []byte("load(\":own.star\", \"audit\")\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone.star")
	parsed(t, "audit", []parseCase{
		{line: "", want: auditOptions{failOn: audit.Warning}},
		{line: "links --deep counters --over 5s --warm=70", err: "--warm: unknown flag (see \"fabsh audit links --help\")"},
		{line: "links --deep counters --over 5s", want: auditOptions{failOn: audit.Warning, deep: true, words: []string{"links", "counters", "--over=5s"}}},
		{line: "--over 5s links --majority .5 counters", want: auditOptions{failOn: audit.Warning, words: []string{"links", "counters", "--over=5s", "--majority=.5"}}},
		{line: own + " --max-wait -5 --strict --no-exact --name links", want: auditOptions{failOn: audit.Warning, words: []string{own, "--max-wait=-5", "--strict", "--no-exact", "--name=links"}}},
		{line: "--Max_Wait 1 --exact --strict=no " + own, want: auditOptions{failOn: audit.Warning, words: []string{own, "--max-wait=1", "--exact", "--strict=no"}}},
		{line: own + " --max-wiat 5", err: "--max-wiat: unknown flag (did you mean --max-wait?)"},
		{line: "--deep " + unknown + " --list --x 5", want: auditOptions{failOn: audit.Warning, deep: true, words: []string{unknown, "--list", "--x", "5"}}},
		{line: "--deep " + gone + " --list --x 5", want: auditOptions{failOn: audit.Warning, deep: true, words: []string{gone}}},
		{line: "--fail-on error --baseline a --baseline=b --load-cache=c=d", want: auditOptions{failOn: audit.Error, baseline: "b", cache: "c=d"}},
		{line: "--out -q --job nightly --subnet west --each-port --list", want: auditOptions{failOn: audit.Warning, out: "-q", job: "nightly", subnet: "west", eachPort: true}},
		{line: "-- --deep", want: auditOptions{failOn: audit.Warning, words: []string{"--deep"}}},
		{line: "links --help", want: auditOptions{failOn: audit.Warning, words: []string{"links", "--help"}}},
		{line: "links -h", want: auditOptions{failOn: audit.Warning, words: []string{"links", "--help"}}},
		{line: "--job links --over 10s", want: auditOptions{failOn: audit.Warning, job: "links", words: []string{"--over=10s"}}},
		{line: "--over links", err: "--over: unknown flag: no named script has this option; if the name is its value, write --over=VALUE"},
		{line: "links ack", want: auditOptions{failOn: audit.Warning, words: []string{"links", "ack"}}},
		{line: "--Deep", err: "--Deep: unknown flag (did you mean --deep?)"},
		{line: "counters -deep", err: "-deep: unknown flag (did you mean --deep?)"},
		{line: "counters -T", err: "-T: unknown flag (options have long names: --thresholds)"},
		{line: "--list=3", err: `--list "3": want true or false; the flag alone is true`},
		{line: "--out", err: "--out: missing value"},
		{line: "--out=", err: `--out: missing value`},
		{line: "--fail-on bad", err: `--fail-on "bad": unknown severity "bad"; supported: info, warning, error, critical`},
		{line: "--subnet a/b", err: `--subnet "a/b": invalid subnet name "a/b"; use up to 64 letters, digits, - _ and . (not first)`},
		{line: "--job a/b", err: `--job "a/b": invalid job name "a/b"; use up to 128 letters, digits, - _ + , and . (not first)`},
	}, auditLine)
}

func TestParseRoute(t *testing.T) {
	parsed(t, "route", []parseCase{
		{line: "", want: routeOptions{}},
		{line: "ftree --verify --diff --fail-each-link --out lfts", want: routeOptions{policy: "ftree", verify: true, diff: true, failEachLink: true, out: "lfts"}},
		{line: "--verify --out=a=b p.star --roots r --seed=3 3", want: routeOptions{policy: "p.star", verify: true, out: "a=b", args: []string{"3"}}},
		{line: "updn --roots r --verify", want: routeOptions{policy: "updn", verify: true, args: []string{"--roots=r"}}},
		{line: "--roots=r updn", want: routeOptions{policy: "updn", args: []string{"--roots=r"}}},
		{line: "--roots r updn", want: routeOptions{policy: "updn", args: []string{"--roots=r"}}},
		{line: "ftree --adaptive more", want: routeOptions{policy: "ftree", adaptive: verify.AdaptiveOn, args: []string{"more"}}},
		{line: "ftree --adaptive=updown", want: routeOptions{policy: "ftree", adaptive: verify.AdaptiveUpDown}},
		{line: "ftree --watch 5m", want: routeOptions{policy: "ftree", every: 10 * time.Second, args: []string{"5m"}}},
		{line: "ftree --watch=5m --reload 1", want: routeOptions{policy: "ftree", every: 5 * time.Minute, reload: "1"}},
		{line: "ftree --help", want: routeOptions{policy: "ftree", args: []string{"--help"}}},
		{line: "--help ftree", want: routeOptions{policy: "ftree", args: []string{"--help"}}},
		{line: "--list", want: routeOptions{}},
		{line: "ftree -- --verify", want: routeOptions{policy: "ftree", args: []string{"--", "--verify"}}},
		{line: "-- ftree", want: routeOptions{policy: "ftree", args: []string{"--"}}},
		{line: "ftree --verify=yes", err: `--verify "yes": want true or false; the flag alone is true`},
		{line: "ftree --out", err: "--out: missing value"},
		{line: "ftree --watch --reload=", err: `--reload: missing value`},
		{line: "ftree --reload 1", err: "--reload requires --watch"},
		{line: "ftree --adaptive=no", err: `--adaptive "no": want --adaptive=minimal, --adaptive=updown, or --adaptive alone`},
		{line: "ftree --watch=1ms", err: `--watch "1ms": want a time of at least 1s, such as 30s or 5m`},
	}, func() (*routeOptions, params, func(*cobra.Command, []string) error) {
		o := new(routeOptions)
		return o, o.params(), o.take
	})
}

func TestParseTopology(t *testing.T) {
	storage, _ := classRule("a*=io")
	manager, _ := classRule("b=c=sm")
	storageLeaf, managerLeaf := storage, manager
	storageLeaf.Leaf, managerLeaf.Leaf = true, true
	parsed(t, "topology", []parseCase{
		{line: "", want: topologyOptions{}},
		{line: "hostfile --levels 0x2", err: `--levels "0x2": want a number from 1`},
		{line: "hostfile --class a*=io --class=b=c=sm --baseline x --levels 2 --diff d --out=o --slots 8", want: topologyOptions{
			kind: "hostfile", args: []string{"--slots=8"}, levels: 2, baseline: "x", diff: "d", out: "o",
			rules: []graph.Rule{storage, storageLeaf, manager, managerLeaf},
		}},
		{line: "--list", want: topologyOptions{}},
		{line: "slurm --help", want: topologyOptions{kind: "slurm", args: []string{"--help"}}},
		{line: "--slots=8 hostfile", want: topologyOptions{kind: "hostfile", args: []string{"--slots=8"}}},
		{line: "slurm-node node-0007", want: topologyOptions{kind: "slurm-node", args: []string{"node-0007"}}},
		{line: "slurm-node -- -7", want: topologyOptions{kind: "slurm-node", args: []string{"--", "-7"}}},
		{line: "--labels kueue", err: "--labels: unknown flag (did you mean --levels?)"},
		{line: "slurm --diff=", err: `--diff: missing value`},
		{line: "slurm --levels 0", err: `--levels "0": want a number from 1`},
		{line: "slurm --class x", err: `--class "x": want NAME=CLASS, such as 'storage*=io'`},
	}, func() (*topologyOptions, params, func(*cobra.Command, []string) error) {
		o := new(topologyOptions)
		return o, o.params(), o.take
	})
}

func TestParseExporter(t *testing.T) {
	minute := session.Duration{Value: time.Minute, Unit: time.Second, Units: "seconds"}
	parsed(t, "exporter", []parseCase{
		{line: "", want: exporterOptions{every: minute, audits: "counters,links", words: []string{"--over=last"}}},
		{line: "--listen :1 --web.listen-address=:2 --every 90 --audits links,counters --web.config.file w --subnet west --over 5s", want: exporterOptions{
			listen: []string{":1", ":2"}, every: session.Duration{Value: 90 * time.Second, Unit: time.Second, Units: "seconds"},
			audits: "links,counters", config: "w", subnet: "west", words: []string{"--over=5s"},
		}},
		{line: "--audits links --read a,b", want: exporterOptions{every: minute, audits: "links", reads: "a,b"}},
		{line: "--audits links --over 5s", err: "--over: unknown flag (see \"fabsh exporter --help\")"},
		{line: "--web.systemd-socket x", want: exporterOptions{every: minute, audits: "counters,links", systemd: true, words: []string{"x", "--over=last"}}},
		{line: "--audits=", err: `--audits: missing value`},
		{line: "--every soon", err: `--every "soon": want seconds, or a time such as 500ms or 2s`},
	}, func() (*exporterOptions, params, func(*cobra.Command, []string) error) {
		o := newExporterOptions()
		return o, o.params(), o.take
	})
}

func TestParsePlan(t *testing.T) {
	dir := t.TempDir()
	plain, entry := filepath.Join(dir, "plain.star"), filepath.Join(dir, "entry.star")
	for name, text := range map[string]string{plain: "set_lft(1, {})\n", entry: "def main(*, rack = 0, exact = False, sl = \"\"):\n    pass\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	parsed(t, "change plan", []parseCase{
		{line: entry + " --rack=7 --out m.plan", want: planOptions{out: "m.plan", words: []string{entry, "--rack=7"}}},
		{line: plain + " --out m --sl a", want: planOptions{out: "m", levels: "a", words: []string{plain}}},
		{line: plain + " --out m --rack 7", err: "--rack: unknown flag (see \"fabsh change plan --help\")"},
		{line: plain + " --out m --exact", err: "--exact requires --routes: the writes of a script have no alternatives"},
		{line: plain + " --sl a --sl-out b --out m", err: "--sl-out requires --routes: a script does not set service levels of paths"},
		{line: entry + " --sl c --exact --adaptive --out m", want: planOptions{out: "m", adaptive: true, words: []string{entry, "--sl=c", "--exact"}}},
		{line: "gone.star --rack 7 --out m", err: "gone.star: no such file"},
		{line: "--sl a --exact --out m " + entry, err: "--exact requires --routes: the writes of a script have no alternatives"},
		{line: "--sl a " + entry + " --exact --out m", want: planOptions{out: "m", levels: "a", words: []string{entry, "--exact"}}},
		{line: "--sl a " + entry + " --sl b --out m", err: `--sl "a": the command and the script have it; give it either before or behind the script`},
		{line: "--routes updn --roots r --sl a --sl-out=b --exact --out m", want: planOptions{routes: "updn", out: "m", levels: "a", levelsOut: "b", exact: true, words: []string{"--roots=r"}}},
		{line: "--exact --out m --routes=ftree", want: planOptions{routes: "ftree", out: "m", exact: true}},
		{line: "", err: "missing change; give a script, or --routes with a policy or a file of tables"},
		{line: plain, err: "missing --out FILE"},
		{line: "--routes", err: "--routes: missing value"},
		{line: plain + " --out=", err: `--out: missing value`},
		{line: "--routes ftree --adaptive --out m", err: "--adaptive: refused: with adaptive routing the tables do not determine the paths of packets, so nothing can be proven"},
	}, func() (*planOptions, params, func(*cobra.Command, []string) error) {
		o := new(planOptions)
		return o, o.params(), o.take
	})
}

// parsedLine parses a line as cobra does, and returns the command, its own flags and options of
// scripts, and the other words.
func parsedLine(t *testing.T, p *session.Program, line string) (c *cobra.Command, words []string, err error) {
	t.Helper()
	root := rootOf(p)
	c, _ = findCommand(root, strings.Fields(line))
	c.RunE = func(_ *cobra.Command, plain []string) error {
		words = append(ownWords(c), plain...)
		return nil
	}
	err = Execute(p, root, strings.Fields(line))
	return c, words, err
}

// TestSessionFlags: behind a command's word the session flags are set that neither the
// command nor the script has.
func TestSessionFlags(t *testing.T) {
	for _, test := range []struct {
		line string // from the command's word on
		rest string
		set  string // --fabric, --format, --out and --plan of the session
		err  string
	}{
		{"audit -F sim --deep -ojson links", "--deep links", "sim json - -", ""},
		{"audit --out f --fabric=sim -o=csv", "--out=f", "sim csv - -", ""},
		{"audit links -- -F sim", "links -F sim", "- - - -", ""},
		{"audit links --plan p -F", "", "", "audit: -F: missing value"},
		{"audit -o nonsense", "", "", `audit: --format "nonsense": want text, json, jsonl, csv or prom; nodes with audit`},
		{"-F sim audit -q ack x --until y", "x", "sim - - -", ""},
		{"audit -F sim ack x", "x", "sim - - -", ""},
		{"audit --deep ack x", "", "", "audit ack: --deep: a flag of audit alone; give flags after ack"},
		{"audit --over 5s ack x", "", "", "audit: --over: a flag of audit alone; give flags after ack"},
		{"remedy --last log", "", "", "remedy log: --last: a flag of remedy alone; give flags after log"},
		{"route updn --out f -F sim --roots r --plan=p", "--out=f --roots=r updn", "sim - - p", ""},
		{"route -F sim --verify ftree --format json", "--verify ftree", "sim json - -", ""},
		{"route no.star -F sim --unknown x", "no.star", "sim - - -", ""},
		{"report iblinkinfo -F sim -o json --switches-only", "--switches-only iblinkinfo", "sim json - -", ""},
		{"report -F sim iblinkinfo", "iblinkinfo", "sim - - -", ""},
		{"report saquery NodeRecord --columns a,b --list -F sim", "--columns=a,b --list saquery NodeRecord", "sim - - -", ""},
		{"report html links -F sim --out f --deep", "--out=f --deep links", "sim - - -", ""},
		{"topology hostfile --out f -F sim -o json --slots 2", "--out=f --slots=2 hostfile", "sim json - -", ""},
		{"exporter -F sim --thresholds x", "--thresholds=x", "sim - - -", ""},
		{"change plan -F sim ../../examples/links.star --out m -o json", "--out=m ../../examples/links.star", "sim json - -", ""},
		{"change plan --routes updn -o json --out m --roots r", "--routes=updn --out=m --roots=r", "- json - -", ""},
	} {
		p := testProgram(t, io.Discard)
		_, rest, err := parsedLine(t, p, test.line)
		if err != nil {
			if test.err == "" || !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("%s:\ngot  %v\nwant %s", test.line, err, test.err)
			}
			continue
		}
		var set []string
		for _, name := range []string{"fabric", "format", "out", "plan"} {
			f := p.Settings.Lookup(name)
			if f.Changed {
				set = append(set, f.Value.String())
			} else {
				set = append(set, "-")
			}
		}
		if got := strings.Join(rest, " "); test.err != "" || got != test.rest || strings.Join(set, " ") != test.set {
			t.Errorf("%s:\ngot  %q, %q\nwant %q, %q, error %q", test.line, got, set, test.rest, test.set, test.err)
		}
	}
}

// TestShadowedShorthand: an option of a script takes the place of a session flag, and not of the
// letter of that.
func TestShadowedShorthand(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.star")
	if err := os.WriteFile(own, []byte("def main(*, format = \"\"):\n    pass\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	p := testProgram(t, io.Discard)
	_, rest, err := parsedLine(t, p, "report "+own+" --format x -o json")
	if want := []string{"--format=x", own}; err != nil || !slices.Equal(rest, want) || !p.Settings.Given("format") || p.Settings.Format != "json" {
		t.Errorf("got %q, format %q, %v", rest, p.Settings.Format, err)
	}
}

// TestCobraParses: cobra parses the flags of all commands, also of those whose words name scripts,
// and no flag of these is an option of a shipped script, unless it yields.
func TestCobraParses(t *testing.T) {
	lines := scriptLines()
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			all(sub)
		}
		if c.DisableFlagParsing {
			t.Errorf("%s disables the parser", c.CommandPath())
		}
		line, ok := lines[c.CommandPath()]
		delete(lines, c.CommandPath())
		if !ok {
			return
		}
		var names []string
		for _, f := range []script.Folder{script.Audits, script.Remedies, script.Reports, script.Policies, script.Topologies} {
			names = append(names, f.Names()...)
		}
		options := 0
		for _, name := range names {
			words := parsedWords{all: []string{name}, plain: []string{name}, flags: map[string]string{"audits": name}}
			if c.Name() == "plan" {
				words = parsedWords{flags: map[string]string{"routes": name}}
			}
			for _, p := range line.named(words) {
				options += len(p.Options)
				for _, option := range p.Options {
					f := c.LocalNonPersistentFlags().Lookup(strings.TrimPrefix(option, "--"))
					if f != nil && !slices.Contains(line.yields, f.Name) {
						t.Errorf("--%s of %s is an option of the script %s too", f.Name, c.CommandPath(), p.Name)
					}
				}
			}
		}
		if options == 0 {
			t.Errorf("%s: no script has options", c.CommandPath())
		}
	}
	all(commands())
	if len(lines) > 0 {
		t.Errorf("no such commands: %v", slices.Collect(maps.Keys(lines)))
	}
}
