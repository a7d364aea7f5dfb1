package format

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"fabsh/mad"
	"fabsh/mad/engine"
)

func TestReadKeys(t *testing.T) {
	const secret = "0x5ec2e7"
	for _, test := range []struct {
		name, text string
		want       engine.Keys
		err        string
	}{
		{"guid2mkey", "0x0002c90300001000 0x0000000000001111\n\n0x0002c90300001001 0x0000000000002222\n\n",
			engine.Keys{Ports: map[mad.GUID]uint64{0x0002c90300001000: 0x1111, 0x0002c90300001001: 0x2222}}, ""},
		{"one for all", "0x1000 0x1111\n\n0x1001 0x1111\n", engine.Keys{M: 0x1111, Ports: map[mad.GUID]uint64{0x1000: 0x1111, 0x1001: 0x1111}}, ""},
		{"one for all but the others", "0x1000 0x1111\nm_key 0\n", engine.Keys{Ports: map[mad.GUID]uint64{0x1000: 0x1111}}, ""},
		{"all names", "# all\nm_key 1\nsa_key=0x2\n sm_key 3 # that\ncc_key = 4\nb_key\t5\nvendor_key 0xffffffffffffffff",
			engine.Keys{M: 1, SA: 2, SM: 3, CC: 4, B: 5, Vendor: 1<<64 - 1, Ports: map[mad.GUID]uint64{}}, ""},
		{"nothing", "# nothing\n\n", engine.Keys{}, "keys: the file has no keys"},
		{"a key alone", secret, engine.Keys{}, "keys:1: expected one key of at most 64 bits, as 0x0000000000000000, after the GUID"},
		{"no name", "m_key 1\nmkey " + secret, engine.Keys{}, "keys:2: expected a GUID, as in 0x0002c90300001000, or one of m_key, sa_key, sm_key, cc_key, b_key, vendor_key, and then a key"},
		{"no number", "sa_key s5ec2e7", engine.Keys{}, "keys:1: expected one key of at most 64 bits, as 0x0000000000000000, after sa_key"},
		{"too long", "sa_key " + secret + "00000000000000", engine.Keys{}, "keys:1: expected one key of at most 64 bits, as 0x0000000000000000, after sa_key"},
		{"two", "sa_key 1 " + secret, engine.Keys{}, "keys:1: expected one key of at most 64 bits, as 0x0000000000000000, after sa_key"},
		{"twice", "0x10 1\n0x0010 " + secret, engine.Keys{}, "keys:2: expected the GUID only once; it is also in line 1"},
		{"GUID 0", "0 1", engine.Keys{}, "keys:1: expected a GUID, as in 0x0002c90300001000, or one of m_key, sa_key, sm_key, cc_key, b_key, vendor_key, and then a key"},
	} {
		keys, err := ReadKeys(strings.NewReader(test.text), "keys")
		if got := fmt.Sprint(err); test.err != "" && got != test.err || test.err == "" && err != nil {
			t.Errorf("%s: error %v\nwant %s", test.name, err, test.err)
		}
		if strings.Contains(strings.ToLower(fmt.Sprint(err)), "5ec2e7") {
			t.Errorf("%s: the key is shown", test.name)
		}
		if test.err == "" && (keys == nil || !reflect.DeepEqual(*keys, test.want)) {
			t.Errorf("%s: not the keys that are wanted", test.name)
		}
	}
}

func FuzzReadKeys(f *testing.F) {
	f.Add("0x0002c90300001000 0x0000000000001111\n\nsa_key=1 # x\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := ReadKeys(strings.NewReader(text), "keys")
		if (keys == nil) == (err == nil) {
			t.Error(keys, err)
		}
	})
}

// TestHoldsKeys: files of keys are recognised, also opensm.conf where it has other keys than OpenSM's
// defaults; lists of GUIDs with LIDs or ids are not.
func TestHoldsKeys(t *testing.T) {
	for text, want := range map[string]bool{
		"m_key 0x5ec2e7\n": true, "M_Key: 0x5ec2e7": true, "m_key,0x5ec2e7,x\n": true, `{"sm_key": "0x5ec2e7"}`: true, "vs_key 0x5ec2e7\n": true, "# x\nsa_key=77": true, "0x0002c90300001000 0x0000000012345678\n\n": true, "log_file /var/log\nm_key 0x5ec2e7 # x\nlmc 0\n": true,
		"": false, "m_key 0x0000000000000000\nsm_key 0x0000000000000001\n": false, "0x0002c90300001000 0x0005\n": false, "0x0002c90300001000 12\n": false, "m_key_lease_period 60\n": false, "# m_key 0x5ec2e7\n": false, "p_key 0x7fff\n": false, "0x0002c90300001000,0x0002c90300001008\n": false,
	} {
		if HoldsKeys([]byte(text)) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}
