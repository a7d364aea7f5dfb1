//go:build linux

package shell

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/ibsim/ibsimtest"
)

// TestManagerKilled kills or stops OpenSM at random moments while a change of two links beside
// it is applied, waits, is confirmed or is reverted. What fabsh then states, and its exit
// statuses, must be true of the ports, which are read from the simulated subnet itself. That is
// 20 times, with FABSH_SOAK 200, with -short (the race detector's pass) 3.
func TestManagerKilled(t *testing.T) {
	t.Parallel()
	subnets, kills := 10, 2
	if testing.Short() {
		subnets, kills = 3, 1
	}
	if os.Getenv("FABSH_SOAK") != "" {
		kills = 20
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	all := map[string]int{} // guarded by mu
	for n := range subnets {
		net := []string{"fattree:k=4", "fattree:k=4", "fattree:k=8,levels=2", "torus:dims=3/3,hosts=2"}[n%4]
		links := []string{"leaf-1/3", "leaf-2/3"}
		switch n % 4 {
		case 2:
			links = []string{"leaf-1/5", "leaf-2/6"}
		case 3:
			links = []string{"switch-1-1/3", "switch-2-2/3"}
		}
		s := &managed{served: serveSpec(t, net, true), links: links, r: rand.New(rand.NewPCG(9, uint64(n))), count: map[string]int{}}
		s.start()
		wait.Go(func() { // most of the time it waits for a subnet manager that does not answer
			for range kills {
				s.kill()
			}
			mu.Lock()
			defer mu.Unlock()
			for what, n := range s.count {
				all[what] += n
			}
		})
	}
	wait.Wait()
	t.Log(subnets*kills, "kills:", all)
	for _, kind := range []string{"apply", "waiting", "expired", "confirm", "revert", "not as before"} {
		if all[kind] == 0 && !testing.Short() {
			t.Errorf("no case of %q", kind)
		}
	}
}

// managed is a served subnet with an OpenSM that is killed, and a change of links.
type managed struct {
	*served
	links   []string
	sm      *ibsimtest.SM
	stopped bool // instead of killed
	r       *rand.Rand
	count   map[string]int
}

// start starts OpenSM, or lets it continue, and waits until all ports are active.
func (s *managed) start() {
	if s.stopped {
		syscall.Kill(s.sm.PID(), syscall.SIGCONT)
		s.stopped = false
	} else {
		s.sm = ibsimtest.On(s.t, s.name, nil, nil).StartSM(s.t, ibsimtest.FixtureOptions{SM: s.f.OfType(mad.NodeTypeCA)[0].Name(), SMArgs: []string{"-s", "1"}})
		s.sm.Wait(s.t, "SUBNET UP")
	}
}

// beside is fabsh at another node than OpenSM's.
func (s *managed) beside(args ...string) *exec.Cmd {
	return s.fabsh(append([]string{"-q", "-C", s.f.OfType(mad.NodeTypeCA)[3].Name(), "--write", "--override-sm"}, args...)...)
}

// inactive returns the states of the ports of the links that are not active.
func (s *managed) inactive() map[string]string {
	states := map[string]string{}
	for i := range s.f.Ports() {
		p := &s.f.Ports()[i]
		if p.Peer() == nil || !slices.Contains(s.links, p.Name()) && !slices.Contains(s.links, p.Peer().Name()) {
			continue
		}
		node := slices.IndexFunc(s.f.Nodes(), func(n fabric.Node) bool { return n.GUID() == p.Node().GUID() })
		if info := s.subnet.View(node).Ports[p.Num()].Info; info.PortState != mad.PortStateActive {
			states[p.Name()] = info.PortState.String()
		}
	}
	return states
}

// kill begins a change, kills or stops OpenSM, and compares what fabsh states with the ports.
func (s *managed) kill() {
	phase := []string{"apply", "waiting", "expired", "confirm", "revert"}[s.r.IntN(5)]
	file := filepath.Join(s.dir, "links.plan")
	var disables []string
	for _, link := range s.links {
		disables = append(disables, fmt.Sprintf("port_disable(%q, force=True)", link))
	}
	var got string
	ibsimtest.Poll(s.t, "a subnet manager that answers", func() bool { // one that continues may need some time
		got = outcome(s.beside("--plan", file, "-c", "discover(); "+strings.Join(disables, "; ")))
		return !strings.Contains(got, "no subnet manager makes new ones")
	})
	if !strings.HasSuffix(got, "[exit status 0]\n") {
		s.t.Error(got)
		return
	}
	within := "2m"
	if phase == "expired" {
		within = "1s"
	}
	before, _ := s.journal()
	apply := s.beside("change", "apply", file, "--confirm-within", within)
	said := make(chan string, 1)
	go func() { said <- outcome(apply) }()
	random := func(most time.Duration) { time.Sleep(time.Duration(s.r.Int64N(int64(most)))) } // the moment is what is tried
	texts := map[string]string{}                                                              // by command: what it printed
	if phase == "apply" {
		s.reachedWithin(before, 1+s.r.IntN(5))
		random(300 * time.Millisecond)
	} else {
		s.reachedWithin(before, 6) // begin, two rounds, applied
	}
	switch phase {
	case "expired":
		random(4 * time.Second)
	case "confirm":
		confirm := make(chan string, 1)
		go func() { confirm <- s.onChange("confirm") }()
		random(500 * time.Millisecond)
		s.stop()
		texts["confirm"] = <-confirm
	case "revert":
		s.onChange("confirm")
		revert := make(chan string, 1)
		go func() { revert <- s.onChange("revert") }()
		random(3 * time.Second)
		s.stop()
		texts["revert"] = <-revert
	}
	if phase != "confirm" && phase != "revert" {
		s.stop()
	}
	if text := <-said; phase != "revert" { // there it ended before
		texts["apply"] = text
	}
	for started(apply) { // the guard
		time.Sleep(20 * time.Millisecond) // processes of others have no event to wait for
	}
	inactive := s.inactive()
	texts["status"] = s.onChange("status")
	for command, text := range texts {
		if why := s.judge(command, text, inactive); why != "" {
			s.t.Errorf("%s, OpenSM killed (stopped: %t): %s: %s\nports: %v\n%s", phase, s.stopped, command, why, inactive, text)
		}
	}
	s.count[phase]++
	s.start()
	// An OpenSM that continues may not answer at first, and it can miss a port that changes while it sweeps.
	done, tries, last := false, 0, ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("ports: %v; the last revert: %s", s.inactive(), last)
		}
	}()
	ibsimtest.Poll(s.t, "all ports active", func() bool {
		if tries++; !done {
			last = s.onChange("revert")
			done = strings.HasSuffix(last, "[exit status 0]\n") || strings.Contains(last, "no change of this fabric")
		} else if tries%500 == 0 {
			syscall.Kill(s.sm.PID(), syscall.SIGHUP) // sweep all
		}
		return (done || tries >= 3) && len(s.inactive()) == 0
	})
}

