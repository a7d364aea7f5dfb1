package builtins

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
)

const entryScript = `
def main(name, count=1, *rest, threshold=5, ratio=0.5, verbose=False, quick=True, tag=None, only=[], ids=[0]):
    """Does things to a name.

    The second paragraph
      is indented.
    """
    print(repr((name, count, rest, threshold, ratio, verbose, quick, tag, only, ids)))
`

func TestEntry(t *testing.T) {
	usage := "\nusage: s.star [--threshold N] [--ratio X] [--verbose] [--no-quick] [--tag TEXT] [--only TEXT] [--ids N] NAME [COUNT] [REST...]"
	for _, test := range []struct {
		name string
		args []string
		out  string
		err  string
	}{
		{"words", []string{"a", "7", "b", "c"}, `("a", 7, ("b", "c"), 5, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"options", []string{"--threshold", "9", "a", "--ratio=2", "--verbose", "--no-quick", "--tag", "x", "--only", "p", "--only=q", "--ids", "3"},
			`("a", 1, (), 9, 2.0, True, False, "x", ["p", "q"], [3])` + "\n", ""},
		{"hexadecimal and negative", []string{"a", "-0x10", "--threshold=-1"}, `("a", -16, (), -1, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"end of options", []string{"--", "--threshold", "3"}, `("--threshold", 3, (), 5, 0.5, False, True, None, [], [0])` + "\n", ""},
		{"truth", []string{"a", "--verbose=yes", "--quick=off"}, `("a", 1, (), 5, 0.5, True, False, None, [], [0])` + "\n", ""},
		{"other letters", []string{"a", "--Threshold", "9", "--no-Quick"}, `("a", 1, (), 9, 0.5, False, False, None, [], [0])` + "\n", ""},
		{"missing word", nil, "", "s.star: missing NAME" + usage},
		{"unknown option", []string{"a", "--treshold", "3"}, "", "s.star: unknown option --treshold (did you mean --threshold?)" + usage},
		{"one letter", []string{"a", "-T", "3"}, "", "s.star: unknown option -T (options have long names: --threshold, --tag)" + usage},
		{"no value", []string{"a", "--threshold"}, "", "s.star: option --threshold needs a value" + usage},
		{"bad value", []string{"a", "--threshold=x"}, "", `s.star: option --threshold: "x" is not an integer` + usage},
		{"bad word", []string{"a", "x"}, "", `s.star: COUNT: "x" is not an integer` + usage},
		{"bad truth", []string{"a", "--verbose=maybe"}, "", `s.star: option --verbose: "maybe" is not true or false` + usage},
		{"help", []string{"a", "--help"}, `usage: s.star [--threshold N] [--ratio X] [--verbose] [--no-quick] [--tag TEXT] [--only TEXT] [--ids N] NAME [COUNT] [REST...]

Does things to a name.

The second paragraph
  is indented.

options:
  --threshold N  default 5
  --ratio X      default 0.5
  --verbose      default False
  --no-quick     turns off quick
  --tag TEXT     default None
  --only TEXT    default []
  --ids N        default [0]
`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := plain(t, nil)
			write(t, f.fs, "/work/s.star", entryScript)
			err := program.RunFile(context.Background(), f.Interpreter, "s.star", test.args)
			if diff := cmp.Diff(test.err, f.Explain(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.out, f.stdout.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if got, want := audits.ExitStatus(f.Runtime, err), map[bool]int{true: lang.StatusClean, false: lang.StatusUsage}[test.err == ""]; got != want {
				t.Errorf("status %d, want %d", got, want)
			}
		})
	}
}

func TestRunFile(t *testing.T) {
	for _, test := range []struct {
		name, script, path string
		args               []string
		out, err           string
		status             int
	}{
		{"no entry function", "print(1)", "s.star", nil, "1\n", "", 0},
		{"arguments for nobody", "print(1)", "s.star", []string{"x"}, "", "s.star: takes no arguments; it does not define main(), audit() or route()", 2},
		{"an entry function by assignment", "def f(x):\n    print(x)\nif True:\n    main = f", "s.star", []string{"x"}, "x\n", "", 0},
		{"no entry function after all", "print(1)\nmain = 1", "s.star", []string{"x"}, "1\n", "s.star: takes no arguments; it does not define main(), audit() or route()", 2},
		{"globals stay open", "seen = []\ndef main():\n    seen.append(1)\n    print(seen)", "s.star", nil, "[1]\n", "", 0},
		{"audit", "def audit(*, n=1):\n    print(n)", "s.star", []string{"--n", "2"}, "2\n", "", 0},
		{"required option", "def main(*, n):\n    pass", "s.star", nil, "", "s.star: missing option --n\nusage: s.star --n TEXT", 2},
		{"unexpected word", "def main():\n    pass", "s.star", []string{"x"}, "", "s.star: unexpected argument \"x\"\nusage: s.star", 2},
		{"missing file", "", "none.star", nil, "", "none.star: no such file", 2},
		{"exit", "exit(1)", "s.star", nil, "", "", 1},
		{"fail", "def f():\n    fail(\"no\")\ndef main():\n    f()", "s.star", nil, "",
			"fail: no\n  s.star:4:5: in main\n  s.star:2:5: in f\n        fail(\"no\")\n        ^", 2},
		{"syntax", "x = (\n", "s.star", nil, "", "s.star:2:1: syntax error: got end of file, want primary expression", 2},
		{"undefined", "prnt(1)", "s.star", nil, "", "s.star:1:1: undefined: prnt (did you mean print?)\n    prnt(1)\n    ^", 2},
		{"inside parallel", "def f(i):\n    fail(\"no\")\nparallel(f, [7])", "s.star", nil, "",
			"parallel: item 0, 7: fail: no\n  s.star:3:1: in <toplevel>\n    parallel(f, [7])\n    ^\n  s.star:2:5: in f\n        fail(\"no\")\n        ^", 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := plain(t, nil)
			write(t, f.fs, "/work/s.star", test.script)
			err := program.RunFile(context.Background(), f.Interpreter, test.path, test.args)
			got := []any{f.stdout.String(), f.Explain(err), audits.ExitStatus(f.Runtime, err)}
			if diff := cmp.Diff([]any{test.out, test.err, test.status}, got); diff != "" {
				t.Errorf("output, error, status (-want +got):\n%s", diff)
			}
		})
	}
}
