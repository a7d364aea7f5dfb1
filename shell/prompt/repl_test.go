package prompt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"fabsh/builtins/audits"
	"fabsh/builtins/program"
	"fabsh/fabric/format"
	"fabsh/shell/session"
)

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

// openSession opens a session.
func openSession(t *testing.T, p *session.Program) *session.Session {
	t.Helper()
	s, err := session.Open(t.Context(), p, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openTest opens a session with session flags, and gives what it wrote.
func openTest(t *testing.T, flags ...string) (*repl, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	p := testProgram(t, &out, flags...)
	return newRepl(p, openSession(t, p), Commands{}), &out
}

// TestPromptText: which fabric it is, and whether it may be changed, on every
// transport that a test can have.
func TestPromptText(t *testing.T) {
	t.Chdir(t.TempDir())
	r, _ := openTest(t, "-F", "sim:ring:n=2", "--record", "today.pcap")
	f, err := audits.ReadFabric(context.Background(), r.Runtime)
	if err != nil {
		t.Fatal(err)
	}
	var snapshot bytes.Buffer
	if err := errors.Join(format.WriteSnapshot(&snapshot, f), os.WriteFile("a\x1b[31m\u202e.snap", snapshot.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.CloseEngine()
	if err := os.Rename("today.pcap", "a_recording_whose_name_is_very_long.pcap"); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, flags := range [][]string{
		{"-F", "sim"}, {"-F", "sim:ring:n=2,mkey=0x5ec2e7"}, {"-F", "sim:ring:n=2"}, {"-F", "sim:ring:n=2", "--read-only"},
		{"-F", "file:a\x1b[31m\u202e.snap"}, {"-F", "replay:a_recording_whose_name_is_very_long.pcap"},
	} {
		r, _ := openTest(t, flags...)
		got[flags[len(flags)-1]] = r.promptText()
	}
	want := map[string]string{
		"sim":                        "sim rw> ",
		"sim:ring:n=2,mkey=0x5ec2e7": "sim ring rw> ",
		"sim:ring:n=2":               "sim ring rw> ",
		"--read-only":                "sim ring ro> ",
		"file:a\x1b[31m\u202e.snap":  `file a\x1b[31m\u2… 4n ro> `,
		"replay:a_recording_whose_name_is_very_long.pcap": "replay a_recording_w… rw> ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestShownTexts: a text with line breaks that is the whole result prints as it
// is, at the prompt and by -c; within other values, and on one line, it is quoted.
func TestShownTexts(t *testing.T) {
	for code, want := range map[string]string{
		`"a\n  b\n"`:   "a\n  b\n",
		`"a\n\nb"`:     "a\n\nb\n",
		`"a b"`:        "\"a b\"\n",
		`["a\nb"]`:     `["a\nb"]` + "\n",
		`show("a\nb")`: "a\nb\n",
	} {
		r, out := openTest(t, "-F", "sim:ring:n=2")
		if err := program.RunCode(context.Background(), r.Interpreter, "<command>", code); err != nil {
			t.Fatal(err)
		}
		r.read(newPlainReader(bytes.NewBufferString(code+"\n")), true)
		r.loop()
		if got := out.String(); got != want+want {
			t.Errorf("%s: got %q, want %q twice", code, got, want)
		}
	}
}

// TestPromptNames: names of fabrics in the prompt and the title.
func TestPromptNames(t *testing.T) {
	for name, want := range map[string]string{
		"sim": "sim", "sim:fattree:k=8,levels=3": "sim fattree", "sim:traffic=10GB/s": "sim", "sim:a/b.snap,loss=0.1": "sim b.snap", "umad:mlx5_0/1": "mlx5_0/1",
		"ibsim H-1/1": "ibsim H-1/1", "no fabric": "no fabric", "file:x:y,z.fab": "file x:y", "tour": "tour",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	var out bytes.Buffer
	title := &title{out: &out}
	title.set("fabsh file:a\x1b]2;evil\x07\u009c\u202e\n rw")
	title.set("fabsh file:a\x1b]2;evil\x07\u009c\u202e\n rw") // unchanged
	title.set(strings.Repeat("x", 1000))
	want := "\x1b]2;" + `fabsh file:a\x1b]2;evil\a\u009c\u202e\n rw` + "\a" + "\x1b]2;" + strings.Repeat("x", maxTitle) + "\a"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
	for _, term := range []string{"", "dumb", "linux"} {
		t.Setenv("TERM", term)
		out.Reset()
		none := openTitle(&out)
		none.set("x")
		none.restore()
		if out.Len() > 0 {
			t.Errorf("TERM=%s: wrote %q", term, out.String())
		}
	}
}
