package mad

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCounters compares the bits of counters with libibmad's masks (mad.h,
// GS_PERF_*_MASK) and, where it has none, the order of its fields.
func TestCounters(t *testing.T) {
	for _, test := range []struct {
		attr *Attribute
		want string
	}{
		{AttrPortCounters, `counter_select: 0 symbol_error_counter, 1 link_error_recovery_counter, 2 link_downed_counter, 3 port_rcv_errors,
			4 port_rcv_remote_physical_errors, 5 port_rcv_switch_relay_errors, 6 port_xmit_discards, 7 port_xmit_constraint_errors,
			8 port_rcv_constraint_errors, 9 local_link_integrity_errors, 10 excessive_buffer_overrun_errors, 11 vl15_dropped,
			12 port_xmit_data, 13 port_rcv_data, 14 port_xmit_pkts, 15 port_rcv_pkts
			counter_select2: 0 port_xmit_wait, 1 qp1_dropped`},
		{AttrPortCountersExtended, `counter_select: 0 port_xmit_data, 1 port_rcv_data, 2 port_xmit_pkts, 3 port_rcv_pkts,
			4 port_unicast_xmit_pkts, 5 port_unicast_rcv_pkts, 6 port_multicast_xmit_pkts, 7 port_multicast_rcv_pkts
			counter_select2: 0 symbol_error_counter, 1 link_error_recovery_counter, 2 link_downed_counter, 3 port_rcv_errors,
			4 port_rcv_remote_physical_errors, 5 port_rcv_switch_relay_errors, 6 port_xmit_discards, 7 port_xmit_constraint_errors,
			8 port_rcv_constraint_errors, 9 local_link_integrity_errors, 10 excessive_buffer_overrun_errors, 11 vl15_dropped,
			12 port_xmit_wait, 13 qp1_dropped`},
		{AttrPortXmitDiscardDetails, `counter_select: 0 port_inactive_discards, 1 port_neighbor_mtu_discards,
			2 port_sw_lifetime_limit_discards, 3 port_sw_hoq_lifetime_limit_discards`},
		{AttrPortXmitDataSL, "counter_select: 0-15 port_xmit_data_sl"},
		{AttrPortExtendedSpeedsCounters.WithVariant("lanes"), `counter_select: 0 sync_header_error_counter, 1 unknown_block_counter,
			2-13 error_detection_counter_lane, 14-25 fec_correctable_block_ctr_lane, 26-37 fec_uncorrectable_block_ctr_lane`},
		{AttrPortSamplesControl, ""},
		{AttrPerfClassPortInfo, ""},
		{AttrPortInfo, ""},
	} {
		lists := map[string][]string{}
		for _, c := range test.attr.Counters() {
			bits := fmt.Sprint(c.Bit)
			if c.Count > 1 {
				bits += fmt.Sprintf("-%d", c.Bit+c.Count-1)
			}
			if want := (uint64(1)<<c.Count - 1) << c.Bit; c.Mask() != want {
				t.Errorf("%s.%s: mask %#x, want %#x", test.attr.Name, c.Name, c.Mask(), want)
			}
			lists[c.Select.Script] = append(lists[c.Select.Script], bits+" "+c.Script)
		}
		// QP1Dropped stands before PortXmitWait, but its bit is the second.
		if l := lists["counter_select2"]; len(l) > 0 && strings.HasPrefix(l[0], "1 ") {
			l[0], l[1] = l[1], l[0]
		}
		want := map[string][]string{}
		for line := range strings.Lines(strings.ReplaceAll(test.want, ",\n", ",")) {
			name, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
			for word := range strings.SplitSeq(list, ",") {
				want[name] = append(want[name], strings.TrimSpace(word))
			}
		}
		if diff := cmp.Diff(want, lists); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.attr.Name, diff)
		}
	}
}
