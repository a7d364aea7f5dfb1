package accept

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
)

// t0 is when runs begin.
var t0 = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// profile has an item of each kind.
func profile() *Profile {
	return &Profile{Name: "p", Title: "P", Items: []Item{
		{Name: "state", Title: "t", Criterion: "c", Checks: []string{"link.init"}, Audits: []string{"links"}, Severity: audit.Warning},
		{Name: "stable", Title: "t", Criterion: "c", Checks: []string{"ctr.ber", "link.flap"}, Audits: []string{"counters"}, Severity: audit.Warning, Watch: time.Hour},
		{Name: "plan", Title: "t", Criterion: "c", Checks: []string{"topo.moved"}, Audits: []string{"topology"}, Severity: audit.Warning, Plan: true},
		{Name: "registers", Title: "t", Criterion: "c", Checks: []string{"env.temp"}, Audits: []string{"health"}, Severity: audit.Warning, Needs: []string{"MTMP"}},
		{Name: "speed", Title: "t", Criterion: "c", Beyond: "it needs traffic"},
	}}
}

// sample is the report of a sample at a fabric without faults.
func sample(found ...audit.Finding) *audit.Report {
	r := &audit.Report{Judged: []string{"link.init", "ctr.ber", "link.flap", "topo.moved", "env.temp"}, Findings: found}
	r.Coverage.Begin(audit.Sweep, "links", "counters", "topology", "health")
	r.Coverage.Count("health", "MTMP", audit.OfFabric(), audit.Answered, 1)
	return r
}

func fault(check string) audit.Finding {
	return audit.Finding{Check: check, Severity: audit.Error, Subject: audit.OfFabric(), Message: "bad"}
}

// outcomes are the outcomes of the items, and the reasons.
func outcomes(r *Run, p *Profile) (text string) {
	for _, v := range r.Judge(p) {
		text += strings.TrimSuffix(v.Name+" "+string(v.Outcome)+": "+v.Reason, ": ") + "\n"
	}
	return text
}

func TestJudge(t *testing.T) {
	p := profile()
	const rest = "plan not judged: no plan was given (--plan FILE)\nregisters pass\nspeed not judged: it needs traffic\n"
	r := NewRun(p, "", time.Hour, 5*time.Minute, t0)
	if got, want := outcomes(r, p), "state not judged: no sample was taken\nstable not judged: no sample was taken\nplan not judged: no sample was taken\nregisters not judged: no sample was taken\nspeed not judged: no sample was taken\n"; got != want {
		t.Errorf("before a sample: got\n%s", got)
	}
	r.Add(p, sample(), false, t0)
	if got, want := outcomes(r, p), "state pass\nstable not judged: watched for 0s of 1h (--soak)\n"+rest; got != want {
		t.Errorf("one sample: got\n%s", got)
	}
	for i := 1; i <= 12; i++ {
		r.Add(p, sample(), false, t0.Add(time.Duration(i)*5*time.Minute))
	}
	if got, want := outcomes(r, p), "state pass\nstable pass\n"+rest; got != want || !r.Done() {
		t.Errorf("an hour: done %v, got\n%s", r.Done(), got)
	}
	// What is watched stays found; a state is that of the last sample.
	r.Add(p, sample(fault("link.init"), fault("ctr.ber")), false, t0.Add(65*time.Minute))
	if got, want := outcomes(r, p), "state fail\nstable fail\n"+rest; got != want {
		t.Errorf("faults: got\n%s", got)
	}
	r.Add(p, sample(), false, t0.Add(70*time.Minute))
	if got, want := outcomes(r, p), "state pass\nstable fail\n"+rest; got != want {
		t.Errorf("after faults: got\n%s", got)
	}
	if v := r.Judge(p)[1]; v.Seen[0].Now(r) || !v.Seen[0].First.Equal(t0.Add(65*time.Minute)) {
		t.Errorf("got %+v", v.Seen)
	}
}

