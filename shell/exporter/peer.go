package exporter

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// What one peer address may have at once, so that one client cannot hold all.
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

// take takes a place for a peer, unless all are taken, or the peer has as many as it may.
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

// release gives back a place of the peer.
func (s *slots) release(peer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.byPeer[peer]--; s.byPeer[peer] == 0 {
		delete(s.byPeer, peer)
	}
}

// peerOf returns the host of an address; of IPv6 its network of 64 bits, where a host has
// as many addresses as it wants; of a local socket, which has no host, all of it.
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

// Accept waits for a connection of a peer that may have one more.
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

// Close closes the connection, and gives its place back.
func (c *peerConn) Close() error {
	c.release()
	return c.Conn.Close()
}

// progressWriter writes an answer piece by piece. A client that does not take a piece
// within stallTime is given up; one that does may take as long as the answer is.
type progressWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *progressWriter) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		piece := b[:min(len(b), pieceSize)]
		w.control.SetWriteDeadline(time.Now().Add(stallTime)) // an error: it has no deadlines
		var m int
		m, err = w.ResponseWriter.Write(piece)
		n, b = n+m, b[len(piece):]
	}
	return n, err
}
