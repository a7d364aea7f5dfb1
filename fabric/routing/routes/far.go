package routes

import (
	"fmt"
	"io"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// readFARs reads the adaptive routing of switches from ibdiagnet2.far. The file does not have,
// or not in a public form, for which service levels and transports it is on: so all service
// levels and the transports of OpenSM's default are taken to route adaptively, the others to
// take the static port.
func (r *Routes) readFARs(in io.Reader, name string) error {
	found := 0
	var unknown []string
	for far, err := range format.FARs(capture(r, in), name) {
		if err != nil {
			return err
		}
		s := r.graph.SwitchByGUID(far.GUID)
		if s < 0 {
			unknown = append(unknown, far.GUID.String())
			continue
		}
		n := r.graph.Switches()[s]
		if err := checkFAR(far, n); err != nil {
			return fmt.Errorf("%s: %w", far.Position(), err)
		}
		found++
		r.SetAdaptive(s, switchOfFAR(far))
	}
	all := len(r.graph.Switches())
	if found == 0 {
		return fmt.Errorf("%s: no adaptive routing of switches of the fabric", name)
	}
	note := func(format string, args ...any) {
		r.ReadNotes = append(r.ReadNotes, name+": "+fmt.Sprintf(format, args...))
	}
	if found < all {
		note("adaptive routing of %d of %d switches; the others are taken to route statically", found, all)
	}
	for s := range all {
		if r.adaptive.list[s] == nil {
			r.SetAdaptive(s, nil)
		}
	}
	if len(unknown) > 0 {
		note("%s not in the fabric: %s", plural.Count(len(unknown), "of its switches is", "of its switches are"), firstOf(unknown))
	}
	note("service levels and transports are not read from it; all service levels, and the transports RC and DC, are taken to route adaptively")
	return nil
}

// firstOf lists some texts.
func firstOf(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// checkFAR returns an error if the tables have ports that the switch does not have.
func checkFAR(far *format.FAR, n *fabric.Node) error {
	most := n.NumPorts()
	for _, t := range far.Tables {
		if t == nil {
			continue
		}
		for lid := range t.Top() + 1 {
			if port := t.Entry(lid).Port; int(port) > most && port != mad.NoPort {
				return fmt.Errorf("expected a port from 0 to %d, which %s has, for LID %d, not %d", most, n.Label(), lid, port)
			}
		}
		for group := range t.Groups.Len() {
			for port := range t.Groups.All(group).All() {
				if int(port) > most {
					return fmt.Errorf("expected ports from 0 to %d, which %s has, in group %d, not %d", most, n.Label(), group, port)
				}
			}
		}
	}
	return nil
}

// switchOfFAR makes a value of the tables.
func switchOfFAR(far *format.FAR) *adaptive.Switch {
	a := &adaptive.Switch{Assumed: true, Enabled: true, SLs: adaptive.AllSLs, Static: OpenSMStatic, Tables: far.Tables}
	tables := 0
	for _, t := range far.Tables {
		if t == nil {
			continue
		}
		tables++
		for lid := range t.Top() + 1 {
			if t.Entry(lid).State == adaptive.HBF {
				a.HBF, a.HBFSLs = true, adaptive.AllSLs
				break
			}
		}
	}
	if tables > 1 || a.Table(0) == nil {
		a.Unknown = "private LFTs are in use; which packets use them is in ibdiagnet2.plft, whose format is not public"
	}
	return a
}
