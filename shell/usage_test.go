package shell

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fabsh/shell/command"
	"fabsh/shell/session"
)

// failing runs a command line in this process, and returns what it wrote and its exit status.
func failing(t *testing.T, words ...string) (text string, status int) {
	t.Helper()
	var out bytes.Buffer
	p := newProgram(session.NewConsole(&out, &out))
	none, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	p.Stdin, p.Words = none, words
	p.Interrupts = session.WatchInterrupts(p.Console)
	defer p.Interrupts.Stop()
	status = p.Console.Fail(command.Execute(p, rootCommand(p), words))
	return out.String(), status
}

// fails requires that a command line is wrong usage, and that the error has the form of all errors:
// a line that begins with the operation.
func fails(t *testing.T, operation, want string, words ...string) {
	t.Helper()
	text, status := failing(t, words...)
	first, _, _ := strings.Cut(text, "\n")
	if ok, err := regexp.MatchString("^"+regexp.QuoteMeta(operation)+": "+want, first); err != nil || !ok || status != 2 || foreignWords.MatchString(text) {
		t.Errorf("fabsh %q: status %d, want 2; want %s: %s, got\n%s", words, status, operation, want, text)
	}
}

// foreignWords are those of the libraries that parse the command line and open files.
var foreignWords = regexp.MustCompile(`strconv\.|flag needs|unknown shorthand|invalid argument|unknown flag:|accepts at most|for "fabsh|open \S+: |stat \S+: |fabsh: [a-z ]+: fabsh`)

// eachCommand calls fn with all commands, and cobra's own, by their names in errors.
func eachCommand(fn func(name string, c *cobra.Command)) {
	root := rootCommand(newProgram(session.NewConsole(nil, nil)))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var walk func(parent *cobra.Command, before string)
	walk = func(parent *cobra.Command, before string) {
		for _, c := range parent.Commands() {
			name := strings.TrimSpace(before + " " + c.Name())
			c.InitDefaultHelpFlag()
			fn(name, c)
			walk(c, name)
		}
	}
	fn("fabsh", root)
	walk(root, "")
}

// TestFlagErrors: all commands report flags that they do not have, flags without a value and invalid
// values in the same form.
func TestFlagErrors(t *testing.T) {
	eachCommand(func(name string, c *cobra.Command) {
		words := strings.Fields(name)
		if name == "fabsh" {
			words = nil
		} else {
			fails(t, name, "-c: not supported by commands; leave it out$", slices.Concat([]string{"-c", "1"}, words)...)
		}
		fails(t, name, `--nonesuch: unknown flag \(`, append(words, "--nonesuch")...)
		fails(t, name, `-Z: unknown flag \(`, append(words, "-Z")...)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flag := "--" + f.Name
			if f.NoOptDefVal == "" && (name != "sim" || f.Name != "run") {
				fails(t, name, flag+": missing value$", append(words, flag)...)
			}
			if f.Name == "hosts" && name == "audit" {
				return // any word is a list of one host
			}
			if _, isText := map[string]bool{"string": true, "stringArray": true, "stringSlice": true, "textArray": true}[f.Value.Type()]; !isText && f.Value.Type() != "count" {
				fails(t, name, flag+` "!": (want |unknown |unsupported |invalid |host list )`, append(words, flag+"=!")...)
			}
		})
	})
}

