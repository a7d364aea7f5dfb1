package routing

import (
	"slices"
	"testing"

	"go.starlark.net/starlark"

	"fabsh/fabric/routing"
)

// TestEngineOptions: the parameters of route() are the options of all engines.
func TestEngineOptions(t *testing.T) {
	var params, options []string
	for _, p := range routeMethod.Params[1:] {
		params = append(params, p.Name)
	}
	for _, e := range routing.Engines() {
		options = append(options, e.Options...)
	}
	slices.Sort(params)
	slices.Sort(options)
	if options = slices.Compact(options); !slices.Equal(params, options) {
		t.Errorf("route() takes %v, the engines %v", params, options)
	}
}

// TestGiven: all options of a call are looked at.
func TestGiven(t *testing.T) {
	a := &routeArgs{
		Roots: new([]starlark.Value), Policy: new(string), Scope: new(string), Seed: new(int),
		Keep: new(routing.Routes), Given: new(routing.Routes), MaxVLs: new(int), TorusConfig: new(string),
	}
	var want []string
	for _, p := range routeMethod.Params[1:] {
		want = append(want, p.Name)
	}
	if got := a.given(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := new(routeArgs).given(); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}
