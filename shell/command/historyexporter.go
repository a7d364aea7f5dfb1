package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/audit"
	"fabsh/fabric/history"
	"fabsh/shell/session"
)

// historyOfSubnet stands for the history of the subnet in the directory for state.
const historyOfSubnet = "auto"

// exporterHistory adds the cycles of an exporter to a history.
type exporterHistory struct {
	file     string // or historyOfSubnet; "": none
	log      func(text string)
	recorder *history.Recorder
	said     string // the last failure
}

// add adds a cycle: the fabric of the report, and read if it is of this cycle. A failure is logged once.
func (x *exporterHistory) add(ctx context.Context, s *session.Session, o *exporterOptions, report *audit.Report, read *audit.Read) {
	if x.file == "" || report.Model == nil {
		return
	}
	said := ""
	if err := x.record(ctx, s, o, report, read); err != nil && ctx.Err() == nil {
		said = "history: " + err.Error()
	}
	if said != "" && said != x.said {
		x.log(said)
	}
	x.said = said
}

func (x *exporterHistory) record(ctx context.Context, s *session.Session, o *exporterOptions, report *audit.Report, read *audit.Read) (err error) {
	if x.recorder == nil {
		if x.recorder, err = x.open(ctx, s, o, report.Model); err != nil {
			return err
		}
	}
	c := history.Cycle{Time: report.Ended, Every: o.every.Value, Source: s.Name + " exporter", Fabric: report.Model, Traffic: true}
	if read != nil && !read.Began.Before(report.Began) {
		c.Counters = read
	}
	sum, err := x.recorder.Record(ctx, c)
	if err != nil {
		return err
	}
	err = history.Contribute(ctx, x.recorder.Path(), sum.Time, func(c *history.Contributor) {
		found, judged := findingsIn(report, true)
		c.Findings("exporter", found, judged)
	})
	if err == nil && len(sum.Notes) > 0 {
		err = errors.New(strings.Join(sum.Notes, "; "))
	}
	return err
}

func (x *exporterHistory) open(ctx context.Context, s *session.Session, o *exporterOptions, f *fabric.Fabric) (*history.Recorder, error) {
	if x.file != historyOfSubnet {
		subnet := fabric.SubnetOf(f, o.subnet)
		if !subnet.IsKnown() {
			return nil, errors.New("the subnet has no name; give --subnet NAME")
		}
		path, err := filepath.Abs(x.file)
		if err != nil {
			return nil, err
		}
		return history.NewRecorder(ctx, path, subnet, s.Clock.Now())
	}
	if s.StateDir == "" {
		return nil, fmt.Errorf("no directory for state; give --state DIR")
	}
	return openRecorder(ctx, s, f, o.subnet)
}

func (x *exporterHistory) close() {
	if x.recorder != nil {
		if err := x.recorder.Close(); err != nil {
			x.log("history: " + err.Error())
		}
		x.recorder = nil
	}
}
