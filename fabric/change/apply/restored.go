package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/discover"
	"fabsh/fabric/plural"
	"fabsh/mad"
)

// reverted returns the outcome of a change that its journal records as reverted, from what is
// read back of the fabric: that it is as before is stated nowhere else. failed is why the
// change did not continue; nil: it was not confirmed.
func (r *Run) reverted(ctx context.Context, j *Journal, failed error) (Outcome, error) {
	switch err := r.checkReverted(ctx, j); {
	case err != nil && failed != nil:
		return Unresolved, fmt.Errorf("%v; %w", failed, err)
	case err != nil:
		return Unresolved, err
	}
	return outcomeOf(&j.Records[len(j.Records)-1], failed)
}

// checkReverted reads back what a reverted change has written, and the states that follow from
// it. A *CheckError describes what is not as before the change.
func (r *Run) checkReverted(ctx context.Context, j *Journal) error {
	blocks, err := r.blocks(ctx, j)
	if err != nil {
		return err
	}
	var unread, left []string
	revertible := false
	for _, b := range blocks {
		switch b.State {
		case Unread:
			unread = append(unread, b.Text)
		case Old:
		default:
			left = append(left, b.left())
			revertible = revertible || b.State != Foreign
		}
	}
	switch {
	case left != nil:
		remedy := "other programs wrote them; plan a change if they are wrong"
		if revertible {
			remedy = "change revert --from-fabric reverts all blocks but foreign ones"
		}
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not as before it: %s; %s",
			plural.Count(len(left), "block is", "blocks are"), firstOf(5, left), remedy)}
	case unread != nil:
		return &CheckError{fmt.Sprintf("the journal records the change as reverted, but %s not be read: %s", plural.Count(len(unread), "block could", "blocks could"), firstOf(5, unread))}
	}
	return r.checkPorts(ctx, j.Begin(), silentFor)
}

// statusWithin is how long change status waits for what differs after a reversal.
const statusWithin = 3 * time.Second

// checkPorts returns a *CheckError if ports that were active before a reverted change are not
// active now, or slower, or the subnet manager of before is missing. What differs is read again for some
// time: a subnet manager may be busy, or about to activate the links.
func (r *Run) checkPorts(ctx context.Context, b *Begin, within time.Duration) error {
	clock := r.Host.Clock
	for start := clock.Now(); ; {
		differs, err := r.differences(ctx, b)
		if err != nil {
			return err
		}
		if differs == "" {
			return nil
		}
		if clock.Now().Sub(start) >= within {
			return &CheckError{"the change is reverted, but the fabric is not as before it: " + differs}
		}
		if err := clock.Sleep(ctx, settleEvery); err != nil {
			return err
		}
	}
}

// differences sweeps the fabric, and describes which ports that were active before the change
// are not active or slower, and whether the subnet manager is missing or another one; "": neither.
func (r *Run) differences(ctx context.Context, b *Begin) (string, error) {
	f, err := discover.Sweep(ctx, r.Host.Engine, r.Host.Sweep)
	if err != nil {
		return "", fmt.Errorf("the change is reverted, but the fabric cannot be read back: %w", err)
	}
	var ports, slower, all []string
	for _, of := range [][]Ports{b.Written, b.Links} {
		for i := range of {
			down, slow := of[i].differ(f)
			ports, slower = append(ports, down...), append(slower, slow...)
		}
	}
	if ports != nil {
		all = append(all, fmt.Sprintf("%s active before, and not now: %s", plural.Count(len(ports), "port was", "ports were"), firstOf(5, ports)))
	}
	if slower != nil {
		all = append(all, fmt.Sprintf("%s slower: %s; port_reset(PORT) makes the link train again", plural.Count(len(slower), "port is", "ports are"), firstOf(5, slower)))
	}
	checks := &Checks{client: r.Host.SA, f: f, manager: b.manager()}
	manager, err := checks.findManager(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("the change is reverted, but the subnet manager cannot be read back: %w", err)
	case b.Manager != 0 && manager == nil:
		all = append(all, managerMissing(b.Manager))
	case b.Manager != 0:
		if err := checks.sameManager(manager); err != nil {
			all = append(all, err.Error())
		}
	case ports != nil && manager == nil:
		all = append(all, "no subnet manager answers as MASTER: start one; it activates links")
	}
	return strings.Join(all, "; "), nil
}

// managerMissing states that the subnet manager that was in charge is missing.
func managerMissing(guid mad.GUID) string {
	return fmt.Sprintf("the subnet manager with port GUID %v, which was in charge before the change, does not answer as MASTER: start it; it activates links and writes tables", guid)
}

// differ describes the ports that are not active in f, and those that are slower or narrower
// than before.
func (p *Ports) differ(f *fabric.Fabric) (inactive, slower []string) {
	for i, number := range p.Ports {
		nodes := f.NodeByGUID(p.Node)
		if len(nodes) != 1 || nodes[0].Port(number) == nil {
			inactive = append(inactive, fmt.Sprintf("%s port %d is not found", p.Name, number))
			continue
		}
		port := nodes[0].Port(number)
		if port.State() != mad.PortStateActive {
			inactive = append(inactive, fmt.Sprintf("%s is %v", port.Name(), port.State()))
		} else if now := rateOf(port); i < len(p.Rates) && p.Rates[i] != "" && now != "" && isSlower(now, p.Rates[i]) {
			slower = append(slower, fmt.Sprintf("%s is %s, was %s", port.Name(), now, p.Rates[i]))
		}
	}
	return inactive, slower
}

// rateOf returns the width and the speed in use, "4x hdr"; "": unknown.
func rateOf(p *fabric.Port) string {
	if p.Width() == "" || p.Speed() == "" {
		return ""
	}
	return p.Width() + " " + p.Speed()
}

// isSlower reports whether a rate has a lower speed or fewer lanes than another.
func isSlower(rate, than string) bool {
	width, speed, _ := strings.Cut(rate, " ")
	thanWidth, thanSpeed, _ := strings.Cut(than, " ")
	return slices.Index(fabric.LinkWidths, width) < slices.Index(fabric.LinkWidths, thanWidth) || slices.Index(mad.Speeds(), speed) < slices.Index(mad.Speeds(), thanSpeed)
}

// writtenLinksOf returns the ports whose PortInfo cells write, and the other ends of their links,
// that are active.
func writtenLinksOf(f *fabric.Fabric, cells []*certificate.Change) (links []Ports) {
	planned := portsOf(f, cells, anyCell)
	for i := range f.Nodes() {
		n := &f.Nodes()[i]
		at := Ports{Node: n.GUID(), Name: n.Label()}
		for p := range n.Ports() {
			if planned[p] && p.State() == mad.PortStateActive {
				at.Ports, at.Rates = append(at.Ports, p.Num()), append(at.Rates, rateOf(p))
			}
		}
		if at.Ports != nil {
			links = append(links, at)
		}
	}
	return links
}
