package serve

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
)

// turns are places for pages that are made at a time. Clients that wait take turns, so that one with many
// requests does not make others wait for all of them.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[string][]chan struct{} // by client, the first one first
	order   []string                   // clients that wait: the next one first
}

// maxWaiting is how many requests of a client wait: a proxy in front of the site is one client.
const maxWaiting = 128

var errWaiting = errors.New("too many pages at once")

// take waits for a place.
func (t *turns) take(ctx context.Context, client string) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	list := t.waiting[client]
	if len(list) >= maxWaiting {
		t.mu.Unlock()
		return errWaiting
	}
	if len(list) == 0 {
		t.order = append(t.order, client)
	}
	place := make(chan struct{}, 1)
	if t.waiting == nil {
		t.waiting = map[string][]chan struct{}{}
	}
	t.waiting[client] = append(list, place)
	t.mu.Unlock()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-place: // it came meanwhile
		t.pass()
	default:
		t.forget(client, place)
	}
	return context.Cause(ctx)
}

// release gives a place back.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass gives a place to the client whose turn it is. t.mu is held.
func (t *turns) pass() {
	if len(t.order) == 0 {
		t.free++
		return
	}
	client := t.order[0]
	t.order = t.order[1:]
	list := t.waiting[client]
	if list[0] <- struct{}{}; len(list) > 1 {
		t.waiting[client] = list[1:]
		t.order = append(t.order, client)
	} else {
		delete(t.waiting, client)
	}
}

// forget removes a place that no one waits for. t.mu is held.
func (t *turns) forget(client string, place chan struct{}) {
	list := t.waiting[client]
	for i, x := range list {
		if x == place {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if t.waiting[client] = list; len(list) > 0 {
		return
	}
	delete(t.waiting, client)
	for i, x := range t.order {
		if x == client {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			break
		}
	}
}

// clientOf returns who sent a request: an address, of IPv6 its network of 64 bits.
func clientOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is6() {
		network, _ := host.Prefix(64)
		return network.String()
	}
	return host.String()
}
