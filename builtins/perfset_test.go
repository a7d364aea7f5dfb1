package builtins

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/lang"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// forgetful is a transport that, once it is told to, does something to Sets of
// performance management, and counts them.
type forgetful struct {
	engine.Transport

	mu   sync.Mutex
	does string // "", "lose", "lose answer", "ignore"
	sets int
}

func (f *forgetful) Send(d *engine.Datagram) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := mad.ParseHeader(d.MAD); h.Class == mad.ClassPerf && h.Method == mad.MethodSet {
		f.sets++
		switch f.does {
		case "lose":
			return nil
		case "lose answer": // it comes with a transaction ID that nobody has
			d.MAD[12] ^= 0x80
		case "ignore": // to the agent it is a Get
			d.MAD[3] = byte(mad.MethodGet)
		}
	}
	return f.Transport.Send(d)
}

func (f *forgetful) TrySend(d *engine.Datagram) (bool, error) { return true, f.Send(d) }

// start has it do that from now on.
func (f *forgetful) start(does string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.does, f.sets = does, 0
}

func (f *forgetful) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sets
}

// TestPerfClearOnce: a request to clear is sent once. Where the answer is lost,
// the counters tell; where they do not, that is an error.
func TestPerfClearOnce(t *testing.T) {
	for _, test := range []struct {
		does, out, err string
		status         int
	}{
		{out: "0\n"},
		{does: "lose answer", out: "0\n"},
		{does: "lose",
			err: "perf_clear: PerfSet(PortCounters) to LID 1: timed out after 1 attempt in 1s; check that the node is up and that its address is current (run discover() again), or increase --timeout and --retries", status: lang.StatusFabric},
		{does: "ignore",
			err: "perf_clear: LID 1: the Set was sent, but symbol_error_counter is still 5", status: lang.StatusFabric},
	} {
		t.Run(test.does, func(t *testing.T) {
			lossy := new(forgetful)
			onSim(t, "ring:n=2", func(o *SessionOptions) {
				o.Engine.Close()
				lossy.Transport = attach(t, "ring:n=2")
				o.Engine = engine.New(lossy, engine.Options{Write: true})
			}, func(t *testing.T, f *fixture) {
				defer f.Env.Engine.Close()
				if _, explained, status := f.run(`perf_set("PortCounters", 1, 1, symbol_error_counter=5)`); status != 0 {
					t.Fatal(explained)
				}
				lossy.start(test.does)
				out, explained, status := f.run(`print(perf_clear("PortCounters", 1, 1, counters="symbol_error_counter").symbol_error_counter)`)
				got := fmt.Sprint(out, firstLines(explained, test.err), " ", status)
				if diff := cmp.Diff(fmt.Sprint(test.out, test.err, " ", test.status), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if n := lossy.count(); n != 1 {
					t.Errorf("%d Sets", n)
				}
			})
		})
	}
}
