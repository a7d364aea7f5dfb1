package localhost

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fabsh/mad"
)

func TestParseExpectation(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"8xNDR", "[{* [] 8 4x ndr []}]"},
		{"8xndr, 2x2xHDR", "[{* [] 8 4x ndr []} {* [] 2 2x hdr []}]"},
		{"1xfdr10", "[{* [] 1 4x fdr10 []}]"},
		{"0xEDR", "[{* [] 0 4x edr []}]"},
		{"8xABC", `unknown speed "abc"; supported: sdr, ddr, qdr, fdr10, fdr, edr, hdr, ndr, xdr`},
		{"8xNDX", `unknown speed "ndx" (did you mean ndr?); supported: sdr, ddr, qdr, fdr10, fdr, edr, hdr, ndr, xdr`},
		{"8xNDR,", `invalid ports ""; want COUNTxSPEED such as 8xNDR, or COUNTxWIDTHxSPEED such as 8x2xHDR`},
		{"8x3xNDR", `invalid ports "8x3xNDR"; want COUNTxSPEED such as 8xNDR, or COUNTxWIDTHxSPEED such as 8x2xHDR`},
		{strings.Repeat("1xndr,", 300) + "1xndr", "301 kinds of ports; want at most 256"},
	} {
		list, err := ParseExpectation(c.text)
		if got := outcome(list, err); got != c.want {
			t.Errorf("%.20s: got  %s\nwant %s", c.text, got, c.want)
		}
	}
	for text, want := range map[string]bool{"8xNDR": true, "8xNDR,x": true, "8x2xHDR": true, "8x-ndr": false, "/etc/8xNDR": false, "hosts.txt": false, "": false} {
		if IsExpectation(text) != want {
			t.Errorf("IsExpectation(%q) = %v", text, !want)
		}
	}
}

func outcome(list []Expected, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(list)
}

func TestParseExpectationFile(t *testing.T) {
	manifest := `{"pci": {"0000:4b:00.0": {"type": "ib", "link_width": "16"}}, "ib": {"link_rate": "200 Gb/sec (4X HDR)", "firmware_version": ["20.31.2354"],
		"interfaces": {"ib0": {"mlx": "mlx5_0", "desc": "HCA-1"}, "ib1": {"mlx": "mlx5_1", "desc": "HCA-2"}}}}`
	for _, c := range []struct{ name, text, want string }{
		{"models", "# DGX H100\nMT4129  8xNDR 28.39.1002 28.39.2048 # GPUs\n\n*\t1x2xHDR\n", "[{MT4129 [] 8 4x ndr [28.39.1002 28.39.2048]} {* [] 1 2x hdr []}]"},
		{"manifest of GCM", manifest, "[{ [mlx5_0 mlx5_1] 2 4x hdr [20.31.2354]}]"},
		{"empty", "# nothing\n", "the file names no model"},
		{"no ports", "MT4129\n", "line 1: want MODEL PORTS [FIRMWARE]..., such as MT4129 8xNDR 28.39.1002"},
		{"bad ports", "\nMT4129 8\n", `line 2: invalid ports "8"; want COUNTxSPEED such as 8xNDR, or COUNTxWIDTHxSPEED such as 8x2xHDR`},
		{"twice", "a 1xNDR\na 2xNDR\n", `line 2: second line of the model "a"`},
		{"not a manifest", "{}", `manifest: it has no "ib" with "interfaces"`},
		{"cut", manifest[:100], "manifest: unexpected end of JSON input"},
		{"rate", strings.Replace(manifest, "200 Gb/sec (4X HDR)", "fast", 1), `manifest: invalid link_rate "fast"; want the kernel's words, such as "400 Gb/sec (4X NDR)"`},
		{"device", strings.Replace(manifest, `"mlx": "mlx5_1"`, `"mlx": ""`, 1), `manifest: the interface "ib1" has no device "mlx"`},
		{"one device", strings.Replace(manifest, "mlx5_1", "mlx5_0", 1), `manifest: the device "mlx5_0" belongs to two interfaces`},
		{"types", strings.Replace(manifest, `["20.31.2354"]`, `7`, 1), "manifest: json: cannot unmarshal number into Go struct field .ib.firmware_version of type []string"},
		{"long", strings.Repeat("#", maxFile+1), "longer than 1048576 bytes"},
	} {
		list, err := ParseExpectationFile([]byte(c.text))
		if diff := cmp.Diff(c.want, outcome(list, err)); diff != "" {
			t.Errorf("%s: -want +got\n%s", c.name, diff)
		}
	}
}

// FuzzExpectation: whatever the text, what it expects is a number of ports that can be judged.
func FuzzExpectation(f *testing.F) {
	for _, text := range []string{"8xNDR", "MT4129 8xNDR 28.39.1002\n* 1x2xHDR", `{"ib": {"link_rate": "200 Gb/sec (4X HDR)", "interfaces": {"ib0": {"mlx": "mlx5_0"}}}}`, "{"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, parse := range []func(string) ([]Expected, error){ParseExpectation, func(s string) ([]Expected, error) { return ParseExpectationFile([]byte(s)) }} {
			list, err := parse(text)
			if (err == nil) != (len(list) > 0) || len(list) > maxExpected {
				t.Fatalf("%d: %d models, %v", i, len(list), err)
			}
			for _, x := range list {
				if x.Count < 0 || mad.WidthLanes(x.Width) == 0 || !slices.Contains(mad.Speeds(), x.Speed) || len(x.Devices) > 0 && len(x.Devices) != x.Count {
					t.Fatalf("%d: %+v", i, x)
				}
			}
		}
	})
}