// Nothing passes whose checks were not done, or not answered.
func TestNotJudged(t *testing.T) {
	p := profile()
	unjudged, silent, asked, acked, absorbed, info := sample(), sample(), sample(), sample(), sample(), sample()
	unjudged.Judged = unjudged.Judged[1:]
	unjudged.Unjudged = []audit.Unjudged{{Audit: "links", Check: "link.init", Lacked: "not read: states of ports"}}
	silent.Coverage.Count(audit.Sweep, "PortInfo", audit.OfFabric(), audit.TimedOut, 2)
	asked.Coverage = audit.Coverage{}
	asked.Coverage.Begin(audit.Sweep, "health")
	acked.Acked = []audit.Acked{{Finding: fault("link.init")}}
	other := fault("node.gone")
	other.Absorbed = []string{"link.init:0x1"}
	absorbed.Findings = []audit.Finding{other}
	weak := fault("link.init")
	weak.Severity = audit.Info
	info.Findings = []audit.Finding{weak}
	for name, c := range map[string]struct {
		report *audit.Report
		want   string
	}{
		"a check was not done":    {unjudged, "state not judged: link.init: not read: states of ports\n"},
		"no answer":               {silent, "state not judged: PortInfo of sweep: no answer to 2 of 2 requests\n"},
		"no device has it":        {asked, "registers not judged: no device has MTMP\n"},
		"acknowledged":            {acked, "state pass: 1 finding is acknowledged\n"},
		"in another finding":      {absorbed, "state fail\n"},
		"below the severity":      {info, "state pass\n"},
		"a plan, and all is well": {sample(), "plan pass\n"},
	} {
		r := NewRun(p, "", 0, time.Minute, t0)
		r.Add(p, c.report, true, t0)
		if got := outcomes(r, p); !strings.Contains(got, c.want) {
			t.Errorf("%s: got\n%s\nwant %s", name, got, c.want)
		}
	}
}

// A run that is loaded again after each sample ends as one that was not interrupted; a time without samples is
// a gap, and is not watched.
func TestResume(t *testing.T) {
	p := profile()
	path := filepath.Join(t.TempDir(), "run.json")
	whole, now := NewRun(p, "", time.Hour, 5*time.Minute, t0), t0
	kept := NewRun(p, "", time.Hour, 5*time.Minute, t0)
	for i := range 13 {
		report := sample()
		if i == 4 {
			report = sample(fault("link.flap"))
		}
		whole.Add(p, report, false, now)
		if err := kept.Save(path); err != nil {
			t.Fatal(err)
		}
		next, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		var why string
		if kept, why = next.Next(p, "", time.Hour, 5*time.Minute, now); kept != next || why != "" {
			t.Fatalf("sample %d: %q", i, why)
		}
		kept.Add(p, report, false, now)
		now = now.Add(5 * time.Minute)
	}
	a, _ := json.Marshal(whole)
	b, _ := json.Marshal(kept)
	if !bytes.Equal(a, b) {
		t.Errorf("got\n%s\nwant\n%s", b, a)
	}
	kept.Soak = 3 * time.Hour
	kept.Add(p, sample(), false, now.Add(2*time.Hour))
	if g := kept.Gaps(); len(g) != 1 || kept.Watched() != time.Hour || kept.Done() {
		t.Errorf("gaps %v, watched %s", g, kept.Watched())
	}
	// A run that has ended is followed by a new one, which knows its outcomes.
	kept.Ended = now.Add(2 * time.Hour)
	next, _ := kept.Next(p, "", time.Hour, 5*time.Minute, now.Add(3*time.Hour))
	next.Add(p, sample(), false, now.Add(3*time.Hour))
	result := Result{Run: next, Verdicts: next.Judge(p)}
	if c := result.Changed(); len(c) != 1 || c[0].Name != "stable" || c[0].Before != Fail {
		t.Errorf("changed %+v", c)
	}
	// Another plan, and a clock that was set back, begin anew.
	if n, why := next.Next(p, "other", time.Hour, 5*time.Minute, now.Add(3*time.Hour)); n == next || why == "" {
		t.Error("another plan goes on")
	}
	if n, why := next.Next(p, "", time.Hour, 5*time.Minute, now); n == next || why == "" {
		t.Error("goes on before its last sample")
	}
}

