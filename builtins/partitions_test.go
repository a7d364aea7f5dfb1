package builtins

import (
	"strings"
	"testing"
)

// TestPartitionFiles: partitions.conf as OpenSM reads it; what it would only warn
// of names the line.
func TestPartitionFiles(t *testing.T) {
	f := plain(t, nil)
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "[]"},
		{"comments", "# a\n\n  # b = 1 : ALL;\n", "[]"},
		{"all of it", "Default=0x7fff,ipoib,mtu=5 : ALL=full, SELF=full;\n", `[("Default", 32767, [("ALL", "full"), ("SELF", "full")])]`},
		{"several lines, several in one", "a=1 :\n\tALL_CAS,\n ALL_ROUTERS = full ; b=0x8002:0x2c9=both;", `[("a", 1, [("ALL_CAS", "limited"), ("ALL_ROUTERS", "full")]), ("b", 2, [("0x00000000000002c9", "both")])]`},
		{"default membership", "a=1, defmember=full : 7, 010, 0x10=limited;", `[("a", 1, [("0x0000000000000007", "full"), ("0x0000000000000008", "full"), ("0x0000000000000010", "limited")])]`},
		{"numbers that OpenSM chooses", "a : ALL; b=1 : ALL; c : ALL; a : SELF; Default : ALL=full;", `[("a", 1, [("ALL", "limited")]), ("b", 1, [("ALL", "limited")]), ("c", 2, [("ALL", "limited")]), ("a", 1, [("SELF", "limited")]), ("Default", 32767, [("ALL", "full")])]`},
		{"no name", "0x8003 : NONE;", `[("", 3, [])]`},
		{"a group", "a=1 : SELF, mgid=ff12:401b::1, sl=3;", `[("a", 1, [("SELF", "limited")])]`},
		{"no semicolon", "# x\n\na=1 : ALL\n", "read_partitions: partitions.conf:3: missing semicolon at the end of the partition"},
		{"no colon", "a=1;", "partitions.conf:1: invalid partition \"a=1\"; want NAME=P_KEY : MEMBERS"},
		{"no P_Key", "\na=0x8000 : ALL;", "partitions.conf:2: invalid P_Key \"0x8000\"; want 0x0001 to 0x7fff"},
		{"a P_Key of too many digits", "a=99999999999999999999999999 : ALL;", "partitions.conf:1: invalid P_Key \"99999999999999999999999999\"; want 0x0001 to 0x7fff"},
		{"no GUID", "a=1 : mlx5_0;", "partitions.conf:1: invalid member \"mlx5_0\"; want a port GUID, ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS or SELF"},
		{"a GUID of 65 bits", "a=1 : 18446744073709551616;", "partitions.conf:1: invalid member \"18446744073709551616\"; want a port GUID"},
		{"GUID 0", "a=1 : 0x0;", "partitions.conf:1: invalid member \"0x0\"; want a port GUID"},
		{"no membership", "a=1 : ALL=most;", "partitions.conf:1: invalid membership \"most\"; want full, limited or both"},
		{"no default membership", "a=1, defmember=none : ALL;", "partitions.conf:1: invalid defmember \"none\"; want full, limited or both"},
		{"bytes", "\xff\x00\x1b[2J : \x00;", "partitions.conf:1: invalid member \"\\x00\"; want a port GUID"},
		{"no P_Key left", strings.Repeat("\na=1:NONE;", 10) + "x0 : NONE;" + names(0x7fff), "partition \"n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, f.fs, "/work/partitions.conf", test.text)
			out, explained, _ := f.run(`load("@std//lib/partitions.star", "read_partitions")
print([(p["name"], p["pkey"], p["members"]) for p in read_partitions("partitions.conf")])`)
			if got := strings.TrimSpace(out); explained == "" && got != test.want || explained != "" && !strings.Contains(explained, strings.TrimPrefix(test.want, "read_partitions: ")) {
				t.Errorf("got  %s%s\nwant %s", got, explained, test.want)
			}
		})
	}
}

// names are so many partitions without a P_Key.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("n")
		b.WriteString(strings.Repeat("x", i%7))
		b.WriteByte(byte('a' + i%26))
		b.WriteByte(byte('a' + i/26%26))
		b.WriteByte(byte('a' + i/676%26))
		b.WriteByte(byte('a' + i/17576))
		b.WriteString(":NONE;\n")
	}
	return b.String()
}
