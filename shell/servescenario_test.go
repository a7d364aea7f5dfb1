package shell

import (
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"fabsh/mad/ibsim/ibsimtest"
)

// mishap is something that happens to a fabric, and what pages show of it within two cycles.
type mishap struct {
	name    string
	code    string // of a script on the simulated subnet; "": act
	act     func() // else
	verdict string // a regular expression for the sentence of Now
	event   string // and for a line of Now, which Changes has too
	bad     bool   // Time has a mark of it
}

// serveMishaps are mishaps of fattree:k=4,levels=2.
var serveMishaps = []mishap{
	{name: "a cable is pulled", code: `sim.unlink("leaf-1/3")`, verdict: `^1 link is down\. All 8 hosts are connected`, event: `leaf-1/3 - spine-1/1: link went down`, bad: true},
	{name: "and plugged in", code: `sim.link("leaf-1/3")`, verdict: `All 8 hosts are connected`, event: `leaf-1/3 - spine-1/1: (link is up|new link)`},
	{name: "a leaf dies", code: `sim.kill("leaf-2")`, verdict: `^3 nodes are gone\. All 6 hosts that answer are connected`, event: `"leaf-2" \(0x[0-9a-f]+\): node is gone`, bad: true},
	{name: "two cables are exchanged", code: `sim.swap("leaf-3/3", "leaf-4/3")`, verdict: `nodes are gone`, event: `leaf-3/3 - spine-1/4: new link`},
}

// watchMishaps lets each happen, and checks the pages: that each is there within two cycles, with its time, and at the
// end still in Changes and Time.
func watchMishaps(t *testing.T, x *exporting, name string, list []mishap) {
	t.Helper()
	cycles := func() float64 { return value(x.metrics(t), "fabsh_exporter_cycles_total", "outcome=whole") }
	times := map[string][2]time.Time{}
	for _, m := range list {
		began := time.Now()
		if m.code != "" {
			runFabsh(t, "-F", "ibsim:"+name, "-C", "node-0008 HCA-1", "-t", "2s", "-c", m.code)
		} else {
			m.act()
		}
		before := cycles()
		var sentence, page string
		ibsimtest.Poll(t, m.name+" on the page Now", func() bool {
			page, _ = x.page(t, "/now")
			sentence = headline(page)
			return regexp.MustCompile(m.verdict).MatchString(sentence) && eventTime(page, m.event) != nil
		})
		after := cycles()
		if after > before+3 { // one was under way, and the page is read before the number
			t.Errorf("%s: on the page after %v cycles: %s", m.name, after-before, sentence)
		}
		times[m.event] = [2]time.Time{began.Truncate(time.Second), time.Now()}
		t.Logf("%s: %q after %v and %v cycles", m.name, sentence, time.Since(began).Round(time.Millisecond), after-before)
	}
	changes, _ := x.page(t, "/changes")
	line, _ := x.page(t, "/time")
	for _, m := range list {
		if at := eventTime(changes, m.event); at == nil || at.Before(times[m.event][0]) || at.After(times[m.event][1]) {
			t.Errorf("%s: Changes has it at %v, want from %v to %v", m.name, at, times[m.event][0], times[m.event][1])
		}
		if m.bad && !regexp.MustCompile(m.event).MatchString(html.UnescapeString(line)) {
			t.Errorf("%s is not in Time", m.name)
		}
	}
}

// headline returns the sentence at the head of a page.
func headline(page string) string {
	m := regexp.MustCompile(`(?s)<div class="verdict ?\w*"><h1>(.*?)</h1>`).FindStringSubmatch(page)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[1], "")))
}

// eventTime returns the time of the line of a list that matches; nil: no line does.
func eventTime(page, pattern string) *time.Time {
	for _, m := range regexp.MustCompile(`<li><time datetime="([^"]+)">[^<]*</time><span>(.*?)</span></li>`).FindAllStringSubmatch(page, -1) {
		text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(m[2], ""))
		if !regexp.MustCompile(pattern).MatchString(text) {
			continue
		}
		if at, err := time.Parse(time.RFC3339, m[1]); err == nil {
			return &at
		}
	}
	return nil
}

// apart returns how far two times are apart.
func apart(t *testing.T, a, b string) time.Duration {
	t.Helper()
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return x.Sub(y).Abs()
}

