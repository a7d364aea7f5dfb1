package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fabsh/builtins"
	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/builtins/topology"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/sim"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// scene is a fabric that is watched: between two looks at it something
// happens, and what is said of it is noted.
type scene struct {
	subnet *sim.Subnet
	file   string
	hups   int
	reload error
	step   int
	steps  []func(s *scene) // one after each round
	said   []string         // in each round
	stderr func() string
	end    context.CancelCauseFunc
}

func (s *scene) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Sleep is the time between two rounds.
func (s *scene) Sleep(ctx context.Context, d time.Duration) error {
	s.said = append(s.said, fmt.Sprintf("%s[%d]", s.stderr(), s.hups))
	if s.step == len(s.steps) {
		s.end(lang.ErrInterrupted)
		return context.Cause(ctx)
	}
	s.steps[s.step](s)
	s.step++
	return nil
}

// watched plays a scene, and returns what was said.
func watched(t *testing.T, spec, policy string, steps ...func(*scene)) (sc *scene, ended error) {
	t.Helper()
	dir := t.TempDir()
	sc = &scene{file: filepath.Join(dir, "lfts.dump"), steps: steps}
	synctest.Test(t, func(t *testing.T) {
		f, o, err := sim.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		sc.subnet = sim.New(f, o)
		transport, err := sc.subnet.Attach(f.OfType(mad.NodeTypeCA)[0].ID(), 1)
		if err != nil {
			t.Fatal(err)
		}
		e := engine.New(transport, engine.Options{Write: true})
		defer e.Close()
		var stdout, stderr bytes.Buffer
		s, err := builtins.NewSession(builtins.SessionOptions{Facts: topology.Facts{Engine: e, Sim: sc.subnet, Write: true}, Stdout: &stdout, Stderr: &stderr, Clock: sc})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		sc.end = cancel
		sc.stderr = func() string {
			defer stderr.Reset()
			return strings.NewReplacer("2026-01-02T03:04:05Z ", "", dir+"/", "").Replace(stderr.String())
		}
		p, err := program.LoadPolicy(ctx, s.Interpreter, policy, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := routeWatch{session: s, policy: p, out: sc.file, every: 10 * time.Second, stderr: &stderr, reload: func() (string, error) {
			if sc.reload != nil {
				return "", sc.reload
			}
			sc.hups++
			return "opensm (process 7)", nil
		}}
		ended = w.run(ctx)
		sc.said = append(sc.said, strings.TrimSuffix(sc.stderr(), "\n"))
		if stdout.Len() > 0 {
			t.Errorf("on stdout: %s", stdout.String())
		}
	})
	return sc, ended
}

// cable takes a link down or up.
func cable(t *testing.T, name string, num int, up bool) func(*scene) {
	return func(s *scene) {
		do := s.subnet.Cables.Unlink
		if up {
			do = s.subnet.Cables.Link
		}
		if err := do(s.subnet.NodeGUIDs(name)[0], num); err != nil {
			t.Error(err)
		}
	}
}

func unchanged(*scene) {}

func checkSaid(t *testing.T, sc *scene, want []string) {
	t.Helper()
	if got := strings.Join(sc.said, "\n--\n"); got != strings.Join(want, "\n--\n") {
		t.Errorf("said\n%s\nwant\n%s", got, strings.Join(want, "\n--\n"))
	}
}

func TestWatch(t *testing.T) {
	var files []string
	keep := func(s *scene) {
		b, err := os.ReadFile(s.file)
		if err != nil {
			t.Error(err)
		}
		files = append(files, string(b))
	}
	also := func(a, b func(*scene)) func(*scene) { return func(s *scene) { a(s); b(s) } }
	sc, err := watched(t, "fattree:k=4,levels=2", "ftree",
		keep, // nothing has happened
		also(keep, cable(t, "leaf-1", 3, false)),
		keep,
		also(keep, cable(t, "leaf-1", 3, true)),
		keep,
	)
	if !errors.Is(err, lang.ErrInterrupted) {
		t.Errorf("ended with %v", err)
	}
	told := "opensm (process 7): SIGHUP sent, to read the tables\n"
	checkSaid(t, sc, []string{
		"lfts.dump: new tables: the first tables\n" + told + "[1]",
		"[1]",
		"lfts.dump: new tables: 14 entries of 5 switches changed\n" + told + "[2]",
		"[2]",
		"lfts.dump: new tables: 10 entries of 5 switches changed\n" + told + "[3]",
		"[3]",
		"",
	})
	if len(files) != 5 || files[0] != files[1] || files[2] == files[1] || files[2] != files[3] || files[4] == files[3] {
		t.Error("the files are not those of the topologies")
	}
}

// TestWatchUpToDate: what is there already is not written again.
func TestWatchUpToDate(t *testing.T) {
	var before os.FileInfo
	again := func(s *scene) {
		st, err := os.Stat(s.file)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !os.SameFile(st, before) {
			t.Error("the file was replaced")
		}
		before = st
	}
	// A host that comes back with the LID it had is the same topology, and
	// one more switch port that goes down and up within a round is no change.
	sc, _ := watched(t, "ring:n=3", "updn", again, again, func(s *scene) {
		again(s)
		cable(t, "switch-1", 2, false)(s)
		cable(t, "switch-1", 2, true)(s)
	}, again)
	checkSaid(t, sc, []string{
		"lfts.dump: new tables: the first tables\nopensm (process 7): SIGHUP sent, to read the tables\n[1]",
		"[1]", "[1]", "[1]", "[1]", "",
	})
}

// TestWatchStays: in doubt the file stays, nobody is told of it, and one line
// says why, once.
func TestWatchStays(t *testing.T) {
	first := "lfts.dump: new tables: the first tables\nopensm (process 7): SIGHUP sent, to read the tables\n[1]"
	t.Run("verdict", func(t *testing.T) {
		var good string
		sc, _ := watched(t, "ring:n=5", "minhop", unchanged, cable(t, "switch-3", 2, false), func(s *scene) {
			b, err := os.ReadFile(s.file)
			good = string(b)
			if err != nil || !strings.HasPrefix(good, "Unicast lids") {
				t.Errorf("%v: %.40q", err, good)
			}
			cable(t, "switch-3", 2, true)(s)
		}, func(s *scene) {
			if b, err := os.ReadFile(s.file); err != nil || string(b) != good {
				t.Errorf("%v: the file has changed", err)
			}
		}, unchanged)
		// A ring has a credit loop by shortest paths; a line has none.
		stays := "lfts.dump: unchanged: verdict not ok: unreachable 0, loops 0, acyclic False\n"
		checkSaid(t, sc, []string{stays + "[0]", "[0]", first, stays + "[1]", "[1]", "[1]", ""})
	})
	t.Run("sweep", func(t *testing.T) {
		sc, _ := watched(t, "ring:n=3", "updn", func(s *scene) {
			s.subnet.Cables.Silence(s.subnet.NodeGUIDs("node-0002 HCA-1")[0], 1, true)
		}, unchanged, func(s *scene) {
			s.subnet.Cables.Silence(s.subnet.NodeGUIDs("node-0002 HCA-1")[0], 1, false)
		}, unchanged)
		if len(sc.said) != 6 || sc.said[0] != first || sc.said[2] != "[1]" || sc.said[3] != "the fabric and the file are in order again\n[1]" || sc.said[4] != "[1]" ||
			!strings.HasPrefix(sc.said[1], "lfts.dump: unchanged: incomplete sweep: ") || !strings.Contains(sc.said[1], "timed out after") || strings.Count(sc.said[1], "\n") != 1 {
			t.Errorf("said %q", sc.said)
		}
	})
	t.Run("reader", func(t *testing.T) {
		busy := errors.New("the pidfile is empty")
		sc, err := watched(t, "ring:n=3", "updn", func(s *scene) {
			s.reload = busy
			cable(t, "switch-1", 2, false)(s)
		}, unchanged, func(s *scene) {
			s.reload = nil
		}, func(s *scene) {
			s.reload = fmt.Errorf("%w: it is gone", apply.ErrOpenSMEnded)
			cable(t, "switch-1", 2, true)(s)
		})
		var exit *lang.ExitError
		if !errors.As(err, &exit) || exit.Code != lang.StatusFabric {
			t.Errorf("ended with %v", err)
		}
		if len(sc.said) != 5 || !strings.HasSuffix(sc.said[1], "changed\nnot reloaded: the pidfile is empty\n[1]") || sc.said[2] != "[1]" ||
			sc.said[3] != "opensm (process 7): SIGHUP sent, to read the tables\n[2]" || !strings.HasSuffix(sc.said[4], "changed\nthe process to reload has exited: it is gone") {
			t.Errorf("said %q", sc.said)
		}
	})
	t.Run("policy", func(t *testing.T) {
		// The shape is checked when the first sweep has been made.
		_, err := watched(t, "ring:n=3", "ftree")
		if err == nil || !strings.Contains(err.Error(), "not a fat tree") {
			t.Errorf("got %v", err)
		}
	})
}

// TestWatchReadsBack: an entry for a LID that no port has does not read back, and
// so no file is written.
func TestWatchReadsBack(t *testing.T) {
	policy := filepath.Join(t.TempDir(), "beyond.star")
	src := `def route(fabric):
    """The live tables, which know a LID that nobody has."""
    set_lft(fabric.switches[0], {500: 1})
    return get_routes(fabric)
`
	if err := os.WriteFile(policy, []byte(src), 0o666); err != nil {
		t.Fatal(err)
	}
	sc, err := watched(t, "fattree:k=4,levels=2", policy)
	if err == nil || err.Error() != "new file: reads back with differences: 1 entry" {
		t.Errorf("ended with %v, said %q", err, sc.said)
	}
	if list, _ := os.ReadDir(filepath.Dir(sc.file)); len(list) != 0 || sc.hups != 0 {
		t.Errorf("it left %v, %d signals", list, sc.hups)
	}
}
