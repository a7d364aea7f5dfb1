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
	"strings"

	"fabsh/builtins"
	"fabsh/builtins/topology"
	"fabsh/fabric/audit"
	"fabsh/fabric/format"
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

// lockRuns lets one run at a time audit a subnet. Nil: there is nothing to lock,
// for nothing outside this process is asked, or no place for the lock.
func (s *session) lockRuns(subnet audit.Subnet) (*audit.Held, error) {
	dir := s.app.stateDir()
	if s.engine == nil || s.engine.Traits().Name == "sim" || dir == "" {
		return nil, nil
	}
	dir = subnet.Folder(dir)
	err := os.MkdirAll(dir, 0o755)
	var lock *audit.Held
	if err == nil {
		lock, err = audit.Lock(filepath.Join(dir, "lock"))
	}
	if err != nil && !errors.Is(err, audit.ErrLocked) {
		s.Warn("another run at the same time cannot be kept off: %v", noFile(err))
		return nil, nil
	}
	return lock, err
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
	name := ""
	if !strings.Contains(o.ack.id, "*") && subject != string(audit.KindFabric) && subject != "" {
		t := topology.FindIn(f, subject)
		if t.Err == nil {
			found := audit.OfNode(t.Node)
			if t.Port != topology.NoPortGiven && !isGUID(subject) {
				found = audit.OfPort(t.Node.Port(t.Port))
			}
			name, subject = found.Name(), found.Key()
		} else if !isGUIDPort(subject) {
			return fmt.Errorf("audit ack: %w", t.Err)
		}
	}
	id := o.ack.id
	if name != "" {
		id = check + ":" + subject
	}
	ack, err := audit.NewAck(id, name, o.ack.until, o.ack.by, o.ack.reason, s.Clock.Now())
	if err != nil {
		return fmt.Errorf("audit ack: %w", err)
	}
	if !ack.InForce(s.Clock.Now()) {
		return fmt.Errorf("audit ack: until %s: that day is over", o.ack.until)
	}
	path := builtins.AckFile(dir, audit.SubnetOf(f, o.subnet))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("audit ack: %w; or give --state DIR", noFile(err))
	}
	if err := audit.AddAck(path, ack); err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = noFile(err)
		}
		return fmt.Errorf("audit ack: %w", err)
	}
	s.Print(fmt.Sprintf("%s: known until %s (%s)\n", ack.Pattern, o.ack.until, path))
	return nil
}

// isGUID: text is a GUID; FindIn takes it for that of a port first.
func isGUID(text string) bool { return strings.HasPrefix(text, "0x") && !strings.Contains(text, "/") }

// isGUIDPort: text is GUID, or GUID/PORT, as in an ID: it need not be in the
// fabric now.
func isGUIDPort(text string) bool {
	guid, _, _ := strings.Cut(text, "/")
	return len(guid) == 18 && strings.HasPrefix(guid, "0x")
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
