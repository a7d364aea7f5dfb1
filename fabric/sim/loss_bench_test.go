package sim

import (
	"slices"
	"testing"
	"time"

	"fabsh/mad"
	"fabsh/mad/engine"
)

// BenchmarkLoss asks 50,000 questions of a subnet that loses 20 % of all MADs
// each way, through the congestion window and through one that is fixed. They
// take turns.
func BenchmarkLoss(b *testing.B) {
	const questions = 50000
	ask := func(fixed bool) time.Duration {
		r := newRig(b, "fattree:k=8,levels=3,loss=0.2")
		t, err := r.Attach(r.Fabric.OfType(mad.NodeTypeCA)[0].ID(), 0)
		if err != nil {
			b.Fatal(err)
		}
		e := engine.New(t, engine.Options{Window: 256, FixedWindow: fixed, Timeout: 20 * time.Millisecond, Retries: 25})
		defer e.Close()
		calls := make([]*engine.Call, questions)
		for i := range calls {
			calls[i] = new(engine.Call)
			calls[i].PutSMP(mad.MethodGet, mad.AttrNodeInfo.ID, 0, nil)
			calls[i].SetLID(mad.LID(1 + i%len(r.Fabric.Nodes())))
		}
		start := time.Now()
		e.Do(b.Context(), calls...)
		took := time.Since(start)
		for _, c := range calls {
			if c.Err != nil {
				b.Fatal(c.Err)
			}
		}
		if testing.Verbose() {
			b.Logf("%v %v %+v", fixed, took, e.Stats().SMP)
		}
		return took
	}
	var ratios []float64
	var ours, theirs time.Duration
	for b.Loop() {
		o, f := ask(false), ask(true)
		ours, theirs = ours+o, theirs+f
		ratios = append(ratios, 100*o.Seconds()/f.Seconds())
	}
	b.ReportMetric(ours.Seconds()/float64(b.N), "window-sec")
	b.ReportMetric(theirs.Seconds()/float64(b.N), "fixed-sec")
	b.ReportMetric(100*ours.Seconds()/theirs.Seconds(), "%of-fixed")
	b.ReportMetric(slices.Max(ratios), "%of-fixed-at-most")
	b.ReportMetric(0, "ns/op") // of both: of no use
}
