package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/exporter-toolkit/web"

	"fabsh/fabric/format"
)

// Limits of a client, in time and size.
const (
	headerTime     = 5 * time.Second
	writeTime      = time.Minute      // of pages other than metrics
	stallTime      = 10 * time.Second // for one piece of the metrics
	pieceSize      = 64 << 10         // bytes
	idleTime       = 5 * time.Second  // a new connection costs a scrape little, and places are few
	maxConfig      = 1 << 20          // bytes
	maxHeader      = 16 << 10         // bytes; the library allows 4096 more
	maxConnections = 256
	leaveTime      = 2 * time.Second // for scrapes under way when the program ends
)

// Listen listens at addresses, or uses the sockets that systemd passes
// (sd_listen_fds(3)).
func Listen(ctx context.Context, addresses []string, systemd bool) (list []net.Listener, err error) {
	if systemd {
		list, err = activation.Listeners()
		for i, l := range list {
			if l == nil {
				return nil, fmt.Errorf("socket %d from systemd: not a stream socket", i)
			}
		}
		if err == nil && len(list) == 0 {
			err = errors.New("no sockets from systemd; start it by a .socket unit, or leave --web.systemd-socket out")
		}
		return list, err
	}
	for _, address := range addresses {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			for _, l := range list {
				l.Close()
			}
			return nil, err
		}
		list = append(list, l)
	}
	return list, nil
}

// CheckConfig finds errors in a file of TLS and passwords, as the exporter toolkit of
// Prometheus reads it ("web configuration"). It may be "": no file. The toolkit reads
// the file completely, and again for each connection, so it cannot be a pipe.
func CheckConfig(path string) error {
	if path == "" {
		return nil
	}
	f, err := format.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := format.Bounded(f, path, maxConfig); err != nil {
		return err
	}
	return web.Validate(path)
}

// Serve serves at the listeners until ctx ends, and closes them. log receives errors of
// clients.
func (e *Exporter) Serve(ctx context.Context, listeners []net.Listener, config string, log *slog.Logger) error {
	h, err := e.Handler()
	if err != nil {
		return err
	}
	return serve(ctx, listeners, withBody(noted(h), e.MaxBody), config, log, func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = 2*headerTime, writeTime
	})
}

// ServeHandler serves h at the listeners as Serve does, but takes requests with bodies, and lets
// answers take any time.
func ServeHandler(ctx context.Context, listeners []net.Listener, h http.Handler, config string, log *slog.Logger) error {
	return serve(ctx, listeners, noted(h), config, log, func(*http.Server) {})
}

// serve serves h; set changes each server.
func serve(ctx context.Context, listeners []net.Listener, h http.Handler, config string, log *slog.Logger, set func(*http.Server)) (err error) {
	failed := make(chan error, len(listeners))
	open := new(connections)
	var servers []*http.Server // one server each: the toolkit installs its own handler in front
	for _, l := range listeners {
		s := &http.Server{
			Handler:           h,
			ConnContext:       withConnection,
			ConnState:         answered,
			ReadHeaderTimeout: headerTime,
			IdleTimeout:       idleTime,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}
		set(s)
		servers = append(servers, s)
		go func() {
			failed <- web.Serve(peerListener{l, open}, s, &web.FlagConfig{WebConfigFile: &config}, log)
		}()
	}
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	leave, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	for _, s := range servers {
		if s.Shutdown(leave) != nil {
			s.Close()
		}
	}
	return err
}

// Limits of one peer address, so that no client can use up the places of all.
const (
	peerConnections = maxConnections / 2
	peerScrapes     = maxScrapes / 2
)

// slots are places that peers hold. The zero value has none taken.
type slots struct {
	mu     sync.Mutex
	all    int
	byPeer map[string]int
}

// take takes a place for a peer, unless all are taken, or the peer has its maximum.
func (s *slots) take(peer string, all, each int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= all || s.byPeer[peer] >= each {
		return false
	}
	if s.byPeer == nil {
		s.byPeer = map[string]int{}
	}
	s.all++
	s.byPeer[peer]++
	return true
}

