// Package apply applies the change of a plan to a live fabric, and reverts it: round by
// round, under a journal, with a check of the fabric between the rounds.
//
// Host.Make applies the change of a plan. It refuses first what must not be applied (a stale
// plan, a subnet manager that would not know of the change), then begins the Journal of a
// Run. A Prover plans the rounds in which its cells are written: the changes of the plan (a
// certificate.Change), each written by one Set. The rounds
// are those of the plan, if its certificate holds for the tables in force, else those of a new
// order with a certificate of its own: the very rounds that are Proven are recorded and sent.
// A Writer writes them, in the mode that the change requires, and Checks compare the fabric
// with its state before. Host.Latest finds the Run by which the change is confirmed, resumed, reverted or
// abandoned, also from another process.
//
// Rules: a record is on the disk before the Sets that it describes are sent, so each process
// may be killed at any time. Until a change is confirmed, a guard process (Keeper) can revert
// it. Blocks that another writer has changed (Foreign) are not overwritten. Beside a running
// subnet manager, either OpenSM writes the tables that fabsh stages (Staged), or a change of
// links goes link by link, and its new tables are checked.
//
// Processes exclude each other by a lock beside the journal. Within a process nothing here
// is safe for concurrent use.
package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/change/certificate"
	"fabsh/fabric/change/order"
	"fabsh/fabric/device"
	"fabsh/fabric/discover"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/sa"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// Host is the port and the process from which changes of a live fabric are applied.
type Host struct {
	Engine *engine.Engine
	SA     *sa.Client
	// Sweep discovers the fabric before a change is reverted.
	Sweep discover.Options
	Clock Clock
	// Log receives a line for each step.
	Log io.Writer
	// State is the directory that contains one directory with a journal for each subnet;
	// "": there is no such directory.
	State string
	// User is the user who applies changes.
	User string
	// OverrideSM allows changes of links beside a running subnet manager.
	OverrideSM bool
	// StartGuard starts the guard process of a journal, and returns when it is ready.
	StartGuard StartGuard
	// Manager returns what is known of the routing of the subnet manager, for predictions, by
	// the engine that the user states ("": none), its LID and the LID of this host; nil: nothing.
	Manager func(engine string, sm, local mad.LID) (change.ManagerRouting, error)
}

// Clock measures the time that changes wait.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or earlier with the cause when ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

// StartGuard starts the guard process of a journal.
type StartGuard func(ctx context.Context, journal string) (Guard, error)

// MayWrite returns an error if no change may be applied from this host.
func (h *Host) MayWrite() error {
	if !h.Engine.Write() {
		return errors.New("it would change the fabric, which requires --write (before the word change)")
	}
	return nil
}

// inProcess reports whether the fabric is simulated in this process: then no other
// process can guard or confirm a change.
func (h *Host) inProcess() bool { return h.Engine.Traits().Name == "sim" }

// place returns the directory that contains the directories of journals, and the local
// port.
func (h *Host) place() (dir string, port engine.Port, err error) {
	if h.State == "" {
		return "", port, errors.New("no directory for the journal; give --state DIR")
	}
	if dir, err = filepath.Abs(h.State); err == nil {
		port, err = h.Engine.Port()
	}
	return dir, port, err
}

// runOf returns a Run for the subnet of f.
func (h *Host) runOf(f *fabric.Fabric) (*Run, error) {
	if h.inProcess() {
		return &Run{Host: h}, nil
	}
	dir, port, err := h.place()
	if err != nil {
		return nil, err
	}
	subnet := fabric.SubnetOf(f, "")
	if !subnet.IsKnown() {
		return &Run{Host: h, Dir: filepath.Join(dir, portFolder+port.PortGUID.String())}, nil
	}
	return &Run{Host: h, Dir: subnet.Folder(dir)}, nil
}

// log writes a line to the log.
func (h *Host) log(text string) {
	if h.Log != nil {
		fmt.Fprintln(h.Log, text)
	}
}

// ChangeOptions control how the change of a plan is applied.
type ChangeOptions struct {
	// Plan names the plan in messages, and Summary describes the change, for people.
	Plan, Summary string
	// Within is how long the change may wait to be confirmed; 0: defaultWithin plus
	// defaultDrains times the time that its rounds wait for packets under way.
	Within time.Duration
	// Stage is the file of tables that OpenSM reads, and Reload its process ID, or a file
	// that contains it; both "": fabsh sends Sets.
	Stage, Reload string
	// Levels is a file with the service levels in use; "": path records have them.
	Levels string
	// AcceptCreditLoops applies the change even if packets may deadlock meanwhile.
	AcceptCreditLoops bool
	// ManagerEngine is the routing engine of the subnet manager, as the user states it, for
	// predictions.
	ManagerEngine string
}

