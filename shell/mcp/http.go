package mcp

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// whoHeader carries the user and the address of a client to the log. What a client sends in it is
// removed.
const whoHeader = "Fabsh-Client"

// sessionTimeout is how long a session by HTTP may be idle.
const sessionTimeout = 30 * time.Minute

// Handler serves clients by streamable HTTP at /mcp, and metrics of the server at /metrics. Calls
// end with ctx.
func (s *Server) Handler(ctx context.Context) http.Handler {
	s.mu.Lock()
	s.end = ctx
	s.mu.Unlock()
	protocol := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionTimeout, MaxRequestBodyBytes: maxLine,
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", sameOrigin(named(protocol)))
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.metrics(w)
	})
	return mux
}

// Stateless serves clients by streamable HTTP without sessions: each request is complete, and no answer
// stays open. Calls end with ctx.
func (s *Server) Stateless(ctx context.Context) http.Handler {
	s.mu.Lock()
	s.end = ctx
	s.mu.Unlock()
	return sameOrigin(named(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: MaxStateless,
	})))
}

// MaxStateless is how many bytes a request to Stateless has at most.
const MaxStateless = 64 << 10

// sameOrigin refuses requests of pages of other sites: a browser sends their Origin.
func sameOrigin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, origin := range r.Header.Values("Origin") {
			if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Host != r.Host {
				http.Error(w, "requests of pages of other sites are refused", http.StatusForbidden)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// named notes the client of a request.
func named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(whoHeader)
		by := r.RemoteAddr
		if user, _, ok := r.BasicAuth(); ok {
			by = user + " " + by
		}
		r.Header.Set(whoHeader, clipped(by))
		h.ServeHTTP(w, r)
	})
}

// IsLoopback reports whether an address to listen at is reached from this host alone.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
