//go:build linux

package shell

import (
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestServeSlowClients: clients that send their requests byte by byte, from many addresses of loopback, take neither
// the pages of viewers nor much memory: 400 of them, with FABSH_SOAK 10,000.
func TestServeSlowClients(t *testing.T) {
	if testing.Short() {
		t.Skip("the whole server under load")
	}
	clients, lasts := 400, 3*time.Second
	if os.Getenv("FABSH_SOAK") != "" {
		clients, lasts = 10000, time.Minute
	}
	x := startServe(t, []string{"-F", "sim:fattree:k=4,levels=2"}, "--no-history", "--every", "5s")
	resident := func() float64 { return value(x.metrics(t), "process_resident_memory_bytes") / 1e6 }
	before := resident()
	end := time.Now().Add(lasts)
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+i>>14), byte(i>>6), byte(1+i&63))}}
			for time.Now().Before(end) { // it comes back whenever it is sent away
				c, err := d.Dial("tcp", x.url[len("http://"):])
				if err != nil {
					time.Sleep(100 * time.Millisecond) // as a client does, which has no event to wait for
					continue
				}
				io.WriteString(c, "GET /now HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
				c.SetReadDeadline(end)
				for time.Now().Before(end) {
					if _, err := io.WriteString(c, "x"); err != nil {
						break
					}
					time.Sleep(time.Second)
				}
				c.Close()
			}
		})
	}
	viewer := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var took []time.Duration
	failed := 0
	for time.Now().Before(end) {
		began := time.Now()
		r, err := viewer.Get(x.url + "/now")
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		if err != nil || r.StatusCode != http.StatusOK {
			failed++
			continue
		}
		took = append(took, time.Since(began))
	}
	during := resident()
	group.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		t.Fatalf("no page in %v, %d failed", lasts, failed)
	}
	median, late := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d clients: %d pages, %d failed, median %v, p99 %v; resident %.1f MB, then %.1f MB", clients, len(took), failed, median.Round(time.Microsecond), late.Round(time.Millisecond), before, during)
	if failed > len(took)/20+1 || late > 10*time.Second || during > before+150 {
		t.Error("viewers are not served, or the memory grows")
	}
}
