package lang

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
)

// TestRunTogether: fibers begin in their order, two at most, and run at the same time; one at a time
// is in a builtin, while it does not wait. A virtual clock advances only when all wait.
func TestRunTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runtime{Activity: new(Activity), Clock: NewVirtualClock()}
		began := r.Clock.Now()
		var got []string
		fibers := fibersOf(t.Context(), r, 3)
		met := make(chan int)
		RunTogether(fibers, 2, func(i int) {
			switch i { // both run: neither waits in a builtin
			case 0:
				met <- i
			case 1:
				<-met
			}
			thread, release := NewThread(fibers[i], "test")
			defer release()
			work := NewFunction(&Builtin{Name: "work", Run: Do(func(c *Call, _ *struct{}) (starlark.Value, error) {
				c.Block(func(ctx context.Context) error { return r.Clock.Sleep(ctx, time.Duration(3-i)*time.Second) })
				got = append(got, string(rune('a'+i))+" "+r.Clock.Now().Sub(began).String())
				return starlark.None, nil
			})})
			if _, err := starlark.Call(thread, work, nil, nil); err != nil {
				t.Error(err)
			}
		})
		if diff := cmp.Diff([]string{"b 2s", "a 3s", "c 3s"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestRunTogetherLimited: with a limit of steps, one fiber runs at a time, and others run while it waits.
func TestRunTogetherLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runtime{Activity: new(Activity), Clock: NewVirtualClock()}
		began := r.Clock.Now()
		var got []string
		ctx := LimitSteps(t.Context(), 100, func(error) {})
		fibers := fibersOf(ctx, r, 3)
		RunTogether(fibers, 2, func(i int) {
			thread, release := NewThread(fibers[i], "test")
			defer release()
			name := string(rune('a' + i))
			got = append(got, name)
			Block(thread, func(ctx context.Context) error { return r.Clock.Sleep(ctx, time.Duration(3-i)*time.Second) })
			got = append(got, name+" "+r.Clock.Now().Sub(began).String())
		})
		if diff := cmp.Diff([]string{"a", "b", "b 2s", "c", "a 3s", "c 3s"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func fibersOf(ctx context.Context, r *Runtime, n int) []*Fiber {
	fibers := make([]*Fiber, n)
	for i := range fibers {
		fibers[i] = &Fiber{Runtime: r, Context: ctx, Sink: Discard{}, Account: new(Account)}
	}
	return fibers
}
