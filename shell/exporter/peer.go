package exporter

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

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
