package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fabsh/builtins/audits"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/history"
	"fabsh/mad"
	"fabsh/shell/session"
)

// ackOptions are the flags of audit ack.
type ackOptions struct {
	subnet, until, reason, by, allOf, file string
	host                                   bool
}

// ackFor is how long an ack holds without --until.
const ackFor = 30 // days

func ackCommand(p *session.Program) *cobra.Command {
	var o ackOptions
	c := &cobra.Command{
		Use:   "ack {ID | CHECK SUBJECT | --all-of CHECK} --reason TEXT",
		Short: "Acknowledge a finding: it is not reported until a day has passed",
		Long: `Acknowledge a finding: it is not reported until a day has passed, 30 days from now
without --until. It is named by its ID, or by its check and its subject, as audits show
them: CHECK:GUID/PORT, CHECK:NAME/PORT, or CHECK NAME/PORT - NAME/PORT. In an ID, *
matches any text; --all-of acknowledges all findings of a check.

The audit of the check runs, to record how much there is of the fault: errors per hour,
or the number of findings. If it becomes 10 times as much, the finding is reported
again. A check of your own audit needs the audit: --audit FILE.star.

Acknowledgements are lines of the file acks in the directory of --state.`,
		Example: `  fabsh audit ack link.width:leaf-3/7 --reason "cable ordered"
  fabsh audit ack link.width leaf-3/7 - spine-1/3 --until 2026-12-24 --reason "cable ordered"
  fabsh audit ack --all-of fw.outlier --reason "update planned"
  fabsh audit ack --host host.down:mlx5_4/1 --reason "no cable"
  fabsh audit ack list`,
		RunE: func(_ *cobra.Command, words []string) error {
			switch {
			case o.allOf != "" && len(words) > 0:
				return fmt.Errorf("unexpected argument %q with --all-of", words[0])
			case o.allOf == "" && len(words) == 0:
				return errors.New("missing ID of the finding; give CHECK:NAME/PORT, or --all-of CHECK")
			case o.reason == "":
				return errors.New("missing --reason TEXT")
			}
			return o.run(p, func(ctx context.Context, s *session.Session) error { return acknowledge(ctx, s, o, words) })
		},
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.until, "until", "", fmt.Sprintf("acknowledge until the end of the day `DATE`, such as 2026-12-24 (default: %d days from now)", ackFor))
	c.Flags().StringVar(&o.reason, "reason", "", "reason, as `TEXT`")
	c.Flags().StringVar(&o.by, "by", "", "`WHO` acknowledges it (default: the user)")
	c.Flags().StringVar(&o.allOf, "all-of", "", "acknowledge all findings of the check `CHECK`")
	c.Flags().StringVar(&o.file, "audit", "", "the check is of the audit `FILE.star`")
	c.PersistentFlags().AddFlagSet(params{subnetParam(&o.subnet)}.flags())
	c.PersistentFlags().BoolVar(&o.host, "host", false, "acknowledgements of this host, for audit host; no fabric is read")
	c.AddCommand(
		&cobra.Command{
			Use:   "list",
			Short: "List the acknowledgements of the subnet",
			Long: `List the acknowledgements of the subnet: the ID, the name of the subject then, until
when it holds, by whom, why, how much there was of the fault, and whether it still holds.`,
			Example: `  fabsh audit ack list
  fabsh -o json audit ack list`,
			Args: atMost(0),
			RunE: func(*cobra.Command, []string) error {
				return o.run(p, func(ctx context.Context, s *session.Session) error { return listAcks(ctx, s, o) })
			},
		},
		&cobra.Command{
			Use:   "rm {ID | CHECK SUBJECT}",
			Short: "Remove an acknowledgement: the finding is reported again",
			Long: `Remove an acknowledgement: the finding is reported again. It is named as for ack, or by
its ID as "fabsh audit ack list" shows it.`,
			Example: `  fabsh audit ack rm link.width:leaf-3/7
  fabsh audit ack rm 'fw.outlier:*'`,
			Args: func(_ *cobra.Command, words []string) error {
				if len(words) == 0 {
					return errors.New("missing ID; see fabsh audit ack list")
				}
				return nil
			},
			RunE: func(_ *cobra.Command, words []string) error {
				return o.run(p, func(ctx context.Context, s *session.Session) error { return removeAck(ctx, s, o, words) })
			},
		})
	return c
}

// acksOf returns the fabric, its subnet, and the file of its acks.
func acksOf(ctx context.Context, s *session.Session, o ackOptions) (f *fabric.Fabric, subnet fabric.Subnet, path string, err error) {
	if s.StateDir == "" {
		return nil, subnet, "", errors.New("no directory for state; give --state DIR")
	}
	if h := topology.EnvOf(s.Runtime).Host; h != nil {
		subnet = fabric.Subnet{Given: cmp.Or(o.subnet, h.Subnet())}
		return h.Fabric, subnet, audit.AckFile(s.StateDir, subnet), nil
	}
	if f, err = audits.ReadFabric(ctx, s.Runtime); err != nil {
		return nil, subnet, "", err
	}
	subnet = fabric.SubnetOf(f, o.subnet)
	if err := audit.CheckSubnet(s.StateDir, subnet); err != nil {
		return nil, subnet, "", err
	}
	return f, subnet, audit.AckFile(s.StateDir, subnet), nil
}

