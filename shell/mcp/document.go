package mcp

import (
	"context"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fabsh"
	"fabsh/builtins"
	"fabsh/builtins/help"
	"fabsh/builtins/lang"
	"fabsh/builtins/script"
	"fabsh/builtins/topology"
)

// document is a text that is part of the program.
type document struct {
	uri, name, title string
	mime             string
	text             func() string
}

// URIs of resources that instructions name.
const (
	referenceURI = "fabsh://reference"
	schemasURI   = "fabsh://schemas"
	sweepURI     = "fabsh://sweep"
)

// addDocuments offers the resources.
func (s *Server) addDocuments() {
	for _, d := range documents() {
		s.addResource(&mcp.Resource{URI: d.uri, Name: d.name, Title: d.title, MIMEType: d.mime}, d.text)
	}
	s.addResource(&mcp.Resource{
		URI: sweepURI, Name: "sweep", Title: "The latest sweep of the fabric, and its time", MIMEType: "application/json",
		Description: "JSON: found_at, and fabric_data. " + untrusted,
	}, s.latestSweep)
}

func (s *Server) addResource(r *mcp.Resource, text func() string) {
	s.sdk.AddResource(r, func(ctx context.Context, _ *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		leave, err := s.texts.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.URI, MIMEType: r.MIMEType, Text: text()}}}, nil
	})
}

// latestSweep returns the latest sweep as JSON.
func (s *Server) latestSweep() string {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if last == nil {
		return `{"found_at":null,"server":["no call has swept the fabric yet; call run with the script discover()"]}`
	}
	text, err := lang.EncodeJSON(topology.NewFabric(last.found))
	if err != nil {
		text = nil
	}
	var data Data
	data.Values, data.Cut = shorten(string(text), maxOutput)
	out, _ := json.Marshal(struct { // values are valid JSON
		FoundAt time.Time `json:"found_at"`
		Data    Data      `json:"fabric_data"`
	}{last.at.Round(time.Second), data})
	return string(out)
}

// markdown and starlarkText are types of media.
const (
	markdown     = "text/markdown"
	starlarkText = "text/plain"
)

// documents returns the resources of fabsh mcp.
func documents() []document {
	list := []document{
		{referenceURI, "reference", "Functions and values of scripts", markdown, sync.OnceValue(func() string {
			return help.Reference(builtins.Functions())
		})},
		{schemasURI, "schemas", "The schemas of values", markdown, func() string { return fabsh.Schemas }},
	}
	for _, g := range help.Guides() {
		list = append(list, document{"fabsh://guides/" + g.Name, g.Name, g.Title(), markdown, func() string {
			text, _ := fs.ReadFile(fabsh.Documents, g.File) // embedded
			return string(text)
		}})
	}
	for _, name := range script.Embedded() {
		if file, ok := strings.CutPrefix(name, "@examples//"); ok {
			list = append(list, document{"fabsh://examples/" + file, path.Base(file), "The example " + name, starlarkText, func() string {
				text, _ := script.EmbeddedSource(name)
				return text
			}})
		}
	}
	return list
}
