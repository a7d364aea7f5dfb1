package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	file     string // an address of PostgreSQL, or historyOfSubnet; "": none
	log      func(text string)
	recorder *history.Recorder
	copied   *replication // to PostgreSQL; nil: it is not
	slow     slowReads
	routes   *fabric.Fabric // with forwarding tables that this cycle has read; nil: none
	cycles   int
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
	if x.copied != nil {
		if text := x.copied.news(); text != "" {
			x.log(text)
		}
		x.copied.cycle()
	}
}

func (x *exporterHistory) record(ctx context.Context, s *session.Session, o *exporterOptions, report *audit.Report, read *audit.Read) (err error) {
	if x.recorder == nil {
		if x.recorder, x.copied, err = openHistory(ctx, s, report.Model, x.file, o.subnet); err != nil {
			return err
		}
	}
	c := history.Cycle{Time: report.Ended, Every: o.every.Value, Source: s.Name + " exporter", Fabric: report.Model, Traffic: true, Routes: x.routes}
	if read != nil && !read.Began.Before(report.Began) {
		c.Counters = read
	}
	var unread error
	if x.cycles++; x.cycles > 1 { // the first result is not delayed
		unread = x.slow.read(ctx, s, x.recorder, report.Model, &c)
	}
	sum, err := x.recorder.Record(ctx, c)
	if err != nil {
		return err
	}
	if err = unread; err != nil {
		err = fmt.Errorf("bit error rates and modules were not read: %w", err)
	}
	err = cmp.Or(err, history.Contribute(ctx, x.recorder.Path(), sum.Time, func(c *history.Contributor) {
		found, judged := findingsIn(report, true)
		c.Findings("exporter", found, judged)
	}))
	if err == nil && len(sum.Notes) > 0 {
		err = errors.New(strings.Join(sum.Notes, "; "))
	}
	return err
}

func (x *exporterHistory) close() {
	if x.recorder != nil {
		if err := x.recorder.Close(); err != nil {
			x.log("history: " + err.Error())
		}
		x.recorder = nil
	}
	if x.copied != nil {
		ended, end := context.WithCancel(context.Background())
		end()
		x.copied.close(ended)
		x.copied = nil
	}
}
