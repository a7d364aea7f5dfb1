package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"fabsh/builtins/read"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/lock"
	"fabsh/mad"
	"fabsh/shell/session"
)

// lockRuns lets only one run of a job audit a subnet at a time; other jobs may run
// beside it. It returns nil where there is nothing to lock: the fabric is in this
// process, or there is no directory for the lock.
func lockRuns(s *session.Session, subnet fabric.Subnet, job string) (*lock.Lock, error) {
	dir := s.StateDir
	if s.Engine == nil || s.InProcess() || dir == "" {
		return nil, nil
	}
	dir = subnet.Folder(dir)
	err := os.MkdirAll(dir, 0o755)
	var held *lock.Lock
	if err == nil {
		held, err = lock.Acquire(filepath.Join(dir, job+".run.lock"))
	}
	if err != nil && !errors.Is(err, lock.ErrHeld) {
		s.Warn("runs at the same time are not excluded: %v", format.FileError(err))
		return nil, nil
	}
	return held, err
}

// ackOptions are what follows audit ack.
type ackOptions struct{ id, until, reason, by string }

// flags declares the flags of audit ack, and sets o to their defaults.
func (o *ackOptions) flags(subnet *string) *pflag.FlagSet {
	f := newFlags("audit ack")
	subnetFlag(f, subnet)
	f.StringVar(&o.until, "until", "", "acknowledge the finding until the end of the day `DATE`, such as 2026-12-24")
	f.StringVar(&o.reason, "reason", "", "reason, as `TEXT`")
	f.StringVar(&o.by, "by", "", "`WHO` acknowledges it (default: the user)")
	return f
}

// take takes the words that are not flags.
func (o *ackOptions) take(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("audit ack: missing ID of the finding; give CHECK:NAME/PORT")
	case len(words) > 1:
		return fmt.Errorf("audit ack: unexpected argument %q; want one ID", words[1])
	case o.until == "":
		return errors.New("audit ack: missing --until DATE, such as 2026-12-24; an acknowledgement must expire")
	case o.reason == "":
		return errors.New("audit ack: missing --reason TEXT")
	}
	o.id = words[0]
	return nil
}

// acknowledge acknowledges a finding.
func acknowledge(ctx context.Context, s *session.Session, o auditOptions) error {
	dir := s.StateDir
	if dir == "" {
		return errors.New("audit ack: no directory for state; give --state DIR")
	}
	if o.ack.by == "" {
		o.ack.by = session.Login()
	}
	if o.ack.by == "" {
		return errors.New("audit ack: unknown user; give --by WHO")
	}
	f, err := read.Fabric(ctx, s.Runtime)
	if err != nil {
		return err
	}
	check, subject, _ := strings.Cut(o.ack.id, ":")
	name, id := "", o.ack.id
	if !strings.Contains(id, "*") && subject != string(audit.KindFabric) && subject != "" {
		found, err := subjectIn(f, subject)
		if err != nil {
			return fmt.Errorf("audit ack: %w", err)
		}
		if id = check + ":" + found.Key(); found.Ends[0].Name != "" {
			name = found.Name()
		}
	}
	ack, err := audit.NewAck(id, name, o.ack.until, o.ack.by, o.ack.reason, s.Clock.Now())
	if err != nil {
		return fmt.Errorf("audit ack: %w", err)
	}
	if !ack.InForce(s.Clock.Now()) {
		return fmt.Errorf("audit ack: --until %s: date is in the past", o.ack.until)
	}
	subnet := fabric.SubnetOf(f, o.subnet)
	if err := audit.CheckSubnet(dir, subnet); err != nil {
		return fmt.Errorf("audit ack: %w", err)
	}
	path := audit.AckFile(dir, subnet)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("audit ack: %w; or give --state DIR", format.FileError(err))
	}
	err = audit.AddAck(path, ack)
	if err == nil {
		err = audit.RecordSubnet(dir, subnet, f.Complete())
	}
	if errors.Is(err, lock.ErrHeld) {
		return &session.HostError{Err: fmt.Errorf("audit ack: %w", err)}
	} else if err != nil {
		return fmt.Errorf("audit ack: %w", session.NotWritten(path, err))
	}
	s.Print(fmt.Sprintf("%s: acknowledged until %s (%s)\n", ack.Pattern, o.ack.until, path))
	return nil
}

// subjectIn returns what text names: a node of f, or one of its ports. A subject that
// is named by its GUID need not be in f now.
func subjectIn(f *fabric.Fabric, text string) (audit.Subject, error) {
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
