package lang

import "sync"

// RunTogether calls run for the index of each fiber, which makes its threads there; up to width
// of them have begun and not ended. The fibers run as those of parallel: they begin in their
// order, and one runs at a time, while it does not wait. Their runtimes have clocks that count
// fibers in common, or none.
func RunTogether(fibers []*Fiber, width int, run func(i int)) {
	width = min(width, len(fibers))
	if width == 0 {
		return
	}
	r := fibers[0].Runtime
	baton := new(sync.Mutex)
	for _, f := range fibers {
		f.baton = baton
	}
	next, running := 0, width
	r.countFibers(running - 1) // the caller waits
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			baton.Lock()
			defer baton.Unlock()
			for next < len(fibers) {
				next++
				run(next - 1)
			}
			if running--; running > 0 { // the caller continues in place of the last
				r.countFibers(-1)
			}
		})
	}
	wg.Wait()
}
