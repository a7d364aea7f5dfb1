package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/remedies"
	"fabsh/fabric/page"
	"fabsh/shell/mcp"
	"fabsh/shell/session"
)

const evidenceDoc = `Collect what a vendor's support asks for about a link, a port or a node.

The target is a port (leaf-1/7), a link ("leaf-1/7 - spine-1/2"), a node, a GUID or a LID.
The evidence has both ends with state and speed; devices and modules with serial numbers and
firmware; optical power, temperature and bit error rates, where registers answer; the
diagnostic opcode with its meaning; counters and rates; routes over the link, and what is
lost without it; from a history (fabsh history record) findings, events and cables over
time; and what was tried: acknowledgements, plans and remedies. What could not be read is
named, with the reason.

Names and GUIDs of other hosts are removed: those that a sweep of this fabric has. Keys are
not read.

It sends queries only: of both ends, and the forwarding tables of all switches. A file
(-F file:FILE) or a time of a history (-F history:) has what it stores.

--out FILE.html writes a page with the data in it, and its SHA-256 to FILE.html.sha256.`

// evidenceCapability collects evidence.
func evidenceCapability(p *session.Program) *capability[*evidenceOptions] {
	return &capability[*evidenceOptions]{command: &cobra.Command{
		Use:   "evidence LINK | PORT | NODE [--out FILE]",
		Short: "Collect what a vendor's support asks for about a link, a port or a node",
		Long:  evidenceDoc,
		Example: `  fabsh evidence leaf-1/7 --out leaf-1-7.html
  fabsh evidence "leaf-1/7 - spine-1/2" --over 60s --out link.html
  fabsh -o json evidence node-0012`,
		Annotations: map[string]string{atPrompt: direct},
	},
		options: fresh[evidenceOptions],
		line: func(o *evidenceOptions, _ *cobra.Command, words []string) error {
			switch {
			case len(words) == 0:
				return remedies.ErrNoTarget
			case len(words) == 3 && words[1] == "-":
				words = []string{strings.Join(words, " ")}
			case len(words) > 1:
				return fmt.Errorf(`want one target, got %d words; quote a link: "PORT - PORT"`, len(words))
			}
			o.target = words[0]
			if o.out != "" && !strings.EqualFold(filepath.Ext(o.out), ".html") {
				return fmt.Errorf("--out %s: unknown kind of file; supported: .html", o.out)
			}
			return nil
		},
		run: func(ctx context.Context, s *session.Session, o *evidenceOptions) (starlark.Value, error) {
			return runEvidence(ctx, s, o)
		},
		tool:  "evidence",
		words: []mcp.Param{{Name: "target", Kind: mcp.KindText, Required: true, Doc: `a port such as leaf-1/7, a link "leaf-1/7 - spine-1/2", a node, a GUID or a LID`}},
		take: func(_ context.Context, _ *session.Session, a mcp.Arguments, o *evidenceOptions) error {
			o.target = a.Text("target")
			return nil
		},
	}
}

// evidenceOptions are the options of evidence.
type evidenceOptions struct{ target, over, out, subnet string }

// params declares the parameters.
func (o *evidenceOptions) params() params {
	return params{
		{name: "over", to: &o.over, doc: "time between the two reads of counters, as a `TIME` of 2s or more (default: 10s); of a file, an earlier snapshot"},
		{name: "out", to: &o.out, doc: "write the page to `FILE`, .html, completely or not at all, and its SHA-256 to FILE.sha256", withheld: writesFiles},
		subnetParam(&o.subnet),
	}
}

// runEvidence collects the evidence, and writes the page.
func runEvidence(ctx context.Context, s *session.Session, o *evidenceOptions) (starlark.Value, error) {
	e, err := remedies.CollectEvidence(ctx, s.Interpreter, remedies.EvidenceOptions{Target: o.target, Over: o.over, Subnet: o.subnet, State: s.StateDir})
	if err != nil {
		return nil, err
	}
	value := remedies.WrapEvidence(e)
	if o.out == "" {
		return value, nil
	}
	if err := writeEvidence(ctx, s, o.out, e, value); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	if s.Format == lang.FormatText {
		return nil, nil
	}
	return value, nil
}

// writeEvidence writes the page.
func writeEvidence(ctx context.Context, s *session.Session, path string, e *page.Evidence, value starlark.Value) error {
	data, err := audits.RenderMetrics(value, lang.FormatJSON, "evidence")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := e.WriteHTML(&text, []byte(data)); err != nil {
		return err
	}
	return writeWithSum(ctx, s, path, text.Bytes())
}

// writeWithSum writes a page, and its SHA-256 beside it, which it also prints.
func writeWithSum(ctx context.Context, s *session.Session, path string, text []byte) error {
	write := func(path string, text []byte) error {
		return session.WriteNamed(ctx, path, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
	}
	if err := write(path, text); err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	line := hex.EncodeToString(sum[:]) + "  " + filepath.Base(path) + "\n"
	if !s.Quiet {
		fmt.Fprint(s.Console.Err(), "SHA-256 ", line)
	}
	return write(path+".sha256", []byte(line))
}
