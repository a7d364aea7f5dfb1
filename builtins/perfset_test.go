package builtins

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

// forgetful is a transport that loses Sets of performance management, or the
// answers to them, and counts them.
type forgetful struct {
	mad.Transport
	loseSets, loseAnswers bool
	ignore                bool // Sets reach the agent as Gets
	sets                  int
}

func (f *forgetful) Send(d *mad.Datagram) error {
	if h := mad.ParseHeader(d.MAD); h.Class == mad.ClassPerf && h.Method == mad.MethodSet {
		f.sets++
		if f.loseSets {
			return nil
		}
		if f.ignore {
			d.MAD[3] = byte(mad.MethodGet)
		}
		if f.loseAnswers { // they come with a transaction ID that nobody has
			d.MAD[12] ^= 0x80
		}
	}
	return f.Transport.Send(d)
}

// TestPerfClearOnce: a request to clear is sent once. Where the answer is lost,
// the counters tell; where they do not, that is an error.
func TestPerfClearOnce(t *testing.T) {
	for _, test := range []struct {
		name string
		forgetful
		out, err string
		status   int
	}{
		{name: "answered", out: "0\n"},
		{name: "the answer is lost", forgetful: forgetful{loseAnswers: true}, out: "0\n"},
		{name: "the request is lost", forgetful: forgetful{loseSets: true},
			err: "perf_clear: PerfSet(PortCounters) to LID 1: timed out after 1 attempt in 1s; check that the node is up and the address right (discover() finds it anew), or allow more with --timeout and --retries", status: StatusFabric},
		{name: "it is not obeyed", forgetful: forgetful{ignore: true},
			err: "perf_clear: LID 1: the Set was sent, but symbol_error_counter is still 5", status: StatusFabric},
	} {
		t.Run(test.name, func(t *testing.T) {
			lossy := test.forgetful
			onSim(t, "ring:n=2", func(o *Options) {
				o.Engine.Close()
				lossy.Transport = attach(t, "ring:n=2")
				o.Engine = mad.NewEngine(&lossy, mad.Options{Write: true})
			}, func(t *testing.T, f *fixture) {
				defer f.o.Engine.Close()
				before := lossy
				lossy.loseSets, lossy.loseAnswers, lossy.ignore = false, false, false
				if _, explained, status := f.run(`perf_set("PortCounters", 1, 1, symbol_error_counter=5)`); status != 0 {
					t.Fatal(explained)
				}
				before.Transport, before.sets = lossy.Transport, 0
				lossy = before
				out, explained, status := f.run(`print(perf_clear("PortCounters", 1, 1, counters="symbol_error_counter").symbol_error_counter)`)
				got := fmt.Sprint(out, firstLines(explained, test.err), " ", status)
				if diff := cmp.Diff(fmt.Sprint(test.out, test.err, " ", test.status), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if lossy.sets != 1 {
					t.Errorf("%d Sets", lossy.sets)
				}
			})
		})
	}
}
