package datagrams

import (
	"context"

	"go.starlark.net/starlark"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// vendorRead is a read of several attributes of a vendor, of many nodes at once.
type vendorRead[T any] struct {
	engine *engine.Engine
	open   []T // of the targets that can be reached
}

// readVendor makes a T for each target, reads them, and returns the values, or for each
// target that failed its failure. attr is the attribute in notes on this.
func readVendor[T any](c *lang.Call, target starlark.Value, attr *mad.Attribute, begin func(*topology.Target) T, read func(context.Context, *vendorRead[T]) error, value func(T) (starlark.Value, error)) (starlark.Value, error) {
	e, err := topology.ReaderOf(c)
	if err != nil {
		return nil, err
	}
	targets, many, err := (&topology.Resolver{Call: c}).Targets(target)
	if err != nil {
		return nil, err
	}
	r := &vendorRead[T]{engine: e}
	values := make([]starlark.Value, len(targets))
	var of []int
	for i := range targets {
		if err := targets[i].Reachable(); err != nil {
			values[i] = topology.Failed(c, &targets[i], err)
			continue
		}
		r.open, of = append(r.open, begin(&targets[i])), append(of, i)
	}
	if err := c.Block(func(ctx context.Context) error { return read(ctx, r) }); err != nil {
		return nil, err
	}
	for at, i := range of {
		if values[i], err = value(r.open[at]); err != nil {
			values[i] = topology.Failed(c, &targets[i], err)
		}
	}
	topology.Observe(c, attr, targets, values)
	return topology.Results(values, many)
}

// justSwept returns the node of a target if an audit's sweep has just read it; else nil.
func justSwept(c *lang.Call, t *topology.Target) *fabric.Node {
	if n := t.Node; n != nil && n.Route() != nil && topology.JustSwept(c, n.Fabric()) {
		return n
	}
	return nil
}