// Make applies the change of a plan to f, which was just swept, and waits until it is
// confirmed or reverted. Before anything is sent, it refuses, in this order: an
// incomplete sweep; a subnet manager that would not know of the change; a damaged journal
// of the previous change; a stale plan; content that no plan may write; switches whose
// adaptive routing is on, if the plan does not disable it; and ports that must not go down.
// Nothing has been sent then.
func (h *Host) Make(ctx context.Context, f *fabric.Fabric, p *change.Plan, o *ChangeOptions) (Outcome, error) {
	how := exclusive
	switch {
	case o.Stage != "":
		how = stagedTables
	case p.OnlyLinks():
		how = onlyLinks
	}
	manager, err := h.manager(ctx, f, how)
	if err != nil {
		return Unresolved, err
	}
	linkByLink := how == onlyLinks && manager != nil && h.OverrideSM
	r, err := h.runOf(f)
	if err == nil {
		err = r.checkJournals(ctx)
	}
	if err != nil {
		return Unresolved, err
	}
	if err := checkFingerprint(p, f, manager, o.Plan); err != nil {
		return Unresolved, err
	}
	cells, err := Planned(p, f)
	if err != nil {
		return Unresolved, err
	}
	static, err := h.static(ctx, p, f, o)
	if err != nil {
		return Unresolved, err
	}
	all := len(cells)
	cells = slices.DeleteFunc(cells, func(c *certificate.Change) bool { return c.Rewrites() && !slices.Contains(static, c.Node) })
	if len(cells) == 0 {
		return Nothing, nil
	}
	if len(cells) == all { // else its numbers are of other changes
		r.plan = p.Certificate
	}
	if o.Stage != "" || p.NeedsTables(f) || p.Certificate != nil || linkByLink {
		if r.Live, err = readTables(ctx, h.Engine, f); err != nil {
			return Unresolved, err
		}
	}
	b, err := h.prepare(ctx, p, f, r.Live, manager, cells, linkByLink, o)
	if err != nil {
		return Unresolved, err
	}
	b.Static = static
	held, j, err := r.begin(f, b)
	if err != nil {
		return Unresolved, err
	}
	defer j.Close()
	return r.forward(ctx, held, j, f, manager, true)
}

// manager returns the subnet manager of f, which was just swept; nil: there is no
// manager. The error is the reason that a change must not be applied beside it.
func (h *Host) manager(ctx context.Context, f *fabric.Fabric, how coexistence) (*sa.SM, error) {
	if !f.Complete() {
		return nil, &FabricError{fmt.Errorf("incomplete sweep; nothing was sent: %s", f.FirstMissing())}
	}
	manager, err := h.SA.FindSM(ctx, f)
	if err != nil {
		return nil, err
	}
	if how == stagedTables && (manager == nil || manager.Info == nil || manager.Info.SMState != mad.SMStateMaster) {
		return nil, &FabricError{errors.New("no subnet manager is MASTER, so no process would write staged tables")}
	}
	if manager == nil || h.Engine.Traits().Simulated && !h.OverrideSM {
		return manager, nil
	}
	switch {
	case how == onlyLinks && !h.OverrideSM:
		return nil, fmt.Errorf("%v is active; nothing was sent: the change is one of links only, which it handles like that of a cable; --override-sm applies it link by link, and checks its new tables", manager)
	case how == onlyLinks && (manager.Info == nil || manager.Info.SMState != mad.SMStateMaster):
		return nil, &FabricError{fmt.Errorf("%v does not answer as MASTER; nothing was sent: no subnet manager would write new tables", manager)}
	case how == exclusive && h.OverrideSM && !h.Engine.Traits().Simulated:
		return nil, fmt.Errorf("%v is active; nothing was sent: --override-sm applies only changes of port states and link speeds. %s", manager, letItWrite)
	case how == exclusive && !h.Engine.Traits().Simulated:
		return nil, fmt.Errorf("%v is active; nothing was sent: OpenSM neither detects nor repairs writes of others. %s", manager, letItWrite)
	}
	return manager, nil
}

// letItWrite is the remedy for a change that fabsh must not apply beside OpenSM.
const letItWrite = "Let it write the tables (opensm -R file,no_fallback -U FILE, and change apply --stage FILE --reload PIDFILE), or stop it first"

// coexistence is how a change goes with a running subnet manager.
type coexistence uint8

const (
	exclusive     coexistence = iota // it is refused: fabsh writes what the subnet manager owns
	stagedTables                     // OpenSM writes the tables
	onlyLinks                        // it changes only links, which needs Host.OverrideSM
	linksReversal                    // the reversal of a change of links
)

// coexistenceOf returns how the change of cells, or its reversal (back), goes with a subnet
// manager.
func coexistenceOf(cells []*certificate.Change, isStaged, back bool) coexistence {
	switch only := !slices.ContainsFunc(cells, func(c *certificate.Change) bool { return !c.OfLink() }); {
	case isStaged:
		return stagedTables
	case only && back:
		return linksReversal
	case only:
		return onlyLinks
	}
	return exclusive
}

