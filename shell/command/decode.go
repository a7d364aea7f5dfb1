package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.starlark.net/starlark"

	"fabsh/builtins/audits"
	"fabsh/builtins/lang"
	"fabsh/builtins/records"
	"fabsh/fabric/plural"
	"fabsh/mad"
	"fabsh/mad/capture"
	"fabsh/shell/session"
)

func decodeCommand(p *session.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "decode HEX|FILE",
		Short: "Explain a management datagram, field by field",
		Long: `Explain a management datagram: its method and attribute, then each field with its
offset (byte, or byte.bit), its length in bits, its name and its value.

The argument is the datagram in hexadecimal digits, or a file that contains it: raw, as
digits, or as a dump by xxd, hexdump -C, tcpdump -x or Wireshark. - reads standard
input. All datagrams of a recording (--record) are explained, in their order.
With -o json, jsonl or csv before the word decode, the output has that format.`,
		Example: `  fabsh decode 0101010100000000000000000000000100110000...
  xxd datagram | fabsh decode -
  fabsh -o json decode datagram`,
		Annotations: map[string]string{atPrompt: ""},
		RunE: func(_ *cobra.Command, words []string) error {
			if err := p.Settings.Check(); err != nil {
				return err
			}
			if len(words) == 0 {
				return errors.New("decode: missing datagram; give its digits, a file, or - for standard input")
			}
			limit := p.StartTime()
			defer p.StartDeadline(limit).Stop()
			ctx := p.TimeContext(limit)
			m, err := datagram(ctx, p, words)
			if err != nil {
				return session.Late(fmt.Errorf("decode: %w", err))
			}
			if isCapture(m) {
				return decodeRecording(ctx, p, m, words[0])
			}
			if err := noTable(p, "decode", "a single datagram is shown whole"); err != nil {
				return err
			}
			if len(m) < mad.HeaderSize {
				return fmt.Errorf("decode: too short for the header of a MAD (%d bytes): %s", mad.HeaderSize, plural.Count(len(m), "byte", "bytes"))
			}
			text, err := audits.RenderMetrics(records.Datagram(m), p.Settings.Output(), "datagram")
			if err != nil {
				return fmt.Errorf("decode: %w", err)
			}
			_, err = io.WriteString(p.Console.Out(), text)
			return err
		},
	}
}

// decodeRecording explains all datagrams of a recording: as text one after the other,
// else as a list. Of a recording that is cut short it explains the complete ones, and
// the error reports the rest.
func decodeRecording(ctx context.Context, p *session.Program, b []byte, name string) error {
	var list []starlark.Value
	incomplete, err := capture.Datagrams(bytes.NewReader(b), name, func(d capture.Datagram) error {
		if d.MAD == nil {
			to := p.Console.Out()
			if p.Settings.Output() != lang.FormatText {
				to = p.Console.Err()
			}
			_, err := fmt.Fprintf(to, "packet %d skipped: %s\n\n", d.Packet, d.Other)
			return cmp.Or(err, context.Cause(ctx))
		}
		v := records.Datagram(bytes.Clone(d.MAD), d.Problems...)
		if p.Settings.Output() != lang.FormatText {
			list = append(list, v)
			return context.Cause(ctx)
		}
		text, err := audits.RenderMetrics(v, p.Settings.Output(), "datagram")
		if err == nil {
			_, err = io.WriteString(p.Console.Out(), text+"\n")
		}
		return cmp.Or(err, context.Cause(ctx))
	})
	if err == nil && p.Settings.Output() != lang.FormatText {
		var text string
		if text, err = renderTable(p.Settings, p.Console.Err(), starlark.NewList(list), "datagram"); err == nil {
			_, err = io.WriteString(p.Console.Out(), text)
		}
	}
	if err = cmp.Or(err, incomplete); err != nil {
		return session.Late(fmt.Errorf("decode: %w", err))
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
			p.Interrupts.Quit(func() { p.Console.Fail(session.Late(context.Cause(ctx))) }, lang.StatusFabric)
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
	b, err := io.ReadAll(io.LimitReader(r, maxDump+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxDump:
		return nil, fmt.Errorf("%s: longer than %d MB, the limit for a datagram", name, maxDump>>20)
	case isCapture(b), !isText(b):
		return b, nil
	}
	m, err := parseDump(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// isCapture reports whether b begins as pcap or pcapng files do.
func isCapture(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	switch binary.BigEndian.Uint32(b) {
	case 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a:
		return true
	}
	return false
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
	number, same := 0, false
	for line := range strings.Lines(text) {
		number++
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
				return nil, fmt.Errorf("line %d: %.40q has an odd number of digits", number, word)
			case err != nil || len(b) == 0:
				return nil, fmt.Errorf("line %d: %.40q is not hexadecimal", number, word)
			}
			m = append(m, b...)
		}
		last = m[from:]
	}
	if len(m) == 0 {
		return nil, errors.New("no hexadecimal digits")
	}
	return m, nil
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
