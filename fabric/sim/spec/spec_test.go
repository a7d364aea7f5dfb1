package spec

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fabsh/fabric"
	"fabsh/fabric/format"
)

func mustParse(t *testing.T, spec string) (*fabric.Fabric, SubnetOptions) {
	t.Helper()
	f, o, err := Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return f, o
}

func TestTopologies(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                  "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete",
		"fattree":                           "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete",
		"fattree:k=8,levels=3":              "fabric: 208 nodes (80 switches, 128 CAs), 384 links, complete",
		"fattree:levels=1,k=36":             "fabric: 37 nodes (1 switch, 36 CAs), 36 links, complete",
		"fattree:k=4,levels=4,loss=0.1":     "fabric: 88 nodes (56 switches, 32 CAs), 128 links, complete",
		"pgft":                              "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete",
		"pgft:m=18/18/36,w=1/18/18,p=1/1/1": "fabric: 13284 nodes (1620 switches, 11664 CAs), 34992 links, complete",
		"pgft:m=4/2,w=1/2,p=1/3":            "fabric: 12 nodes (4 switches, 8 CAs), 20 links, complete",
		"ring":                              "fabric: 8 nodes (4 switches, 4 CAs), 8 links, complete",
		"ring:n=1":                          "fabric: 2 nodes (1 switch, 1 CA), 1 link, complete",
		"ring:n=2":                          "fabric: 4 nodes (2 switches, 2 CAs), 3 links, complete",
		"ring:n=3,hosts=0":                  "fabric: 3 nodes (3 switches, 0 CAs), 3 links, complete",
		"mesh":                              "fabric: 80 nodes (16 switches, 64 CAs), 88 links, complete",
		"mesh:dims=5,hosts=0,links=2":       "fabric: 5 nodes (5 switches, 0 CAs), 8 links, complete",
		"torus":                             "fabric: 320 nodes (64 switches, 256 CAs), 448 links, complete",
		"torus:dims=2/2/2,hosts=1":          "fabric: 16 nodes (8 switches, 8 CAs), 20 links, complete",
		"torus:dims=1/3,hosts=1":            "fabric: 6 nodes (3 switches, 3 CAs), 6 links, complete",
		"hyperx:dims=12/8,hosts=7":          "fabric: 768 nodes (96 switches, 672 CAs), 1536 links, complete",
		"dragonfly:a=8,p=4,h=4":             "fabric: 1320 nodes (264 switches, 1056 CAs), 2508 links, complete",
		"dragonfly+":                        "fabric: 80 nodes (40 switches, 40 CAs), 130 links, complete",
		"slimfly":                           "fabric: 150 nodes (50 switches, 100 CAs), 275 links, complete",
		"dragonfly:groups=3":                "fabric: 36 nodes (12 switches, 24 CAs), 54 links, complete",
		"random:n=125,degree=10,hosts=8":    "fabric: 1125 nodes (125 switches, 1000 CAs), 1625 links, complete",
		"random:n=2,degree=1,hosts=0":       "fabric: 2 nodes (2 switches, 0 CAs), 1 link, complete",
		"remove_links=3":                    "fabric: 44 nodes (12 switches, 32 CAs), 61 links, complete",
		"remove_links=50%":                  "fabric: 44 nodes (12 switches, 32 CAs), 48 links, complete",
		"ring:remove_switches=1":            "fabric: 6 nodes (3 switches, 3 CAs), 5 links, complete",
		"ring:remove_switches=100%":         "fabric: 0 nodes (0 switches, 0 CAs), 0 links, complete",
		"loss=0.1,seed=3":                   "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete",
		":loss=0.1":                         "fabric: 44 nodes (12 switches, 32 CAs), 64 links, complete",
	} {
		f, _, err := Parse(spec)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
		} else if got := f.String(); got != want {
			t.Errorf("%q:\n got %s\nwant %s", spec, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	_, o := mustParse(t, "ring:n=3,loss=5%,dup=0.25,busy=1,delay=20ms,jitter=1s,seed=-4,mkey=0xab,sm=node-0002 HCA-1,dead=switch-1/3+node-0003 HCA-1")
	got := o
	got.SM, got.Dead = nil, nil
	want := SubnetOptions{Loss: 0.05, Dup: 0.25, Busy: 1, Delay: 20 * time.Millisecond, Jitter: time.Second, Seed: -4, MKey: 0xab, MKeyLevel: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var dead []string
	for _, p := range o.Dead {
		dead = append(dead, p.Name())
	}
	if diff := cmp.Diff([]string{"switch-1/3", "node-0003 HCA-1/1"}, dead); o.SM == nil || o.SM.Name() != "node-0002 HCA-1" || diff != "" {
		t.Errorf("%v; (-want +got)\n%s", o.SM, diff)
	}
}

// TestDead: numbers and shares of the hosts, by the seed.
func TestDead(t *testing.T) {
	names := func(spec string) (names []string) {
		_, o := mustParse(t, "fattree:k=8,levels=3,"+spec)
		for _, p := range o.Dead {
			names = append(names, p.Name())
		}
		return names
	}
	for spec, want := range map[string]int{"dead=": 0, "dead=0": 0, "dead=3": 3, "dead=127": 127, "dead=0x0002c90310000010": 1, "dead=1%": 2, "dead=50%": 64, "dead=spine-1": 8} {
		if got := names(spec); len(got) != want {
			t.Errorf("%s: %d ports, want %d", spec, len(got), want)
		}
	}
	if cmp.Equal(names("dead=5"), names("dead=5,seed=2")) {
		t.Error("the seed does not matter")
	}
	if !cmp.Equal(names("dead=5"), names("dead=5,seed=1")) {
		t.Error("chosen anew each time")
	}
}

func TestErrors(t *testing.T) {
	const keys = "aggregation, generation, numbering, planes, split, ar, ar_faults, ar_with, bare, busy, dead, delay, dup, errors, jitter, lmc, loss, mkey, mkey_level, redirect, registers, remove_links, remove_switches, seed, sm, speed, traffic, vl15, vports, width"
	const kinds = "fattree, pgft, ring, mesh, torus, hyperx, dragonfly, dragonfly+, slimfly, random"
	for spec, want := range map[string]string{
		"fatree":                       `unknown kind "fatree" (did you mean fattree?); there are ` + kinds + `, and no such file`,
		"bare":                         `"bare" is a key, not a kind; write sim:bare=yes`,
		"bare=yes,sm=leaf-1":           `bare=yes excludes sm=: a bare fabric has no subnet manager`,
		"klein:x=3":                    `unknown kind "klein"; there are ` + kinds + `, and no such file`,
		"torus:x=3":                    `torus: unknown key "x"; there are dims, hosts, links, ` + keys,
		"fattree:kk=8":                 `fattree: unknown key "kk"; there are k, levels, rails, ` + keys,
		"fattree:level=3":              `fattree: unknown key "level" (did you mean levels?); there are k, levels, rails, ` + keys,
		"ring:los=1":                   `ring: unknown key "los" (did you mean loss?); there are hosts, n, ` + keys,
		"fattree:":                     "",
		"ring:ar=ftre":                 `ar=ftre is invalid: unknown engine "ftre"; supported: updn, ftree, minhop, dor`,
		"ring:ar_with=fre":             `ar_with=fre is invalid: unknown option "fre" (did you mean free?); supported: free, all, secondary, hbf, whbf, plft, rn, pfrn`,
		"ring:ar_faults=gone@x":        `ar_faults=gone@x is invalid: names unknown node "x"; write FAULT@SWITCH`,
		"ring:ar_faults=gone@switch-1": `ar_faults=gone@switch-1 is invalid: unknown fault "gone"; supported: stale, empty, dead, illegal, top, sl, key, off; write FAULT@SWITCH`,
		"ring:planes=3":                `ring: planes=3 is not one of 1, 2, 4`,
		"ring:generation=edr":          `ring: generation=edr is not one of hdr, ndr, xdr`,
		"ring:split=yes,planes=4":      `ring: ports have one lane in each of 4 planes, and cannot be split`,
		"fattree:k":                    `fattree: key "k" has no value: write k=8`,
		"fattree:k=8,k=8":              `fattree: key "k" is given twice`,
		"fattree:k=8,,":                `fattree: unknown key ""; there are k, levels, rails, ` + keys,
		"fattree:k=4,rails=3":          `fattree: 4 leaves, but each host needs a group of 3, one for each rail`,
		"pgft:rails=0":                 `pgft: rails=0 is not a number from 1 to 49151`,
		"fattree:k=7":                  `fattree: k=7 is odd, but half of a switch's ports go up and half go down`,
		"fattree:k=1":                  `fattree: k=1 is not a number from 2 to 254`,
		"fattree:k=x":                  `fattree: k=x is not a number from 2 to 254`,
		"fattree:k=256":                `fattree: k=256 is not a number from 2 to 254`,
		"fattree:levels=0":             `fattree: levels=0 is not a number from 1 to 15`,
		"fattree:k=64,levels=3":        `fattree: more than the 49151 LIDs of a subnet`,
		"fattree:k=254,levels=15":      `fattree: more than the 49151 LIDs of a subnet`,
		"pgft:m=4":                     `pgft: m=4 has 1 levels, but w has 2 and p has 2`,
		"pgft:m=4/x":                   `pgft: m=4/x is not a list of numbers with slashes between them, as in 18/18/36`,
		"pgft:m=4/0":                   `pgft: m=4/0 is not a list of numbers with slashes between them, as in 18/18/36`,
		"pgft:m=4/8,w=2/4":             `pgft: w=2/4 gives hosts several parents; what they are in would be as many subnets`,
		"pgft:m=200/2,w=1/60":          `pgft: nodes with 260 ports, more than 254`,
		"ring:n=0":                     `ring: n=0 is not a number from 1 to 49151`,
		"ring:n=40000,hosts=1":         `ring: more than the 49151 LIDs of a subnet`,
		"ring:n=124":                   `ring: hosts 64 hops apart, more than the 63 of a directed route`,
		"ring:n=3,hosts=253":           `ring: switches with 255 ports, more than 254`,
		"torus:dims=300/300":           `torus: more than the 49151 LIDs of a subnet`,
		"torus:dims=100000":            `torus: dims=100000 is not a list of numbers with slashes between them, as in 18/18/36`,
		"torus:dims=124":               `torus: hosts 64 hops apart, more than the 63 of a directed route`,
		"mesh:dims=32/32":              `mesh: hosts 64 hops apart, more than the 63 of a directed route`,
		"hyperx:dims=252":              `hyperx: switches with 255 ports, more than 254`,
		"mesh:links=0":                 `mesh: links=0 is not a number from 1 to 254`,
		"dragonfly:groups=10":          `dragonfly: 10 groups, but the 8 cables of one lead to no more than 8`,
		"slimfly:q=9":                  `slimfly: q is 9, want an odd prime, at most 254`,
		"dragonfly+:spines=2,groups=4": `dragonfly+: 4 groups, but the 2 cables of one lead to no more than 2`,
		"dragonfly:arrangement=palm":   `dragonfly: arrangement=palm is not one of absolute, relative, circulant, random`,
		"dragonfly:groups=4,arrangement=relative": `dragonfly: 8 cables of a group, which are not a multiple of the 3 other groups: only the arrangements absolute and random have them`,
		"dragonfly:a=254,groups=1":                `dragonfly: switches with 257 ports, more than 254`,
		"random:n=4":                              `random: 4 switches, but cables from each to 4 others`,
		"random:n=5,degree=3":                     `random: 5 switches with 3 cables each: the product must be even`,
		"random:seed=x":                           `random: seed=x is not a number`,
		"remove_links=33":                         `remove_links=33 is not a number or a share of cables between switches, of which there are 32`,
		"ring:remove_switches=-1":                 `remove_switches=-1 is not a number or a share of switches, of which there are 4`,
		"ring:remove_links=x%":                    `remove_links=x% is not a number or a share of cables between switches, of which there are 4`,
		"loss=2":                                  `loss=2 is not a probability, as 0.05 or 5%`,
		"loss=101%":                               `loss=101% is not a probability, as 0.05 or 5%`,
		"loss=NaN":                                `loss=NaN is not a probability, as 0.05 or 5%`,
		"dup=-1":                                  `dup=-1 is not a probability, as 0.05 or 5%`,
		"delay=20":                                `delay=20 is not a duration, as 20ms`,
		"delay=-20ms":                             `delay=-20ms is not a duration, as 20ms`,
		"jitter=x":                                `jitter=x is not a duration, as 20ms`,
		"seed=x":                                  `seed=x is not a number`,
		"mkey_level=4":                            `mkey_level=4 is not a number from 0 to 3`,
		"ring:redirect=switch-1":                  `redirect=switch-1 names unknown node "": write NODE@NODE`,
		"ring:redirect=a@switch-1":                `redirect=a@switch-1 names unknown node "a": write NODE@NODE`,
		"mkey=0x10000000000000000":                `mkey=0x10000000000000000 is not a number of 64 bits, as 0x1234`,
		"dead=33":                                 `dead=33 is not a number of hosts: beside the subnet manager's there are 31`,
		"dead=-1":                                 `dead=-1 is not a number of hosts: beside the subnet manager's there are 31`,
		"dead=leaf1":                              `dead=leaf1 names unknown node "leaf1"; did you mean "leaf-1"?`,
		"dead=leaf-1/9":                           `dead=leaf-1/9 means port 9 of "leaf-1" (0x0002c90300100000), which has ports up to 8`,
		"sm=nobody at all":                        `sm=nobody at all names unknown node "nobody at all"`,
	} {
		_, _, err := Parse(spec)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want != "" {
			want = `simulated fabric "` + spec + `": ` + want
		}
		if got != want {
			t.Errorf("%q:\n got %s\nwant %s", spec, got, want)
		}
	}
}

// TestHardwareKeys: speeds, errors, traffic.
func TestHardwareKeys(t *testing.T) {
	f, o := mustParse(t, "fattree:k=4,levels=2,speed=edr,width=2x,errors=leaf-1/2+leaf-2/1@120/m,traffic=8Gb/s,vl15=3")
	leaf := func(name string, num int) *fabric.Port { return f.NodeByName(name)[0].Port(num) }
	want := SubnetOptions{Seed: 1, MKeyLevel: 1, Speed: "edr", Width: "2x", Traffic: 1e9, VL15: 3,
		Errors: []PortRate{{Port: leaf("leaf-1", 2), Rate: 2}, {Port: leaf("leaf-2", 1), Rate: 2}}}
	if diff := cmp.Diff(want, o, cmp.Comparer(func(a, b *fabric.Port) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	counts := map[string]int{"errors=3": 3, "errors=10%": 4, "errors=0": 0, "errors=100%@0": 32}
	for key, n := range counts {
		_, o := mustParse(t, "fattree:k=4,levels=2,"+key)
		if len(o.Errors) != n {
			t.Errorf("%s: %d ports", key, len(o.Errors))
		}
	}
	for _, bad := range []string{"speed=fast", "speed=fdr10", "width=3x", "errors=33", "errors=leaf-1", "errors=leaf-1/9", "errors=nobody/1", "errors=@1/s", "errors=1@fast", "errors=1@-1", "traffic=-1", "traffic=1GX/s", "traffic=NaN", "traffic=+Inf", "vl15=-1"} {
		if _, _, err := Parse("fattree:k=4,levels=2," + bad); err == nil {
			t.Error(bad)
		}
	}
	for text, want := range map[string]float64{"1e9": 1e9, "10GB/s": 1e10, "80Gb/s": 1e10, "1.5 kB/s": 1500, "2MB/s": 2e6, "1TB/s": 1e12, "8b/s": 1} {
		if got, ok := ParseBandwidth(text); !ok || got != want {
			t.Errorf("%s: %v %v", text, got, ok)
		}
	}
	for text, want := range map[string]float64{"2": 2, "2/s": 2, "60/m": 1, "7200/h": 2, "86400/d": 1} {
		if got, ok := ParseRate(text); !ok || got != want {
			t.Errorf("%s: %v %v", text, got, ok)
		}
	}
	for _, bad := range []string{"", "/s", "1/y", "-1", "NaN", "Inf", "1/s/s"} {
		if _, ok := ParseRate(bad); ok {
			t.Errorf("rate %q", bad)
		}
	}
}

// TestKeys: each key has a text and an example, which is of that key and is accepted.
func TestKeys(t *testing.T) {
	check := func(kind string, keys []Key) {
		seen := map[string]bool{}
		for _, k := range keys {
			if k.Doc == "" || seen[k.Name] || !strings.HasPrefix(k.Example, k.Name+"=") {
				t.Errorf("%s: key %+v", kind, k)
			}
			seen[k.Name] = true
			text := kind + ":" + k.Example
			if k.Name == "p" && kind == "pgft" {
				text = kind + ":m=4/8,w=1/4," + k.Example
			}
			if _, _, err := Parse(text); err != nil {
				t.Error(err)
			}
			if k.Default == "" {
				continue
			}
			if _, _, err := Parse(kind + ":" + k.Name + "=" + k.Default); err != nil {
				t.Error(err)
			}
		}
	}
	for _, k := range Kinds() {
		if k.Doc == "" {
			t.Errorf("%s has no text", k.Name)
		}
		check(k.Name, k.Keys)
	}
	check("fattree", GeneratedKeys())
	check("fattree", CommonKeys())
}

// Parse is ParseFiles with regular files.
func Parse(spec string) (*fabric.Fabric, SubnetOptions, error) {
	regular := func(name string) (io.ReadCloser, error) { return format.OpenRegular(name) }
	return ParseFiles(spec, regular, regular)
}
