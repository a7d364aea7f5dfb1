package builtins

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/builtins/accept"
	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	judgement "fabsh/fabric/accept"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// acceptFaults are faults by the items of nvidia-bringup that they fail. LEAF is a switch with hosts, UP one
// of its links to a spine, HOST one to a host, NODE that host.
var acceptFaults = map[string]struct {
	code  string
	fails []string
}{
	"link-rate":    {`sim.speed(UP, "sdr")`, []string{"counters", "link-rate"}},
	"link-downs":   {`sim.unlink(UP); sleep("1s"); sim.link(UP); sleep("1s"); sim.unlink(UP); sleep("1s"); sim.link(UP)`, []string{"link-downs"}},
	"counters":     {`sim.errors(UP, port_rcv_errors = 100)`, []string{"counters"}},
	"identities":   {`sim.rename(NODE, "node-0001 HCA-1")`, []string{"identities"}},
	"firmware":     {`[sim.firmware(sw, "1.2.3", psid = "X") for sw in discover().switches]; sim.firmware(LEAF, "1.2.4", psid = "X")`, []string{"firmware"}},
	"uplinks":      {`sim.unlink(UP)`, []string{"uplinks"}},
	"sm":           {`sim.second_sm(NODE, state = "master")`, []string{"sm"}},
	"standby":      {`sim.second_sm("node-0008 HCA-1", on = False)`, []string{"sm"}},
	"transceivers": {`sim.temperature(LEAF, 95)`, []string{"transceivers"}},
	"supplies":     {`[sim.supply(sw, 1, True) for sw in discover().switches]; sim.supply(LEAF, 1, False)`, []string{"supplies"}},
	"shield":       {`sim.ar_fault(LEAF, "off")`, []string{"shield"}},
}