// A clock that is set back, and more gaps than are kept, make no time that was watched.
func TestClock(t *testing.T) {
	p := profile()
	r := NewRun(p, "", time.Hour, time.Minute, t0)
	for _, after := range []time.Duration{0, time.Minute, -time.Hour, 2 * time.Minute} {
		r.Add(p, sample(), false, t0.Add(after))
	}
	if r.Watched() != 2*time.Minute || r.check() != nil {
		t.Errorf("watched %s, %v", r.Watched(), r.check())
	}
	for i := range maxSpans + 10 {
		r.Add(p, sample(), false, t0.Add(time.Duration(i+1)*time.Hour))
	}
	if len(r.Samples) != maxSpans || r.Watched() != 0 || r.check() != nil {
		t.Errorf("%d spans, watched %s, %v", len(r.Samples), r.Watched(), r.check())
	}
}

// Damaged files are refused, whatever they have.
func TestLoadDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.json")
	if r, err := Load(path); r != nil || err != nil {
		t.Errorf("no file: got %v, %v", r, err)
	}
	r := NewRun(profile(), "", time.Hour, 5*time.Minute, t0)
	r.Add(profile(), sample(fault("link.flap")), false, t0)
	if err := r.Save(path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(path); err == nil && outcomes(got, profile()) != outcomes(r, profile()) {
			t.Errorf("byte %d: a flipped bit changed the outcome", i)
		}
	}
	sum := func(run string) string { return `{"Sum":"` + sumOf([]byte(run)) + `","Run":` + run + `}` }
	for name, text := range map[string]string{
		"empty": "", "not JSON": "PK\x03\x04", "another version": sum(`{"Version":9}`), "unknown member": sum(`{"Version":1,"Keys":[]}`),
		"order":   sum(`{"Version":1,"Samples":[{"From":"2026-01-02T00:00:00Z","To":"2026-01-01T00:00:00Z","Count":1}]}`),
		"no item": sum(`{"Version":1,"Items":{"x":null}}`), "watched": sum(`{"Version":1,"Items":{"x":{"Watched":99999999999999}}}`),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r, err := Load(path); err == nil {
			t.Errorf("%s: got %+v", name, r)
		} else if !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzLoad: any file is refused, or judged without a panic.
func FuzzLoad(f *testing.F) {
	p := profile()
	r := NewRun(p, "", time.Hour, 5*time.Minute, t0)
	r.Add(p, sample(fault("link.init")), false, t0)
	data, _ := json.Marshal(r)
	f.Add(data)
	path := filepath.Join(f.TempDir(), "run.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, []byte(`{"Sum":"`+sumOf(data)+`","Run":`+string(data)+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Load(path)
		if err != nil || r == nil {
			return
		}
		r, _ = r.Next(p, "", time.Hour, 5*time.Minute, t0.AddDate(5, 0, 0))
		r.Add(p, sample(), true, t0.AddDate(5, 0, 0))
		r.Judge(p)
	})
}

// The page has the data as they are, and texts of nodes cannot leave their places.
func TestPage(t *testing.T) {
	p := profile()
	r := NewRun(p, "", 0, time.Minute, t0)
	bad := fault("link.init")
	bad.Message = `</script><script>alert(1)</script>`
	r.Add(p, sample(bad), false, t0)
	result := &Result{Profile: p, Run: r, Fabric: "<b>14 nodes</b>", Subnet: "s", Verdicts: r.Judge(p)}
	data, err := json.Marshal(map[string]string{"message": bad.Message})
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	if err := result.WriteHTML(&page, data); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	_, rest, _ := strings.Cut(text, `id="data">`)
	embedded, _, _ := strings.Cut(rest, "</script>")
	var back map[string]string
	if err := json.Unmarshal([]byte(embedded), &back); err != nil || back["message"] != bad.Message {
		t.Errorf("data %q: %v", embedded, err)
	}
	if sum := sha256.Sum256([]byte(embedded)); !strings.Contains(text, hex.EncodeToString(sum[:])) {
		t.Error("the sum on the page is not that of its data")
	}
	if strings.Contains(text, "<script>alert") || strings.Contains(text, "<b>14") || strings.Count(text, "<script") != 1 {
		t.Error(text)
	}
}

func TestFileOf(t *testing.T) {
	if got := FileOf("/s", fabric.Subnet{Given: "x"}, "p"); filepath.Base(got) != "accept-p.json" {
		t.Error(got)
	}
}
