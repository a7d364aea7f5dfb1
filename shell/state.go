package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"fabsh/builtins"
	"fabsh/builtins/records"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
	"fabsh/fabric/lock"
	"fabsh/mad"
)

// systemState is where root keeps what one run needs of the run before (Filesystem
// Hierarchy Standard, /var/lib).
const systemState = "/var/lib/fabsh"

// stateDir is the folder for what one run needs of the run before: --state, else
// that of the system for root, and of the user for others. Empty: there is none.
func (s *settings) stateDir() string {
	switch {
	case s.state != "":
		return s.state
	case os.Geteuid() == 0:
		return systemState
	}
	return stateFile("")
}

// jobOf names what a script keeps: it is the script's name, "shell" of what is
// none.
func jobOf(script string) string {
	name := strings.TrimSuffix(filepath.Base(script), ".star")
	if script == "" || name == "" {
		return "shell"
	}
	return audit.JobOf(name)
}

// openRegular opens a file that the command line does not name, which must be a
// regular one: it waits for nobody.
func openRegular(path string) (*os.File, error) {
	f, err := format.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("is a folder")}
	}
	return f, nil
}

// maxOwn is how long the program's own files may be, in bytes: those of settings,
// of statements to begin with, and of the history.
const maxOwn = 16 << 20

// readOwn reads a file of the program's own as a whole.
func readOwn(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := format.Bounded(f, path, maxOwn)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// lockRuns lets one run of a job at a time audit a subnet; other jobs run beside it. Nil:
// there is nothing to lock, for nothing outside this process is asked, or no place for the
// lock.
func (s *session) lockRuns(subnet fabric.Subnet, job string) (*lock.Lock, error) {
	dir := s.app.stateDir()
	if s.engine == nil || s.engine.Traits().Name == "sim" || dir == "" {
		return nil, nil
	}
	dir = subnet.Folder(dir)
	err := os.MkdirAll(dir, 0o755)
	var held *lock.Lock
	if err == nil {
		held, err = lock.Acquire(filepath.Join(dir, job+".run.lock"))
	}
	if err != nil && !errors.Is(err, lock.ErrHeld) {
		s.Warn("another run at the same time cannot be kept off: %v", noFile(err))
		return nil, nil
	}
	return held, err
}

// ackOptions are what follows audit ack.
type ackOptions struct{ id, until, reason, by string }

// take takes the word that is no flag.
func (o *ackOptions) take(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("audit ack: of which finding? give its ID, as CHECK:NAME/PORT")
	case len(words) > 1:
		return fmt.Errorf("audit ack: takes one ID, and here is also %q", words[1])
	case o.until == "":
		return errors.New("audit ack: until when? give --until DATE, as 2026-12-24; nothing is silenced for ever")
	case o.reason == "":
		return errors.New("audit ack: why? give --reason TEXT")
	}
	o.id = words[0]
	return nil
}

// acknowledge says that a finding is known.
func (s *session) acknowledge(ctx context.Context, o auditOptions) error {
	dir := s.app.stateDir()
	if dir == "" {
		return errors.New("audit ack: there is no place for it: give --state DIR")
	}
	if o.ack.by == "" {
		o.ack.by = login()
	}
	if o.ack.by == "" {
		return errors.New("audit ack: who says so? give --by WHO")
	}
	f, err := s.CurrentFabric(ctx)
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
		return fmt.Errorf("audit ack: until %s: that day is over", o.ack.until)
	}
	path := builtins.AckFile(dir, fabric.SubnetOf(f, o.subnet))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("audit ack: %w; or give --state DIR", noFile(err))
	}
	if err := audit.AddAck(path, ack); errors.Is(err, lock.ErrHeld) {
		return &hostError{fmt.Errorf("audit ack: %w", err)}
	} else if err != nil {
		return fmt.Errorf("audit ack: %w", notWritten(path, err))
	}
	s.Print(fmt.Sprintf("%s: known until %s (%s)\n", ack.Pattern, o.ack.until, path))
	return nil
}

// subjectIn is what text names: a node of f, or one of its ports. What is named by its GUID
// need not be in f now.
func subjectIn(f *fabric.Fabric, text string) (audit.Subject, error) {
	guid, num, byGUID := guidPort(text)
	if byGUID {
		text = guid.String()
	}
	t := topology.FindIn(f, text)
	switch {
	case t.Err == nil && !byGUID:
		num = t.Port
	case t.Err == nil: // the GUID of a port stands for its node's, which IDs are made of
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

// login is who runs the program; empty if nobody knows.
func login() string {
	for _, name := range []string{"SUDO_USER", "LOGNAME", "USER"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
