package engines

import (
	"context"
	"errors"

	"fabsh/fabric/routing/graph"
	"fabsh/fabric/routing/routes"
)

// file takes existing tables, as OpenSM's file does: those of a file, or those
// that the switches have. It promises nothing of their paths.
//
// Time: O(S*L).
var file = Engine{
	Name:    routes.FromFile,
	Doc:     "Tables from a file, unchanged: to verify, compare, or write in another format.",
	OpenSM:  "file",
	Options: []Option{givenOption},
	Repair:  PatchOnly,
	compute: func(_ context.Context, g *graph.Graph, o *Options) (*routes.Routes, error) {
		if o.Given == nil {
			return nil, &Precondition{Reason: errors.New("no tables given")}
		}
		return o.Given.On(g), nil
	},
}
