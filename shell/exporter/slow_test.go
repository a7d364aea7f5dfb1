package exporter

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowClients: 10,000 clients that send their requests byte by byte hold at most maxConnections connections and
// a bounded memory, and a viewer gets pages meanwhile.
func TestSlowClients(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		e, l, ended := &Exporter{Pages: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "a page") })}, make(pipes), make(chan error)
		go func() { ended <- e.Serve(ctx, []net.Listener{l}, "", slog.New(slog.DiscardHandler)) }()
		before := heap()
		open := make(chan struct{}, 10000)
		for i := range 10000 {
			go func() {
				ours, theirs := net.Pipe()
				defer ours.Close()
				select {
				case l <- from{theirs, net.JoinHostPort(net.IPv4(10, 0, byte(i>>8), byte(i)).String(), "1")}:
				case <-ctx.Done():
					return
				}
				open <- struct{}{}
				for _, c := range "GET /now HTTP/1.1\r\nX: " + strings.Repeat("x", 1000) {
					if _, err := io.WriteString(ours, string(c)); err != nil {
						break
					}
					time.Sleep(time.Second)
				}
				<-open
			}()
		}
		time.Sleep(2500 * time.Millisecond) // a client sees at its next byte that its connection is closed
		held := len(open)
		used := heap() - before
		if held > maxConnections || used > 64<<20 {
			t.Errorf("%d connections, %d bytes", held, used)
		}
		for range 20 {
			began := time.Now()
			ours, theirs := net.Pipe()
			l <- from{theirs, "192.0.2.1:1"}
			io.WriteString(ours, "GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
			answer, err := io.ReadAll(ours)
			if took := time.Since(began); err != nil || !strings.HasSuffix(string(answer), "a page") || took > time.Second {
				t.Errorf("a viewer gets %q after %v: %v", answer, took, err)
			}
			time.Sleep(time.Second)
		}
		t.Logf("%d of 10000 connections are open, with %.1f MB", held, float64(used)/1e6)
		stop()
		synctest.Wait()
		close(l)
		<-ended
	})
}
