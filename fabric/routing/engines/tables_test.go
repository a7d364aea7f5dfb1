package engines

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routingtest"
)

// TestTables: where all links are equal, each engine makes on each small net the tables whose hashes
// testdata/tables.txt has. -update writes it.
func TestTables(t *testing.T) {
	routingtest.ResultsOnly(t)
	const path = "testdata/tables.txt"
	var got bytes.Buffer
	for _, net := range routingtest.SmallNets() {
		g := routingtest.Graph(t, net, graph.BuildOptions{})
		for _, engine := range Names() {
			if engine == file.Name {
				continue
			}
			r, err := Compute(t.Context(), g, engine, Options{})
			if err != nil {
				fmt.Fprintf(&got, "%s %s: does not apply\n", net, engine)
				continue
			}
			h := fnv.New64a()
			h.Write(routingtest.Tables(r))
			fmt.Fprintf(&got, "%s %s: %016x\n", net, engine, h.Sum64())
		}
	}
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(got.Bytes(), []byte("\n")) {
		if lines := bytes.Split(want, []byte("\n")); i >= len(lines) || !bytes.Equal(line, lines[i]) {
			t.Errorf("line %d: got %s", i+1, line)
		}
	}
}