// TestFileErrors: a file of the command line that is missing, a directory, unreadable or empty is
// wrong usage in all commands.
func TestFileErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("folder", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "fabric.topo": "", "tables": "", "cables.csv": "a,a_port,b,b_port\nleaf-1,1,spine-1,1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("loop", "loop"); err != nil { // also root cannot read it
		t.Fatal(err)
	}
	for _, words := range []string{"snapshot good.snap", "change plan --routes updn --out good.plan"} {
		if text, status := failing(t, append([]string{"-F", "sim:ring:n=4"}, strings.Fields(words)...)...); status != 0 {
			t.Fatal(text)
		}
	}
	tested := map[string]bool{}
	for _, tt := range []struct {
		line    string // FILE is the file
		mayLack bool   // an empty file is valid
	}{
		{line: "FILE", mayLack: true}, // a script
		{line: "-F file:FILE -c discover()"},
		{line: "-F replay:FILE -c discover()"},
		{line: "-F sim:FILE -c discover()"},
		{line: "--keys FILE -F sim:ring:n=4 -c discover()", mayLack: true},
		{line: "--node-name-map FILE -F sim:ring:n=4 -c discover()", mayLack: true},
		{line: "-F file:FILE audit"},
		{line: "audit FILE.star", mayLack: true},
		{line: "audit --baseline FILE"},
		{line: "audit --load-cache FILE"},
		{line: "audit -o nodes --for slurm --resume FILE", mayLack: true},
		{line: "--state state audit ack --audit FILE link.width:switch-1 --reason x"},
		{line: "report FILE.star", mayLack: true},
		{line: "report html --out page.html --baseline FILE"},
		{line: "remedy FILE.star"},
		{line: "route FILE.star"},
		{line: "topology FILE.star"},
		{line: "topology hostfile --baseline FILE"},
		{line: "topology hostfile --domains FILE"},
		{line: "topology hostfile --diff FILE", mayLack: true},
		{line: "verify --lfts FILE"},
		{line: "verify --sl FILE"},
		{line: "verify --lfts good.snap --sl FILE"},
		{line: "verify --lfts good.snap --sl2vl FILE"},
		{line: "verify --lfts good.snap --slvl FILE"},
		{line: "verify --lfts good.snap --far FILE"},
		{line: "-q diff FILE good.snap"},
		{line: "-q diff good.snap FILE"},
		{line: "diff FILE"},
		{line: "change plan FILE.star --out new.plan", mayLack: true},
		{line: "change plan --routes FILE --out new.plan"},
		{line: "change plan --routes minhop --tenants FILE --out new.plan"},
		{line: "verify --tenants FILE"},
		{line: "change plan --routes minhop --sl FILE --out new.plan", mayLack: true},
		{line: "change apply FILE"},
		{line: "change check FILE"},
		{line: "change show FILE"},
		{line: "sim --scenario FILE.star"},
		{line: "sim FILE"},
		{line: "decode FILE"},
		{line: "check FILE.star", mayLack: true},
		{line: "test FILE"},
		{line: "fmt FILE.star", mayLack: true},
		{line: "change apply --sl FILE good.plan", mayLack: true},
		{line: "change check --sl FILE good.plan", mayLack: true},
		{line: "report html --out page.html --load-cache FILE"},
		{line: "exporter --audits FILE.star"},
		{line: "accept site --plan FILE"},
		{line: "cabling FILE"},
		{line: "cabling --hca-map FILE cables.csv"},
		{line: "history --file FILE"},
		{line: "history ber --file FILE"},
		{line: "history cable S1 --file FILE"},
		{line: "history changes --file FILE"},
		{line: "history check --file FILE"},
		{line: "history compact --file FILE"},
		{line: "history copy copy.db --file FILE"},
		{line: "history export csv --file FILE"},
		{line: "history flaps --file FILE"},
		{line: "history link --file FILE leaf-1/1"},
		{line: "history node leaf-1 --file FILE"},
		{line: "history offenders --file FILE"},
		{line: "history plot leaf-1/1 errors --file FILE"},
		{line: "history port leaf-1/1 --file FILE"},
		{line: "history sql query --file FILE"},
		{line: "exporter --web.config.file FILE", mayLack: true},
		{line: "serve --audits FILE.star"},
		{line: "serve --web.config.file FILE", mayLack: true},
		{line: "serve --listen 127.0.0.1:0 --cabling FILE"},
		{line: "serve --listen 127.0.0.1:0 --jobs FILE"},
		{line: "mcp --web.config.file FILE", mayLack: true},
	} {
		words := strings.Fields(tt.line)
		operation := ""
		eachCommand(func(name string, c *cobra.Command) {
			if strings.Contains(" "+tt.line+" ", " "+name+" ") && len(name) > len(operation) {
				operation = name
				c.Flags().VisitAll(func(f *pflag.Flag) {
					if strings.Contains(tt.line, "--"+f.Name+" FILE") {
						tested[name+" --"+f.Name] = true
					}
				})
			}
		})
		operation = cmp.Or(operation, "fabsh")
		for _, kind := range []struct{ file, want string }{
			{"none", "no such file|unknown command or file|neither a file nor a datagram"}, {"folder", "is a directory|no function whose name|no topology among its 0 files"}, {"loop", "too many levels of symbolic links"}, {"empty", ""},
		} {
			if tt.mayLack && kind.file == "empty" {
				continue
			}
			list := slices.Clone(words)
			for i, w := range list {
				if before, ok := strings.CutSuffix(w, "FILE.star"); ok {
					list[i] = before + kind.file + ".star"
					linkAs(t, kind.file, kind.file+".star")
				}
				list[i] = strings.Replace(list[i], "FILE", kind.file, 1)
			}
			if !slices.Contains(list, "-F") && !strings.HasPrefix(tt.line, "test ") && !strings.HasPrefix(tt.line, "-q ") {
				list = append([]string{"-F", "sim:ring:n=4"}, list...)
			}
			fails(t, operation, `.*\b`+kind.file+`\b.*(`+kind.want+`)`, list...)
		}
	}
	// A flag that names a file to read is in the list above.
	eachCommand(func(name string, c *cobra.Command) {
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if _, isFile := f.Annotations[cobra.BashCompFilenameExt]; isFile && !written[f.Name] && !tested[name+" --"+f.Name] {
				t.Errorf("%s: --%s is not tested", name, f.Name)
			}
		})
	})
}

// written are flags of files that commands write, or whose absence is not an error.
var written = map[string]bool{"out": true, "log": true, "sl-out": true, "stage": true, "reload": true, "junit": true}

// linkAs makes another name of a file; none of a missing one.
func linkAs(t *testing.T, file, name string) {
	t.Helper()
	if _, err := os.Lstat(file); err != nil {
		return
	}
	if _, err := os.Lstat(name); err == nil {
		return
	}
	if file == "loop" {
		file = name
	}
	if err := os.Symlink(filepath.Base(file), name); err != nil {
		t.Fatal(err)
	}
}