// release releases a place of the peer.
func (s *slots) release(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byPeer[peer]--; s.byPeer[peer] == 0 {
		delete(s.byPeer, peer)
	}
}

// peerOf returns the host of an address; for IPv6 its network of 64 bits, because a
// host has any number of addresses in it; for a local socket, which has no host, the
// whole address.
func peerOf(address string) string {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	host := at.Addr().Unmap().WithZone("")
	if host.Is6() {
		network, _ := host.Prefix(64)
		return network.String()
	}
	return host.String()
}

// connections are the open connections of all listeners, the oldest first. The zero value has
// none.
type connections struct {
	mu   sync.Mutex
	list []*peerConn
}

// add adds c. Where a limit is reached, it removes the oldest connection without a complete
// request, and returns it: clients that only hold connections keep no one out. false: all have
// one, and c is not added.
func (o *connections) add(c *peerConn) (removed *peerConn, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ofPeer := 0
	for _, x := range o.list {
		if x.peer == c.peer {
			ofPeer++
		}
	}
	if ofPeer >= peerConnections || len(o.list) >= maxConnections {
		i := slices.IndexFunc(o.list, func(x *peerConn) bool {
			return !x.requested.Load() && (ofPeer < peerConnections || x.peer == c.peer)
		})
		if i < 0 {
			return nil, false
		}
		removed = o.list[i]
		o.list = slices.Delete(o.list, i, i+1)
	}
	o.list = append(o.list, c)
	return removed, true
}

// remove removes c, which may have been removed.
func (o *connections) remove(c *peerConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := slices.Index(o.list, c); i >= 0 {
		o.list = slices.Delete(o.list, i, i+1)
	}
}

// peerListener limits the connections of a peer to peerConnections, and all to maxConnections.
type peerListener struct {
	net.Listener
	open *connections
}

// Accept waits for a connection for which there is a place.
func (l peerListener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &peerConn{Conn: accepted, peer: peerOf(accepted.RemoteAddr().String()), open: l.open}
		removed, ok := l.open.add(c)
		if removed != nil {
			removed.Close()
		}
		if ok {
			return c, nil
		}
		accepted.Close()
	}
}

// peerConn is a connection that holds a place.
type peerConn struct {
	net.Conn
	peer      string
	open      *connections
	requested atomic.Bool // a complete request has arrived, and is not answered
}

// Close closes the connection, and releases its place.
func (c *peerConn) Close() error {
	c.open.remove(c)
	return c.Conn.Close()
}

// connectionOf returns the connection below c, which may be one of TLS.
func connectionOf(c net.Conn) (*peerConn, bool) {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	p, ok := c.(*peerConn)
	return p, ok
}

// connectionKey is the key of the connection in the context of a request.
type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	if p, ok := connectionOf(c); ok {
		return context.WithValue(ctx, connectionKey{}, p)
	}
	return ctx
}

// withBody refuses requests with a body, which are not complete, unless the body has a length of at most most.
func withBody(h http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 || r.ContentLength > most {
			w.Header().Set("Connection", "close")
			http.Error(w, "requests with a body are not supported", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// noted notes that the header of a request is complete, and passes it to h.
func noted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connectionKey{}).(*peerConn); ok {
			c.requested.Store(true)
		}
		h.ServeHTTP(w, r)
	})
}

// answered notes that all requests of a connection are answered.
func answered(c net.Conn, state http.ConnState) {
	if p, ok := connectionOf(c); ok && state == http.StateIdle {
		p.requested.Store(false)
	}
}

// progressWriter writes an answer piece by piece. It gives up a client that does not
// take a piece within stallTime; the whole answer has no time limit.
type progressWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *progressWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), pieceSize)]
		w.control.SetWriteDeadline(time.Now().Add(stallTime)) // an error: deadlines are not supported
		var m int
		m, err = w.ResponseWriter.Write(piece)
		n, b = n+m, b[len(piece):]
	}
	return n, err
}
