package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/netutil"

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
	maxConnections = 256              // more wait until one ends
	leaveTime      = 2 * time.Second  // for scrapes under way when the program ends
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
	failed := make(chan error, len(listeners))
	places := new(slots)
	var servers []*http.Server // one server each: the toolkit installs its own handler in front
	for _, l := range listeners {
		s := &http.Server{
			Handler:           h,
			ReadHeaderTimeout: headerTime,
			ReadTimeout:       2 * headerTime,
			WriteTimeout:      writeTime,
			IdleTimeout:       idleTime,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		}
		servers = append(servers, s)
		go func() {
			failed <- web.Serve(netutil.LimitListener(peerListener{l, places}, maxConnections), s, &web.FlagConfig{WebConfigFile: &config}, log)
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

// peerListener closes the connections of a peer beyond peerConnections.
type peerListener struct {
	net.Listener
	slots *slots
}

// Accept waits for a connection of a peer below its limit.
func (l peerListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := peerOf(c.RemoteAddr().String())
		if l.slots.take(peer, maxConnections, peerConnections) {
			return &peerConn{Conn: c, release: sync.OnceFunc(func() { l.slots.release(peer) })}, nil
		}
		c.Close()
	}
}

// peerConn is a connection that holds a place.
type peerConn struct {
	net.Conn
	release func()
}

// Close closes the connection, and releases its place.
func (c *peerConn) Close() error {
	c.release()
	return c.Conn.Close()
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
