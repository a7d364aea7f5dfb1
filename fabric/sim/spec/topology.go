package spec

import (
	"fabsh/fabric"
	"fabsh/fabric/sim/generate"
)

func (v *values) tree(t generate.Tree) (*fabric.Fabric, error) {
	t.Rails = v.number("rails", 1, generate.MaxLIDs)
	if v.err != nil {
		return nil, v.err
	}
	return t.Build()
}

func (v *values) lattice(s generate.Shape) (*fabric.Fabric, error) {
	l := generate.Lattice{
		Dims:  v.numbers("dims"),
		Hosts: v.number("hosts", 0, generate.MaxSwitchPorts),
		Links: v.number("links", 1, generate.MaxSwitchPorts),
		Shape: s,
	}
	if v.err != nil {
		return nil, v.err
	}
	return l.Build()
}

// equip returns f with the equipment of the keys.
func (v *values) equip(f *fabric.Fabric) (*fabric.Fabric, error) {
	e := generate.Equipment{
		Generation:  generate.Generation(v.word("generation", "", "hdr", "ndr", "xdr")),
		Split:       v.yes("split"),
		Aggregation: v.yes("aggregation"),
		Planes:      1 << v.word("planes", "1", "2", "4"),
	}
	if v.err != nil {
		return nil, v.err
	}
	return generate.Equip(f, e)
}

// remove returns f without what remove_switches and remove_links remove.
func (v *values) remove(f *fabric.Fabric) *fabric.Fabric {
	if v.text["remove_switches"] == "0" && v.text["remove_links"] == "0" {
		return f
	}
	return generate.Remove(f, v.seed(),
		func(all int) int { return v.countOrShare("remove_switches", "switches", all) },
		func(all int) int { return v.countOrShare("remove_links", "cables between switches", all) })
}
