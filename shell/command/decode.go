package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric"
	"fabsh/fabric/format"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/shell/session"
)

func decodeCommand(p *session.Program) *cobra.Command {
	var linkType string
	c := &cobra.Command{
		Use:   "decode HEX|FILE",
		Short: "Explain a management datagram, field by field",
		Long: `Explain a management datagram: its method and attribute, then each field with its
offset (byte, or byte.bit), its length in bits, its name and its value.

The argument is the datagram in hexadecimal digits, or a file that contains it: raw, as
digits, or as a dump by xxd, hexdump -C, tcpdump -x or Wireshark. - reads standard
input. A file may be packed by gzip, xz, zstd or bzip2.

All datagrams of a capture are explained, in their order, each with the number of its
packet, its time, its LIDs, and the direction if the file has it: a recording (--record),
pcap, pcapng, or ERF records (.erf). Packets have the link type ERF (197) or InfiniBand (247);
--link-type states what packets of another link type are.
--where and --columns select datagrams: by packet, time, slid, dlid, direction ("sent",
"received"), attribute, and the fields of the header, such as status.
With -o json, jsonl or csv, the output has that format.`,
		Example: `  fabsh decode 0101010100000000000000000000000100110000...
  xxd datagram | fabsh decode -
  fabsh decode capture.pcapng --where 'attribute == "PortInfo" and status != 0'
  fabsh -o json decode datagram`,
		Annotations: map[string]string{atPrompt: ""},
		RunE: func(_ *cobra.Command, words []string) error {
			if err := p.Settings.Check(); err != nil {
				return err
			}
			if linkType != "" && !slices.Contains(capture.LinkTypes(), linkType) {
				return fmt.Errorf("--link-type %q: want one of %s", linkType, strings.Join(capture.LinkTypes(), ", "))
			}
			if len(words) == 0 {
				return errors.New("missing datagram; give its digits, a file, or - for standard input")
			}
			limit := p.StartTime()
			defer p.StartDeadline(limit).Stop()
			ctx := p.TimeContext(limit)
			m, err := datagram(ctx, p, words)
			if err != nil {
				return session.Late(err)
			}
			if capture.IsCapture(m) {
				return decodeCapture(ctx, p, m, words[0], linkType)
			}
			if err := noTable(p, "a single datagram is shown whole"); err != nil {
				return err
			}
			if linkType != "" {
				return errors.New("--link-type: not supported: a single datagram is not a capture")
			}
			if len(m) < mad.HeaderSize {
				return fmt.Errorf("too short for the header of a MAD (%d bytes): %s", mad.HeaderSize, plural.Count(len(m), "byte", "bytes"))
			}
			text, err := audits.RenderMetrics(records.Datagram(m), p.Settings.Output(), "datagram")
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.Console.Out(), text)
			return err
		},
	}
	c.Flags().StringVar(&linkType, "link-type", "", "packets of other link types are of the `TYPE` "+strings.Join(capture.LinkTypes(), " or "))
	return c
}

// decodeCapture explains all datagrams of a capture: as text one after the other,
// else, or with --columns, as a list. Of a capture that is cut short it explains the complete
// ones, and the error reports the rest.
func decodeCapture(ctx context.Context, p *session.Program, b []byte, name, linkType string) error {
	asText := p.Settings.Output() == lang.FormatText && !p.Settings.Given("columns")
	show := func(v starlark.Value) error {
		text, err := audits.RenderMetrics(v, p.Settings.Output(), "datagram")
		if err == nil {
			_, err = io.WriteString(p.Console.Out(), text+"\n")
		}
		return err
	}
	var list []starlark.Value
	incomplete, err := capture.Datagrams(bytes.NewReader(b), name, linkType, func(d capture.Datagram) error {
		if d.MAD == nil {
			to := p.Console.Out()
			if !asText || p.Settings.Given("where") {
				to = p.Console.Err()
			}
			_, err := fmt.Fprintf(to, "packet %d skipped: %s\n\n", d.Packet, d.Other)
			return cmp.Or(err, context.Cause(ctx))
		}
		packet := records.Packet{Number: d.Packet, Time: d.Time, SLID: d.SLID, DLID: d.DLID, Direction: d.Direction}
		v := records.CapturedDatagram(packet, bytes.Clone(d.MAD), d.Problems...)
		if asText && !p.Settings.Given("where") {
			return cmp.Or(show(v), context.Cause(ctx))
		}
		list = append(list, v)
		return context.Cause(ctx)
	})
	switch {
	case err != nil && capture.IsLinkType(err):
		err = fmt.Errorf("%w; if they are packets of InfiniBand, state it: --link-type %s", err, strings.Join(capture.LinkTypes(), ", or --link-type "))
	case err != nil, asText && !p.Settings.Given("where"):
	case asText:
		var selected starlark.Value
		if selected, err = viewOf(p.Settings, p.Console.Err())(starlark.NewList(list)); err != nil {
			break
		}
		for v := range starlark.Elements(selected.(starlark.Iterable)) {
			err = cmp.Or(err, show(v), context.Cause(ctx))
		}
	default:
		var text string
		if text, err = renderTable(p.Settings, p.Console.Err(), starlark.NewList(list), "datagram"); err == nil {
			_, err = io.WriteString(p.Console.Out(), text)
		}
	}
	if err = cmp.Or(err, incomplete); err != nil {
		return session.Late(err)
	}
	return nil
}

