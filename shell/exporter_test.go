package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"fabsh/mad/ibsim/ibsimtest"
)

// exporting is a process of fabsh exporter.
type exporting struct {
	*exec.Cmd
	url    string
	client *http.Client
	log    chan string // its lines
}

// startExporter starts fabsh exporter at any port, with words after that one, and waits
// for its first result.
func startExporter(t testing.TB, flags []string, words ...string) *exporting {
	t.Helper()
	x := launchExporter(t, flags, words...)
	x.wait(t, "ready: ")
	return x
}

// launchExporter starts it, and waits until it listens.
func launchExporter(t testing.TB, flags []string, words ...string) *exporting {
	t.Helper()
	x := &exporting{log: make(chan string, 1000), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	x.launch(t, append(append(flags, "exporter", "--listen", "127.0.0.1:0"), words...))
	return x
}

// launch starts fabsh, and waits until it listens.
func (x *exporting) launch(t testing.TB, words []string) {
	t.Helper()
	x.Cmd = exec.Command("fabsh", words...)
	x.Env = testEnv(t)
	stderr, err := x.StderrPipe()
	if err == nil {
		err = x.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		x.client.CloseIdleConnections()
		x.Process.Kill()
		x.Process.Wait()
	})
	go func() {
		defer close(x.log)
		for in := bufio.NewScanner(stderr); in.Scan(); {
			x.log <- in.Text()
		}
	}()
	at := regexp.MustCompile(`listening at (\S+),`).FindStringSubmatch(x.wait(t, "listening at"))
	x.url = "http://" + at[1]
}

// wait waits for a line with text.
func (x *exporting) wait(t testing.TB, text string) string {
	t.Helper()
	var before []string
	late := time.After(3 * time.Minute) // it may wait for a minute before it tries again
	for {
		select {
		case line, ok := <-x.log:
			if !ok {
				t.Fatalf("the exporter ended before it said %q:\n%s", text, strings.Join(before, "\n"))
			}
			if strings.Contains(line, text) {
				return line
			}
			before = append(before, line)
		case <-late:
			t.Fatalf("the exporter did not say %q:\n%s", text, strings.Join(before, "\n"))
		}
	}
}

// scrape is what a scrape gives.
func (x *exporting) scrape() (string, error) {
	r, err := x.client.Get(x.url + "/metrics")
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, b)
	}
	return string(b), err
}

