package builtins

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/afero"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Scripts show times in the zone of the machine.
func init() { time.Local = time.UTC }

// fixture is a session on a simulated fabric, and what it wrote.
type fixture struct {
	*Session
	stdout, stderr bytes.Buffer
	fs             afero.Fs
}

// onSim runs fn with a session on the simulated fabric that spec names, in
// virtual time: a retry ladder takes none.
func onSim(t *testing.T, spec string, adapt func(*SessionOptions), fn func(t *testing.T, f *fixture)) {
	t.Helper()
	onSimWith(t, spec, nil, nil, adapt, fn)
}

// onSimWith is onSim, with keys, and with wrap around the transport; both may be
// nil.
func onSimWith(t *testing.T, spec string, keys *engine.Keys, wrap func(engine.Transport) engine.Transport, adapt func(*SessionOptions), fn func(t *testing.T, f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		subnet, transport := attachSubnet(t, spec)
		if wrap != nil {
			transport = wrap(transport)
		}
		engine := engine.New(transport, engine.Options{Write: true, Keys: keys})
		defer engine.Close()
		f := new(fixture)
		var err error
		opts := SessionOptions{Facts: topology.Facts{Engine: engine, Sim: subnet, Write: true}, Stdout: &f.stdout, Stderr: &f.stderr, FS: afero.NewMemMapFs(), Dir: "/work"}
		if adapt != nil {
			adapt(&opts)
		}
		f.fs = opts.FS
		f.Session, err = NewSession(opts)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		fn(t, f)
	})
}

// attach brings up the simulated fabric that spec names and sits down on its
// first CA.
func attach(t *testing.T, spec string) engine.Transport {
	t.Helper()
	_, tr := attachSubnet(t, spec)
	return tr
}

// attachSubnet returns the simulated subnet too. With "bare " before the spec, no subnet manager has
// brought it up.
func attachSubnet(t testing.TB, spec string) (*sim.Subnet, engine.Transport) {
	t.Helper()
	spec, bare := strings.CutPrefix(spec, "bare ")
	fab, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Bare = bare
	s := sim.New(fab, o)
	tr, err := s.Attach(fab.OfType(mad.NodeTypeCA)[0].ID(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return s, tr
}

// plain is a session that has no fabric.
func plain(t *testing.T, adapt func(*SessionOptions)) *fixture {
	t.Helper()
	f := new(fixture)
	opts := SessionOptions{Stdout: &f.stdout, Stderr: &f.stderr, FS: afero.NewMemMapFs(), Dir: "/work"}
	if adapt != nil {
		adapt(&opts)
	}
	f.fs = opts.FS
	var err error
	if f.Session, err = NewSession(opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// run runs code and returns what it wrote to stdout, then its error as people
// see it.
func (f *fixture) run(code string) (out, explained string, exit int) {
	f.stdout.Reset()
	f.stderr.Reset()
	err := program.RunCode(context.Background(), f.Interpreter, "<test>", code)
	if failed := audits.WriteMetrics(f.Runtime); err == nil {
		err = failed
	}
	return f.stdout.String(), f.Explain(err), audits.ExitStatus(f.Runtime, err)
}

// newThread makes a thread for one evaluation.
func (f *fixture) newThread(ctx context.Context, name string) *starlark.Thread {
	t, _ := f.Thread(ctx, name)
	return t
}

// write puts a file where the session finds it.
func write(t *testing.T, fs afero.Fs, name, content string) {
	t.Helper()
	if err := afero.WriteFile(fs, name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

var update = flag.Bool("update", false, "write the files that hold what is wanted")

// golden compares got with the whole of a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test . -update rewrites it):\n%s", path, diff)
	}
}
