package sa

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"fabsh/mad"
)

// Event is one item of a subscription: a notice, or, where Lost has the reason, that
// notices may be missing.
type Event struct {
	// Class that the notice came in: SubnAdm of a report, Subn of a trap.
	Class mad.Class
	// Source is the LID that it came from.
	Source mad.LID
	Notice [noticeSize]byte
	Lost   string
	Count  uint64 // of the missing notices; 0: unknown
}

// Subscription is a queue of events.
type Subscription struct {
	s     *Subscriber
	ready chan struct{}

	mu      sync.Mutex // guards all below
	queue   []Event
	dropped uint64 // since the last that was queued
	err     error  // why no more will come
}

// ErrUnsubscribed ends the waiting for events of a subscription that was closed.
var ErrUnsubscribed = errors.New("the subscription is closed")

// maxEvents is the length of the queue. What arrives when it is full is dropped
// and counted.
const maxEvents = 1024

func newSubscription(s *Subscriber) *Subscription {
	return &Subscription{s: s, ready: make(chan struct{}, 1)}
}

// Next waits for the next event. The error is the end of ctx, why the engine
// was halted, or why no more events will come.
func (sub *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		ev, ok, err := sub.pop()
		if ok || err != nil {
			return ev, err
		}
		halted, cause := sub.s.e.Halted()
		if cause != nil {
			return ev, cause
		}
		select {
		case <-sub.ready:
		case <-halted:
		case <-ctx.Done():
			return ev, context.Cause(ctx)
		}
	}
}

// Close ends the subscription. It takes no longer than a second, or than ctx.
func (sub *Subscription) Close(ctx context.Context) error {
	sub.end(ErrUnsubscribed)
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	release, err := sub.s.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	sub.s.drop(ctx, sub)
	return nil
}

func (sub *Subscription) pop() (ev Event, ok bool, err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.queue) == 0 && sub.dropped > 0 {
		sub.queue = append(sub.queue, sub.unqueued())
	}
	if len(sub.queue) == 0 {
		if sub.err != nil {
			sub.wake() // others who wait
		}
		return ev, false, sub.err
	}
	ev = sub.queue[0]
	if sub.queue = sub.queue[1:]; len(sub.queue) > 0 {
		sub.wake() // two may wait, and ready holds one signal
	}
	return ev, true, nil
}

// unqueued is the event that reports those dropped.
func (sub *Subscription) unqueued() Event {
	ev := Event{Lost: fmt.Sprintf("%d arrived while %d waited to be read", sub.dropped, maxEvents), Count: sub.dropped}
	sub.dropped = 0
	return ev
}

func (sub *Subscription) push(ev Event) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if len(sub.queue) >= maxEvents {
		sub.dropped++
		return
	}
	if sub.dropped > 0 {
		sub.queue = append(sub.queue, sub.unqueued())
	}
	sub.queue = append(sub.queue, ev)
	sub.wake()
}

// end makes Next return err once the queue is empty. The first end counts.
func (sub *Subscription) end(err error) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	if sub.err == nil {
		sub.err = err
	}
	sub.wake()
}

func (sub *Subscription) wake() {
	select {
	case sub.ready <- struct{}{}:
	default:
	}
}
