package exporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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
