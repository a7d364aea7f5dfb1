package lang

import "sync"

// RunTogether calls run for the index of each fiber, which makes its threads there; up to width
// of them have begun and not ended. The fibers begin in their order. They are of scripts that
// share no values that may change, so they run at the same time, except that only one is in
// builtins at a time, while it does not wait. With a limit of steps, which they count in common,
// they run as those of parallel. Each has a runtime of its own, a Part of one; their clocks count
// fibers in common, or not at all.
func RunTogether(fibers []*Fiber, width int, run func(i int)) {
	width = min(width, len(fibers))
	if width == 0 {
		return
	}
	var baton, common sync.Mutex
	limited, _ := fibers[0].Context.Value(stepsKey{}).(*steps)
	for _, f := range fibers {
		if f.common = &common; limited != nil {
			f.baton, f.common = &baton, nil
		}
	}
	r := fibers[0].Runtime
	next, running := 0, width  // common guards both
	r.countFibers(running - 1) // the caller waits
	begin := func() (i int, more bool) {
		common.Lock()
		defer common.Unlock()
		if next < len(fibers) {
			next++
			return next - 1, true
		}
		if running--; running > 0 { // the caller continues in place of the last
			r.countFibers(-1)
		}
		return 0, false
	}
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			if limited != nil {
				baton.Lock()
				defer baton.Unlock()
			}
			for i, more := begin(); more; i, more = begin() {
				run(i)
			}
		})
	}
	wg.Wait()
}
