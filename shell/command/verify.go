package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	values "fabsh/builtins/routing"
	"fabsh/fabric"
	"fabsh/fabric/change"
	"fabsh/fabric/format"
	"fabsh/fabric/routing/opensm"
	"fabsh/fabric/routing/routes"
	"fabsh/fabric/routing/verify"
	"fabsh/fabric/tenant"
	"fabsh/shell/session"
)

// verifyOptions are the options of verify on the command line.
type verifyOptions struct {
	tables        routes.Files // without LFTs: the tables that the switches have
	failEachLink  bool
	managerEngine string
	adaptive      verify.Adaptive
	tenants       string // a file; "": the tables are verified
}

// verifyCapability verifies existing tables.
func verifyCapability() *capability[*verifyOptions] {
	return &capability[*verifyOptions]{command: &cobra.Command{
		Use:   "verify --lfts FILE [--sl FILE] [--sl2vl FILE] [--fail-each-link]",
		Short: "Verify forwarding tables: do all packets arrive, without loops and deadlocks?",
		Long: `Follow the packets between all pairs of ports through forwarding tables: do all
arrive, without loops and deadlocks? Findings make the exit status 1.

The tables are those of the file of --lfts; without it, those of the switches, or of the
snapshot that the session reads. If those of switches close a credit loop on one virtual
lane, their SL2VL and the path records of the subnet administrator decide: all of at most
512 LIDs, else those of at most 4,096 paths that cover the loop. If they cannot be read,
credit loops are not judged. --sl alone replaces the path records.

--tenants FILE judges the isolation of tenants instead, by the P_Key tables of end ports, the switch
ports that check P_Keys, and the paths of the tables: a proof or a counterexample for each two of
them. FILE is YAML or CSV (fabsh help load_tenants), OpenSM's partitions.conf, or UFM's JSON of
partitions. Multicast groups, virtual ports and management keys are judged by fabsh audit tenants.`,
		Example: `  fabsh -F file:opensm-subnet.lst verify --lfts opensm-lfts.dump --sl path-sl.txt --sl2vl opensm-sl2vl.dump
  fabsh -F ibsim verify
  fabsh verify --tenants tenants.csv`,
		Annotations: map[string]string{atPrompt: ""},
		Args:        atMost(0),
	},
		options: fresh[verifyOptions],
		run:     verifyTables,
		tool:    "route_verify", doc: "Is the routing correct: are hosts unreachable, are there credit loops? The tables are those that the switches have, or those of files.",
	}
}

// params declares the parameters.
func (o *verifyOptions) params() params {
	engine := managerEngineParam(&o.managerEngine)
	engine.doc = "with --fail-each-link: predict the tables of OpenSM's routing engine `NAME` after each failure: " + strings.Join(opensm.Engines(), ", ") + "; auto: the worst of all that could have made the tables"
	return params{
		{name: "lfts", to: &o.tables.LFTs, file: true, doc: "read " + docOf(&values.LoadRoutes, "path", "file", "FILE")},
		{name: "sl", to: &o.tables.SL, file: true, doc: "read " + docOf(&values.LoadRoutes, "sl", "file", "FILE")},
		{name: "sl2vl", to: &o.tables.SL2VL, file: true, doc: "read " + docOf(&values.LoadRoutes, "sl2vl", "file", "FILE")},
		{name: "far", to: &o.tables.FAR, file: true, doc: "read " + docOf(&values.LoadRoutes, "far", "file", "FILE")},
		failEachLinkParam(&o.failEachLink),
		engine,
		adaptiveParam(&o.adaptive),
		{name: "tenants", to: &o.tenants, file: true, doc: "judge whether the tenants of `FILE` are isolated, instead of the tables"},
		{name: "slvl", to: &o.tables.SL2VL, file: true, former: true, withheld: "the former name of sl2vl", doc: "the former name of --sl2vl"},
	}
}

