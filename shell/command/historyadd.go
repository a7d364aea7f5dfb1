package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"fabsh/builtins/changes"
	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/change/apply"
	"fabsh/fabric/history"
	"fabsh/fabric/remedy"
	"fabsh/shell/session"
)

// addToHistory adds to the history of a subnet, if there is one. A failure is one line on standard error,
// and has no effect on the command.
func addToHistory(ctx context.Context, s *session.Session, folder string, f func(c *history.Contributor)) {
	if folder == "" || s.Engine == nil {
		return
	}
	path := filepath.Join(folder, history.FileName)
	if err := history.Contribute(context.WithoutCancel(ctx), path, s.Clock.Now(), f); err != nil {
		s.Console.Complain(fmt.Sprintf("not added to the history: %v", err))
	}
}

// historyFolder returns the directory of the history of a subnet; "" without one.
func historyFolder(s *session.Session, subnet fabric.Subnet) string {
	if s.StateDir == "" || !subnet.IsKnown() || audit.CheckSubnet(s.StateDir, subnet) != nil {
		return ""
	}
	return subnet.Folder(s.StateDir)
}

// addFindings adds the findings of a run of audits, and the acknowledgements. With a baseline, findings are
// left out of the report, so that no finding is known to be gone.
func addFindings(ctx context.Context, s *session.Session, job string, r *audit.Report, baseline bool) {
	if s.StateDir == "" || r.Model == nil {
		return
	}
	found, judged := findingsIn(r, !baseline)
	addToHistory(ctx, s, historyFolder(s, r.Subnet), func(c *history.Contributor) {
		c.Findings(job, found, judged)
		acks, bad := audit.ReadAcks(audit.AckFile(s.StateDir, r.Subnet), s.Clock.Now())
		if len(bad) == 0 { // else one that still holds could be in a line that is not understood
			c.Acks(acks)
		}
	})
}

// findingsIn returns the findings of a report, also those that are acknowledged, and what reports whether a
// check was done for the whole fabric; all is false if the report lacks findings.
func findingsIn(r *audit.Report, all bool) (found []audit.Finding, judged func(audit, check string) bool) {
	found = slices.Clone(r.Findings)
	for _, a := range r.Acked {
		found = append(found, a.Finding)
	}
	all = all && r.Answered()
	return found, func(name, check string) bool {
		return all && (slices.Contains(r.Judged, check) || name != "" && slices.Contains(r.Judged, name))
	}
}

// addAcks copies the acknowledgements of a subnet.
func addAcks(ctx context.Context, s *session.Session, subnet fabric.Subnet) {
	addToHistory(ctx, s, historyFolder(s, subnet), func(c *history.Contributor) {
		if acks, bad := audit.ReadAcks(audit.AckFile(s.StateDir, subnet), s.Clock.Now()); len(bad) == 0 {
			c.Acks(acks)
		}
	})
}

// addDecisions adds what a run of remedies planned or declined.
func addDecisions(ctx context.Context, s *session.Session, subnet fabric.Subnet, list []remedy.Decision) {
	addToHistory(ctx, s, historyFolder(s, subnet), func(c *history.Contributor) {
		for _, d := range list {
			outcome := "planned: " + d.Reason
			if d.Rule != "" {
				outcome = "declined: " + d.Rule + ": " + d.Why
			}
			place := remedy.Place{Num: -1}
			if d.Port != nil {
				place = remedy.PlaceOf(d.Port)
			}
			c.Change("remedy", string(d.Kind)+" "+d.Name, session.Login(), fabric.Clip(outcome), place.GUID, place.Num)
		}
	})
}

// addCabling adds that the cables were compared with a plan.
func addCabling(ctx context.Context, s *session.Session, f *fabric.Fabric, plans []string, outcome string) {
	addToHistory(ctx, s, historyFolder(s, fabric.SubnetOf(f, "")), func(c *history.Contributor) {
		c.Change("cabling", fabric.Clip("plan "+strings.Join(plans, " ")), session.Login(), outcome, 0, -1)
	})
}

// addChange adds how a change ended: the latest of the fabric.
func addChange(ctx context.Context, s *session.Session, action string, outcome apply.Outcome, failure error) {
	if s.StateDir == "" || s.Engine == nil || outcome == apply.Nothing {
		return
	}
	r, err := changes.HostOf(s.Runtime).Latest(context.WithoutCancel(ctx))
	if err != nil || r.Dir == "" {
		return
	}
	subject, who := "a change", session.Login()
	if j, err := r.Read(); err == nil && j.Begin() != nil {
		subject = j.Begin().Summary
		if j.Begin().By != "" && action == "apply" {
			who = j.Begin().By
		}
	}
	text := map[apply.Outcome]string{apply.Confirmed: "confirmed", apply.Expired: "reverted: not confirmed", apply.RevertedOnRequest: "reverted", apply.Failed: "reverted: a check failed"}[outcome]
	if text == "" {
		text = "unresolved"
	}
	if failure != nil {
		text += ": " + fabric.Clip(failure.Error())
	}
	addToHistory(ctx, s, r.Dir, func(c *history.Contributor) { c.Change(action, subject, who, text, 0, -1) })
}
