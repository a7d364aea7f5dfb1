package command

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/mad"
	"fabsh/shell/serve"
	"fabsh/shell/session"
)

// subnetOf returns a report on a switch and a host in a subnet with a prefix.
func subnetOf(t *testing.T, prefix uint64, first mad.GUID) *audit.Report {
	t.Helper()
	b := fabric.NewBuilder()
	sw := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeGUID: first, PortGUID: first, NodeType: mad.NodeTypeSwitch, NumPorts: 1, LocalPortNum: 1}, Name: "leaf"})
	ca := b.AddNode(fabric.NodeSpec{Info: mad.NodeInfo{NodeGUID: first + 1, PortGUID: first + 1, NodeType: mad.NodeTypeCA, NumPorts: 1, LocalPortNum: 1}, Name: "node"})
	b.SetPort(sw, 1, &mad.PortInfo{PortState: mad.PortStateActive})
	b.SetPort(ca, 1, &mad.PortInfo{PortState: mad.PortStateActive, GIDPrefix: prefix})
	if err := b.Link(sw, 1, ca, 1); err != nil {
		t.Fatal(err)
	}
	f := b.Build()
	return &audit.Report{Model: f, Subnet: fabric.SubnetOf(f, ""), Audits: []string{"links"}, Ended: time.Now()}
}

// TestServingNotes: pages state another subnet, a clock that was set back, a history that is not written, and a
// reading that failed; what is over is no longer stated.
func TestServingNotes(t *testing.T) {
	x := &serving{options: newServeOptions(), site: &serve.Site{Every: time.Minute, Now: time.Now}}
	h := &exporterHistory{log: func(string) {}}
	shows := func(text string) bool {
		t.Helper()
		r := httptest.NewRequest("GET", "/now", nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		x.site.Handler().ServeHTTP(w, r)
		return strings.Contains(w.Body.String(), text)
	}
	const subnet, clock = "Another subnet answers since then", "The clock of this host was set back by 3h0m0s"
	cycle := func(prefix uint64, first mad.GUID) {
		x.after(&session.Session{}, subnetOf(t, prefix, first), h)
		x.recorded(h)
		x.cycled(nil)
	}
	cycle(0xfec0_0000_0000_0001, 0x100)
	cycle(0xfec0_0000_0000_0001, 0x100)
	if shows(subnet) || shows(clock) || shows("not kept") || shows("failed") {
		t.Error("a note without a reason")
	}
	cycle(0xfec0_0000_0000_0002, 0x100)
	if !shows(subnet) {
		t.Error("a changed prefix is not stated")
	}
	x.clock(clockReading{x.last.wall.Add(time.Minute), x.last.running + time.Minute})
	x.clock(clockReading{x.last.wall.Add(time.Hour), x.last.running + time.Second}) // set forward
	if shows(clock) {
		t.Error("the clock was not set back")
	}
	x.clock(clockReading{x.last.wall.Add(time.Minute - 3*time.Hour), x.last.running + time.Minute})
	if !shows(clock) {
		t.Error("that the clock was set back is not stated")
	}
	h.said = "history: database or disk is full"
	x.recorded(h)
	x.cycled(errors.New("no device"))
	if !shows("This reading is not kept: history: database or disk is full") || !shows("The last try to read the fabric failed: no device") {
		t.Error("a full disk or a lost device is not stated")
	}
	h.said = ""
	x.recorded(h)
	x.cycled(nil)
	if shows("not kept") || shows("failed") {
		t.Error("a note stays")
	}
}

// TestServedJobs: the file of jobs is read when it has changed; one that cannot be read is a short note, and the
// jobs of before stay.
func TestServedJobs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs")
	x := &serving{options: newServeOptions(), site: &serve.Site{Every: time.Minute, Now: time.Now}}
	x.options.jobs = file
	x.after(&session.Session{}, subnetOf(t, 0xfec0_0000_0000_0001, 0x100), &exporterHistory{log: func(string) {}})
	noted := func() bool {
		t.Helper()
		r := httptest.NewRequest("GET", "/now", nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		x.site.Handler().ServeHTTP(w, r)
		text := w.Body.String()
		i := strings.Index(text, "Jobs were not read: ")
		if i >= 0 && strings.IndexByte(text[i:], '<') > 600 {
			t.Errorf("a long note: %s", text[i:])
		}
		return i >= 0
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cycle := func(want bool) {
		t.Helper()
		x.readJobs()
		if noted() != want {
			t.Errorf("noted: %v, want %v", !want, want)
		}
	}
	cycle(true) // it is missing
	const header = "JOBID|STATE|NODELIST\n"
	write(header + "7|RUNNING|node\n")
	cycle(false)
	if _, changed, err := x.jobs.read(file); changed || err != nil {
		t.Errorf("it is read again: %v", err)
	}
	write(header + "7|RUNNING|node[0\n" + strings.Repeat("x", 100_000))
	cycle(true)
	cycle(true) // it is not read again, and the note stays
	write(header + "7|RUNNING|node-" + strings.Repeat("9", 9000) + "[\n")
	cycle(true)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	cycle(true)
	write(header + "70|RUNNING|node\n")
	cycle(false)
	if runtime.GOOS == "linux" {
		x.options.jobs = "/dev/zero"
		cycle(true)
	}
}
