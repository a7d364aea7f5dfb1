package command

import (
	"context"
	"strings"
	"sync"
	"time"

	"fabsh/fabric/history"
)

// Limits of a copy to PostgreSQL: of the first, which may have years, and of those that follow.
const (
	firstCopy = time.Hour
	nextCopy  = 10 * time.Minute
)

// replication copies a history to PostgreSQL after each cycle, beside the sweeps: a server that does not
// answer delays none.
type replication struct {
	replica *history.Replica
	wake    chan struct{}
	ended   chan struct{}
	stop    context.CancelFunc

	mu     sync.Mutex // guards the fields below
	failed string     // the last failure
	said   string     // as news returned it last
}

// replicate begins to copy the history at path to an address of PostgreSQL.
func replicate(ctx context.Context, path, address string) (*replication, error) {
	r, err := history.NewReplica(path, address)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &replication{replica: r, wake: make(chan struct{}, 1), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(x.ended)
		defer r.Close()
		limit := firstCopy
		for range x.wake {
			if x.copy(ctx, limit) {
				limit = nextCopy
			}
		}
	}()
	return x, nil
}

// copy copies what has changed, and reports whether that succeeded.
func (x *replication) copy(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := x.replica.Sync(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = ""
	if err != nil {
		x.failed = "not copied to PostgreSQL, which the next sweep tries again: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return err == nil
}

// cycle has the history copied, after a copy under way if there is one.
func (x *replication) cycle() {
	select {
	case x.wake <- struct{}{}:
	default: // it will be
	}
}

// news returns what is to be reported since the last call: a new failure, or that copies succeed again; "":
// nothing.
func (x *replication) news() (text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == x.said {
		return ""
	}
	if x.said = x.failed; x.said == "" {
		return "the history is copied to PostgreSQL again"
	}
	return x.said
}

// lastCopy is how long the end of a program waits for a copy, which the next run makes up for.
const lastCopy = 5 * time.Second

// close waits for the last copy: until ctx ends, and for lastCopy more.
func (x *replication) close(ctx context.Context) {
	close(x.wake)
	select {
	case <-x.ended:
	case <-ctx.Done():
		timer := time.AfterFunc(lastCopy, x.stop)
		<-x.ended
		timer.Stop()
	}
	x.stop()
}
