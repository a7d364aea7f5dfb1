package mcp

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh/builtins/lang"
)

// usage counts and logs the calls of a server. It is safe for concurrent use.
type usage struct {
	log *slog.Logger // nil: calls are not logged

	mu    sync.Mutex
	tools map[usageKey]*used
}

type usageKey struct{ Tool, Status string }

// used is what calls of one tool with one status have used.
type used struct {
	Tool      string  `json:"tool"`
	Status    string  `json:"status"` // the exit status, or refused
	Calls     int     `json:"calls"`
	Datagrams int     `json:"datagrams"`
	Seconds   float64 `json:"seconds"`
}

// count counts a call, and logs it: who, what, and its datagrams.
func (u *usage) count(r *mcp.CallToolRequest, tool, status string, took time.Duration, datagrams int) {
	u.mu.Lock()
	key := usageKey{tool, status}
	if u.tools == nil {
		u.tools = map[usageKey]*used{}
	}
	if u.tools[key] == nil {
		u.tools[key] = &used{Tool: tool, Status: status}
	}
	x := u.tools[key]
	x.Calls, x.Datagrams, x.Seconds = x.Calls+1, x.Datagrams+datagrams, x.Seconds+took.Seconds()
	u.mu.Unlock()
	if u.log == nil {
		return
	}
	u.log.Info("call", "who", who(r), "tool", tool, "arguments", clipped(string(r.Params.Arguments)), "status", status, "seconds", took.Seconds(), "datagrams", datagrams)
}

// maxLogged is how much of the arguments of a call is logged, in bytes.
const maxLogged = 500

func clipped(text string) string {
	if len(text) > maxLogged {
		text = strings.ToValidUTF8(text[:maxLogged], "") + "..."
	}
	return lang.OneLine(text)
}

// who names the client of a call: by HTTP its user and address, else the name of its program.
func who(r *mcp.CallToolRequest) string {
	if r.Extra != nil {
		if by := r.Extra.Header.Get(whoHeader); by != "" {
			return by
		}
	}
	if r.Session != nil {
		if p := r.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
			return clipped(p.ClientInfo.Name)
		}
	}
	return "unknown"
}

// list returns what was used, in a fixed order.
func (u *usage) list() (list []used) {
	u.mu.Lock()
	defer u.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(u.tools), func(a, b usageKey) int {
		return strings.Compare(a.Tool+" "+a.Status, b.Tool+" "+b.Status)
	})
	for _, k := range keys {
		list = append(list, *u.tools[k])
	}
	return list
}

// text returns what was used, as JSON.
func (u *usage) text() string {
	text, _ := json.Marshal(struct {
		Calls []used `json:"calls"`
	}{append([]used{}, u.list()...)})
	return string(text)
}

// metrics writes what was used for Prometheus. Names of tools and statuses are words.
func (s *Server) metrics(w io.Writer) {
	list := s.usage.list()
	for _, m := range []struct {
		name, doc string
		value     func(used) any
	}{
		{"fabsh_mcp_calls_total", "Calls of tools, by exit status.", func(u used) any { return u.Calls }},
		{"fabsh_mcp_datagrams_total", "Datagrams that calls of tools have sent.", func(u used) any { return u.Datagrams }},
		{"fabsh_mcp_call_seconds_total", "Time that calls of tools took.", func(u used) any { return u.Seconds }},
	} {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %[1]s counter\n", m.name, m.doc)
		for _, u := range list {
			fmt.Fprintf(w, "%s{tool=%q,status=%q} %v\n", m.name, u.Tool, u.Status, m.value(u))
		}
	}
	if age := s.age(); age != nil {
		fmt.Fprintf(w, "# HELP fabsh_mcp_sweep_age_seconds Age of the latest sweep.\n# TYPE fabsh_mcp_sweep_age_seconds gauge\nfabsh_mcp_sweep_age_seconds %d\n", *age)
	}
}
