package builtins

import (
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"fabsh/builtins/lang"
	"fabsh/fabric/routing"
	"fabsh/scripts"
)

// TestShippedExamples runs each program of examples/ as a command.
func TestShippedExamples(t *testing.T) {
	for _, test := range []struct {
		golden, script string
		args           []string
		format         lang.Format
		status         int
	}{
		{"first_look.txt", "first_look.star", nil, "", lang.StatusClean},
		{"links.txt", "links.star", nil, "", lang.StatusClean},
		{"links.csv", "links.star", nil, lang.FormatCSV, lang.StatusClean},
		{"links.jsonl", "links.star", nil, lang.FormatJSONL, lang.StatusClean},
		{"links_down.json", "links.star", []string{"--down"}, lang.FormatJSON, lang.StatusClean},
		{"trace.txt", "trace.star", []string{"node-0001 HCA-1", "4"}, "", lang.StatusClean},
		{"trace_usage.txt", "trace.star", []string{"1"}, "", lang.StatusUsage},
		{"trace_help.txt", "trace.star", []string{"--help"}, "", lang.StatusClean},
		{"trace_unknown.txt", "trace.star", []string{"1", "nobody"}, "", lang.StatusUsage},
	} {
		t.Run(test.golden, func(t *testing.T) {
			src, err := os.ReadFile("../examples/" + test.script)
			if err != nil {
				t.Fatal(err)
			}
			adapt := func(o *Options) { o.Format = test.format }
			onSim(t, "ring:n=2", adapt, func(t *testing.T, f *fixture) {
				afero.WriteFile(f.fs, "/work/"+test.script, src, 0o644)
				err := f.RunFile(context.Background(), test.script, test.args)
				got := f.stdout.String() + f.stderr.String()
				if text := f.Explain(err); text != "" {
					got += text + "\n"
				}
				golden(t, "testdata/examples/"+test.golden, got)
				if got := f.ExitStatus(err); got != test.status {
					t.Errorf("status %d, want %d", got, test.status)
				}
			})
		})
	}
}

// TestPolicyDocs: a shipped policy that has the name of an engine says of itself
// what the engine says.
func TestPolicyDocs(t *testing.T) {
	shipped := ShippedPolicies()
	for _, e := range routing.Engines() {
		i := slices.IndexFunc(shipped, func(p ShippedDoc) bool { return p.Name == e.Name })
		if i < 0 {
			continue
		}
		if shipped[i].Doc != e.Doc {
			t.Errorf("%s.star says\n%s\nthe engine\n%s", e.Name, shipped[i].Doc, e.Doc)
		}
		src, err := fs.ReadFile(scripts.FS, policyFolder+"/"+e.Name+".star")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(src), "):\n    \"\"\""+e.Doc+"\n") {
			t.Errorf("%s.star: route() does not begin with\n%s", e.Name, e.Doc)
		}
	}
}