// stop kills or stops OpenSM.
func (s *managed) stop() {
	if s.stopped = s.r.IntN(2) == 0; s.stopped {
		syscall.Kill(s.sm.PID(), syscall.SIGSTOP)
	} else {
		s.sm.Kill()
	}
}

// reachedWithin waits until the journal of another change than before has so many lines.
func (s *managed) reachedWithin(before string, lines int) {
	for range 30000 {
		if begin, n := s.journal(); begin != before && n >= lines {
			return
		}
		time.Sleep(2 * time.Millisecond) // the file of another process is polled
	}
}

// onChange runs a command on the change, when no other process works on it.
func (s *managed) onChange(how string) string {
	for {
		if got := outcome(s.beside("change", how)); !strings.Contains(got, "another process works on it") {
			return got
		}
		time.Sleep(50 * time.Millisecond) // the lock of another process is polled
	}
}

// judge returns why what a command printed is not true of the ports; "": it is.
func (s *managed) judge(command, text string, inactive map[string]string) string {
	exit := text[strings.LastIndex(text, "[exit status "):]
	for _, port := range slices.Sorted(maps.Keys(inactive)) {
		if strings.Contains(text, "not as before it: ") && !strings.Contains(text, port+" is "+inactive[port]) {
			return "it does not name " + port
		}
	}
	isConfirmed := strings.Contains(text, "ok: the change is confirmed") || command == "status" && strings.Contains(text, "\nconfirmed ")
	isReverted := strings.Contains(text, "the fabric is as before") || command == "status" && strings.Contains(text, "\nreverted ")
	switch {
	case strings.Contains(text, "not as before it: ") && exit != "[exit status 3]\n":
		return "the exit status is not 3"
	case strings.Contains(text, "the fabric is as before") && len(inactive) > 0:
		return "ports are not active"
	case command == "status" && isReverted && !strings.Contains(text, "does not answer as MASTER"):
		return "it does not name the subnet manager"
	case isConfirmed && len(inactive) != 2*len(s.links):
		return "links are not down"
	case command == "status" && len(inactive) > 0 && !isConfirmed && exit == "[exit status 0]\n":
		return "the exit status is 0"
	}
	switch {
	case strings.Contains(text, "not as before it: "):
		s.count["not as before"]++
	case isReverted:
		s.count["as before, by "+command]++
	case isConfirmed:
		s.count["confirmed"]++
	}
	return ""
}