// accepted runs nvidia-bringup on a simulated fabric for two hours and some, with a fault between two samples,
// and returns the result.
func accepted(t *testing.T, seed uint64, code string) (result *judgement.Result) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 51))
	leaf, up, host := 1+r.IntN(8), 5+r.IntN(4), 1+r.IntN(4)
	vars := fmt.Sprintf("LEAF = \"leaf-%d\"; UP = \"leaf-%d/%d\"; HOST = \"leaf-%d/%d\"; NODE = discover().node(LEAF).ports[%d].peer.node.name\n", leaf, leaf, up, leaf, host, host)
	onSim(t, "fattree:k=8,ar=updn", nil, func(t *testing.T, f *fixture) {
		standby(t, f)
		p, err := accept.Load(context.Background(), f.Interpreter, "nvidia-bringup", help.AuditsOf())
		if err != nil {
			t.Fatal(err)
		}
		samples, when := 0, 1+r.IntN(3)
		result, err = p.Run(context.Background(), f.Interpreter, accept.Options{Soak: 130 * time.Minute, Every: 26 * time.Minute, Sampled: func(*judgement.Result) {
			if samples++; samples == when && code != "" {
				if _, failed, _ := f.run(vars + code); failed != "" {
					t.Errorf("%s: %s", code, failed)
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
	})
	return result
}

// standby starts a standby subnet manager, which nvidia-bringup requires.
func standby(t *testing.T, f *fixture) {
	t.Helper()
	if _, failed, _ := f.run(`sim.second_sm("node-0008 HCA-1")`); failed != "" {
		t.Fatal(failed)
	}
}

// failing are the items that fail, or that were watched for less than all of the time.
func failing(r *judgement.Result) (list []string) {
	for _, v := range r.Verdicts {
		if v.Outcome == judgement.Fail {
			list = append(list, v.Name)
		}
	}
	return list
}

// TestAccept breaks each item in turn: exactly that one fails.
func TestAccept(t *testing.T) {
	seeds := uint64(1)
	if os.Getenv("FABSH_SOAK") != "" {
		seeds = 20
	}
	for seed := range seeds {
		r := accepted(t, seed, "")
		if got := failing(r); got != nil || accept.Status(r) != lang.StatusFabric { // it has no registers, and no plan
			t.Errorf("seed %d, no fault: %v fail, status %d\n%s", seed, got, accept.Status(r), accept.Wrap(r, lang.FormatText).(interface{ Display() string }).Display())
		}
		for name, c := range acceptFaults {
			r := accepted(t, seed, c.code)
			if got := failing(r); !slices.Equal(slices.Sorted(slices.Values(got)), c.fails) {
				t.Errorf("seed %d, %s: %v fail, want %v\n%s", seed, name, got, c.fails, accept.Wrap(r, lang.FormatText).(interface{ Display() string }).Display())
			}
		}
	}
}

// TestAcceptPlan compares with a plan: cables that differ fail the item of the plan, and a missing one that
// of the links of peers, too.
func TestAcceptPlan(t *testing.T) {
	for _, c := range []struct {
		code  string
		fails []string
	}{
		{"", nil},
		{`sim.swap("leaf-1/1", "leaf-2/1")`, []string{"topology"}},
		{`sim.unlink("leaf-2/6")`, []string{"topology", "uplinks"}},
	} {
		onSim(t, "fattree:k=8", nil, func(t *testing.T, f *fixture) {
			standby(t, f)
			plan, failed, _ := f.run(`print(discover().dump("cables"))`)
			write(t, f.fs, "/work/plan.csv", plan)
			if failed == "" {
				_, failed, _ = f.run(c.code)
			}
			if failed != "" {
				t.Fatal(failed)
			}
			p, err := accept.Load(context.Background(), f.Interpreter, "nvidia-bringup", help.AuditsOf())
			if err != nil {
				t.Fatal(err)
			}
			r, err := p.Run(context.Background(), f.Interpreter, accept.Options{Plan: "/work/plan.csv"})
			if err != nil {
				t.Fatal(err)
			}
			if got := failing(r); !slices.Equal(got, c.fails) || r.Verdicts[0].Outcome == judgement.NotJudged {
				t.Errorf("%s: %v fail, want %v\n%s", c.code, got, c.fails, accept.Wrap(r, lang.FormatText).(interface{ Display() string }).Display())
			}
		})
	}
}

// guideItems are words of NVIDIA's public guide for bring-up, in its order: a reader who knows the guide alone
// looks for them.
var guideItems = []string{"topology", "firmware", "software", "subnet manager", "SUBNET UP", "phy_state", "bit error rates (BER)", "Link_Down", "transceivers", "SHIELD", "ClusterKit"}

// TestAcceptGuide: each item of the guide is on the page, in its order, judged or with the reason why not.
func TestAcceptGuide(t *testing.T) {
	onSim(t, "fattree:k=4", nil, func(t *testing.T, f *fixture) {
		p, err := accept.Load(t.Context(), f.Interpreter, "nvidia-bringup", help.AuditsOf())
		if err != nil {
			t.Fatal(err)
		}
		result, err := p.Run(t.Context(), f.Interpreter, accept.Options{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := audits.RenderMetrics(accept.Wrap(result, lang.FormatJSON), lang.FormatJSON, "acceptance")
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := result.WriteHTML(&b, []byte(data)); err != nil {
			t.Fatal(err)
		}
		articles := strings.Split(strings.ToLower(b.String()), "<article ")[1:]
		at := 0
		for _, word := range guideItems {
			i := slices.IndexFunc(articles[at:], func(a string) bool { return strings.Contains(a, strings.ToLower(word)) })
			if i < 0 {
				t.Fatalf("no item after %d has %q", at, word)
			}
			at += i
		}
	})
}

// counting is a transport that counts the requests for an attribute, and loses them if lose is set.
type counting struct {
	engine.Transport
	attr *mad.Attribute
	lose bool
	sent int
}

// lost counts a request, and reports whether it is lost.
func (x *counting) lost(d *engine.Datagram) bool {
	h := mad.ParseHeader(d.MAD)
	if mad.Lookup(h.Class.Family(), h.Attribute) != x.attr {
		return false
	}
	x.sent++
	return x.lose
}

func (x *counting) Send(d *engine.Datagram) error {
	if x.lost(d) {
		return nil
	}
	return x.Transport.Send(d)
}

func (x *counting) TrySend(d *engine.Datagram) (bool, error) {
	if x.lost(d) {
		return true, nil
	}
	return x.Transport.TrySend(d)
}

// TestAcceptReads: each item that passes sent the requests that its criterion needs, and none passes if these
// are not answered.
func TestAcceptReads(t *testing.T) {
	for _, test := range []struct {
		attr  *mad.Attribute
		items []string
	}{
		{mad.AttrPortInfo, []string{"link-state", "link-rate"}},
		{mad.AttrPortCountersExtended, []string{"counters", "link-downs"}},
		{mad.AttrLinearForwardingTable, []string{"routing"}},
		{mad.AttrSMInfo, []string{"sm"}},
		{mad.AttrAccessRegister, []string{"transceivers"}},
		{mad.AttrAdaptiveRoutingInfo, []string{"shield"}},
		{mad.AttrNodeDescription, []string{"identities"}},
	} {
		spec := "fattree:k=4,registers=yes"
		if test.attr == mad.AttrAdaptiveRoutingInfo {
			spec += ",ar=updn"
		}
		for _, lose := range []bool{false, true} {
			x := &counting{attr: test.attr, lose: lose}
			wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
			onSimWith(t, spec, nil, wrap, nil, func(t *testing.T, f *fixture) {
				standby(t, f)
				p, err := accept.Load(t.Context(), f.Interpreter, "nvidia-bringup", help.AuditsOf())
				if err != nil {
					t.Fatal(err)
				}
				result, err := p.Run(t.Context(), f.Interpreter, accept.Options{Soak: 25 * time.Hour, Every: 5 * time.Hour})
				if x.sent == 0 {
					t.Errorf("%s: no request was sent", test.attr.Name)
				}
				if err != nil { // nothing is claimed
					if !lose {
						t.Error(err)
					}
					return
				}
				for _, name := range test.items {
					i := slices.IndexFunc(result.Verdicts, func(v judgement.Verdict) bool { return v.Name == name })
					if v := result.Verdicts[i]; lose == (v.Outcome == judgement.Pass) {
						t.Errorf("%s, lost %v: %s is %v %s", test.attr.Name, lose, name, v.Outcome, v.Reason)
					}
				}
			})
		}
	}
}

// cutting is a transport that calls cut after so many datagrams; 0: never.
type cutting struct {
	engine.Transport

	mu         sync.Mutex // guards the fields below: the engine's goroutines send
	left, sent int
	cut        func()
}

// after sets the number of datagrams, and what is then called.
func (x *cutting) after(left int, cut func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.left, x.cut = left, cut
}

// total is how many datagrams were sent.
func (x *cutting) total() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent
}

func (x *cutting) count() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.sent++; x.left > 0 {
		if x.left--; x.left == 0 {
			x.cut()
		}
	}
}

func (x *cutting) Send(d *engine.Datagram) error {
	x.count()
	return x.Transport.Send(d)
}

func (x *cutting) TrySend(d *engine.Datagram) (bool, error) {
	taken, err := x.Transport.TrySend(d)
	if taken {
		x.count()
	}
	return taken, err
}

// timeless is a page of acceptance without what depends on when its samples were taken: times, how long
// was watched, the number of samples, that the run goes on, and the SHA-256 of the data, which has these.
func timeless(page string) string {
	for _, x := range [][2]string{
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z| UTC)`, "TIME"},
		{`\d[0-9hms]*[hms] of \d[0-9hms]*[hms]`, "WATCHED"},
		{`"(watched_s|samples)": *\d+`, "$1"},
		{`<dt>note</dt><dd><bdi>the run of TIME goes on</bdi></dd>\n`, ""},
		{`"the run of TIME goes on"`, ""},
		{`[0-9a-f]{64}`, "SUM"},
		{`\[\s*\]`, "[]"},
	} {
		page = regexp.MustCompile(x[0]).ReplaceAllString(page, x[1])
	}
	return page
}

// TestAcceptInterrupted: a run that ends at random moments, between samples and at any datagram of one, and
// goes on, leads to the same page as one that is left alone, but for times. 50 moments with FABSH_SOAK=1.
func TestAcceptInterrupted(t *testing.T) {
	moments := 6
	if os.Getenv("FABSH_SOAK") != "" {
		moments = 50
	}
	const soak = 130 * time.Minute
	perSample := 0
	run := func(interrupts int) (page string) {
		dir, r, done := t.TempDir(), rand.New(rand.NewPCG(uint64(interrupts), 51)), 0
		x := &cutting{}
		wrap := func(tr engine.Transport) engine.Transport { x.Transport = tr; return x }
		onSimWith(t, "fattree:k=4,ar=updn,remove_links=1", nil, wrap, func(o *SessionOptions) { o.State = dir }, func(t *testing.T, f *fixture) {
			p, err := accept.Load(t.Context(), f.Interpreter, "nvidia-bringup", help.AuditsOf())
			if err != nil {
				t.Fatal(err)
			}
			for {
				ctx, cancel := context.WithCancel(t.Context())
				switch {
				case done >= interrupts:
				case done%2 == 0:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(soak)*3/2/int64(interrupts))))
				default:
					x.after(1+r.IntN(perSample), cancel)
				}
				result, err := p.Run(ctx, f.Interpreter, accept.Options{Soak: soak, Every: 26 * time.Minute, State: dir})
				stopped := ctx.Err() != nil
				x.after(0, nil)
				cancel()
				switch {
				case err == nil:
					if done != interrupts {
						t.Errorf("%d of %d interruptions", done, interrupts)
					}
					perSample = x.total() / result.Run.Samples[0].Count
					data, err := audits.RenderMetrics(accept.Wrap(result, lang.FormatJSON), lang.FormatJSON, "acceptance")
					if err != nil {
						t.Fatal(err)
					}
					var b bytes.Buffer
					if err := result.WriteHTML(&b, []byte(data)); err != nil {
						t.Fatal(err)
					}
					page = timeless(b.String())
					return
				case !stopped:
					t.Fatal(err)
				}
				done++
			}
		})
		return page
	}
	want, got := run(0), run(moments)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("interrupted: -want +got\n%s", diff)
	}
	for _, item := range []string{"pass\">pass</span><h2><bdi>Error counters do not grow", "fail\">fail</span><h2><bdi>Switches have the links", "open\">not judged</span><h2><bdi>Link_Down"} {
		if !strings.Contains(want, item) {
			t.Errorf("no %q on the page\n%s", item, want)
		}
	}
}
