package engines

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fabsh/fabric/format"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
	"fabsh/fabric/routing/verify"
)

// TestIBUtils: on each topology in the source of ibutils every engine ends within 20 s of
// CPU time: with tables that a verdict is on, or with a refusal that says why. The source
// is not shipped, and the largest takes a minute: FABSH_IBUTILS is the folder it is in.
func TestIBUtils(t *testing.T) {
	source := os.Getenv("FABSH_IBUTILS")
	if source == "" {
		t.Skip("FABSH_IBUTILS: the folder of the source of ibutils")
	}
	open := func(name string) (io.ReadCloser, error) {
		switch systems := filepath.Join(source, "ibdm", "ibnl"); { // they lie beside no topology
		case filepath.Ext(name) == ".ibnl":
			name = filepath.Join(systems, filepath.Base(name))
		case filepath.Base(name) == "ibnl":
			name = systems
		}
		return os.Open(name)
	}
	var files []string
	err := filepath.WalkDir(source, func(path string, _ fs.DirEntry, err error) error {
		if slices.Contains([]string{".topo", ".lst"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 30 {
		t.Fatalf("%d topologies in %s: %v", len(files), source, err)
	}
	read := 0
	for _, file := range files {
		name, _ := filepath.Rel(source, file)
		t.Run(name, func(t *testing.T) {
			in, err := open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			f, err := format.Load(in, file, open)
			if err != nil {
				t.Skipf("not read: %v", err)
			}
			read++
			g, err := graph.New(f, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, engine := range Names() {
				if engine == "file" {
					continue
				}
				judgeIBUtils(t, g, engine)
			}
		})
	}
	if read < len(files)-1 { // one names a system that the source does not define
		t.Errorf("%d of %d topologies were read", read, len(files))
	}
}

// judgeIBUtils judges what an engine makes of g.
func judgeIBUtils(t *testing.T, g *graph.Graph, engine string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	before := routingtest.UsedTime(t)
	r, err := Compute(ctx, g, engine, Options{})
	refused := new(Precondition)
	switch {
	case errors.As(err, &refused):
		t.Logf("%-10s %6.2f s  refused: %v", engine, (routingtest.UsedTime(t) - before).Seconds(), refused.Reason)
		return
	case err != nil:
		t.Errorf("%s: %v", engine, err)
		return
	}
	v, err := verify.Tables(ctx, r, verify.Options{})
	if err != nil {
		t.Errorf("%s: %v", engine, err)
		return
	}
	used := routingtest.UsedTime(t) - before
	e := All()[slices.Index(Names(), engine)]
	if used > 20*time.Second || e.Acyclic && !v.Acyclic {
		t.Errorf("%s: %v of CPU time, acyclic %v", engine, used, v.Acyclic)
	}
	t.Logf("%-10s %6.2f s  ok %v, %d of %d pairs unreachable, acyclic %v, %d hops, %d lanes", engine, used.Seconds(), v.OK(), v.Unreachable, v.Pairs, v.Acyclic, v.MaxHops, r.Lanes())
}
