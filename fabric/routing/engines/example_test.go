package engines_test

import (
	"context"
	"fmt"
	"log"

	"fabsh/fabric/routing/engines"
	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/sim"
)

// Route a generated fat tree, and verify the tables.
func Example() {
	ctx := context.Background()
	f, _, err := sim.Parse("fattree:k=4,levels=2")
	if err != nil {
		log.Fatal(err)
	}
	g, err := graph.New(f, graph.BuildOptions{})
	if err != nil {
		log.Fatal(err)
	}
	tables, err := engines.Compute(ctx, g, "ftree", engines.Options{})
	if err != nil {
		log.Fatal(err)
	}
	v, err := verify.Tables(ctx, tables, verify.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("switches:", len(g.Switches()))
	fmt.Printf("pairs: %d, unreachable: %d\n", v.Pairs, v.Unreachable)
	fmt.Println("free of credit loops:", v.Acyclic)
	// Output:
	// switches: 6
	// pairs: 56, unreachable: 0
	// free of credit loops: true
}
