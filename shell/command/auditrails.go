package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/mad/umad"
	"fabsh/shell/session"
)

// auditEachPort audits from each active InfiniBand port of the host.
func auditEachPort(p *session.Program, o auditOptions) error {
	if p.Line != nil {
		return errors.New("audit: --each-port is not available at the prompt, whose session has one port; run `fabsh audit --each-port` in a shell")
	}
	if spec, _ := p.Settings.FabricSpec(); spec != "umad" || p.Settings.CA != "" || p.Settings.Port.IsSet {
		return errors.New("audit: --each-port excludes -F, -C and -P: it is for all devices of the host")
	}
	ports, err := umad.ActivePorts(nil)
	if err == nil && len(ports) == 0 {
		err = errors.New("no active InfiniBand port on this host")
	}
	if err != nil {
		return &session.HostError{Err: err}
	}
	specs := make([]string, len(ports))
	for i, port := range ports {
		specs[i] = "umad:" + port
	}
	return auditRails(p, o, ports, specs)
}

// auditRails audits from each of the ports, which stand in for -F.
func auditRails(p *session.Program, o auditOptions, ports, specs []string) error {
	worst, limit, results := lang.StatusClean, p.StartTime(), new(auditResults)
	for i, port := range ports {
		settings := *p.Settings
		settings.Fabric = specs[i]
		o.rail = port
		if late := context.Cause(limit.Context()); late != nil { // the rails before took all of the time
			worst = session.Worse(worst, p.Console.Fail(&session.HostError{Err: fmt.Errorf("port %s: not audited: %w", port, late)}))
			results.missing = append(results.missing, fmt.Sprintf("port %s: not audited: %v", port, late))
			continue
		}
		reports := len(results.reports)
		err := execute(p.With(settings), task{name: "audit", time: limit, run: func(ctx context.Context, s *session.Session) error {
			return runAudit(ctx, s, o, results)
		}})
		status := lang.StatusClean
		switch exit := (*lang.ExitError)(nil); {
		case errors.As(err, &exit):
			status = exit.Code
		case err != nil:
			status = p.Console.Fail(fmt.Errorf("port %s: %w", port, err)) // the other rails are audited nevertheless
		}
		if len(results.reports) == reports {
			results.missing = append(results.missing, fmt.Sprintf("port %s: not audited", port))
		}
		worst = session.Worse(worst, status)
		if status == lang.StatusInterrupted {
			break
		}
	}
	return results.writeAfter(p, limit, o, session.Exit(worst))
}

// hostAudits returns the audits among words that judge this host instead of a fabric, and the
// others.
func hostAudits(words []string) (host, others []string) {
	for _, w := range words {
		path, err := script.Audits.Locate(w)
		if strings.HasPrefix(w, "-") || err != nil {
			continue
		}
		src := ""
		if strings.HasSuffix(w, ".star") {
			src = sourceAt(path)
		} else {
			src, _ = script.Audits.Source(w)
		}
		if script.JudgesHost(src) {
			host = append(host, w)
		} else {
			others = append(others, w)
		}
	}
	return host, others
}

// auditHost runs audits that judge this host: it opens no fabric.
func auditHost(p *session.Program, o auditOptions, limit session.TimeLimit, results *auditResults) error {
	host, others := hostAudits(o.words)
	if len(others) > 0 {
		return fmt.Errorf("audit %s: judges this host, without a fabric; run %s in a command of its own", host[0], strings.Join(others, ", "))
	}
	if err := checkHost(p, "audit "+host[0]); err != nil {
		return err
	}
	if o.baseline != "" || o.cache != "" || o.eachPort || o.nodes.on {
		return fmt.Errorf("audit %s: --baseline, --load-cache, --each-port and -o nodes are not supported: this audit judges all ports of this host, without a fabric", host[0])
	}
	open := func(ctx context.Context) (*session.Session, error) { return session.OpenHost(ctx, p) }
	return execute(p, task{name: "audit", time: limit, open: open, run: func(ctx context.Context, s *session.Session) error {
		return runAudit(ctx, s, o, results)
	}})
}

// checkHost returns an error if a command on this host cannot run with these settings.
func checkHost(p *session.Program, name string) error {
	s := p.Settings
	switch {
	case p.Line != nil:
		return fmt.Errorf("%s: not available at the prompt, whose session has a fabric; run `fabsh %[1]s` in a shell", name)
	case s.Fabric != "", s.CA != "", s.Port.IsSet, s.Given("record"):
		return fmt.Errorf("%s: -F, -C, -P and --record are not supported: it is about all ports of this host, without a fabric", name)
	}
	return nil
}

// isElsewhere reports whether check is a check of this host, and the session is about a fabric,
// or the other way round.
func isElsewhere(s *session.Session, check string) bool {
	i := slices.IndexFunc(help.Checks(), func(c help.Check) bool { return c.Name == check })
	if i < 0 {
		return false
	}
	host, _ := hostAudits([]string{help.Checks()[i].Audit})
	return (host != nil) != (topology.EnvOf(s.Runtime).Host != nil)
}

func elsewhereError(check string) error {
	return fmt.Errorf("%s: checks of audit host need --host, and others do not support it", check)
}

// lockRuns lets only one run of a job audit a subnet at a time; other jobs may run
// beside it. It returns nil where there is nothing to lock: the fabric is in this
// process, or there is no directory for the lock.
func lockRuns(s *session.Session, subnet fabric.Subnet, job string) (*format.FileLock, error) {
	dir := s.StateDir
	if s.Engine == nil || s.InProcess() || dir == "" {
		return nil, nil
	}
	dir = subnet.Folder(dir)
	err := os.MkdirAll(dir, 0o755)
	var held *format.FileLock
	if err == nil {
		held, err = format.AcquireLock(filepath.Join(dir, job+".run.lock"))
	}
	if err != nil && !errors.Is(err, format.ErrLockHeld) {
		s.Warn("runs at the same time are not excluded: %v", format.FileError(err))
		return nil, nil
	}
	return held, err
}

// run runs a command on acks: those of the fabric, or of this host.
func (o *ackOptions) run(p *session.Program, run func(context.Context, *session.Session) error) error {
	t := task{name: "audit", time: p.StartTime(), run: run}
	if o.host {
		if err := checkHost(p, "audit ack --host"); err != nil {
			return err
		}
		t.open = func(ctx context.Context) (*session.Session, error) { return session.OpenHost(ctx, p) }
	}
	return execute(p, t)
}
