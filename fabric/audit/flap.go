package audit

import "time"

// The criteria of NVIDIA's bring-up guide for links (InfiniBand Cluster Bring-up Procedure, "UFM
// Telemetry"): FlapDowns link-downs of one port within FlapWindow need an investigation, and bit error
// rates count once the link has been up for BERUptime.
const (
	FlapDowns  = 2
	FlapWindow = 24 * time.Hour
	BERUptime  = 125 * time.Minute
)

// Downs is how often a link went down between two times.
type Downs struct {
	From, To time.Time
	Count    uint64
}

// LinkDowns is what is known of the link-downs of a port in the last FlapWindow.
type LinkDowns struct {
	Count uint64        // link-downs
	Reach time.Duration // how far back they are known; at most FlapWindow
	// Up is how long the link has been up at least, since it last may have gone down or, if it did not,
	// in Reach. Down reports whether it went down in Reach: if not, it may have been up for longer.
	Up   time.Duration
	Down bool
}

// Flaps reports whether the link-downs are a flap.
func (d LinkDowns) Flaps() bool { return d.Count >= FlapDowns }

// Settled reports whether bit error rates count: the link is not known to have gone down within BERUptime.
func (d LinkDowns) Settled() bool { return !d.Down || d.Up >= BERUptime }

// JudgeDowns counts the link-downs in list, in any order, that were within FlapWindow before now. Those
// of an interval that begins earlier do not count: they may have been before.
func JudgeDowns(list []Downs, now time.Time) (d LinkDowns) {
	oldest, last := now, time.Time{}
	begin := now.Add(-FlapWindow)
	for _, x := range list {
		if x.From.Before(begin) || x.To.Before(x.From) {
			continue
		}
		d.Count += x.Count
		if x.From.Before(oldest) {
			oldest = x.From
		}
		if x.Count > 0 && x.To.After(last) {
			last = x.To
		}
	}
	d.Reach = now.Sub(oldest)
	d.Up, d.Down = d.Reach, d.Count > 0
	if d.Down {
		d.Up = max(0, now.Sub(last))
	}
	return d
}

// Downs returns the link-downs that the port counted between the reads that are kept, the newest first. It
// ends where a read does not have the port: its link was down by then, as when it is disabled.
func (r *PortRates) Downs(now time.Time) (list []Downs) {
	counter := CounterIndex("link_downed_counter")
	to, counted := now, uint64(0)
	if !r.Answered() {
		return nil
	}
	for i := range r.Since.earlier {
		e := &r.Since.earlier[i]
		w, ok := e.window(r.Read)
		if !ok {
			break
		}
		x := w.Rate(counter)
		from := now.Add(-x.Window)
		if x.Why != Known || !from.Before(to) || x.Count < counted {
			continue
		}
		list = append(list, Downs{from, to, x.Count - counted})
		to, counted = from, x.Count
	}
	return list
}
