package builtins

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fabsh/builtins/lang"
	"fabsh/builtins/program"
	"fabsh/mad/engine"
)

// race: the race detector is at work, which takes ten times as long.
func race() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestFibersScale: 100,000 items, each with requests of its own over a fabric
// that loses some: each gets what belongs to it, and prints in its turn.
func TestFibersScale(t *testing.T) {
	items := 100000
	if race() {
		items = 10000
	}
	for _, test := range []struct{ name, code string }{
		{"fibers", `
def visit(i):
    if i % 1000 == 0:
        print(i)
    return smp_get("NodeInfo", lids[i % len(lids)]).node_guid
got = parallel(visit, range(%d), width=256)`},
		{"nested", `
def visit(i):
    print(i * 1000)
    return parallel(lambda j: smp_get("NodeInfo", lids[(i * 1000 + j) %% len(lids)]).node_guid, range(1000), width=256)
got = []
for list in parallel(visit, range(%d // 1000), width=256):
    got += list`},
		{"plural", `
got = [r.node_guid for r in smp_get("NodeInfo", [lids[i %% len(lids)] for i in range(%d)])]
for i in range(len(got) // 1000):
    print(i * 1000)`},
	} {
		t.Run(test.name, func(t *testing.T) {
			onSim(t, "fattree:k=4,levels=2,loss=0.01", nil, func(t *testing.T, f *fixture) {
				code := strings.ReplaceAll(strings.ReplaceAll(test.code, "%%", "%"), "%d", fmt.Sprint(items))
				out, explained, status := f.run(`
nodes = discover().nodes
lids = [n.lid for n in nodes]` + code + `
print(len(got), [i for i, guid in enumerate(got) if guid != nodes[i % len(nodes)].guid])`)
				var want strings.Builder
				for i := 0; i < items; i += 1000 {
					fmt.Fprintln(&want, i)
				}
				fmt.Fprintf(&want, "%d []\n", items)
				if status != 0 || out != want.String() {
					t.Errorf("status %d, %s; printed %.300s", status, explained, out)
				}
				if c := f.Env.Engine.Stats().Counts; c.Answered < uint64(items) || c.Retried == 0 {
					t.Errorf("%+v", c)
				}
			})
		})
	}
}

// TestFibersFailure: whatever fails when, the lowest item that fails is
// reported, all items before it end, and what is printed is what a plain loop
// would have printed.
func TestFibersFailure(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		n, width := 1+r.IntN(2000), 1+r.IntN(300)
		delays := make([]int, n) // ms
		for i := range delays {
			delays[i] = r.IntN(50)
		}
		var bad []int
		for range 1 + r.IntN(10) {
			bad = append(bad, r.IntN(n))
		}
		lowest := slices.Min(bad)
		var want strings.Builder
		for i := range lowest {
			fmt.Fprintf(&want, "%d begins\n%d ends\n", i, i)
		}
		fmt.Fprintf(&want, "%d begins\nparallel: item %d, %d: fail: item %[1]d\n[]\n[]\n", lowest, lowest, lowest)
		onSim(t, "ring:n=2", nil, func(t *testing.T, f *fixture) {
			out, explained, status := f.run(fmt.Sprintf(`
bad = set(%s)
delays = %s
done = set()
failed = [len(delays)]
late = []
def work(i):
    if i > failed[0]:
        late.append(i)
    print(i, "begins")
    sleep("%%dms" %% delays[i])
    if i > failed[0]:
        late.append(i)
    if i in bad:
        failed[0] = i
        fail("item %%d" %% i)
    print(i, "ends")
    done.add(i)
e = catch(parallel, work, range(%d), width=%d)
print(e.message)
print([i for i in range(%d) if i not in done])
print(late)`, list(bad), list(delays), n, width, lowest))
			if status != 0 || out != want.String() {
				t.Errorf("seed %d: status %d, %s; printed\n%s\nwant\n%s", seed, status, explained, tail(out), tail(want.String()))
			}
		})
	}
}

// list is a list as scripts write it.
func list(n []int) string { return strings.ReplaceAll(fmt.Sprint(n), " ", ", ") }