// TestServeScenario: what happens to a simulated fabric is on the page Now within two cycles, and stays
// in Changes and Time, also when another program takes over the history: after SIGTERM, as an upgrade does it, and
// after SIGKILL. Open findings keep their beginning. A device that is lost is on all pages, and in the metrics, until
// it is back; a second master manager and a switch whose agent does not answer are not "no findings".
func TestServeScenario(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	dir, name := t.TempDir(), fmt.Sprintf("fabsh-%016x", rand.Uint64())
	stop := serveSim(t, name, "fattree:k=4,levels=2")
	start := func() *exporting {
		return startServe(t, []string{"--state", dir, "-F", "ibsim:" + name, "-C", "node-0007 HCA-1", "-t", "1s"}, "--every", "1s")
	}
	x := start()
	eventually(t, func() bool { _, status := x.page(t, "/now?at=1s"); return status == 200 })
	eventually(t, func() bool { // rates are judged from the second cycle on
		page, _ := x.page(t, "/now")
		return headline(page) == "No findings. All 8 hosts are connected by links."
	})
	watchMishaps(t, x, name, serveMishaps)
	runFabsh(t, "-F", "ibsim:"+name, "-C", "node-0008 HCA-1", "-t", "2s", "-c", `sim.second_sm("node-0006 HCA-1", "master", priority = 15)`)
	eventually(t, func() bool { page, _ := x.page(t, "/now"); return strings.Contains(page, "/help/check/sm.") })

	// Another program takes over.
	since := regexp.MustCompile(`(?s)leaf-2&#34; .{0,300}?since <time datetime="([^"]+)"`)
	first, _ := x.page(t, "/now")
	want := since.FindStringSubmatch(first)
	if want == nil {
		t.Fatalf("since when leaf-2 is gone is not in %s", first)
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := x.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		for range x.log {
		}
		x.Wait()
		x = start()
		eventually(t, func() bool { _, status := x.page(t, "/now?at=1s"); return status == 200 })
		page, _ := x.page(t, "/now")
		// The history has the beginning by the time of its cycle.
		if got := since.FindStringSubmatch(page); got == nil || apart(t, got[1], want[1]) > 2*time.Second || !strings.HasPrefix(headline(page), "3 nodes are gone") {
			t.Errorf("after %v: %q since %q, want %q", signal, headline(page), got, want[1])
		}
		page, _ = x.page(t, "/changes")
		for _, m := range serveMishaps {
			if eventTime(page, m.event) == nil {
				t.Errorf("after %v: %s is not in Changes", signal, m.name)
			}
		}
	}

	// The device is lost, and returns.
	stop()
	eventually(t, func() bool {
		page, status := x.page(t, "/link/leaf-1/1")
		return status == 200 && strings.Contains(page, "The last try to read the fabric failed")
	})
	eventually(t, func() bool { page, _ := x.page(t, "/now"); return strings.Contains(page, "No new reading for") })
	if m := x.metrics(t); value(m, "fabsh_exporter_cycles_total", "outcome=failed") == 0 || value(m, "fabsh_exporter_result_age_seconds") < 2 {
		t.Errorf("the metrics do not show that the device is lost: %v %v", m["fabsh_exporter_cycles_total"], m["fabsh_exporter_result_age_seconds"])
	}
	serveSim(t, name, "fattree:k=4,levels=2,dead=leaf-3")
	ibsimtest.Poll(t, "the device to be back", func() bool {
		page, _ := x.page(t, "/now")
		return !strings.Contains(page, "The last try to read the fabric failed")
	})
	eventually(t, func() bool {
		page, _ := x.page(t, "/now")
		return strings.Contains(page, "timed out") && !strings.Contains(headline(page), "No findings.")
	})
	runFabshIn(t, "--state", dir, "-F", "ibsim:"+name, "-t", "1s", "history", "check")
}

// TestServeOpenSM: beside two OpenSMs, pages show the same, and that the standby took over.
func TestServeOpenSM(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("takes a minute; TestServeScenario has the simulated manager")
	}
	name, dir := fmt.Sprintf("fabsh-%016x", rand.Uint64()), t.TempDir()
	serveSim(t, name, "fattree:k=4,levels=2", "--bare")
	f := ibsimtest.On(t, name, nil, nil)
	const conf = "sminfo_polling_timeout 1000\npolling_retry_number 4\nsweep_interval 1\nsm_priority %d\n"
	master := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0001 HCA-1", SMConf: fmt.Sprintf(conf, 9)})
	master.Wait(t, "SUBNET UP")
	standby := f.StartSM(t, ibsimtest.FixtureOptions{SM: "node-0005 HCA-1", SMConf: fmt.Sprintf(conf, 3)})
	standby.Wait(t, "Entering STANDBY state")
	x := startServe(t, []string{"--state", dir, "-F", "ibsim:" + name, "-C", "node-0007 HCA-1", "-t", "1s"}, "--every", "2s")
	eventually(t, func() bool { _, status := x.page(t, "/now?at=1s"); return status == http.StatusOK })
	watchMishaps(t, x, name, append(serveMishaps, mishap{name: "the manager dies", act: master.Kill, verdict: `3 nodes are gone`, event: `another subnet manager is master`, bad: true}))

	// The subnet is named by its manager: a process that starts after the hand-over states where the history is.
	if err := x.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range x.log {
	}
	x.Wait()
	x = startServe(t, []string{"--state", dir, "-F", "ibsim:" + name, "-C", "node-0007 HCA-1", "-t", "1s"}, "--every", "2s")
	if page, _ := x.page(t, "/now"); !strings.Contains(page, "With --subnet NAME a hand-over does not begin another history.") {
		t.Errorf("after the hand-over: %s", page)
	}
}
