package command

import (
	"bytes"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/script"
	"fabsh/fabric/audit"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/shell/session"
)

// typedRoot is the root command of a line at the prompt of a session with these flags.
func typedRoot(t *testing.T, flags ...string) *cobra.Command {
	t.Helper()
	p := &session.Program{Settings: new(session.Settings), Console: session.NewConsole(io.Discard, io.Discard)}
	root := rootOf(p)
	if err := root.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	typed := p.Typed(&session.Line{Context: t.Context()})
	c := rootOf(typed)
	typed.Settings.Inherit(p.Settings)
	return c
}

// TestWordsAtPrompt: what may stand behind the commands that run at the prompt too.
func TestWordsAtPrompt(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"audit --lo", []string{"--load-cache"}},
		{"audit c", []string{"config", "counters"}},
		{"audit counters links co", []string{"config"}},
		{"audit counters --th", []string{"--thresholds"}},
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
		got, _ := completeLine(typedRoot(t), words[:len(words)-1], words[len(words)-1])
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
		want := c.Name() + " is not available at the prompt; run `fabsh " + c.Name() + "` in a shell"
		if err := runLine(typedRoot(t), []string{c.Name()}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", c.Name(), err, want)
		}
	}
	if diff := cmp.Diff("audit change decode diff graph remedy report route snapshot top topology verify", strings.Join(here, " ")); diff != "" {
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
		err := runLine(typedRoot(t, "--read-only"), words)
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

// parsed parses the words of the lines and compares what comes out.
func parsed[T any](t *testing.T, lines []parseCase, parse func(words []string) (T, error)) {
	t.Helper()
	for _, l := range lines {
		got, err := parse(strings.Fields(l.line))
		switch {
		case err != nil && err.Error() != l.err:
			t.Errorf("%s:\ngot  %v\nwant %s", l.line, err, l.err)
		case err == nil && l.err != "":
			t.Errorf("%s: no error, want %s", l.line, l.err)
		case err == nil:
			if diff := cmp.Diff(l.want, any(got), cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got\n%s", l.line, diff)
			}
		}
	}
}

func TestParseAudit(t *testing.T) {
	parsed(t, []parseCase{
		{line: "", want: auditOptions{failOn: audit.Warning}},
		{line: "links --deep mine.star --threshold 5", want: auditOptions{failOn: audit.Warning, deep: true, words: []string{"links", "mine.star", "--threshold", "5"}}},
		{line: "--fail-on error --baseline a --baseline=b --load-cache=c=d", want: auditOptions{failOn: audit.Error, baseline: "b", cache: "c=d"}},
		{line: "--out -q --job nightly --subnet west --each-port --list", want: auditOptions{failOn: audit.Warning, out: "-q", job: "nightly", subnet: "west", eachPort: true, list: true}},
		{line: "-- --deep", want: auditOptions{failOn: audit.Warning, deep: true, words: []string{"--"}}},
		{line: "--help", want: auditOptions{failOn: audit.Warning, help: true, words: []string{"--help"}}},
		{line: "-h", want: auditOptions{failOn: audit.Warning, help: true, words: []string{"-h"}}},
		{line: "links --help", want: auditOptions{failOn: audit.Warning, words: []string{"links", "--help"}}},
		{line: "links ack", want: auditOptions{failOn: audit.Warning, words: []string{"links", "ack"}}},
		{line: "--Deep -deep --dee", want: auditOptions{failOn: audit.Warning, words: []string{"--Deep", "-deep", "--dee"}}},
		{line: "--list=3", err: `audit: --list: unexpected value "3"; the flag takes none`},
		{line: "--deep=true", err: `audit: --deep: unexpected value "true"; the flag takes none`},
		{line: "--out", err: "audit: --out needs a value"},
		{line: "--out=", err: "audit: --out needs a value"},
		{line: "--fail-on bad", err: `audit: --fail-on: unknown severity "bad"; supported: info, warning, error, critical`},
		{line: "--subnet a/b", err: `audit: --subnet: invalid subnet name "a/b"; use up to 64 letters, digits, - _ and . (not first)`},
		{line: "--job a/b", err: `audit: --job: invalid job name "a/b"; use up to 128 letters, digits, - _ + , and . (not first)`},
	}, parseAudit)
}

func TestParseRoute(t *testing.T) {
	parsed(t, []parseCase{
		{line: "", want: routeOptions{}},
		{line: "ftree --verify --diff --fail-each-link --out lfts", want: routeOptions{policy: "ftree", verify: true, diff: true, failEachLink: true, out: "lfts"}},
		{line: "--verify --out=a=b p.star --roots r --seed=3 -x", want: routeOptions{policy: "p.star", verify: true, out: "a=b", args: []string{"--roots", "r", "--seed=3", "-x"}}},
		{line: "--roots=r ftree", want: routeOptions{policy: "ftree", args: []string{"--roots=r"}}},
		{line: "ftree --adaptive more", want: routeOptions{policy: "ftree", adaptive: verify.AdaptiveOn, args: []string{"more"}}},
		{line: "ftree --adaptive=updown", want: routeOptions{policy: "ftree", adaptive: verify.AdaptiveUpDown}},
		{line: "ftree --watch 5m", want: routeOptions{policy: "ftree", every: 10 * time.Second, args: []string{"5m"}}},
		{line: "ftree --watch=5m --reload 1", want: routeOptions{policy: "ftree", every: 5 * time.Minute, reload: "1"}},
		{line: "ftree --help", want: routeOptions{policy: "ftree", args: []string{"--help"}}},
		{line: "-h", want: routeOptions{help: true}},
		{line: "--help ftree", want: routeOptions{policy: "ftree", help: true}},
		{line: "--list", want: routeOptions{list: true}},
		{line: "ftree -- --verify", want: routeOptions{policy: "ftree", verify: true, args: []string{"--"}}},
		{line: "-- ftree", err: "--: ambiguous before the policy; write --=VALUE, or write it after the policy"},
		{line: "--roots r ftree", err: "--roots: ambiguous before the policy; write --roots=VALUE, or write it after the policy"},
		{line: "ftree --verify=yes", err: `--verify: unexpected value "yes"; the flag takes none`},
		{line: "ftree --out", err: "--out needs the name of a file"},
		{line: "ftree --watch --reload=", err: "--reload needs a process ID, or the name of a file that holds one"},
		{line: "ftree --reload 1", err: "--reload requires --watch"},
		{line: "ftree --adaptive=", err: "--adaptive=: want --adaptive=minimal, --adaptive=updown, or --adaptive alone"},
		{line: "ftree --adaptive=no", err: "--adaptive=no: want --adaptive=minimal, --adaptive=updown, or --adaptive alone"},
		{line: "ftree --watch=", err: "--watch=: want a time of at least 1s, such as 30s or 5m"},
		{line: "ftree --watch=1ms", err: "--watch=1ms: want a time of at least 1s, such as 30s or 5m"},
	}, parseRoute)
}

func TestParseTopology(t *testing.T) {
	storage, _ := classRule("a*=io")
	manager, _ := classRule("b=c=sm")
	parsed(t, []parseCase{
		{line: "", want: topologyOptions{}},
		{line: "slurm --class a*=io --class=b=c=sm --baseline x --levels 0x2 --diff d --out=o --slots 8",
			err: `--levels: want a number from 1, got "0x2"`},
		{line: "slurm --class a*=io --class=b=c=sm --baseline x --levels 2 --diff d --out=o --slots 8", want: topologyOptions{
			kind: "slurm", args: []string{"--slots", "8"}, levels: 2, baseline: "x", diff: "d", out: "o",
			rules: []graph.Rule{storage, manager},
		}},
		{line: "--list", want: topologyOptions{list: true}},
		{line: "-h", want: topologyOptions{help: true, args: []string{"-h"}}},
		{line: "slurm --help", want: topologyOptions{kind: "slurm", help: true, args: []string{"--help"}}},
		{line: "--slots=8 slurm", want: topologyOptions{kind: "slurm", args: []string{"--slots=8"}}},
		{line: "slurm -- --levels 1", want: topologyOptions{kind: "slurm", levels: 1, args: []string{"--"}}},
		{line: "--slots 8 slurm", err: "--slots: ambiguous before the kind; write it after the kind"},
		{line: "slurm --out", err: "--out needs a value"},
		{line: "slurm --diff=", err: "--diff needs a value"},
		{line: "slurm --levels 0", err: `--levels: want a number from 1, got "0"`},
		{line: "slurm --class x", err: "--class: want NAME=CLASS, such as 'storage*=io', got \"x\""},
	}, parseTopology)
}

func TestParseExporter(t *testing.T) {
	minute := session.Duration{Value: time.Minute, Unit: time.Second, Units: "seconds"}
	parsed(t, []parseCase{
		{line: "", want: exporterOptions{every: minute, audits: "counters,links"}},
		{line: "--listen :1 --listen=:2 --every 90 --audits links --web.config.file w --subnet west --over last", want: exporterOptions{
			listen: []string{":1", ":2"}, every: session.Duration{Value: 90 * time.Second, Unit: time.Second, Units: "seconds"},
			audits: "links", config: "w", subnet: "west", words: []string{"--over", "last"},
		}},
		{line: "--web.systemd-socket x --help", want: exporterOptions{every: minute, audits: "counters,links", systemd: true, help: true, words: []string{"x"}}},
		{line: "--threshold -h", want: exporterOptions{every: minute, audits: "counters,links", help: true, words: []string{"--threshold"}}},
		{line: "-- --every=2s", want: exporterOptions{every: session.Duration{Value: 2 * time.Second, Unit: time.Second, Units: "seconds"}, audits: "counters,links", words: []string{"--"}}},
		{line: "--listen", err: "--listen needs a value"},
		{line: "--audits=", err: "--audits needs a value"},
		{line: "--every soon", err: `--every "soon": want seconds, or a time such as 500ms or 2s`},
		{line: "--subnet a/b", err: `--subnet "a/b": invalid subnet name "a/b"; use up to 64 letters, digits, - _ and . (not first)`},
	}, parseExporter)
}

func TestParsePlan(t *testing.T) {
	parsed(t, []parseCase{
		{line: "m.star --rack=7 --out m.plan", want: planOptions{out: "m.plan", words: []string{"m.star", "--rack=7"}}},
		{line: "--sl a --sl-out b m.star --sl c --out m --exact", err: "--sl-out requires --routes: a script does not set service levels of paths"},
		{line: "--sl a m.star --sl c --sl-out d --exact --adaptive --out m", want: planOptions{out: "m", levels: "a", adaptive: true, words: []string{"m.star", "--sl", "c", "--sl-out", "d", "--exact"}}},
		{line: "--routes ftree --roots r --sl a --sl-out=b --exact --out m", want: planOptions{routes: "ftree", out: "m", levels: "a", levelsOut: "b", exact: true, words: []string{"--roots", "r"}}},
		{line: "--exact --out m --routes=ftree", want: planOptions{routes: "ftree", out: "m", exact: true}},
		{line: "-h", want: planOptions{help: true}},
		{line: "--out x --help m.star", want: planOptions{help: true, out: "x", words: []string{"m.star"}}},
		{line: "m.star --help --out x", want: planOptions{out: "x", words: []string{"m.star", "--help"}}},
		{line: "", err: "missing change; give a script, or --routes with a policy or a file of tables"},
		{line: "m.star", err: "missing --out FILE"},
		{line: "--rack 7 m.star --out m", err: "--rack: unknown option of fabsh change plan; options of the script follow its name"},
		{line: "--exact m.star --out m", err: "--exact: unknown option of fabsh change plan; options of the script follow its name"},
		{line: "--routes", err: "--routes needs a value"},
		{line: "m.star --out=", err: "--out needs a value"},
		{line: "--routes ftree --adaptive --out m", err: "--adaptive: refused: with adaptive routing the tables do not determine the paths of packets, so nothing can be proven"},
	}, parsePlan)
}

// TestSessionFlags: behind a command's word the session flags are taken that neither the
// command nor the script has.
func TestSessionFlags(t *testing.T) {
	for _, test := range []struct {
		line string // from the command's word on
		rest string
		set  string // --fabric, --format, --out and --plan of the session
		err  string
	}{
		{"audit -F sim --deep -ojson links", "--deep links", "sim json - -", ""},
		{"audit --out f --fabric=sim -o=csv", "--out f", "sim csv - -", ""},
		{"audit links -- -F sim", "links -- -F sim", "- - - -", ""},
		{"audit links --plan p -F", "links", " - - p", ""},
		{"audit -o nonsense", "", "", `invalid argument "nonsense" for "-o, --format" flag: want text, json, jsonl, csv or prom`},
		{"route ftree --out f -F sim --roots r --plan=p", "ftree --out f --roots r", "sim - - p", ""},
		{"route -F sim --verify ftree --format json", "--verify ftree", "sim json - -", ""},
		{"route no.star -F sim", "no.star -F sim", "- - - -", ""},
		{"report iblinkinfo -F sim -o json --switches-only", "iblinkinfo --switches-only", "sim json - -", ""},
		{"report -F sim iblinkinfo", "iblinkinfo", "sim - - -", ""},
		{"topology slurm --out f -F sim -o json --slots 2", "slurm --out f --slots 2", "sim json - -", ""},
		{"plan -F sim m.star --out m -o json", "m.star --out m -o json", "sim - - -", ""},
		{"plan --routes ftree -o json --out m --roots r", "--routes ftree --out m --roots r", "- json - -", ""},
	} {
		p := testProgram(t, io.Discard)
		words := strings.Fields(test.line)
		take := map[string]func(*session.Program, []string) ([]string, error){"audit": takeAudit, "route": takeRoute, "report": takeReport, "topology": takeTopology, "plan": takePlan}[words[0]]
		rest, err := take(p, words[1:])
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

// TestOwnFlags: help, completion and the names that no script may use have each flag that
// a command declares.
func TestOwnFlags(t *testing.T) {
	options := map[string][]string{}
	for _, p := range script.Programs() {
		kind := p.Name[:strings.LastIndexByte(p.Name, '/')]
		if kind == "@std//audit" {
			p.Options = audits.AuditOptions(p)
		}
		options[kind] = append(options[kind], p.Options...)
	}
	for _, d := range script.Topologies.Shipped() {
		options["@std//topology"] = append(options["@std//topology"], d.Options...)
	}
	for _, d := range script.Remedies.Shipped() {
		options["@std//remedy"] = append(options["@std//remedy"], d.Options...)
	}
	own := map[string]struct {
		flags   *pflag.FlagSet
		scripts string // none may have such an option
	}{
		"fabsh audit":       {new(auditOptions).flags(), "@std//audit"},
		"fabsh exporter":    {new(exporterOptions).flags(), "@std//audit"},
		"fabsh route":       {new(routeOptions).flags(), "@std//routing"},
		"fabsh remedy":      {new(remedyOptions).flags(), "@std//remedy"},
		"fabsh topology":    {new(topologyOptions).flags(), "@std//topology"},
		"fabsh report":      {reportFlags(), ""},
		"fabsh change plan": {new(planOptions).flags(), "@std//routing"},
	}
	var all func(c *cobra.Command)
	all = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			all(sub)
		}
		if !c.DisableFlagParsing {
			return
		}
		o := own[c.CommandPath()]
		delete(own, c.CommandPath())
		if o.flags == nil || o.scripts != "" && len(options[o.scripts]) == 0 {
			t.Errorf("%s parses its flags itself, and this test knows none, or no scripts in %s", c.CommandPath(), o.scripts)
			return
		}
		var help bytes.Buffer
		c.Root().SetOut(&help)
		c.Help()
		proposed, _ := c.ValidArgsFunction(c, nil, "")
		for _, flag := range session.FlagNames(o.flags) {
			if !strings.Contains(help.String(), "\n      "+flag+" ") {
				t.Errorf("the help of %s lacks %s", c.CommandPath(), flag)
			}
			if !slices.Contains(proposed, flag) {
				t.Errorf("completion of %s lacks %s", c.CommandPath(), flag)
			}
			if slices.Contains(options[o.scripts], flag) {
				t.Errorf("%s of %s is an option of a script in %s too", flag, c.CommandPath(), o.scripts)
			}
		}
	}
	all(commands())
	if len(own) > 0 {
		t.Errorf("these do not parse their flags themselves: %v", slices.Collect(maps.Keys(own)))
	}
}
