package command

import (
	"context"
	"errors"
	"fmt"

	"fabsh/builtins/lang"
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