// metrics are the metrics of a scrape.
func (x *exporting) metrics(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	text, err := x.scrape()
	if err != nil {
		t.Fatal(err)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	m, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// value is the sum of a metric's values with these labels, "name=value".
func value(m map[string]*dto.MetricFamily, name string, labels ...string) (sum float64) {
	for _, x := range m[name].GetMetric() {
		has := 0
		for _, l := range x.Label {
			for _, want := range labels {
				if l.GetName()+"="+l.GetValue() == want {
					has++
				}
			}
		}
		if has == len(labels) {
			sum += x.GetGauge().GetValue() + x.GetCounter().GetValue() + x.GetUntyped().GetValue()
		}
	}
	return sum
}

// serveSim runs fabsh sim --listen, with more flags, until stop.
func serveSim(t testing.TB, name, spec string, flags ...string) (stop func()) {
	t.Helper()
	c := exec.Command("fabsh", append([]string{"sim", spec, "--listen", name}, flags...)...)
	in, err := c.StdinPipe() // its console ends with it
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { c.Process.Kill(); c.Wait(); in.Close() })
	t.Cleanup(stop)
	out, said := bufio.NewScanner(stderr), ""
	for !strings.HasPrefix(out.Text(), "attach with") {
		if !out.Scan() {
			t.Fatalf("fabsh sim does not serve %s:\n%s", name, said)
		}
		said += out.Text() + "\n"
	}
	go io.Copy(io.Discard, stderr)
	return stop
}

// TestExporter: fifty scrapers beside a fabric with 1 % loss cause no more cycles than
// the clock does, and nothing grows: for a second, with FABSH_SOAK ten minutes. When
// the device is gone scrapes are answered, and the age of what they get grows; when it
// is back, so is the exporter. SIGTERM ends it.
func TestExporter(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("abstract sockets")
	}
	t.Parallel()
	period, lasts := time.Second, time.Second
	if os.Getenv("FABSH_SOAK") != "" {
		period, lasts = 5*time.Second, 10*time.Minute
	}
	name, spec := fmt.Sprintf("fabsh-%016x", rand.Uint64()), "fattree:k=4,levels=2,loss=0.01,mkey=0x1234567890abcdef,seed=1"
	stop := serveSim(t, name, spec)
	began := time.Now()
	x := startExporter(t, []string{"-F", "ibsim:" + name, "-t", "5s"}, "--every", period.String())
	before := x.metrics(t)

	var group sync.WaitGroup
	var scrapes atomic.Int64
	for range 50 {
		group.Go(func() {
			for time.Since(began) < lasts {
				text, err := x.scrape()
				if err == nil && !strings.Contains(text, "infiniband_switch_info{") {
					err = errors.New("there is no switch")
				}
				if err == nil && strings.Contains(strings.ToLower(text), "1234567890abcdef") {
					err = errors.New("a key is shown")
				}
				if err != nil {
					t.Error(err)
					return
				}
				scrapes.Add(1)
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // scrapes at random moments, by a real process
			}
		})
	}
	early := before
	if lasts > time.Minute {
		time.Sleep(time.Minute) // soak only: what it grows to at first: caches, counters' windows
		early = x.metrics(t)
	}
	group.Wait()
	x.client.CloseIdleConnections()
	after := x.metrics(t)
	cycles := value(after, "fabsh_exporter_cycles_total")
	eventually(t, func() bool { return value(x.metrics(t), "fabsh_exporter_cycles_total") > cycles })
	// Those that a long one covers are counted when it ends: on a machine that is busy
	// there may be few in so short a time.
	if most := float64(time.Since(began)/period) + 1; cycles > most || lasts > time.Minute && cycles < most-2 || value(after, "fabsh_exporter_cycles_total", "outcome=failed") > 0 {
		t.Errorf("%v cycles in %v and %d scrapes, %v of them failed; want %v", cycles, time.Since(began), scrapes.Load(), value(after, "fabsh_exporter_cycles_total", "outcome=failed"), most)
	}
	t.Logf("%d scrapes in %v, %v cycles; resident %.1f MB, then %.1f MB; descriptors %v, then %v", scrapes.Load(), time.Since(began), cycles,
		value(before, "process_resident_memory_bytes")/1e6, value(after, "process_resident_memory_bytes")/1e6, value(before, "process_open_fds"), value(after, "process_open_fds"))
	if lasts > time.Minute {
		const resident = "process_resident_memory_bytes"
		if now, then := value(after, resident), value(early, resident); now > 1.2*then+5e6 || now > 200e6 {
			t.Errorf("it grows: resident are %.1f MB after a minute, and %.1f MB at the end", then/1e6, now/1e6)
		}
	}
	eventually(t, func() bool { return value(x.metrics(t), "go_goroutines") <= value(before, "go_goroutines")+5 })
	eventually(t, func() bool { return value(x.metrics(t), "process_open_fds") <= value(before, "process_open_fds")+1 })

	stop()
	x.wait(t, "no new result: ")
	gone := x.metrics(t)
	eventually(t, func() bool {
		return value(x.metrics(t), "fabsh_exporter_result_age_seconds") > value(gone, "fabsh_exporter_result_age_seconds")
	})
	if value(gone, "infiniband_switch_info") != value(after, "infiniband_switch_info") {
		t.Error("the last result is gone with the device")
	}
	if lasts > time.Minute {
		time.Sleep(time.Minute) // soak only: it tries again and again, and does not give up
		if age := value(x.metrics(t), "fabsh_exporter_result_age_seconds"); age < 60 {
			t.Errorf("a minute after the device is gone the result is %v s old", age)
		}
	}
	serveSim(t, name, spec)
	x.wait(t, "readings succeed again")

	x.Process.Signal(syscall.SIGTERM)
	x.wait(t, "interrupted")
	if err := x.Wait(); x.ProcessState.ExitCode() != 143 {
		t.Errorf("SIGTERM: %v, want exit status 143", err)
	}
}

// eventually waits until it is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); {
		if time.Now().After(end) {
			t.Error("it does not become so")
			return
		}
	}
}

// TestExporterFailOver: when the master subnet manager dies, cycles go on, and the
// standby's LID makes no difference to them.
func TestExporterFailOver(t *testing.T) {
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("two OpenSMs and their hand-over take half a minute: FABSH_SOAK")
	}
	f := ibsimtest.Start(t, ibsimtest.FatTree(4, 2, 4), ibsimtest.FixtureOptions{})
	const conf = "sminfo_polling_timeout 200\npolling_retry_number 2\nsweep_interval 1\nsm_priority %d\n"
	low := f.StartSM(t, ibsimtest.FixtureOptions{SM: "host-3-3", SMConf: fmt.Sprintf(conf, 3), RMPP: true})
	low.Wait(t, "SUBNET UP")
	high := f.StartSM(t, ibsimtest.FixtureOptions{SM: "host-2-2", SMConf: fmt.Sprintf(conf, 9), RMPP: true})
	high.Wait(t, "SUBNET UP")
	low.Wait(t, "Entering STANDBY state")
	x := startExporter(t, []string{"-F", "ibsim:" + f.Name, "-t", "200ms"}, "--every", "1s", "--audits", "counters,links,sm")
	before := strings.Count(low.Log(), "SUBNET UP")
	high.Kill()
	ibsimtest.Poll(t, "the standby to become master", func() bool { return strings.Count(low.Log(), "SUBNET UP") > before })
	whole := value(x.metrics(t), "fabsh_exporter_cycles_total", "outcome=whole")
	ibsimtest.Poll(t, "three cycles", func() bool {
		return value(x.metrics(t), "fabsh_exporter_cycles_total", "outcome=whole") >= whole+3
	})
	m := x.metrics(t)
	if n := value(m, "infiniband_switch_up"); n != 6 {
		t.Errorf("%v switches are up, want 6", n)
	}
	if n := value(m, "fabsh_exporter_cycles_total", "outcome=failed"); n > 0 {
		t.Errorf("%v cycles failed", n)
	}
}
