package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"fabsh/builtins/remedies"
	"fabsh/fabric"
	"fabsh/fabric/hosts"
	"fabsh/fabric/jobs"
	"fabsh/fabric/plural"
)

// jobList is the jobs that run, by the scheduler.
type jobList struct {
	list    []jobs.Job
	written time.Time
	key     string // of their traffic
}

// SetJobs sets the jobs that run. They are those of a file that was written at a time.
func (s *Site) SetJobs(list []jobs.Job, written time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs != nil && reflect.DeepEqual(s.jobs.list, list) {
		s.jobs = &jobList{list, written, s.jobs.key}
		return
	}
	s.numJobs++
	s.jobs = &jobList{list, written, fmt.Sprintf("jobs %d", s.numJobs)}
	s.work.mu.Lock()
	defer s.work.mu.Unlock()
	s.work.remove(func(k workKey) bool { return strings.HasPrefix(k.what, "jobs ") })
}

// jobsOf returns the jobs at the time of a page; nil: they are not known.
func (s *Site) jobsOf(v *view) *jobList {
	if v.moment.isPast {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs
}

// traffic returns the traffic of jobs if all of their hosts send to each other. The links of hosts do not count.
func (s *Site) traffic(v *view, t *Tables, j *jobList, wait time.Duration) (*jobs.Traffic, error) {
	return compute(v.ctx, &s.work, workKey{t, j.key}, wait, func(ctx context.Context) (*jobs.Traffic, error) {
		return jobs.Measure(ctx, t.Routes, j.list, jobs.AllToAll, 0)
	})
}

// jobsView is the jobs that a page shows.
type jobsView struct {
	Head, Text string // Text: instead of rows
	Rows       []jobRow
	More       int
	Worst      mark // of the rows
	Note       string
	Written    time.Time
}

// jobRow is a job.
type jobRow struct {
	ID, Name, User, Hosts string
	Traffic, Lost, Less   string
	Mark                  mark
}

// add adds a job.
func (d *jobsView) add(j *jobs.Job, x jobRow) {
	if len(d.Rows) == maxRows {
		d.More++
		return
	}
	x.ID, x.Name, x.User = clean(j.ID), clean(j.Name), clean(j.User)
	x.Hosts = fmt.Sprintf("%d: %s", len(j.Hosts), clean(clipped(hosts.Fold(j.Hosts[:min(len(j.Hosts), 1000)]))))
	d.Rows = append(d.Rows, x)
}

// trafficNote is what figures of traffic mean.
const trafficNote = "Traffic: on a link between switches, if all hosts of the job send to each other at once; 1 is the bandwidth of a port of a host; on a link of another rate, its own."

// jobsHere returns the jobs with traffic over the link of a port, or of the host at an end of it, or of the
// host of a node if p is nil; nil: there is no host and no link between switches, or jobs are not known.
func (s *Site) jobsHere(v *view, t *Tables, n *fabric.Node, p *fabric.Port) *jobsView {
	j := s.jobsOf(v)
	if j == nil {
		return nil
	}
	d := &jobsView{Head: "Jobs over this link", Written: j.written, Note: trafficNote}
	host := ""
	for _, x := range endNodes(n, p) {
		if name, ok := fabric.HostName(x.Name()); ok && !x.IsSwitch() {
			host = name
			d.Head, d.Note = "Jobs of "+clean(name), ""
		}
	}
	if host == "" && (p == nil || p.Peer() == nil) {
		return nil
	}
	if t == nil {
		d.Text = "Hosts of jobs are found by forwarding tables, which are not known."
		return d
	}
	traffic, err := s.traffic(v, t, j, workWait/8)
	if text := notCounted(err); text != "" {
		d.Text = text
		return d
	}
	type use struct {
		job     int
		traffic float64
	}
	var uses []use
	var channels []int32
	if host == "" {
		for _, e := range []*fabric.Port{p, p.Peer()} {
			out := samePort(t.Fabric(), e)
			c := -1
			if out != nil {
				c = t.Routes.Graph().ChannelOf(out)
			}
			if c < 0 {
				d.Text = "The tables were read before this link was up."
				return d
			}
			channels = append(channels, int32(c))
		}
	}
	placed := 0
	for i := range traffic.Jobs {
		x := &traffic.Jobs[i]
		placed += len(x.Hosts)
		if host != "" {
			if slices.Contains(x.Hosts, host) {
				uses = append(uses, use{i, 0})
			}
			continue
		}
		most := 0.0
		for _, c := range channels {
			if k, ok := slices.BinarySearchFunc(x.Loads, c, func(l jobs.Load, c int32) int { return cmp.Compare(l.Channel, c) }); ok {
				most = max(most, t.Routes.Graph().Capacity().Load(c, x.Loads[k].Traffic))
			}
		}
		if most > 0 {
			uses = append(uses, use{i, most})
		}
	}
	slices.SortStableFunc(uses, func(a, b use) int { return cmp.Compare(b.traffic, a.traffic) })
	for _, u := range uses {
		row := jobRow{}
		if host == "" {
			row.Traffic = fmt.Sprintf("%.3g", u.traffic)
		}
		d.add(&j.list[u.job], row)
	}
	d.empty(j, placed)
	return d
}

// endNodes returns the nodes at a link, or a node.
func endNodes(n *fabric.Node, p *fabric.Port) []*fabric.Node {
	if p == nil || p.Peer() == nil {
		return []*fabric.Node{n}
	}
	return []*fabric.Node{n, p.Peer().Node()}
}

// empty states why no job is shown.
func (d *jobsView) empty(j *jobList, placed int) {
	if len(d.Rows) > 0 {
		return
	}
	switch n := len(j.list); {
	case n == 0:
		d.Text = "No job runs."
	case placed == 0:
		d.Text = fmt.Sprintf("No host of the %s is in this fabric by its name: compare the names of hosts in the file and on the map.", plural.Count(n, "job", "jobs"))
	default:
		d.Text = fmt.Sprintf("None of %s that run.", plural.Count(n, "job", "jobs"))
	}
	d.Note = ""
}

// notCounted states why the traffic of jobs is not known; "": it is.
func notCounted(err error) string {
	switch {
	case errors.Is(err, errPending):
		return "The traffic of jobs is still being counted. Reload this page in a few seconds."
	case err != nil:
		return "Jobs are not counted: " + clean(err.Error())
	}
	return ""
}

// withJobs returns a prediction with the jobs that run, and these for a page; nil: jobs are not known.
func (s *Site) withJobs(v *view, t *Tables, x *remedies.Impact) (*remedies.Impact, *jobsView, error) {
	j := s.jobsOf(v)
	if j == nil {
		return x, nil, nil
	}
	d := &jobsView{Head: "Jobs without it", Written: j.written, Note: trafficNote}
	traffic, err := s.traffic(v, t, j, workWait)
	if text := notCounted(err); text != "" {
		d.Text = text
		return x, d, err
	}
	x = x.With(t.Routes.Graph(), j.list, traffic)
	list := slices.Clone(x.Jobs())
	slices.SortStableFunc(list, func(a, b remedies.JobImpact) int {
		return cmp.Or(cmp.Compare(len(b.HostsLost), len(a.HostsLost)), cmp.Compare(len(b.HostsDegraded), len(a.HostsDegraded)), cmp.Compare(b.Traffic, a.Traffic))
	})
	placed := 0
	for i := range traffic.Jobs {
		placed += len(traffic.Jobs[i].Hosts)
	}
	for i := range list {
		y := &list[i]
		row := jobRow{Traffic: fmt.Sprintf("%.3g", y.Traffic)}
		if len(y.HostsLost) > 0 {
			row.Mark = isDown
			row.Lost = fmt.Sprintf("%d: %s", len(y.HostsLost), clean(clipped(hosts.Fold(y.HostsLost))))
		}
		if len(y.HostsDegraded) > 0 {
			row.Mark = max(row.Mark, isSlow)
			row.Less = fmt.Sprintf("%d: %s", len(y.HostsDegraded), clean(clipped(hosts.Fold(y.HostsDegraded))))
		}
		d.Worst = max(d.Worst, row.Mark)
		d.add(&y.Job, row)
	}
	d.empty(j, placed)
	return x, d, nil
}

// fact adds the jobs of a prediction, in words, to its effect.
func (d *jobsView) fact(e *effectView) {
	if d == nil || len(d.Rows) == 0 {
		return
	}
	n := len(d.Rows) + d.More
	text := plural.Count(n, "running job has", "running jobs have") + " hosts or traffic there"
	if d.Worst == isDown {
		text += "; some lose hosts"
	}
	e.Facts = append(e.Facts, item{Key: "Jobs", Text: text, Mark: d.Worst})
	if d.Worst == isDown || e.Class == "" {
		e.Class = d.Worst.Class()
	}
}