// verifyTables verifies tables of files, or those that the switches have.
func verifyTables(ctx context.Context, s *session.Session, o *verifyOptions) (shown starlark.Value, err error) {
	f, err := audits.ReadFabric(ctx, s.Runtime)
	if err != nil {
		return nil, err
	}
	var r *routes.Routes
	switch why := f.Unmanaged(); {
	case s.Engine != nil && why != "" && o.tables.LFTs == "":
		err = &session.HostError{Err: fmt.Errorf("%s: there are no LIDs and tables; start a subnet manager", why)}
	case isDirectory(o.tables.LFTs):
		err = fmt.Errorf("--lfts: %s: is a directory; name its file of tables, such as opensm-lfts.dump, or read its topology and tables with -F file:%[1]s verify", o.tables.LFTs)
	case o.tables.LFTs != "":
		r, err = routes.Load(f, o.tables, session.OpenNamed(ctx, s.Files.OpenNamed))
	case o.tables.FAR != "":
		err = errors.New("--far belongs to tables of a file; give --lfts FILE")
	case o.tables.SL2VL != "":
		err = errors.New("--sl2vl belongs to tables of a file; give --lfts FILE")
	default:
		if r, err = audits.ReadRoutes(ctx, s.Runtime, f, true); err == nil && o.tables.SL != "" {
			if err = audits.ReadLanes(ctx, s.Runtime, r); err == nil {
				r.SL, _, err = change.Levels{File: o.tables.SL, Open: session.OpenNamed(ctx, s.Files.OpenNamed)}.Of(ctx, r)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if o.tenants != "" {
		return verifyTenants(ctx, s, f, r, o.tenants)
	}
	if o.managerEngine != "" && !o.failEachLink {
		return nil, errors.New("--manager-engine requires --fail-each-link")
	}
	report, err := examine(ctx, r, checks{verify: true, failEachLink: o.failEachLink, adaptive: o.adaptive, progress: s.Runtime.Progress})
	if err != nil {
		return nil, err
	}
	if o.tables.LFTs == "" {
		if report.Verdict, err = audits.VerifyInLanes(ctx, s.Runtime, r, verify.Options{Adaptive: o.adaptive}, report.Verdict); err != nil {
			return nil, err
		}
	}
	if o.managerEngine != "" {
		if err := predictFailures(ctx, s, r, report, o.managerEngine); err != nil {
			return nil, err
		}
	}
	shown = values.WrapVerdict(report.Verdict)
	if o.failEachLink {
		shown = values.WrapReport(report)
	}
	if !report.Clean() {
		err = session.Exit(lang.StatusFindings)
	}
	return shown, err
}

// verifyTenants judges whether the tenants of a file are isolated; r are the tables in force.
func verifyTenants(ctx context.Context, s *session.Session, f *fabric.Fabric, r *routes.Routes, path string) (starlark.Value, error) {
	file, err := openTenants(ctx, s, path)
	if err != nil {
		return nil, err
	}
	facts, err := audits.ReadTenantFacts(ctx, s.Runtime, f, r)
	if err != nil {
		return nil, err
	}
	report, err := values.JudgeTenants(ctx, f, file, facts)
	if err != nil {
		return nil, fmt.Errorf("--tenants: %s: %w", path, err)
	}
	printNotes(s, file.Notes)
	if report.Count(tenant.Reaches)+report.Count(tenant.Unknown) > 0 {
		err = session.Exit(lang.StatusFindings)
	}
	return values.WrapIsolation(report), err
}

// openTenants reads a file of tenants that the command line names.
func openTenants(ctx context.Context, s *session.Session, path string) (*tenant.File, error) {
	in, err := s.Files.OpenNamed(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("--tenants: %w", format.FileError(err))
	}
	defer in.Close()
	return tenant.Read(in, path)
}

// predictFailures predicts what the subnet manager does after each failure.
func predictFailures(ctx context.Context, s *session.Session, r *routes.Routes, report *verify.Report, engine string) error {
	defer s.Runtime.Progress("")
	o := change.PredictOptions{Managed: true}
	var err error
	if o.Manager.Engines, err = change.ParseManagerEngine(engine); err != nil {
		return err
	}
	if sm := remedies.ManagerOf(r.Graph().Fabric()); sm != nil {
		o.Manager.LID = sm.LID()
	}
	p, err := change.NewPredictor(ctx, r, o)
	if err != nil {
		return err
	}
	for i := range report.Failures {
		s.Runtime.Progress(fmt.Sprintf("predicting failure %d of %d", i+1, len(report.Failures)))
		f := &report.Failures[i]
		e, err := p.Without(ctx, []*fabric.Port{f.Port})
		if err != nil {
			return err
		}
		f.Predicted = &verify.FailurePrediction{Rerouted: e.Rerouted, LoadAfter: e.LoadAfter, IdleLinks: int64(e.IdleLinks), Text: strings.TrimPrefix(e.String(), "prediction: ")}
	}
	return nil
}

// adaptiveFlag is --adaptive, which may have a value.
type adaptiveFlag verify.Adaptive

// adaptiveParam is the parameter of commands that judge tables of adaptive switches.
func adaptiveParam(to *verify.Adaptive) param {
	return param{name: "adaptive", to: (*adaptiveFlag)(to), alone: "true", values: verify.AdaptiveWords(), doc: "the switches route adaptively: the verdict is unknown; with =minimal or =updown: check all choices among the minimal ports, or the legal up/down ports"}
}

// failEachLinkParam is the parameter of commands that judge tables without each link in turn.
func failEachLinkParam(to *bool) param {
	return param{name: "fail-each-link", to: to, doc: "report what each single failure of a link would break"}
}

func (f *adaptiveFlag) String() string { return "" }

// Type makes help show no value, which would follow a blank and not the equals sign.
func (f *adaptiveFlag) Type() string { return "bool" }

func (f *adaptiveFlag) Set(value string) error {
	if value == "true" {
		*f = adaptiveFlag(verify.AdaptiveOn)
		return nil
	}
	a, err := verify.ParseAdaptive(value)
	if err != nil {
		return fmt.Errorf("want --adaptive=%s, or --adaptive alone", strings.Join(verify.AdaptiveWords(), ", --adaptive="))
	}
	*f = adaptiveFlag(a)
	return nil
}

// checks are the checks of tables to run.
type checks struct {
	verify       bool
	adaptive     verify.Adaptive
	live         *routes.Routes // to compare with; nil: none
	failEachLink bool
	progress     func(doing string) // the progress line
}

// examine runs the checks. It adds to the notes of r what the fabric's file left open
// and tables depend on, and which checks leave choices of switches out.
func examine(ctx context.Context, r *routes.Routes, c checks) (*verify.Report, error) {
	r.ReadNotes = slices.Concat(assignedLIDs(r.Graph().Fabric()), r.ReadNotes)
	report := &verify.Report{Routes: r}
	defer c.progress("")
	if c.failEachLink {
		c.progress("simulating link failures")
		list, byChoice, err := verify.FailEachLink(ctx, r, 0)
		switch {
		case err != nil:
			return nil, err
		case byChoice:
			r.ReadNotes = append(r.ReadNotes, "failures of links were judged on the choices of packets of reliable connections (RC), SL 0")
		case r.HasChoices() || c.adaptive != 0:
			r.ReadNotes = append(r.ReadNotes, "failures of links were judged on the static ports alone")
		}
		report.Failures = append([]verify.LinkFailure{}, list...) // not nil: requested
	}
	var err error
	if c.verify {
		c.progress("verifying the tables")
		if report.Verdict, err = verify.Tables(ctx, r, verify.Options{Adaptive: c.adaptive}); err != nil {
			return nil, err
		}
	}
	if c.live != nil {
		report.Diff = r.Diff(c.live)
	}
	return report, nil
}

// assignedLIDs returns the notes on LIDs that a file does not have.
func assignedLIDs(f *fabric.Fabric) []string {
	var notes []string
	for _, p := range f.Problems() {
		if p.Kind == fabric.ProblemAssignedLIDs {
			notes = append(notes, p.Text)
		}
	}
	return notes
}

// isDirectory reports whether path is a directory.
func isDirectory(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