// datagram reads the datagram that the command line names: digits, a file, or - for
// standard input.
func datagram(ctx context.Context, p *session.Program, words []string) ([]byte, error) {
	if len(words) > 1 {
		return parseDump(strings.Join(words, " "))
	}
	if words[0] == "-" {
		reported := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(reported)
			p.Interrupts.Quit(func() { p.Fail(session.Late(context.Cause(ctx))) }, lang.StatusFabric)
		})
		b, err := readDump(session.NewKeyboard(ctx, p.Stdin), "standard input")
		if !stop() {
			<-reported // once: Quit ends the program, unless this is at the prompt
		}
		return b, err
	}
	f, err := lang.OpenNamed(ctx, words[0])
	if err == nil {
		defer f.Close()
		return readDump(f, words[0])
	}
	if context.Cause(ctx) != nil { // a pipe whose writer has closed it
		return nil, err
	}
	m, badDigits := parseDump(words[0])
	if badDigits != nil && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%.80q: neither a file nor a datagram: %w", words[0], badDigits)
	}
	if badDigits != nil {
		return nil, err
	}
	return m, nil
}

// maxDump is the longest file read, in bytes.
const maxDump = 64 << 20

func readDump(r io.Reader, name string) ([]byte, error) {
	r, err := format.Unpack(r, name, maxDump)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if kind := format.BinaryKind(b); kind != "" {
		return nil, fmt.Errorf("%s: not a datagram: %s", name, kind)
	}
	switch {
	case capture.IsCapture(b):
		return b, nil
	case !isText(b):
		if m := b; len(m) == 0 || m[mad.BaseVersionOffset] != 1 {
			return nil, fmt.Errorf("%s: not a datagram: a binary file that begins with the bytes % x; datagrams begin with the base version 01", name, b[:min(len(b), 4)])
		}
		return b, nil
	}
	m, err := parseDump(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// isText reports whether all of b is printable. A datagram in binary has zeros.
func isText(b []byte) bool {
	return !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r > '~' })
}

// parseDump reads hexadecimal digits, in bytes or in longer words, or a dump of them:
// with an offset before the digits, the characters after them, and * for lines equal to
// the previous one.
func parseDump(text string) ([]byte, error) {
	var m, last []byte
	number, same, keys := 0, false, true
	for line := range strings.Lines(text) {
		number++
		keys = keys && (fabric.HoldsKey(line) || strings.TrimSpace(line) == "")
		if line = strings.TrimSpace(line); line == "*" && len(last) > 0 {
			same = true
			continue
		}
		for at, ok := offsetOf(line); same && ok && len(m) < int(at) && len(m) < maxDump; {
			m = append(m, last...)
		}
		same = false
		digits := digitsOf(line, len(m))
		from := len(m)
		for _, word := range strings.FieldsFunc(digits, func(r rune) bool { return strings.ContainsRune(" \t,:;", r) }) {
			digits := strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X")
			b, err := hex.DecodeString(digits)
			switch {
			case errors.Is(err, hex.ErrLength):
				return nil, fmt.Errorf("line %d: %s has an odd number of digits", number, quoted(line, word))
			case err != nil || len(b) == 0:
				return nil, fmt.Errorf("line %d: %s is not hexadecimal", number, quoted(line, word))
			}
			m = append(m, b...)
		}
		last = m[from:]
	}
	switch {
	case len(m) == 0:
		return nil, errors.New("no hexadecimal digits")
	case keys: // each line is 0xGUID 0xKEY, as in guid2mkey of OpenSM
		return nil, errors.New("it looks like a file of keys, and is not shown; of a datagram, omit 0x or write more than two numbers in a line")
	}
	return m, nil
}

// quoted returns a word of a line for messages, unless the line may hold a key.
func quoted(line, word string) string {
	if fabric.HoldsKey(line) {
		return fabric.HiddenLine
	}
	return fmt.Sprintf("%.40q", word)
}

// digitsOf returns the part of a line that holds digits of the datagram. n bytes of it
// have been read.
func digitsOf(line string, n int) string {
	first, rest, _ := strings.Cut(line, " ")
	if strings.HasSuffix(first, ":") && strings.Count(first, ":") == 1 { // xxd, tcpdump
		digits, _, _ := strings.Cut(strings.TrimSpace(rest), "  ")
		return digits
	}
	if at, ok := offsetOf(line); !ok || at != uint64(n) {
		return line
	}
	if line == first && n > 0 && len(first) >= 6 { // the end, of hexdump -C and od
		return ""
	}
	if rest = strings.TrimLeft(rest, " "); len(rest) < 3 || rest[2] != ' ' {
		return line
	}
	digits, _, _ := strings.Cut(rest, "  |")  // hexdump -C
	digits, _, _ = strings.Cut(digits, "  >") // od -t x1z
	if len(digits) > 48 {                     // Wireshark
		digits = digits[:48]
	}
	return digits
}

// offsetOf returns the offset at the beginning of a line; false without one.
func offsetOf(line string) (uint64, bool) {
	first, _, _ := strings.Cut(line, " ")
	first = strings.TrimSuffix(first, ":")
	at, err := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 32)
	return at, err == nil && len(first) >= 4
}