// tail is the end of a long text.
func tail(s string) string { return s[max(0, len(s)-300):] }

// TestFibersCancel: work that is cancelled ends, whenever that is, and leaves
// nothing behind: no fiber, no request. What comes next is not disturbed.
func TestFibersCancel(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	e := engine.New(attach(t, "fattree:k=4,levels=2,loss=0.01,delay=50us"), engine.Options{Timeout: time.Minute})
	t.Cleanup(func() { e.Close() })
	f := plain(t, func(o *SessionOptions) { o.Engine = e })
	if _, explained, _ := f.run("lids = [n.lid for n in discover().nodes]"); explained != "" {
		t.Fatal(explained)
	}
	r := rand.New(rand.NewPCG(1, 0))
	ended := 0
	for _, code := range []string{
		`parallel(lambda i: smp_get("NodeInfo", 1 + i % 20), range(100000), width=256)`,
		`parallel(lambda i: parallel(lambda j: catch(smp_get, "NodeInfo", 1 + j), range(20)), range(10000), width=256)`,
		`smp_get("NodeInfo", [1 + i % 20 for i in range(50000)])`,
		`parallel(lambda i: (sleep("1ms"), smp_get("NodeInfo", [1, 2, 3]), print(i)), range(100000), width=256)`,
		`parallel(lambda i: catch(parallel, lambda j: fail("x") if j == 3 else smp_get("NodeInfo", 1), range(9)), range(100000), width=256)`,
		`[discover() for i in range(1000)]`,
	} {
		for range 25 {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Duration(r.Int64N(int64(20*time.Millisecond))), func() { cancel(lang.ErrInterrupted) })
			done := make(chan error, 1)
			go func() { done <- program.RunCode(ctx, f.Interpreter, "<test>", code) }()
			select {
			case err := <-done:
				if errors.Is(err, lang.ErrInterrupted) {
					ended++
				} else if err != nil {
					t.Errorf("%s: %v", code, err)
				}
			case <-time.After(time.Minute):
				stacks := make([]byte, 1<<20)
				t.Fatalf("%s hangs:\n%s", code, stacks[:runtime.Stack(stacks, true)])
			}
			cancel(nil)
			if out, explained, _ := f.run(`bool(smp_get("NodeInfo", 1))`); out != "True\n" {
				t.Fatalf("after %s: %s%s", code, out, explained)
			}
		}
	}
	if ended < 100 {
		t.Errorf("only %d of 150 were cancelled", ended)
	}
}

// TestLimitSteps: the steps of all fibers and of modules count, each once, however
// they take turns; and nothing catches the end.
func TestLimitSteps(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.star"), []byte("x = [i for i in range(1000)]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(code string, n uint64) error {
		s, err := NewSession(SessionOptions{Include: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, stop := context.WithCancelCause(t.Context())
		defer stop(nil)
		return program.RunCode(lang.LimitSteps(ctx, n, stop), s.Interpreter, "<test>", code)
	}
	// steps is the fewest that code runs with.
	steps := func(code string) int {
		return sort.Search(1<<20, func(n int) bool {
			err := run(code, uint64(n)+1)
			var limit *lang.LimitError
			if err != nil && !errors.As(err, &limit) {
				t.Fatal(err)
			}
			return err == nil
		}) + 1
	}
	one, many := steps(`parallel(lambda i: [sleep(0) for _ in range(50)], range(20), width=1) and None`), steps(`parallel(lambda i: [sleep(0) for _ in range(50)], range(20), width=9) and None`)
	if one != many || one < 20*50*5 {
		t.Errorf("one after the other %d steps, 9 at once %d", one, many)
	}
	if without, with := steps("None"), steps(`load("m.star", "x")`+"\nNone"); with < without+1000*5 {
		t.Errorf("a module takes %d of %d steps", with-without, with)
	}
	if err := run("catch(parallel, lambda i: catch(lambda: [0 for _ in range(1000)]), [1, 2])", 2000); err == nil || err.Error() != "limit of 2000 steps exceeded by the script; raise --max-steps" {
		t.Errorf("caught: %v", err)
	}
}
