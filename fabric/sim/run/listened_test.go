//go:build linux && (amd64 || arm64)

package run_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"fabsh/fabric/sim"
	"fabsh/fabric/sim/server"
	"fabsh/mad/ibsim/ibsimtest"
)

// listened runs a script with libumad2sim on a subnet that fabsh sim --listen serves.
func listened(t *testing.T, spec string, bare bool, script string) string {
	t.Helper()
	f, o, err := sim.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	o.Bare = bare
	name := fmt.Sprintf("fabsh-%016x", rand.Uint64())
	srv, err := server.Listen(sim.New(f, o), f, server.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(t.Context())
	}()
	t.Cleanup(func() { <-done })
	tool := ibsimtest.On(t, name, nil, nil).Command(t, "", "ibnetdiscover")
	c := exec.CommandContext(t.Context(), "/bin/sh", "-c", "PATH="+peerPath(t)+":$PATH\n"+script)
	c.Dir, c.Env = tool.Dir, append(tool.Env, "OSM_TMP_DIR="+tool.Dir, "OSM_CACHE_DIR="+tool.Dir)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}
