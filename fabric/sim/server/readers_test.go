//go:build linux

package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fabsh/mad/ibsim/ibsimtest"
)

// Programs that read what the tools of infiniband-diags print. They are no part of
// this module: make soak gets them, where the network lets it.
const (
	topograph          = "github.com/NVIDIA/topograph/pkg/ib@v1.0.0"
	infinibandExporter = "github.com/treydock/infiniband_exporter@v0.10.0"
)

// A program around topograph's parser: how many switches, hosts, and cables of
// switches it finds.
const topographMain = `package main

import (
	"fmt"
	"io"
	"os"

	"github.com/NVIDIA/topograph/pkg/ib"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	switches, hosts, err := ib.ParseIbnetdiscoverFile(text)
	if err != nil {
		panic(err)
	}
	cables := 0
	for _, s := range switches {
		cables += len(s.Conn)
	}
	fmt.Println(len(switches), len(hosts), cables)
}
`

// A fat tree: 20 switches, whose 4 ports all have cables, and 16 hosts.
const readersSpec = "fattree:k=4,levels=3"

func TestTopograph(t *testing.T) {
	dir := modules(t, topographMain, "get", topograph)
	f := serve(t, readersSpec, false).peers(t)
	c := exec.CommandContext(t.Context(), filepath.Join(dir, "reader"))
	c.Stdin = strings.NewReader(f.Run(t, "ibnetdiscover"))
	if got := ibsimtest.Output(t, c); got != "20 16 80\n" {
		t.Errorf("switches, hosts, cables: %s", got)
	}
}

// infiniband_exporter runs ibnetdiscover, and perfquery of each node.
func TestInfinibandExporter(t *testing.T) {
	dir := modules(t, "", "install", infinibandExporter)
	f := serve(t, readersSpec, false).peers(t)
	c := f.Command(t, "", "ibnetdiscover")
	out := filepath.Join(dir, "metrics")
	c.Path = filepath.Join(dir, "infiniband_exporter")
	c.Args = []string{c.Path, "--exporter.runonce", "--exporter.output=" + out, "--exporter.lockfile=" + filepath.Join(dir, "lock"), "--collector.hca"}
	ibsimtest.Output(t, c)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for metric, want := range map[string]int{
		"infiniband_switch_info": 20, "infiniband_hca_info": 16,
		"infiniband_switch_uplink_info": 80, "infiniband_hca_uplink_info": 16,
		"infiniband_switch_port_symbol_error_total": 80, "infiniband_hca_port_transmit_data_bytes_total": 16,
	} {
		if n := len(regexp.MustCompile(`(?m)^`+metric+`\{`).FindAll(b, -1)); n != want {
			t.Errorf("%d of %s, want %d", n, metric, want)
		}
	}
	for _, line := range regexp.MustCompile(`(?m)^\w+_(collect_errors?|collect_timeouts?)\{.*\} [^0]`).FindAll(b, -1) {
		t.Errorf("%s", line)
	}
}

// modules has go build a program with a module, in a folder that it returns: what
// main says, as "reader", or what go install makes.
func modules(t *testing.T, main, command, module string) (dir string) {
	t.Helper()
	if os.Getenv("FABSH_SOAK") == "" {
		t.Skip("only make soak gets other modules")
	}
	dir = t.TempDir()
	run := func(args ...string) error {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOBIN="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	for name, text := range map[string]string{"go.mod": "module reader\n\ngo 1.26\n", "main.go": main} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(command, module); err != nil {
		t.Skipf("it cannot be had here: %v", err)
	}
	if main != "" {
		if err := run("build", "-o", "reader", "."); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
