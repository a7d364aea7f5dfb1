package spec

import (
	"fabsh/fabric"
)

func (v *values) tree(t tree) (*fabric.Fabric, error) {
	t.Rails = v.number("rails", 1, maxLIDs)
	if v.err != nil {
		return nil, v.err
	}
	return t.Build()
}

func (v *values) lattice(s latticeShape) (*fabric.Fabric, error) {
	l := lattice{
		Dims:  v.numbers("dims"),
		Hosts: v.number("hosts", 0, maxSwitchPorts),
		Links: v.number("links", 1, maxSwitchPorts),
		Shape: s,
	}
	if v.err != nil {
		return nil, v.err
	}
	return l.Build()
}

// equip returns f with the equipment of the keys.
func (v *values) equip(f *fabric.Fabric) (*fabric.Fabric, error) {
	e := equipment{
		Generation:  generation(v.word("generation", "", "hdr", "ndr", "xdr")),
		Split:       v.yes("split"),
		Aggregation: v.yes("aggregation"),
		Planes:      1 << v.word("planes", "1", "2", "4"),
	}
	if v.err != nil {
		return nil, v.err
	}
	return equip(f, e)
}

// remove returns f without what remove_switches and remove_links remove.
func (v *values) remove(f *fabric.Fabric) *fabric.Fabric {
	if v.text["remove_switches"] == "0" && v.text["remove_links"] == "0" {
		return f
	}
	return removeParts(f, v.seed(),
		func(all int) int { return v.countOrShare("remove_switches", "switches", all) },
		func(all int) int { return v.countOrShare("remove_links", "cables between switches", all) })
}
