package builtins

import (
	"context"
	"os"
	"testing"

	"github.com/spf13/afero"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
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
			adapt := func(o *SessionOptions) { o.Format = test.format }
			onSim(t, "ring:n=2", adapt, func(t *testing.T, f *fixture) {
				afero.WriteFile(f.fs, "/work/"+test.script, src, 0o644)
				err := program.RunFile(context.Background(), f.Interpreter, test.script, test.args)
				got := f.stdout.String() + f.stderr.String()
				if text := f.Explain(err); text != "" {
					got += text + "\n"
				}
				golden(t, "testdata/examples/"+test.golden, got)
				if got := audits.ExitStatus(f.Runtime, err); got != test.status {
					t.Errorf("status %d, want %d", got, test.status)
				}
			})
		})
	}
}