// acknowledge acknowledges the finding that words name.
func acknowledge(ctx context.Context, s *session.Session, o ackOptions, words []string) error {
	if o.by == "" {
		o.by = session.Login()
	}
	if o.by == "" {
		return errors.New("unknown user; give --by WHO")
	}
	now := s.Clock.Now()
	if o.until == "" {
		o.until = now.AddDate(0, 0, ackFor).Format(time.DateOnly)
	}
	if o.allOf != "" {
		words = []string{o.allOf + ":*"}
	}
	if check, _, _ := strings.Cut(words[0], ":"); o.file == "" && isElsewhere(s, check) {
		return elsewhereError(check)
	}
	f, subnet, path, err := acksOf(ctx, s, o)
	if err != nil {
		return err
	}
	id, name, err := findingID(f, words)
	if err != nil {
		return err
	}
	ack, err := audit.NewAck(id, name, o.until, o.by, o.reason, now)
	if err != nil {
		return err
	}
	if !ack.InForce(now) {
		return fmt.Errorf("--until %s: date is in the past", o.until)
	}
	check, _, _ := strings.Cut(id, ":")
	of, err := auditsOf(ctx, s, check, o.file)
	if err != nil {
		return err
	}
	found, judged, err := findingsOf(ctx, s, of, subnet, ack)
	if err != nil {
		return err
	}
	ack.Count = ack.CountOf(found)
	if err := format.MakeDirectory(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("%w; or give --state DIR", format.FileError(err))
	}
	err = audit.AddAck(path, ack)
	if err == nil {
		err = audit.RecordSubnet(s.StateDir, subnet, f.Complete())
	}
	if err := ackError(path, err); err != nil {
		return err
	}
	addAcks(ctx, s, subnet)
	text := ""
	if ack.Count == 0 && judged {
		text = "; there is no such finding now"
	}
	s.Print(fmt.Sprintf("%s: acknowledged until %s (%s)%s\n", ack.Pattern, o.until, path, text))
	return nil
}

// ackError returns the error of a change of the file at path.
func ackError(path string, err error) error {
	switch {
	case errors.Is(err, format.ErrLockHeld):
		return &session.HostError{Err: err}
	case err != nil:
		return session.NotWritten(path, err)
	}
	return nil
}

// listAcks shows the acks of the subnet.
func listAcks(ctx context.Context, s *session.Session, o ackOptions) error {
	_, _, path, err := acksOf(ctx, s, o)
	if err != nil {
		return err
	}
	acks, bad := audit.ReadAcks(path, s.Clock.Now())
	for _, err := range bad {
		s.Warn("%v", err)
	}
	if len(acks) == 0 && s.Format == lang.FormatText {
		s.Print(fmt.Sprintf("no acknowledgements (%s)\n", path))
		return nil
	}
	return s.Show(audits.WrapAcks(acks, s.Clock.Now()))
}

// removeAck removes the ack that words name.
func removeAck(ctx context.Context, s *session.Session, o ackOptions, words []string) error {
	f, subnet, path, err := acksOf(ctx, s, o)
	if err != nil {
		return err
	}
	id := strings.Join(words, " ")
	n, err := audit.RemoveAcks(path, id)
	if n == 0 && err == nil {
		if id, _, err = findingID(f, words); err != nil {
			return err
		}
		n, err = audit.RemoveAcks(path, id)
	}
	if err := ackError(path, err); err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%s is not acknowledged; see fabsh audit ack list", id)
	}
	addAcks(ctx, s, subnet)
	s.Print(id + ": no longer acknowledged\n")
	return nil
}

// findingID returns the ID of the finding that words name, and the name of its subject;
// "": unknown. The words are an ID, CHECK:SUBJECT or CHECK SUBJECT, perhaps with more
// of the line that shows it.
func findingID(f *fabric.Fabric, words []string) (id, name string, err error) {
	if len(words) > 1 && slices.Contains(audit.Severities, words[0]) {
		words = words[1:]
	}
	check, subject, ok := strings.Cut(strings.Join(words, " "), ":")
	if first, rest, _ := strings.Cut(strings.Join(words, " "), " "); !strings.Contains(first, ":") && audit.CheckName().MatchString(first) {
		check, subject, ok = first, strings.TrimSpace(rest), true
	}
	if first, _, more := strings.Cut(subject, " "); more { // an ID, with the subject's name behind it
		if _, _, byGUID := guidPort(first); byGUID || first == string(audit.KindFabric) {
			subject = first
		}
	}
	if !ok || subject == "" || strings.Contains(check, " ") {
		return "", "", fmt.Errorf("%q: missing check or subject; give CHECK:NAME/PORT, as audits show it", strings.Join(words, " "))
	}
	if strings.Contains(check+subject, "*") || subject == string(audit.KindFabric) {
		return check + ":" + subject, "", nil
	}
	found, err := subjectIn(f, subject)
	if err != nil {
		return "", "", err
	}
	if found.Ends[0].Name != "" {
		name = found.Name()
	}
	return check + ":" + found.Key(), name, nil
}