// prepare returns the head of the journal of a change that may be applied. live are the
// tables of f; nil: p changes no tables.
func (h *Host) prepare(ctx context.Context, p *change.Plan, f *fabric.Fabric, live *routes.Routes, manager *sa.SM, cells []*certificate.Change, linkByLink bool, o *ChangeOptions) (*Begin, error) {
	port, err := h.Engine.Port()
	if err != nil {
		return nil, err
	}
	b, err := h.begin(&port, manager, cells, o)
	if err != nil {
		return nil, err
	}
	b.LinkByLink = linkByLink
	if err := h.provePorts(ctx, p, f, live, &port, o.ManagerEngine, b); err != nil {
		return nil, err
	}
	if o.Stage != "" {
		b.Staged, err = newStaged(o.Stage, o.Reload, live, cells)
	}
	return b, err
}

// If no time to confirm is given, a change waits for defaultWithin plus defaultDrains
// times the time after which packets of the old tables are gone.
const (
	defaultWithin = 60 * time.Second
	defaultDrains = 4
)

// begin returns the head of the journal of a change.
func (h *Host) begin(port *engine.Port, manager *sa.SM, cells []*certificate.Change, o *ChangeOptions) (b *Begin, err error) {
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
// reads them. stated is the routing engine of the subnet manager that the user states.
func (h *Host) provePorts(ctx context.Context, p *change.Plan, f *fabric.Fabric, live *routes.Routes, port *engine.Port, stated string, b *Begin) error {
	if !slices.ContainsFunc(b.Cells, func(c *certificate.Change) bool { return c.Attr == mad.AttrPortInfo }) {
		return nil
	}
	if live == nil {
		var err error
		if live, err = readTables(ctx, h.Engine, f); err != nil {
			return err
		}
	}
	t := &change.Tables{Live: live, AcceptCreditLoops: b.AcceptCreditLoops, Last: lastLIDs(port)}
	h.levels(b.Levels).InForce(t, h.Engine)
	t.PKeys = h.pkeys
	if h.Manager != nil {
		var err error
		if t.Manager, err = h.Manager(stated, port.SMLID, port.LID); err != nil {
			return err
		}
	}
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

// pkeys reads the P_Key tables of ports.
func (h *Host) pkeys(ctx context.Context, ports []*fabric.Port) (map[*fabric.Port][]uint16, error) {
	return device.ReadPKeys(ctx, h.Engine, ports)
}

// lastLIDs returns the LIDs whose paths change last: the LIDs of the subnet manager and of
// this host.
func lastLIDs(local *engine.Port) []mad.LID {
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
		err = &FabricError{fmt.Errorf("the forwarding table of %s cannot be read, so nothing is proven, and nothing is sent: %w", failed[0].Switch.Label(), failed[0].Err)}
	}
	return live, err
}

// static returns the switches whose adaptive routing p disables, and where it is still on.
// The error is a *StaleError if p writes forwarding tables at others where it is on.
func (h *Host) static(ctx context.Context, p *change.Plan, f *fabric.Fabric, o *ChangeOptions) (nodes []mad.GUID, err error) {
	if !slices.ContainsFunc(p.Sets, func(s certificate.Change) bool { return s.Attr == mad.AttrLinearForwardingTable }) {
		return nil, nil
	}
	a, err := device.ReadAdaptivity(ctx, h.Engine, f)
	if err != nil {
		return nil, err
	}
	if since := p.Stale(a.On); len(since) > 0 {
		return nil, &StaleError{o.Plan, since}
	}
	for _, s := range p.Disables {
		if slices.ContainsFunc(a.On, func(n *fabric.Node) bool { return n.GUID() == s.GUID }) {
			nodes = append(nodes, s.GUID)
		}
	}
	if len(nodes) > 0 && o.Stage != "" {
		return nil, errors.New("--stage: not supported with a plan that disables adaptive routing: OpenSM does not write blocks that stay; stop OpenSM, and omit --stage")
	}
	for _, x := range a.Undetermined {
		h.log(fmt.Sprintf("warning: %s: adaptive routing could not be determined, assumed to be off: %v", x.Switch.Label(), x.Err))
	}
	return nodes, nil
}

// readAdaptivity gives t the adaptive routing that is on, with its choices.
func readAdaptivity(ctx context.Context, e *engine.Engine, t *change.Tables) (*device.Adaptivity, error) {
	a, err := device.ReadAdaptivity(ctx, e, t.Live.Graph().Fabric())
	if err != nil {
		return nil, err
	}
	choices, err := device.ReadChoices(ctx, e, t.Live, a.On)
	if err == nil {
		t.SetAdaptivity(a, choices)
	}
	return a, err
}
