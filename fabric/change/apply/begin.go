package apply

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// If no time to confirm is given, a change waits for defaultWithin plus defaultDrains
// times the time after which packets of the old tables are gone.
const (
	defaultWithin = 60 * time.Second
	defaultDrains = 4
)

// begin returns the head of the journal of a change.
func (h *Host) begin(port *engine.Port, manager *sa.SM, cells []*Cell, o *ChangeOptions) (b *Begin, err error) {
	b = &Begin{
		ID: fmt.Sprintf("%s-%d-%s", h.Clock.Now().UTC().Format("20060102T150405Z"), os.Getpid(), rand.Text()[:8]), Summary: o.Summary, By: h.User,
		Port: port.PortGUID, Prefix: port.GIDPrefix, Within: o.Within, Cells: cells, AcceptCreditLoops: o.AcceptCreditLoops,
	}
	if o.Levels != "" {
		if b.Levels, err = filepath.Abs(o.Levels); err != nil {
			return nil, err
		}
	}
	if b.Within == 0 {
		b.Within, b.Drains = defaultWithin, defaultDrains
	}
	if manager != nil && manager.Info != nil {
		b.Manager = manager.Info.GUID
	}
	return b, nil
}

// provePorts verifies a plan that writes PortInfo again: ports that it disables may cut
// paths of tables that it does not change. live are the tables of f; nil: provePorts
// reads them.
func (h *Host) provePorts(ctx context.Context, p *change.Plan, f *fabric.Fabric, live *routes.Routes, port *engine.Port, b *Begin) error {
	if !slices.ContainsFunc(b.Cells, func(c *Cell) bool { return c.Attr == mad.AttrPortInfo }) {
		return nil
	}
	if live == nil {
		var err error
		if live, err = readTables(ctx, h.Engine, f); err != nil {
			return err
		}
	}
	t := &change.Tables{Live: live, AcceptCreditLoops: b.AcceptCreditLoops, Last: lastCut(port)}
	h.levels(b.Levels).InForce(t, h.Engine)
	report, err := p.Prove(ctx, t)
	if err != nil {
		return err
	}
	if !report.OK {
		return &order.Refusal{Round: -1, Reason: report.Reason}
	}
	if report.Effect == nil {
		return nil
	}
	for _, line := range report.Effect.Lines() {
		h.log(line)
	}
	// Links that only train again are up after some seconds: no path is lost then.
	if reason := report.Effect.Refusal(); b.LinkByLink && reason != "" && (p.Isolates(f) || report.Effect.Needed != "") {
		return &order.Refusal{Round: -1, Reason: reason}
	}
	return nil
}

// lastCut returns the LIDs whose paths change last: those of the subnet manager and of
// this host.
func lastCut(local *engine.Port) []mad.LID {
	return slices.DeleteFunc([]mad.LID{local.SMLID, local.LID}, func(lid mad.LID) bool { return lid == 0 })
}

// levels returns the service levels of packets: from a file, or with "" from path
// records. The guard process reads the file again, so it must be a regular file.
func (h *Host) levels(file string) change.Levels {
	return change.Levels{Client: h.SA, File: file, Open: format.OpenIncluded}
}

// readTables reads the forwarding tables in force. If one cannot be read, nothing is
// proven.
func readTables(ctx context.Context, e *engine.Engine, f *fabric.Fabric) (*routes.Routes, error) {
	live, failed, err := device.ReadRoutes(ctx, e, f)
	if err == nil && len(failed) > 0 {
		err = &FabricError{fmt.Errorf("change apply: the forwarding table of %s cannot be read, so nothing is proven, and nothing is sent: %w", failed[0].Switch.Label(), failed[0].Err)}
	}
	return live, err
}