// auditsOf returns the audits whose checks match pattern, in which * stands for any text:
// shipped ones, or the one in file.
func auditsOf(ctx context.Context, s *session.Session, pattern, file string) ([]string, error) {
	var known, of []string
	if file != "" {
		r, err := s.Files.OpenNamed(ctx, file)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, session.MaxOwn))
		if err != nil {
			return nil, err
		}
		if !strings.Contains(pattern, "*") && !bytes.Contains(text, []byte(strconv.Quote(pattern))) {
			return nil, fmt.Errorf("unknown check %q in %s", pattern, file)
		}
		return []string{file}, nil
	}
	elsewhere := false
	for _, c := range help.Checks() {
		known = append(known, c.Name)
		if !(audit.Ack{Pattern: pattern}).Names(c.Name) || slices.Contains(of, c.Audit) {
			continue
		}
		if isElsewhere(s, c.Name) {
			elsewhere = true
			continue
		}
		of = append(of, c.Audit)
	}
	if len(of) == 0 && elsewhere {
		return nil, elsewhereError(pattern)
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("unknown check %q%s; fabsh audit NAME --help lists checks; for one of your own audit give --audit FILE.star", pattern, fabric.DidYouMean(pattern, known))
	}
	return of, nil
}

// findingsOf returns what audits find now, compared with the state of the job that found what
// ack covers. judged reports whether the checks of ack were done.
func findingsOf(ctx context.Context, s *session.Session, names []string, subnet fabric.Subnet, ack *audit.Ack) (found []audit.Finding, judged bool, err error) {
	all, err := audits.LoadAudits(ctx, s.Interpreter, names, nil, false)
	if err != nil {
		return nil, false, err
	}
	job := audit.LatestJob(s.StateDir, subnet, history.JobStates(ctx, s.StateDir, subnet), ack)
	report, err := all.Run(ctx, s.Interpreter, audits.RunOptions{Subnet: subnet.Given, Job: cmp.Or(job, all.Job), ReadOnly: true, Once: true})
	if err != nil {
		return nil, false, err
	}
	for _, f := range report.Failures {
		s.Warn("audit %s: %s; how much there is of the fault is unknown", f.Audit, f.Why())
	}
	check, _, _ := strings.Cut(ack.Pattern, ":")
	covers := (audit.Ack{Pattern: check}).Names
	judged = report.Answered() && (job != "" && s.Engine != nil || !all.ComparesWithPast(covers)) &&
		!slices.ContainsFunc(report.Unjudged, func(u audit.Unjudged) bool { return covers(u.Check) })
	return report.Findings, judged, nil
}

// subjectIn returns what text names: a node of f, or one of its ports; of a link, the first
// end. A subject that
// is named by its GUID need not be in f now.
func subjectIn(f *fabric.Fabric, text string) (audit.Subject, error) {
	text = strings.TrimSuffix(text, ":")
	if topology.FindIn(f, text).Err != nil { // a link is shown by both ends, a port with its place on the panel
		text, _, _ = strings.Cut(text, " - ")
		if name, _, ok := strings.Cut(text, " ("); ok && strings.HasSuffix(text, ")") {
			text = name
		}
	}
	guid, num, byGUID := guidPort(text)
	if byGUID {
		text = guid.String()
	}
	t := topology.FindIn(f, text)
	switch {
	case t.Err == nil && !byGUID:
		num = t.Port
	case t.Err == nil: // IDs contain the GUID of the node, not of its port
		guid = t.Node.GUID()
	case !byGUID:
		return audit.Subject{}, t.Err
	}
	switch {
	case t.Err == nil && num < 0:
		return audit.OfNode(t.Node), nil
	case t.Err == nil && t.Node.Port(num) != nil:
		return audit.OfPort(t.Node.Port(num)), nil
	}
	return audit.OfGUID(guid, num, ""), nil
}

// guidPort reads GUID or GUID/PORT, in any spelling with 0x; without PORT it is
// audit.NoPort.
func guidPort(text string) (guid mad.GUID, num int, ok bool) {
	text, port, hasPort := strings.Cut(text, "/")
	if !strings.HasPrefix(text, "0x") && !strings.HasPrefix(text, "0X") {
		return 0, 0, false
	}
	guid, ok = records.GUIDText(text)
	num = audit.NoPort
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 8)
		num, ok = int(n), ok && err == nil
	}
	return guid, num, ok
}
